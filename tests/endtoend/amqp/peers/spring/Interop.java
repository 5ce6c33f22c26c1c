import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.Serializable;
import java.math.BigInteger;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.apache.qpid.proton.amqp.*;
import org.apache.qpid.proton.amqp.messaging.*;

/**
 * Does with Qpid JMS what interop.py says, with the bodies of messages: as object messages of AMQP's types. The measure is
 * what Proton-J, on which Qpid JMS stands, makes of a body. JMSType is the name of a case.
 */
public class Interop {
    static Object simple(String kind, JsonNode value) {
        String text = value.asText();
        HexFormat hex = HexFormat.of();
        return switch (kind) {
            case "null" -> null;
            case "boolean" -> value.asBoolean();
            case "ubyte" -> UnsignedByte.valueOf(text);
            case "ushort" -> UnsignedShort.valueOf(text);
            case "uint" -> UnsignedInteger.valueOf(text);
            case "ulong" -> UnsignedLong.valueOf(text);
            case "byte" -> Byte.valueOf(text);
            case "short" -> Short.valueOf(text);
            case "int" -> Integer.valueOf(text);
            case "long" -> Long.valueOf(text);
            case "float" -> Float.intBitsToFloat(Integer.parseUnsignedInt(text, 16));
            case "double" -> Double.longBitsToDouble(Long.parseUnsignedLong(text, 16));
            case "decimal32" -> new Decimal32(Integer.parseUnsignedInt(text, 16));
            case "decimal64" -> new Decimal64(Long.parseUnsignedLong(text, 16));
            case "decimal128" -> new Decimal128(hex.parseHex(text));
            case "char" -> (char) Character.codePointAt(Character.toChars(Integer.parseInt(text)), 0);
            case "timestamp" -> new Date(Long.parseLong(text));
            case "uuid" -> new UUID(new BigInteger(text.substring(0, 16), 16).longValue(), new BigInteger(text.substring(16), 16).longValue());
            case "binary" -> new Binary(hex.parseHex(text));
            case "string" -> text;
            case "symbol" -> Symbol.valueOf(text);
            default -> throw new IllegalArgumentException("no type of JMS: " + kind);
        };
    }

    static Object made(JsonNode typed) {
        String kind = typed.get(0).asText();
        if (kind.equals("list")) {
            List<Object> found = new ArrayList<>();
            typed.get(1).forEach(one -> found.add(made(one)));
            return found;
        }
        if (kind.equals("map")) {
            Map<Object, Object> found = new LinkedHashMap<>();
            typed.get(1).forEach(pair -> found.put(made(pair.get(0)), made(pair.get(1))));
            return found;
        }
        if (kind.equals("array") && typed.get(1).get(1).size() > 0) {
            List<Object> found = new ArrayList<>();
            typed.get(1).get(1).forEach(one -> found.add(simple(typed.get(1).get(0).asText(), one)));
            Object[] array = (Object[]) java.lang.reflect.Array.newInstance(found.get(0).getClass(), found.size());
            return found.toArray(array);
        }
        return simple(kind, typed.get(1));
    }

    /** The body of a case, which JMS has to take as an object. */
    static Serializable body(JsonNode item) {
        Object value = made(item.get("body"));
        boolean taken = value == null || value instanceof String || value instanceof Map || value instanceof List;
        if (!taken && !value.getClass().isArray()) {
            throw new IllegalArgumentException("no body of an object message: " + value.getClass().getSimpleName());
        }
        return (Serializable) value;
    }

    static byte[] shownBytes(Binary binary) {
        int at = binary.getArrayOffset();
        return Arrays.copyOfRange(binary.getArray(), at, at + binary.getLength());
    }

    static String shown(Object value) {
        if (value instanceof Binary binary) {
            value = shownBytes(binary);
        }
        if (value instanceof Map<?, ?> map) {
            List<String> found = new ArrayList<>();
            map.forEach((key, one) -> found.add(shown(key) + "=" + shown(one)));
            Collections.sort(found);
            return "map" + found;
        }
        if (value instanceof List<?> list) {
            return "list" + list.stream().map(Interop::shown).toList();
        }
        if (value != null && value.getClass().isArray()) {
            List<String> found = new ArrayList<>();
            for (int at = 0; at < java.lang.reflect.Array.getLength(value); at++) {
                found.add(shown(java.lang.reflect.Array.get(value, at)));
            }
            return value.getClass().getSimpleName() + found;
        }
        if (value instanceof DescribedType described) {
            return "described " + shown(described.getDescriptor()) + " " + shown(described.getDescribed());
        }
        return value == null ? "null" : value.getClass().getSimpleName() + " " + value;
    }

    static String decoded(String digits) {
        org.apache.qpid.proton.message.Message said = org.apache.qpid.proton.message.Message.Factory.create();
        byte[] data = HexFormat.of().parseHex(digits);
        said.decode(data, 0, data.length);
        Section body = said.getBody();
        if (body instanceof AmqpValue value) {
            Object held = value.getValue();
            if (held != null && !(held instanceof Serializable) && !(held instanceof Binary)) {
                throw new IllegalArgumentException("not serializable: " + held.getClass().getSimpleName());
            }
            return shown(held);
        }
        if (body == null) {
            return shown(new byte[0]);
        }
        if (body instanceof AmqpSequence sequence) {
            return shown(sequence.getValue());
        }
        Binary bytes = ((Data) body).getValue();
        String type = said.getContentType();
        return shown(type != null && type.startsWith("text/") ? new String(shownBytes(bytes)) : bytes);
    }

    static String encoded(JsonNode item) {
        org.apache.qpid.proton.message.Message said = org.apache.qpid.proton.message.Message.Factory.create();
        said.setBody(new AmqpValue(body(item)));
        said.setSubject(item.get("name").asText());
        byte[] data = new byte[1 << 20];
        return HexFormat.of().formatHex(data, 0, said.encode(data, 0, data.length));
    }

    static String told(Message message) throws Exception {
        if (message instanceof TextMessage text) {
            return shown(text.getText());
        }
        if (message instanceof BytesMessage bytes) {
            return shown(bytes.getBodyLength() == 0 ? new byte[0] : message.getBody(byte[].class));
        }
        if (message instanceof StreamMessage stream) {
            List<Object> found = new ArrayList<>();
            try {
                while (true) {
                    found.add(stream.readObject());
                }
            } catch (MessageEOFException end) {
                return shown(found);
            }
        }
        return shown(message instanceof ObjectMessage object ? object.getObject() : null);
    }

    interface Attempt {
        String made() throws Exception;
    }

    static void attempt(String name, Attempt what) {
        String found;
        try {
            found = what.made();
        } catch (Exception | Error problem) {
            found = "cannot\t" + problem.toString().replace("\n", " ");
        }
        System.out.println(name + "\t" + found.replace("\n", "\\n"));
    }

    public static void main(String[] words) throws Exception {
        if (words[0].equals("encode")) {
            for (JsonNode one : new ObjectMapper().readTree(new File(words[1]))) {
                if (one.has("body")) {
                    attempt(one.get("name").asText(), () -> encoded(one));
                }
            }
            return;
        }
        if (words[0].equals("decode")) {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line; (line = lines.readLine()) != null;) {
                String[] pair = line.split("\t");
                attempt(pair[0], () -> decoded(pair[1]));
            }
            return;
        }
        boolean framed = words[0].equals("receive") ? !words[4].equals("0") : words[3].equals("receive");
        String frame = framed ? "?amqp.maxFrameSize=" + words[4] : "";
        try (Connection connection = new JmsConnectionFactory(words[1] + frame).createConnection()) {
            connection.start();
            Session session = connection.createSession();
            jakarta.jms.Queue queue = session.createQueue(words[2].substring("queue://".length()));
            if (words[0].equals("send")) {
                MessageProducer producer = session.createProducer(queue);
                List<String> names = Arrays.asList(words).subList(4, words.length);
                for (JsonNode one : new ObjectMapper().readTree(new File(words[3]))) {
                    if (one.has("body") && names.contains(one.get("name").asText())) {
                        ObjectMessage said = session.createObjectMessage();
                        said.setBooleanProperty("JMS_AMQP_TYPED_ENCODING", true);
                        said.setObject(body(one));
                        said.setJMSType(one.get("name").asText());
                        producer.send(said);
                    }
                }
            } else if (words[0].equals("receive")) {
                MessageConsumer consumer = session.createConsumer(queue);
                for (int left = Integer.parseInt(words[3]); left > 0; left--) {
                    Message said = consumer.receive(30_000);
                    attempt(said.getJMSType(), () -> told(said));
                }
            } else if (words[3].equals("send")) {
                byte[] body = new byte[Integer.parseInt(words[4])];
                for (int at = 0; at < body.length; at++) {
                    body[at] = (byte) (at % 251);
                }
                BytesMessage said = session.createBytesMessage();
                said.writeBytes(body);
                session.createProducer(queue).send(said);
            } else {
                byte[] body = session.createConsumer(queue).receive(60_000).getBody(byte[].class);
                byte[] digest = MessageDigest.getInstance("SHA-256").digest(body);
                System.out.println(body.length + " " + HexFormat.of().formatHex(digest));
            }
        }
    }
}
