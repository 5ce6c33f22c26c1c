import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.Collections;
import java.util.List;

/** Headers and properties of messages. */
final class Headers {
    private Headers() {}

    static void add(Scenarios suite) {
        correlation(suite);
        destinations(suite);
        rest(suite);
        properties(suite);
    }

    private static void correlation(Scenarios suite) {
        for (String id : List.of("a text", "ID:AMQP_ULONG:42", "ID:AMQP_BINARY:00FF", "ID:plain", "Grüße")) {
            suite.add("correlation id " + id, site -> {
                Session session = site.session();
                Message sent = session.createMessage();
                sent.setJMSCorrelationID(id);
                Site.is(id, site.through(session, sent).getJMSCorrelationID());
            });
        }
        suite.add("correlation id of bytes", site -> {
            Session session = site.session();
            Message sent = session.createMessage();
            sent.setJMSCorrelationIDAsBytes(new byte[] {0, (byte) 255, 7});
            Site.is(new byte[] {0, (byte) 255, 7}, site.through(session, sent).getJMSCorrelationIDAsBytes());
        });
        suite.add("correlation id is a message id", site -> {
            Session session = site.session();
            Message first = site.through(session, session.createTextMessage("request"));
            Message answer = session.createMessage();
            answer.setJMSCorrelationID(first.getJMSMessageID());
            Site.is(first.getJMSMessageID(), site.through(session, answer).getJMSCorrelationID());
        });
    }

    private static void destinations(Scenarios suite) {
        suite.add("destination is the queue", site -> {
            Session session = site.session();
            Destination found = site.through(session, session.createMessage()).getJMSDestination();
            Site.is(site.queue().getQueueName(), ((Queue) found).getQueueName());
        });
        suite.add("destination is the topic", site -> {
            Session session = site.session();
            Topic topic = site.topic();
            Destination found = site.through(session, session.createMessage(), topic).getJMSDestination();
            Site.is(topic.getTopicName(), ((Topic) found).getTopicName());
        });
        suite.add("reply-to a queue", site -> {
            Session session = site.session();
            Message sent = session.createMessage();
            sent.setJMSReplyTo(site.second());
            Destination found = site.through(session, sent).getJMSReplyTo();
            Site.is(site.second().getQueueName(), ((Queue) found).getQueueName());
        });
        suite.add("reply-to a topic", site -> {
            Session session = site.session();
            Message sent = session.createMessage();
            sent.setJMSReplyTo(site.topic());
            Destination found = site.through(session, sent).getJMSReplyTo();
            Site.is(site.topic().getTopicName(), ((Topic) found).getTopicName());
        });
        suite.add("reply-to a temporary queue", site -> {
            Session session = site.session();
            Message sent = session.createMessage();
            Queue temporary = session.createTemporaryQueue();
            sent.setJMSReplyTo(temporary);
            Destination found = site.through(session, sent).getJMSReplyTo();
            Site.is(temporary.getQueueName(), ((Queue) found).getQueueName());
        });
        suite.add("reply-to and destination lead on", site -> {
            Session session = site.session();
            Message sent = session.createTextMessage("x");
            sent.setJMSReplyTo(site.second());
            Destination reply = site.through(session, sent).getJMSReplyTo();
            Site.is("back", site.through(session, session.createTextMessage("back"), reply).getText());
        });
    }

    private static void rest(Scenarios suite) {
        suite.add("message id and timestamp", site -> {
            Session session = site.session();
            long before = System.currentTimeMillis();
            TextMessage sent = session.createTextMessage("x");
            Message found = site.through(session, sent);
            Site.check(found.getJMSMessageID().startsWith("ID:"), found.getJMSMessageID());
            Site.is(sent.getJMSMessageID(), found.getJMSMessageID());
            Site.is(sent.getJMSTimestamp(), found.getJMSTimestamp());
            Site.check(found.getJMSTimestamp() >= before, "timestamp");
        });
        suite.add("message id and timestamp left out", site -> {
            Session session = site.session();
            try (MessageProducer producer = session.createProducer(site.queue());
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                producer.setDisableMessageID(true);
                producer.setDisableMessageTimestamp(true);
                producer.send(session.createMessage());
                Message found = Site.next(consumer);
                Site.is(null, found.getJMSMessageID());
                Site.is(0L, found.getJMSTimestamp());
            }
        });
        suite.add("type", site -> {
            Session session = site.session();
            Message sent = session.createMessage();
            sent.setJMSType("order");
            Site.is("order", site.through(session, sent).getJMSType());
        });
        suite.add("what a producer sets, not the message", site -> {
            Session session = site.session();
            Message sent = session.createMessage();
            sent.setJMSPriority(9);
            sent.setJMSExpiration(1);
            sent.setJMSDeliveryMode(DeliveryMode.NON_PERSISTENT);
            Message found = site.through(session, sent);
            Site.is(4, found.getJMSPriority());
            Site.is(0L, found.getJMSExpiration());
            Site.is(DeliveryMode.PERSISTENT, found.getJMSDeliveryMode());
        });
        for (int mode : new int[] {DeliveryMode.NON_PERSISTENT, DeliveryMode.PERSISTENT}) {
            suite.add("delivery mode " + mode, site -> {
                Session session = site.session();
                try (MessageProducer producer = session.createProducer(site.queue());
                        MessageConsumer consumer = session.createConsumer(site.queue())) {
                    producer.setDeliveryMode(mode);
                    producer.send(session.createMessage());
                    Site.is(mode, Site.next(consumer).getJMSDeliveryMode());
                }
            });
        }
        suite.add("priority of each number", site -> {
            Session session = site.session();
            try (MessageProducer producer = session.createProducer(site.queue());
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                for (int priority = 0; priority < 10; priority++) {
                    producer.setPriority(priority);
                    producer.send(session.createMessage());
                    Site.is(priority, Site.next(consumer).getJMSPriority());
                }
            }
        });
        suite.add("expiration", site -> {
            Session session = site.session();
            try (MessageProducer producer = session.createProducer(site.queue());
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                producer.setTimeToLive(60_000);
                Message sent = session.createMessage();
                producer.send(sent);
                Message found = Site.next(consumer);
                Site.is(sent.getJMSExpiration(), found.getJMSExpiration());
                Site.is(found.getJMSTimestamp() + 60_000, found.getJMSExpiration());
            }
        });
        suite.add("delivery time", site -> {
            Session session = site.session();
            Message sent = session.createMessage();
            Message found = site.through(session, sent);
            Site.is(sent.getJMSTimestamp(), sent.getJMSDeliveryTime());
            Site.check(found.getJMSDeliveryTime() <= System.currentTimeMillis(), "delivery time");
        });
        suite.add("first delivery", site -> {
            Session session = site.session();
            Message found = site.through(session, session.createMessage());
            Site.is(false, found.getJMSRedelivered());
            Site.is(1, found.getIntProperty("JMSXDeliveryCount"));
        });
        suite.add("JMSXGroupID and JMSXGroupSeq", site -> {
            Session session = site.session();
            Message sent = session.createMessage();
            sent.setStringProperty("JMSXGroupID", "group");
            sent.setIntProperty("JMSXGroupSeq", 3);
            Message found = site.through(session, sent);
            Site.is("group", found.getStringProperty("JMSXGroupID"));
            Site.is(3, found.getIntProperty("JMSXGroupSeq"));
        });
        suite.add("JMSXUserID", site -> {
            Connection connection = site.factory("jms.populateJMSXUserID=true").createConnection("somebody", "secret");
            try (connection) {
                connection.start();
                Session session = connection.createSession();
                Site.is("somebody", site.through(session, session.createMessage()).getStringProperty("JMSXUserID"));
            }
        });
        suite.add("AMQP properties of Qpid JMS", site -> {
            Session session = site.session();
            Message sent = session.createMessage();
            sent.setStringProperty("JMS_AMQP_REPLY_TO_GROUP_ID", "answers");
            sent.setIntProperty("JMS_AMQP_TTL", 60_000);
            Message found = site.through(session, sent);
            Site.is("answers", found.getStringProperty("JMS_AMQP_REPLY_TO_GROUP_ID"));
        });
    }

    private static void properties(Scenarios suite) {
        suite.add("properties of every type", site -> {
            Session session = site.session();
            Message sent = session.createMessage();
            Object[] values = {true, (byte) 1, (short) 2, 3, 4L, 5.5f, 6.5, "seven", "", Long.MAX_VALUE, Double.NaN};
            for (int at = 0; at < values.length; at++) {
                sent.setObjectProperty("p" + at, values[at]);
            }
            sent.setStringProperty("none", null);
            Message found = site.through(session, sent);
            for (int at = 0; at < values.length; at++) {
                Site.is(values[at], found.getObjectProperty("p" + at));
            }
            Site.is(null, found.getStringProperty("none"));
        });
        suite.add("properties: conversions", site -> {
            Session session = site.session();
            Message sent = session.createMessage();
            sent.setByteProperty("byte", (byte) 5);
            sent.setStringProperty("number", "42");
            sent.setDoubleProperty("double", 1.5);
            sent.setBooleanProperty("boolean", true);
            Message found = site.through(session, sent);
            Site.is(5L, found.getLongProperty("byte"));
            Site.is(42, found.getIntProperty("number"));
            Site.is("1.5", found.getStringProperty("double"));
            Site.is("true", found.getStringProperty("boolean"));
            Site.fails(MessageFormatException.class, () -> found.getIntProperty("double"));
            Site.fails(MessageFormatException.class, () -> found.getIntProperty("boolean"));
            Site.fails(NumberFormatException.class, () -> found.getIntProperty("none"));
        });
        suite.add("properties: names", site -> {
            Session session = site.session();
            Message sent = session.createMessage();
            for (String name : List.of("plain", "_under", "$dollar", "größe", "JMS_vendor", "a1")) {
                sent.setIntProperty(name, 1);
            }
            Message found = site.through(session, sent);
            List<?> names = Collections.list(found.getPropertyNames());
            for (String name : List.of("plain", "_under", "$dollar", "größe", "a1")) {
                Site.check(names.contains(name) && found.propertyExists(name), name);
            }
            for (String wrong : List.of("", "NOT", "a.b c", "1a")) {
                Site.fails(Exception.class, () -> session.createMessage().setIntProperty(wrong, 1));
            }
        });
        suite.add("properties: 500 of them", site -> {
            Session session = site.session();
            Message sent = session.createTextMessage("x");
            for (int at = 0; at < 500; at++) {
                sent.setIntProperty("p" + at, at);
            }
            Message found = site.through(session, sent);
            Site.is(499, found.getIntProperty("p499"));
        });
        suite.add("properties: a text of 60 kB", site -> {
            Session session = site.session();
            Message sent = session.createTextMessage("x");
            sent.setStringProperty("long", "y".repeat(60_000));
            Site.is(60_000, site.through(session, sent).getStringProperty("long").length());
        });
        suite.add("properties over a topic", site -> {
            Session session = site.session();
            TextMessage sent = session.createTextMessage("x");
            sent.setLongProperty("long", 1L << 40);
            sent.setBooleanProperty("boolean", false);
            TextMessage found = site.through(session, sent, site.topic());
            Site.is(1L << 40, found.getObjectProperty("long"));
            Site.is(false, found.getObjectProperty("boolean"));
        });
        suite.add("properties: objects are refused", site -> {
            Message message = site.session().createMessage();
            Site.fails(JMSException.class, () -> message.setObjectProperty("list", List.of(1)));
        });
    }
}
