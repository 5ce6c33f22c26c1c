// Does with rhea what interop.py says.
const fs = require('fs');
const crypto = require('crypto');
const util = require('util');
const rhea = require(process.env.RHEA || 'rhea');

const types = rhea.types;
const [action, url, address, ...words] = process.argv.slice(2);

const hex = (text) => Buffer.from(text, 'hex');
function wide(text) {
    const buffer = Buffer.alloc(8);
    buffer.writeBigUInt64BE(BigInt.asUintN(64, BigInt(text)));
    return buffer;
}
const SIMPLE = {
    null: () => new types.Null(),
    boolean: (value) => types.wrap_boolean(value),
    ubyte: (text) => types.wrap_ubyte(Number(text)),
    ushort: (text) => types.wrap_ushort(Number(text)),
    uint: (text) => types.wrap_uint(Number(text)),
    ulong: (text) => new types.Ulong(wide(text)),
    byte: (text) => types.wrap_byte(Number(text)),
    short: (text) => types.wrap_short(Number(text)),
    int: (text) => types.wrap_int(Number(text)),
    long: (text) => new types.Long(wide(text)),
    float: (text) => types.wrap_float(hex(text).readFloatBE(0)),
    double: (text) => types.wrap_double(hex(text).readDoubleBE(0)),
    decimal32: (text) => new types.Decimal32(hex(text)),
    decimal64: (text) => new types.Decimal64(hex(text)),
    decimal128: (text) => new types.Decimal128(hex(text)),
    char: (text) => new types.CharUTF32(wide(text).subarray(4)),
    timestamp: (text) => types.wrap_timestamp(Number(text)),
    uuid: (text) => new types.Uuid(hex(text)),
    binary: (text) => types.wrap_binary(hex(text)),
    // The widths of wrap_string count characters, and not bytes.
    string: (text) => new types.Str32(text),
    symbol: (text) => types.wrap_symbol(text),
};
const CODES = {boolean: 0x56, byte: 0x51, short: 0x61, int: 0x71, long: 0x81, uint: 0x70, ulong: 0x80, double: 0x82,
    string: 0xb1, symbol: 0xb3, timestamp: 0x83, uuid: 0x98};

function made([kind, value]) {
    if (kind === 'list') {
        return types.wrap_list(value.map(made));
    }
    if (kind === 'map') {
        return new types.Map32(value.flatMap(([key, one]) => [made(key), made(one)]));
    }
    if (kind === 'array') {
        return types.wrap_array(value[1].map((one) => SIMPLE[value[0]](one).value), CODES[value[0]]);
    }
    if (kind === 'described') {
        return types.described(made(value[0]), made(value[1]));
    }
    return SIMPLE[kind](value);
}

function all(given) {
    return Object.fromEntries(Object.entries(given || {}).map(([name, typed]) => [name, made(typed)]));
}

function message(one) {
    const said = {...one.header};
    if (one.subject !== null) {
        said.subject = one.subject === undefined ? one.name : one.subject;
    }
    for (const [name, value] of Object.entries(one.properties || {})) {
        said[name] = Array.isArray(value) ? made(value) : name === 'user_id' ? hex(value) : value;
    }
    if (one.data !== undefined) {
        said.body = rhea.message.data_section(hex(one.data));
    } else if (one.parts) {
        said.body = rhea.message.data_sections(one.parts.map(hex));
    } else if (one.sequence) {
        said.body = rhea.message.sequence_section(one.sequence.map(made));
    } else {
        said.body = made(one.body);
    }
    if (one.application) {
        said.application_properties = all(one.application);
    }
    if (one.annotations) {
        said.message_annotations = all(one.annotations);
    }
    return said;
}

// When it was made and when it ends; of one that was made just now how long it lives.
function times({creation_time: made, absolute_expiry_time: ends}) {
    return Math.abs(made - Date.now()) < 86400000 ? ['now', ends && ends - made] : [made, ends];
}

function told(said) {
    const fields = ['message_id', 'user_id', 'to', 'reply_to', 'correlation_id', 'content_type', 'content_encoding',
        'group_id', 'group_sequence', 'reply_to_group_id'].map((name) => said[name]).concat(times(said));
    const shown = [said.subject, !!said.durable, said.priority === undefined ? 4 : said.priority, said.ttl > 0, fields,
        said.application_properties, said.message_annotations];
    const how = {depth: null, sorted: true, compact: true, breakLength: Infinity, maxArrayLength: null, maxStringLength: null};
    return util.inspect(shown, how) + '\t' + util.inspect(said.body, how);
}

function attempts(pairs, what) {
    for (const [name, given] of pairs) {
        try {
            console.log(name + '\t' + what(given));
        } catch (problem) {
            console.log(name + '\tcannot\t' + String(problem).replace(/\n/g, ' '));
        }
    }
}

function connected(receiving, frame) {
    const [, host, port] = /^amqp:\/\/([^:]+):(\d+)/.exec(url);
    const container = rhea.create_container();
    for (const event of ['rejected', 'connection_error', 'sender_error', 'receiver_error', 'disconnected']) {
        container.on(event, (context) => {
            if (event !== 'disconnected' || context.error) {
                console.error(event, String(context.error || util.inspect(context.delivery && context.delivery.remote_state)));
                process.exit(1);
            }
        });
    }
    container.connect({host, port: Number(port), reconnect: false, ...(frame ? {max_frame_size: frame} : {})});
    return container;
}

function sendAll(messages) {
    const container = connected();
    let open = messages.length;
    container.on('connection_open', (context) => context.connection.open_sender(address));
    container.once('sendable', (context) => messages.forEach((one) => context.sender.send(one)));
    container.on('accepted', (context) => {
        open -= 1;
        if (open === 0) {
            context.connection.close();
        }
    });
}

function receive(count, frame, show) {
    const container = connected(true, frame);
    container.on('connection_open', (context) => {
        context.connection.open_receiver({source: address, credit_window: 0, autoaccept: false}).add_credit(count);
    });
    container.on('message', (context) => {
        console.log(show(context.message));
        context.delivery.accept();
        count -= 1;
        if (count === 0) {
            context.connection.close();
        }
    });
}

if (action === 'encode') {
    const cases = JSON.parse(fs.readFileSync(url));
    attempts(cases.map((one) => [one.name, one]), (one) => rhea.message.encode(message(one)).toString('hex'));
} else if (action === 'decode') {
    const lines = fs.readFileSync(0, 'utf8').split('\n').filter(Boolean).map((line) => line.split('\t'));
    attempts(lines, (digits) => told(rhea.message.decode(hex(digits))));
} else if (action === 'send') {
    sendAll(JSON.parse(fs.readFileSync(words[0])).filter((one) => words.includes(one.name, 1)).map(message));
} else if (action === 'receive') {
    receive(Number(words[0]), Number(words[1]), (said) => said.subject + '\t' + told(said));
} else if (words[0] === 'send') {
    const body = Buffer.alloc(Number(words[1]), Buffer.from([...Array(251).keys()]));
    sendAll([{durable: true, body: rhea.message.data_section(body)}]);
} else {
    receive(1, Number(words[1]), (said) => {
        const body = said.body.content;
        return body.length + ' ' + crypto.createHash('sha256').update(body).digest('hex');
    });
}
