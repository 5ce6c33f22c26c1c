/* Takes requests of HTTP/1.1 with a Content-Length and answers each with 204: what a client can send, without a
   server's work. One argument: the port. Every tenth of a second a line with monotonic nanoseconds and the requests
   taken so far goes to stderr. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 1024
#define ROOM 65536

static const char ANSWER[] = "HTTP/1.1 204 No Content\r\nServer: sink\r\n\r\n";

struct connection {
    size_t have;
    char data[ROOM];
};

static struct connection *known[MOST];
static unsigned long long taken;

static long long now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* The bytes of the first request, 0 where it is not complete. */
static size_t request(char *data, size_t have)
{
    char *end = memmem(data, have, "\r\n\r\n", 4);
    if (!end)
        return 0;
    size_t length = 0;
    for (char *line = data; line < end;) {
        char *next = memmem(line, end + 2 - line, "\r\n", 2);
        if (!strncasecmp(line, "content-length:", 15))
            length = strtoul(line + 15, NULL, 10);
        line = next + 2;
    }
    size_t size = end + 4 - data + length;
    return size <= have ? size : 0;
}

static int serve(int fd)
{
    struct connection *one = known[fd];
    ssize_t got = read(fd, one->data + one->have, ROOM - one->have);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    one->have += got;
    size_t at = 0, size;
    while ((size = request(one->data + at, one->have - at))) {
        at += size;
        taken++;
        if (write(fd, ANSWER, sizeof ANSWER - 1) != (ssize_t)sizeof ANSWER - 1)
            return 0;
    }
    memmove(one->data, one->data + at, one->have - at);
    one->have -= at;
    return 1;
}

int main(int argc, char **argv)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(argc > 1 ? atoi(argv[1]) : 0)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024))
        return perror("bind"), 1;
    int poll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[64];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    long long told = 0;
    for (;;) {
        int count = epoll_wait(poll, events, 64, 100);
        for (int index = 0; index < count; index++) {
            int fd = events[index].data.fd;
            if (fd == listener) {
                fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                if (fd < 0 || fd >= MOST)
                    continue;
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                known[fd] = calloc(1, sizeof **known);
                event.data.fd = fd;
                epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
            } else if (!serve(fd)) {
                free(known[fd]);
                known[fd] = NULL;
                close(fd);
            }
        }
        long long time = now_ns();
        if (time - told > 100000000) {
            told = time;
            fprintf(stderr, "%lld %llu\n", time, taken);
        }
    }
}
