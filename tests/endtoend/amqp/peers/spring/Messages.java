import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.apache.qpid.jms.JmsDestination;
import org.apache.qpid.jms.JmsSession;
import org.apache.qpid.jms.message.JmsMessageIDBuilder;
import org.apache.qpid.jms.policy.JmsMessageIDPolicy;
import org.apache.qpid.proton.amqp.Binary;

/**
 * Messages of JMS that a file describes (jms.yaml). serialized CASES: object messages as NAME, a tab, the bytes of the
 * object. send URL QUEUE CASES NAME…: sends these, and prints the names of temporary destinations. receive URL QUEUE CASES
 * NAME…: receives these in their order, a line of each.
 */
public class Messages {
    /** Each message has the id that its case gives it. */
    static class Ids implements JmsMessageIDPolicy, JmsMessageIDBuilder {
        Object next;

        @Override
        public JmsMessageIDPolicy copy() {
            return this;
        }

        @Override
        public JmsMessageIDBuilder getMessageIDBuilder(JmsSession session, JmsDestination destination) {
            return this;
        }

        @Override
        public Object createMessageID(String producer, long number) {
            return next;
        }
    }

    static Object value(JsonNode typed) {
        Object made = typed.get(0).asText().equals("char") ? (Object) (char) typed.get(1).asInt()
            : Interop.simple(typed.get(0).asText(), typed.get(1));
        return made instanceof Binary binary ? Interop.shownBytes(binary) : made;
    }

    static List<Object> values(JsonNode item) {
        List<Object> found = new ArrayList<>();
        item.get("values").forEach(one -> found.add(value(one)));
        return found;
    }

    static void write(BytesMessage to, Object value) throws JMSException {
        if (value instanceof String text) {
            to.writeUTF(text);
        } else {
            to.writeObject(value);
        }
    }

    static Object read(BytesMessage from, JsonNode typed) throws JMSException {
        return switch (typed.get(0).asText()) {
            case "boolean" -> from.readBoolean();
            case "byte" -> from.readByte();
            case "short" -> from.readShort();
            case "char" -> from.readChar();
            case "int" -> from.readInt();
            case "long" -> from.readLong();
            case "float" -> from.readFloat();
            case "double" -> from.readDouble();
            case "string" -> from.readUTF();
            default -> {
                byte[] read = new byte[((byte[]) value(typed)).length];
                from.readBytes(read);
                yield read;
            }
        };
    }

    static Message message(Session session, JsonNode item) throws JMSException {
        switch (item.get("kind").asText()) {
            case "text":
                return session.createTextMessage(item.get("text").isNull() ? null : item.get("text").asText());
            case "bytes":
                BytesMessage bytes = session.createBytesMessage();
                for (Object one : values(item)) {
                    write(bytes, one);
                }
                return bytes;
            case "map":
                MapMessage map = session.createMapMessage();
                List<Object> held = values(item);
                for (int at = 0; at < held.size(); at++) {
                    map.setObject(item.get("with").get(at).asText(), held.get(at));
                }
                return map;
            case "stream":
                StreamMessage stream = session.createStreamMessage();
                for (Object one : values(item)) {
                    stream.writeObject(one);
                }
                return stream;
            case "object":
                return session.createObjectMessage((Serializable) values(item).get(0));
            default:
                return session.createMessage();
        }
    }

    static Destination replies(Session session, JsonNode given, String name) throws JMSException {
        String text = given.get(1).asText();
        Destination made = switch (given.get(0).asText()) {
            case "queue" -> session.createQueue(text);
            case "topic" -> session.createTopic(text);
            case "temporary-queue" -> session.createTemporaryQueue();
            default -> session.createTemporaryTopic();
        };
        if (text.isEmpty()) {
            System.out.println(name + "\t" + ((JmsDestination) made).getAddress());
        }
        return made;
    }

    static void send(Session session, MessageProducer producer, JsonNode item) throws JMSException {
        Message said = message(session, item);
        if (item.has("type")) {
            said.setJMSType(item.get("type").asText());
        }
        if (item.has("correlation")) {
            Object id = value(item.get("correlation"));
            switch (item.get("correlation").get(0).asText()) {
                case "binary" -> said.setJMSCorrelationIDAsBytes((byte[]) id);
                case "uuid" -> said.setJMSCorrelationID("ID:AMQP_UUID:" + id);
                case "ulong" -> said.setJMSCorrelationID("ID:AMQP_ULONG:" + id);
                default -> said.setJMSCorrelationID((String) id);
            }
        }
        if (item.has("reply_to")) {
            said.setJMSReplyTo(replies(session, item.get("reply_to"), item.get("name").asText()));
        }
        for (Map.Entry<String, JsonNode> one : item.path("properties").properties()) {
            said.setObjectProperty(one.getKey(), value(one.getValue()));
        }
        int mode = item.path("persistent").asBoolean(true) ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT;
        producer.send(said, mode, item.path("priority").asInt(4), item.path("ttl").asLong(0));
    }

    static String shown(Object value) {
        return value instanceof byte[] bytes ? "byte[] " + HexFormat.of().formatHex(bytes) : Interop.shown(value);
    }

    static String body(Message said, JsonNode item) throws JMSException {
        List<String> found = new ArrayList<>();
        if (said instanceof TextMessage text) {
            found.add(shown(text.getText()));
        } else if (said instanceof MapMessage map) {
            for (Object name : Collections.list(map.getMapNames())) {
                found.add(name + "=" + shown(map.getObject((String) name)));
            }
            Collections.sort(found);
        } else if (said instanceof ObjectMessage object) {
            found.add(shown(object.getObject()));
        } else if (said instanceof BytesMessage bytes) {
            for (JsonNode one : item.path("values")) {
                found.add(shown(read(bytes, one)));
            }
            found.add("then " + bytes.readBytes(new byte[1]));
        } else if (said instanceof StreamMessage stream) {
            try {
                while (true) {
                    found.add(shown(stream.readObject()));
                }
            } catch (MessageEOFException end) {
                found.add("end");
            }
        }
        return found.toString();
    }

    static String destination(Destination given) {
        String kind = given instanceof TemporaryQueue ? "temporary queue " : given instanceof TemporaryTopic ? "temporary topic "
            : given instanceof Queue ? "queue " : "topic ";
        return given == null ? "none" : kind + ((JmsDestination) given).getAddress();
    }

    static String bytesOfId(Message said) {
        try {
            return shown(said.getJMSCorrelationIDAsBytes());
        } catch (JMSException problem) {
            return problem.getClass().getSimpleName();
        }
    }

    static String told(Message said, JsonNode item) throws JMSException {
        List<String> properties = new ArrayList<>();
        for (Object name : Collections.list(said.getPropertyNames())) {
            properties.add(name + "=" + shown(said.getObjectProperty((String) name)) + "=" + said.getStringProperty((String) name));
        }
        Collections.sort(properties);
        long made = said.getJMSTimestamp();
        long ends = said.getJMSExpiration();
        // What was sent now is told by how long it lives.
        boolean now = Math.abs(made - System.currentTimeMillis()) < 86_400_000;
        List<Object> found = Arrays.asList(said.getClass().getSimpleName(), said.getJMSType(), said.getJMSCorrelationID(),
            bytesOfId(said), destination(said.getJMSReplyTo()), destination(said.getJMSDestination()), said.getJMSDeliveryMode(),
            said.getJMSPriority(), said.getJMSMessageID(), now ? "now" : made, now && ends > 0 ? ends - made : ends > 0,
            said.getJMSRedelivered(), properties, body(said, item));
        return found.toString().replace("\n", "\\n");
    }

    static String serialized(JsonNode item) throws IOException {
        ByteArrayOutputStream made = new ByteArrayOutputStream();
        try (ObjectOutputStream to = new ObjectOutputStream(made)) {
            to.writeObject(values(item).get(0));
        }
        return HexFormat.of().formatHex(made.toByteArray());
    }

    public static void main(String[] words) throws Exception {
        int file = words[0].equals("serialized") ? 1 : 3;
        List<String> names = Arrays.asList(words).subList(file + 1, words.length);
        List<JsonNode> cases = new ArrayList<>();
        new ObjectMapper().readTree(new File(words[file])).forEach(cases::add);
        if (words[0].equals("serialized")) {
            for (JsonNode one : cases) {
                if (one.get("kind").asText().equals("object")) {
                    System.out.println(one.get("name").asText() + "\t" + serialized(one));
                }
            }
            return;
        }
        cases.removeIf(one -> !names.contains(one.get("name").asText()));
        JmsConnectionFactory factory = new JmsConnectionFactory(words[1]);
        Ids ids = new Ids();
        factory.setMessageIDPolicy(ids);
        try (Connection connection = factory.createConnection()) {
            connection.start();
            Session session = connection.createSession();
            Queue queue = session.createQueue(words[2]);
            if (words[0].equals("send")) {
                MessageProducer producer = session.createProducer(queue);
                for (JsonNode one : cases) {
                    ids.next = Interop.simple(one.get("id").get(0).asText(), one.get("id").get(1));
                    send(session, producer, one);
                }
            } else {
                MessageConsumer consumer = session.createConsumer(queue);
                for (JsonNode one : cases) {
                    String name = one.get("name").asText();
                    Message said = consumer.receive(30_000);
                    Interop.attempt(name, () -> told(said, one));
                }
            }
        }
    }
}
