/* Sends every byte back to where it came from: what sockets, kernel and scheduler cost a message without a broker.
   Prints "ready echo=127.0.0.1:PORT". One thread, one epoll, no timer. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    struct epoll_event ready[256], wanted = {.events = EPOLLIN};
    static char buffer[65536];
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);

    if (listener < 0 || poll < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096) ||
        getsockname(listener, (struct sockaddr *)&address, &size))
        return 1;
    wanted.data.fd = listener;
    if (epoll_ctl(poll, EPOLL_CTL_ADD, listener, &wanted))
        return 1;
    printf("ready echo=127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        int count = epoll_wait(poll, ready, 256, -1);
        for (int i = 0; i < count; i++) {
            int fd = ready[i].data.fd;
            if (fd == listener) {
                int client = accept(listener, NULL, NULL);
                if (client < 0)
                    continue;
                setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                wanted.data.fd = client;
                epoll_ctl(poll, EPOLL_CTL_ADD, client, &wanted);
                continue;
            }
            ssize_t got = recv(fd, buffer, sizeof buffer, 0);
            if (got <= 0 || send(fd, buffer, got, MSG_NOSIGNAL) != got)
                close(fd);
        }
    }
}
