import jakarta.jms.BytesMessage;
import jakarta.jms.Destination;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotReadableException;
import jakarta.jms.MessageNotWriteableException;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/** The five types of messages and those without a body, as they come out of a queue. */
final class Bodies {
    private Bodies() {}

    static void add(Scenarios suite) {
        texts(suite);
        bytes(suite);
        maps(suite);
        streams(suite);
        objects(suite);
        whole(suite);
    }

    private static void texts(Scenarios suite) {
        Map<String, String> bodies =
                Map.of("a word", "word", "no characters", "", "Unicode", "Grüße 世界 \uD83D\uDE00", "a line end", "a\r\nb\n\0c");
        for (String name : new TreeSet<>(bodies.keySet())) {
            suite.add("text of " + name, site -> {
                Session session = site.session();
                Site.is(bodies.get(name), site.through(session, session.createTextMessage(bodies.get(name))).getText());
            });
        }
        suite.add("text that is null", site -> {
            Session session = site.session();
            TextMessage found = site.through(session, session.createTextMessage());
            Site.is(null, found.getText());
            Site.is(null, found.getBody(String.class));
        });
        for (int kilobytes : new int[] {100, 1_000, 5_000}) {
            suite.add("text of " + kilobytes + " kB", site -> {
                Session session = site.session();
                String text = "x".repeat(kilobytes * 1_000);
                Site.check(text.equals(site.through(session, session.createTextMessage(text)).getText()), "another text");
            });
        }
    }

    private static void bytes(Scenarios suite) {
        suite.add("bytes: every type", site -> {
            Session session = site.session();
            BytesMessage sent = session.createBytesMessage();
            sent.writeBoolean(true);
            sent.writeByte((byte) -1);
            sent.writeShort((short) -2);
            sent.writeChar('ü');
            sent.writeInt(-3);
            sent.writeLong(Long.MIN_VALUE);
            sent.writeFloat(1.5f);
            sent.writeDouble(Math.PI);
            sent.writeUTF("Grüße");
            sent.writeBytes(new byte[] {1, 2, 3});
            BytesMessage found = site.through(session, sent);
            Site.is(true, found.readBoolean());
            Site.is(255, found.readUnsignedByte());
            Site.is((short) -2, found.readShort());
            Site.is('ü', found.readChar());
            Site.is(-3, found.readInt());
            Site.is(Long.MIN_VALUE, found.readLong());
            Site.is(1.5f, found.readFloat());
            Site.is(Math.PI, found.readDouble());
            Site.is("Grüße", found.readUTF());
            byte[] rest = new byte[10];
            Site.is(3, found.readBytes(rest));
            Site.is(-1, found.readBytes(rest));
            Site.fails(MessageEOFException.class, found::readByte);
        });
        suite.add("bytes: read again after reset", site -> {
            Session session = site.session();
            BytesMessage sent = session.createBytesMessage();
            sent.writeLong(7);
            BytesMessage found = site.through(session, sent);
            Site.is(8L, found.getBodyLength());
            Site.is(7L, found.readLong());
            found.reset();
            Site.is(7L, found.readLong());
        });
        suite.add("bytes: none", site -> {
            Session session = site.session();
            BytesMessage found = site.through(session, session.createBytesMessage());
            Site.is(0L, found.getBodyLength());
            Site.fails(MessageEOFException.class, found::readByte);
        });
        suite.add("bytes: a megabyte of each value", site -> {
            Session session = site.session();
            byte[] body = new byte[1 << 20];
            for (int at = 0; at < body.length; at++) {
                body[at] = (byte) at;
            }
            BytesMessage sent = session.createBytesMessage();
            sent.writeBytes(body);
            Site.check(Arrays.equals(body, site.through(session, sent).getBody(byte[].class)), "other bytes");
        });
    }

    private static void maps(Scenarios suite) {
        suite.add("map: every type", site -> {
            Session session = site.session();
            MapMessage sent = session.createMapMessage();
            sent.setBoolean("boolean", true);
            sent.setByte("byte", (byte) 1);
            sent.setShort("short", (short) 2);
            sent.setChar("char", 'c');
            sent.setInt("int", 3);
            sent.setLong("long", 4L);
            sent.setFloat("float", 5.5f);
            sent.setDouble("double", 6.5);
            sent.setString("string", "seven");
            sent.setBytes("bytes", new byte[] {8, 9});
            sent.setObject("null", null);
            MapMessage found = site.through(session, sent);
            for (Object name : Collections.list(sent.getMapNames())) {
                Object value = found.getObject((String) name);
                Site.is(sent.getObject((String) name), value);
            }
            Site.is(Integer.class, found.getObject("int").getClass());
            Site.is(Character.class, found.getObject("char").getClass());
            Site.check(found.itemExists("null") && !found.itemExists("none"), "what is there");
        });
        suite.add("map: conversions", site -> {
            Session session = site.session();
            MapMessage sent = session.createMapMessage();
            sent.setByte("byte", (byte) 5);
            sent.setString("number", "42");
            sent.setString("word", "word");
            sent.setChar("char", 'c');
            sent.setLong("long", 5L);
            MapMessage found = site.through(session, sent);
            Site.is(5L, found.getLong("byte"));
            Site.is("5", found.getString("byte"));
            Site.is(42, found.getInt("number"));
            Site.is(false, found.getBoolean("word"));
            Site.fails(NumberFormatException.class, () -> found.getInt("word"));
            Site.fails(MessageFormatException.class, () -> found.getInt("char"));
            Site.fails(MessageFormatException.class, () -> found.getInt("long"));
            Site.is(null, found.getString("none"));
            Site.fails(NumberFormatException.class, () -> found.getInt("none"));
        });
        suite.add("map: none", site -> {
            Session session = site.session();
            MapMessage found = site.through(session, session.createMapMessage());
            Site.check(!found.getMapNames().hasMoreElements(), "entries");
            Site.is(null, found.getBody(Map.class));
        });
        suite.add("map: 1,000 entries", site -> {
            Session session = site.session();
            MapMessage sent = session.createMapMessage();
            for (int at = 0; at < 1_000; at++) {
                sent.setInt("entry" + at, at);
            }
            MapMessage found = site.through(session, sent);
            Site.is(1_000, found.getBody(Map.class).size());
            Site.is(999, found.getInt("entry999"));
        });
    }

    private static void streams(Scenarios suite) {
        suite.add("stream: every type", site -> {
            Session session = site.session();
            Object[] values = {true, (byte) 1, (short) 2, 'c', 3, 4L, 5.5f, 6.5, "seven", new byte[] {8}, null};
            StreamMessage sent = session.createStreamMessage();
            for (Object value : values) {
                sent.writeObject(value);
            }
            StreamMessage found = site.through(session, sent);
            for (Object value : values) {
                Site.is(value, found.readObject());
            }
            Site.fails(MessageEOFException.class, found::readObject);
            found.reset();
            Site.is(true, found.readBoolean());
        });
        suite.add("stream: conversions", site -> {
            Session session = site.session();
            StreamMessage sent = session.createStreamMessage();
            sent.writeByte((byte) 5);
            sent.writeString("42");
            sent.writeString("word");
            sent.writeLong(6L);
            StreamMessage found = site.through(session, sent);
            Site.is(5L, found.readLong());
            Site.is(42, found.readInt());
            Site.fails(NumberFormatException.class, found::readInt);
            Site.is("word", found.readString());
            // What could not be read as that is still there.
            Site.fails(MessageFormatException.class, found::readInt);
            Site.is("6", found.readString());
        });
        suite.add("stream: bytes in parts", site -> {
            Session session = site.session();
            StreamMessage sent = session.createStreamMessage();
            sent.writeBytes(new byte[] {1, 2, 3, 4, 5});
            sent.writeInt(6);
            StreamMessage found = site.through(session, sent);
            byte[] part = new byte[3];
            Site.is(3, found.readBytes(part));
            Site.is(2, found.readBytes(part));
            Site.is(6, found.readInt());
        });
    }

    private static void objects(Scenarios suite) {
        suite.add("object: a list", site -> {
            Session session = site.session();
            ArrayList<Object> list = new ArrayList<>(List.of("one", 2, 3.0));
            ObjectMessage found = site.through(session, session.createObjectMessage(list));
            Site.is(list, found.getObject());
            Site.is(list, found.getBody(ArrayList.class));
        });
        suite.add("object: null", site -> {
            Session session = site.session();
            Site.is(null, site.through(session, session.createObjectMessage()).getObject());
        });
        suite.add("object: typed by AMQP", site -> {
            Session session = site.another("jms.useDaemonThread=true").createSession();
            ObjectMessage sent = session.createObjectMessage();
            sent.setBooleanProperty("JMS_AMQP_TYPED_ENCODING", true);
            sent.setObject("a text");
            Site.is("a text", site.through(session, sent).getObject());
        });
    }

    private static void whole(Scenarios suite) {
        suite.add("message without a body", site -> {
            Session session = site.session();
            Message sent = session.createMessage();
            sent.setIntProperty("n", 1);
            Message found = site.through(session, sent);
            Site.is(1, found.getIntProperty("n"));
            Site.is(null, found.getBody(String.class));
            Site.check(!(found instanceof TextMessage) && !(found instanceof BytesMessage), found.getClass().getName());
        });
        suite.add("type of each message stays", site -> {
            Session session = site.session();
            Site.check(site.through(session, session.createTextMessage("t")) instanceof TextMessage, "text");
            Site.check(site.through(session, session.createBytesMessage()) instanceof BytesMessage, "bytes");
            Site.check(site.through(session, session.createMapMessage()) instanceof MapMessage, "map");
            Site.check(site.through(session, session.createStreamMessage()) instanceof StreamMessage, "stream");
            Site.check(site.through(session, session.createObjectMessage("o")) instanceof ObjectMessage, "object");
        });
        suite.add("body of another class", site -> {
            Session session = site.session();
            TextMessage found = site.through(session, session.createTextMessage("text"));
            Site.check(found.isBodyAssignableTo(String.class) && !found.isBodyAssignableTo(Map.class), "assignable");
            Site.fails(MessageFormatException.class, () -> found.getBody(Map.class));
        });
        suite.add("what was received cannot be written", site -> {
            Session session = site.session();
            TextMessage found = site.through(session, session.createTextMessage("text"));
            Site.fails(MessageNotWriteableException.class, () -> found.setText("other"));
            Site.fails(MessageNotWriteableException.class, () -> found.setIntProperty("n", 1));
            found.clearBody();
            found.clearProperties();
            found.setText("other");
            found.setIntProperty("n", 1);
        });
        suite.add("what is written cannot be read", site -> {
            Session session = site.session();
            BytesMessage bytes = session.createBytesMessage();
            bytes.writeInt(1);
            Site.fails(MessageNotReadableException.class, bytes::readInt);
            BytesMessage found = site.through(session, bytes);
            Site.fails(MessageNotWriteableException.class, () -> found.writeInt(1));
        });
        suite.add("a received message is sent on", site -> {
            Session session = site.session();
            TextMessage sent = session.createTextMessage("text");
            sent.setStringProperty("kept", "yes");
            sent.setJMSCorrelationID("c");
            TextMessage found = site.through(session, sent);
            String id = found.getJMSMessageID();
            TextMessage again = site.through(session, found, site.second());
            Site.is("text", again.getText());
            Site.is("yes", again.getStringProperty("kept"));
            Site.is("c", again.getJMSCorrelationID());
            Site.check(!id.equals(again.getJMSMessageID()), "the same id");
        });
        suite.add("one message object sent thrice", site -> {
            Session session = site.session();
            Destination queue = site.queue();
            TextMessage message = session.createTextMessage();
            try (MessageProducer producer = session.createProducer(queue)) {
                for (String text : List.of("one", "two", "three")) {
                    message.setText(text);
                    producer.send(message);
                }
            }
            try (MessageConsumer consumer = session.createConsumer(queue)) {
                Site.is(List.of("one", "two", "three"), Site.texts(consumer, 3));
            }
        });
    }
}
