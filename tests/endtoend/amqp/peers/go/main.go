// Command goamqp sends a text to an address, or receives messages from it, with go-amqp: URL send ADDRESS TEXT, URL
// receive ADDRESS COUNT. Each message that comes is one line: its kind, a colon, its body.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	amqp "github.com/Azure/go-amqp"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	if os.Args[1] == "interop" {
		interop(os.Args[2:])
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	url, action, address, word := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	options := &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()}
	connection, err := amqp.Dial(ctx, url, options)
	check(err)
	session, err := connection.NewSession(ctx, nil)
	check(err)
	if action == "send" {
		sender, err := session.NewSender(ctx, address, nil)
		check(err)
		message := amqp.NewMessage([]byte(word))
		message.Header = &amqp.MessageHeader{Durable: true}
		check(sender.Send(ctx, message, nil))
	} else {
		count, err := strconv.Atoi(word)
		check(err)
		receiver, err := session.NewReceiver(ctx, address, nil)
		check(err)
		for i := 0; i < count; i++ {
			message, err := receiver.Receive(ctx, nil)
			check(err)
			check(receiver.AcceptMessage(ctx, message))
			if message.Value != nil {
				fmt.Printf("text:%v\n", message.Value)
			} else {
				fmt.Printf("bytes:%s\n", message.GetData())
			}
		}
	}
	check(connection.Close())
}
