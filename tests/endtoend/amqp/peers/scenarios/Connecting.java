import jakarta.jms.Connection;
import jakarta.jms.ConnectionMetaData;
import jakarta.jms.IllegalStateException;
import jakarta.jms.IllegalStateRuntimeException;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.InvalidClientIDRuntimeException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Connections, sessions and contexts: client ids, start and stop, and what is closed. */
final class Connecting {
    private Connecting() {}

    static void add(Scenarios suite) {
        clientIds(suite);
        closed(suite);
        contexts(suite);
        names(suite);
        rest(suite);
    }

    private static void clientIds(Scenarios suite) {
        suite.add("client id: taken", site -> {
            String id = site.name("taken");
            Connection first = site.named(id);
            Site.fails(InvalidClientIDException.class, () -> site.named(id));
            // The first one goes on.
            Session session = first.createSession();
            Site.is("x", site.through(session, session.createTextMessage("x")).getText());
        });
        suite.add("client id: free again", site -> {
            String id = site.name("again");
            for (int time = 0; time < 5; time++) {
                site.named(id).close();
            }
        });
        suite.add("client id: of the URL", site -> {
            String id = site.name("url");
            Connection first = site.another("jms.clientID=" + id);
            Site.is(id, first.getClientID());
            Site.fails(InvalidClientIDException.class, () -> site.another("jms.clientID=" + id));
            Site.fails(IllegalStateException.class, () -> first.setClientID("other"));
        });
        suite.add("client id: too late, or none", site -> {
            Site.fails(IllegalStateException.class, () -> site.connection().setClientID("late"));
            Site.fails(InvalidClientIDException.class, () -> site.unstarted("").setClientID(""));
            Site.fails(InvalidClientIDException.class, () -> site.unstarted("").setClientID(null));
        });
        suite.add("client id: JMSContext", site -> {
            String id = site.name("context");
            site.named(id);
            try (JMSContext context = site.factory("").createContext()) {
                Site.fails(InvalidClientIDRuntimeException.class, () -> context.setClientID(id));
            }
        });
    }

    private static void closed(Scenarios suite) {
        suite.add("closed connection", site -> {
            Connection connection = site.another("");
            Session session = connection.createSession();
            MessageConsumer consumer = session.createConsumer(site.queue());
            MessageProducer producer = session.createProducer(site.queue());
            Message message = session.createMessage();
            connection.close();
            connection.close();
            Site.fails(IllegalStateException.class, connection::createSession);
            Site.fails(IllegalStateException.class, connection::start);
            Site.fails(IllegalStateException.class, connection::getClientID);
            Site.fails(IllegalStateException.class, session::createMessage);
            Site.fails(IllegalStateException.class, () -> consumer.receive(10));
            Site.fails(IllegalStateException.class, () -> producer.send(message));
        });
        suite.add("closed session", site -> {
            Session session = site.another("").createSession();
            MessageConsumer consumer = session.createConsumer(site.queue());
            MessageProducer producer = session.createProducer(site.queue());
            Message message = session.createMessage();
            session.close();
            session.close();
            Site.fails(IllegalStateException.class, session::createMessage);
            Site.fails(IllegalStateException.class, session::getTransacted);
            Site.fails(IllegalStateException.class, session::recover);
            Site.fails(IllegalStateException.class, () -> session.createConsumer(site.queue()));
            Site.fails(IllegalStateException.class, () -> consumer.receive(10));
            Site.fails(IllegalStateException.class, () -> producer.send(message));
        });
        suite.add("closed consumer and producer", site -> {
            Session session = site.session();
            MessageConsumer consumer = session.createConsumer(site.queue());
            MessageProducer producer = session.createProducer(site.queue());
            consumer.close();
            consumer.close();
            producer.close();
            producer.close();
            Site.fails(IllegalStateException.class, () -> consumer.receive(10));
            Site.fails(IllegalStateException.class, consumer::getMessageSelector);
            Site.fails(IllegalStateException.class, () -> producer.send(session.createMessage()));
            Site.fails(IllegalStateException.class, producer::getDestination);
        });
        suite.add("closed context", site -> {
            JMSContext context = site.context();
            JMSConsumer consumer = context.createConsumer(site.queue());
            context.close();
            context.close();
            Site.fails(IllegalStateRuntimeException.class, context::createMessage);
            Site.fails(IllegalStateRuntimeException.class, () -> consumer.receive(10));
        });
        suite.add("acknowledge of a closed session", site -> {
            site.send(site.queue(), "one");
            Session session = site.another("").createSession(Session.CLIENT_ACKNOWLEDGE);
            Message message = Site.next(session.createConsumer(site.queue()));
            session.close();
            Site.fails(IllegalStateException.class, message::acknowledge);
            Site.is(List.of("one"), site.rest(site.queue()));
        });
    }

    private static void contexts(Scenarios suite) {
        suite.add("JMSContext: a second one of its connection", site -> {
            JMSContext context = site.context();
            try (JMSContext second = context.createContext(JMSContext.CLIENT_ACKNOWLEDGE)) {
                Site.is(context.getClientID(), second.getClientID());
                Site.is(JMSContext.CLIENT_ACKNOWLEDGE, second.getSessionMode());
                second.createProducer().send(site.queue(), "x");
            }
            Site.is("x", context.createConsumer(site.queue()).receiveBody(String.class, Site.SOON_MS));
        });
        suite.add("JMSContext: auto start", site -> {
            site.send(site.queue(), "x");
            JMSContext context = site.context();
            context.setAutoStart(false);
            JMSConsumer consumer = context.createConsumer(site.queue());
            Site.is(null, consumer.receive(100));
            context.start();
            Site.is("x", consumer.receiveBody(String.class, Site.SOON_MS));
            context.stop();
        });
        suite.add("JMSContext: listener", site -> {
            LinkedBlockingQueue<Message> came = new LinkedBlockingQueue<>();
            JMSContext context = site.context();
            context.createConsumer(site.queue()).setMessageListener(came::add);
            site.send(site.queue(), "x");
            Site.check(came.poll(Site.SOON_MS, TimeUnit.MILLISECONDS) != null, "nothing came");
        });
        suite.add("JMSContext: recover", site -> {
            site.send(site.queue(), "x");
            JMSContext context = site.context(JMSContext.CLIENT_ACKNOWLEDGE);
            JMSConsumer consumer = context.createConsumer(site.queue());
            consumer.receive(Site.SOON_MS);
            context.recover();
            Site.is(true, consumer.receive(Site.SOON_MS).getJMSRedelivered());
            context.acknowledge();
        });
        suite.add("JMSContext: temporary queue", site -> {
            JMSContext context = site.context();
            Queue own = context.createTemporaryQueue();
            context.createProducer().send(own, "x");
            Site.is("x", context.createConsumer(own).receiveBody(String.class, Site.SOON_MS));
        });
    }

    private static void names(Scenarios suite) {
        for (String name : List.of("a.b.c", "a/b/c", "größe", "with space", "UPPER", "a:b", "a%2Fb", "x@y", "a&b=c")) {
            suite.add("topic named " + name, site -> {
                Session session = site.session();
                Topic topic = session.createTopic(site.name(name));
                Site.is("x", site.through(session, session.createTextMessage("x"), topic).getText());
            });
        }
        suite.add("a null destination of a consumer", site -> {
            Session session = site.session();
            Site.fails(InvalidDestinationException.class, () -> session.createConsumer(null));
            Site.fails(InvalidDestinationException.class, () -> session.createBrowser(null));
        });
    }

    private static void rest(Scenarios suite) {
        suite.add("metadata", site -> {
            ConnectionMetaData data = site.connection().getMetaData();
            Site.check(data.getJMSMajorVersion() >= 2 && data.getJMSXPropertyNames().hasMoreElements(), "metadata");
        });
        suite.add("stop and start many times", site -> {
            Connection connection = site.connection();
            MessageConsumer consumer = site.session().createConsumer(site.queue());
            for (int time = 0; time < 10; time++) {
                connection.stop();
                connection.stop();
                site.send(site.queue(), "" + time);
                connection.start();
                connection.start();
                Site.is("" + time, Site.text(consumer));
            }
        });
        suite.add("300 sessions at a time", site -> {
            List<Session> sessions = new ArrayList<>();
            for (int at = 0; at < 300; at++) {
                sessions.add(site.session());
            }
            Session last = sessions.get(299);
            Site.is("x", site.through(last, last.createTextMessage("x")).getText());
        });
        suite.add("300 sessions one after the other", site -> {
            for (int at = 0; at < 300; at++) {
                site.session().close();
            }
            Session session = site.session();
            Site.is("x", site.through(session, session.createTextMessage("x")).getText());
        });
        suite.add("50 connections", site -> {
            List<MessageConsumer> consumers = new ArrayList<>();
            for (int at = 0; at < 50; at++) {
                consumers.add(site.another("").createSession().createConsumer(site.topic()));
            }
            site.send(site.topic(), "x");
            for (MessageConsumer consumer : consumers) {
                Site.is("x", Site.text(consumer));
            }
        });
        suite.add("a connection that fails tells its listener nothing without reason", site -> {
            LinkedBlockingQueue<JMSException> came = new LinkedBlockingQueue<>();
            Connection connection = site.another("");
            connection.setExceptionListener(came::add);
            Session session = connection.createSession();
            Site.is("x", site.through(session, session.createTextMessage("x")).getText());
            connection.close();
            Site.is(null, came.poll());
        });
        suite.add("heartbeats: an idle connection lives", site -> {
            Connection connection = site.another("amqp.idleTimeout=300");
            Session session = connection.createSession();
            Thread.sleep(1_000);
            Site.is("x", site.through(session, session.createTextMessage("x")).getText());
        });
        suite.add("frames of 4 kB", site -> {
            Session session = site.another("amqp.maxFrameSize=4096").createSession();
            String text = "x".repeat(300_000);
            Site.check(text.equals(site.through(session, session.createTextMessage(text)).getText()), "another text");
        });
        suite.add("acknowledgement modes", site -> {
            for (int mode : new int[] {0, 1, 2, 3}) {
                Site.is(mode, site.session(mode).getAcknowledgeMode());
            }
            Site.fails(JMSException.class, () -> site.session(77));
        });
    }
}
