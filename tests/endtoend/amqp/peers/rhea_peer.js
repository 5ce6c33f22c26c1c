// Sends a text to an address, or receives messages from it, with rhea: HOST PORT send ADDRESS TEXT, HOST PORT receive
// ADDRESS COUNT. Each message that comes is one line: its kind, a colon, its body.
const rhea = require(process.env.RHEA || 'rhea');

const [host, port, action, address, word] = process.argv.slice(2);
const container = rhea.create_container();
let left = Number(word);

function show(body) {
    if (body && body.typecode === 0x75) {
        console.log('bytes:' + body.content.toString());
    } else if (Buffer.isBuffer(body)) {
        console.log('bytes:' + body.toString());
    } else {
        console.log('text:' + body);
    }
}

container.on('connection_open', function (context) {
    if (action === 'send') {
        context.connection.open_sender(address);
    } else {
        context.connection.open_receiver({source: address, credit_window: 0, autoaccept: false}).add_credit(left);
    }
});
container.once('sendable', function (context) {
    context.sender.send({body: word, durable: true, application_properties: {peer: 'rhea'}});
});
container.on('accepted', function (context) {
    context.connection.close();
});
container.on('message', function (context) {
    show(context.message.body);
    context.delivery.accept();
    left -= 1;
    if (left === 0) {
        context.connection.close();
    }
});
for (const event of ['rejected', 'connection_error', 'sender_error', 'receiver_error', 'disconnected']) {
    container.on(event, function (context) {
        if (event !== 'disconnected' || context.error) {
            console.error(event, String(context.error || context.delivery));
            process.exit(1);
        }
    });
}
container.connect({host, port: Number(port), reconnect: false});
