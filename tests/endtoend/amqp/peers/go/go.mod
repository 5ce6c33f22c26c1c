module vpnrouter.example/peers

go 1.22

require github.com/Azure/go-amqp v1.4.0
