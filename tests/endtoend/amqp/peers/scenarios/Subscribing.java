import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.QueueRequestor;
import jakarta.jms.QueueSession;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;

/** Subscriptions of every kind, and temporary destinations. */
final class Subscribing {
    private Subscribing() {}

    static void add(Scenarios suite) {
        plain(suite);
        durable(suite);
        shared(suite);
        mixed(suite);
        temporary(suite);
    }

    private static void plain(Scenarios suite) {
        suite.add("subscription: each gets each", site -> {
            Session session = site.session();
            MessageConsumer one = session.createConsumer(site.topic());
            MessageConsumer two = site.another("").createSession().createConsumer(site.topic());
            site.send(site.topic(), "1", "2");
            Site.is(List.of("1", "2"), Site.texts(one, 2));
            Site.is(List.of("1", "2"), Site.texts(two, 2));
        });
        suite.add("subscription: nothing from before or after", site -> {
            Session session = site.session();
            site.send(site.topic(), "before");
            MessageConsumer consumer = session.createConsumer(site.topic());
            site.send(site.topic(), "during");
            Site.is("during", Site.text(consumer));
            consumer.close();
            site.send(site.topic(), "after");
            Site.empty(session.createConsumer(site.topic()));
        });
        suite.add("subscription: no local", site -> {
            Session session = site.session();
            MessageConsumer others = session.createConsumer(site.topic(), null, true);
            MessageConsumer all = session.createConsumer(site.topic(), null, false);
            site.send(site.topic(), "own");
            Session other = site.another("").createSession();
            other.createProducer(site.topic()).send(other.createTextMessage("other"));
            Site.is("other", Site.text(others));
            Site.is(List.of("own", "other"), Site.texts(all, 2));
        });
        suite.add("subscription: selector", site -> {
            Session session = site.session();
            MessageConsumer consumer = session.createConsumer(site.topic(), "n > 1");
            MessageProducer producer = session.createProducer(site.topic());
            for (int at = 0; at < 4; at++) {
                TextMessage message = session.createTextMessage("" + at);
                message.setIntProperty("n", at);
                producer.send(message);
            }
            Site.is(List.of("2", "3"), Site.texts(consumer, 2));
        });
        suite.add("subscription: not persistent", site -> {
            Session session = site.session();
            MessageConsumer consumer = session.createConsumer(site.topic());
            MessageProducer producer = session.createProducer(site.topic());
            producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
            for (int at = 0; at < 500; at++) {
                producer.send(session.createTextMessage("" + at));
            }
            for (int at = 0; at < 500; at++) {
                Site.is("" + at, Site.text(consumer));
            }
        });
        suite.add("a topic that nobody has subscribed to", site -> site.send(site.topic(), "nobody's"));
        suite.add("a topic and a queue of one name", site -> {
            Session session = site.session();
            Topic topic = session.createTopic(site.queue().getQueueName());
            MessageConsumer consumer = session.createConsumer(topic);
            site.send(topic, "topic");
            site.send(site.queue(), "queue");
            Site.is("topic", Site.text(consumer));
            Site.empty(consumer);
            Site.is(List.of("queue"), site.rest(site.queue()));
        });
        suite.add("subscription: client acknowledgement, session by session", site -> {
            Session session = site.session(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer one = session.createConsumer(site.topic());
            MessageConsumer two = site.session().createConsumer(site.topic());
            site.send(site.topic(), "x");
            Site.next(one);
            Site.is("x", Site.text(two));
            session.recover();
            Site.next(one).acknowledge();
            Site.empty(two);
        });
    }

    private static void durable(Scenarios suite) {
        suite.add("durable: while away", site -> {
            String id = site.name("away");
            Connection connection = site.named(id);
            connection.createSession().createDurableConsumer(site.topic(), "s");
            connection.close();
            site.send(site.topic(), "1", "2");
            Session session = site.named(id).createSession();
            MessageConsumer consumer = session.createDurableConsumer(site.topic(), "s");
            Site.is(List.of("1", "2"), Site.texts(consumer, 2));
            Site.empty(consumer);
            consumer.close();
            session.unsubscribe("s");
        });
        suite.add("durable: what was acknowledged does not come again", site -> {
            Session session = site.named(site.name("ack")).createSession();
            MessageConsumer consumer = session.createDurableSubscriber(site.topic(), "s");
            site.send(site.topic(), "1", "2");
            Site.is("1", Site.text(consumer));
            consumer.close();
            MessageConsumer again = session.createDurableSubscriber(site.topic(), "s");
            Site.is("2", Site.text(again));
            again.close();
            session.unsubscribe("s");
        });
        suite.add("durable: nothing after unsubscribe", site -> {
            Session session = site.named(site.name("un")).createSession();
            session.createDurableConsumer(site.topic(), "s").close();
            site.send(site.topic(), "gone");
            session.unsubscribe("s");
            MessageConsumer consumer = session.createDurableConsumer(site.topic(), "s");
            Site.empty(consumer);
            consumer.close();
            session.unsubscribe("s");
        });
        suite.add("durable: unsubscribe of an active one", site -> {
            Session session = site.named(site.name("active")).createSession();
            MessageConsumer consumer = session.createDurableConsumer(site.topic(), "s");
            Site.fails(JMSException.class, () -> session.unsubscribe("s"));
            site.send(site.topic(), "still");
            Site.is("still", Site.text(consumer));
            consumer.close();
            session.unsubscribe("s");
        });
        suite.add("durable: unsubscribe of none", site -> {
            Session session = site.named(site.name("none")).createSession();
            Site.fails(InvalidDestinationException.class, () -> session.unsubscribe("never"));
        });
        suite.add("durable: unsubscribe twice", site -> {
            Session session = site.named(site.name("twice")).createSession();
            session.createDurableConsumer(site.topic(), "s").close();
            session.unsubscribe("s");
            Site.fails(InvalidDestinationException.class, () -> session.unsubscribe("s"));
        });
        suite.add("durable: without a client id", site -> {
            Session session = site.session();
            Site.fails(IllegalStateException.class, () -> session.createDurableConsumer(site.topic(), "s"));
            Site.fails(IllegalStateException.class, () -> session.createDurableSubscriber(site.topic(), "s"));
        });
        suite.add("durable: a second consumer", site -> {
            Session session = site.named(site.name("second")).createSession();
            MessageConsumer consumer = session.createDurableConsumer(site.topic(), "s");
            Site.fails(JMSException.class, () -> session.createDurableConsumer(site.topic(), "s"));
            consumer.close();
            session.unsubscribe("s");
        });
        suite.add("durable: another selector begins anew", site -> {
            Session session = site.named(site.name("selector")).createSession();
            session.createDurableConsumer(site.topic(), "s", "n = 1", false).close();
            MessageProducer producer = session.createProducer(site.topic());
            Message one = session.createTextMessage("one");
            one.setIntProperty("n", 1);
            producer.send(one);
            MessageConsumer consumer = session.createDurableConsumer(site.topic(), "s", "n = 2", false);
            Message two = session.createTextMessage("two");
            two.setIntProperty("n", 2);
            producer.send(one);
            producer.send(two);
            Site.is("two", Site.text(consumer));
            Site.empty(consumer);
            consumer.close();
            session.unsubscribe("s");
        });
        suite.add("durable: another topic begins anew", site -> {
            Session session = site.named(site.name("topic")).createSession();
            Topic other = session.createTopic(site.name("other/"));
            session.createDurableConsumer(site.topic(), "s").close();
            site.send(site.topic(), "old");
            MessageConsumer consumer = session.createDurableConsumer(other, "s");
            site.send(site.topic(), "old");
            site.send(other, "new");
            Site.is("new", Site.text(consumer));
            Site.empty(consumer);
            consumer.close();
            session.unsubscribe("s");
        });
        suite.add("durable: no local", site -> {
            Connection connection = site.named(site.name("local"));
            Session session = connection.createSession();
            MessageConsumer consumer = session.createDurableConsumer(site.topic(), "s", null, true);
            session.createProducer(site.topic()).send(session.createTextMessage("own"));
            site.send(site.topic(), "other");
            Site.is("other", Site.text(consumer));
            Site.empty(consumer);
            consumer.close();
            session.unsubscribe("s");
        });
        suite.add("durable: two client ids, one name", site -> {
            Session one = site.named(site.name("one")).createSession();
            Session two = site.named(site.name("two")).createSession();
            MessageConsumer first = one.createDurableConsumer(site.topic(), "s");
            MessageConsumer second = two.createDurableConsumer(site.topic(), "s");
            site.send(site.topic(), "x");
            Site.is("x", Site.text(first));
            first.close();
            one.unsubscribe("s");
            Site.is("x", Site.text(second));
            second.close();
            two.unsubscribe("s");
        });
        suite.add("durable: names of every character", site -> {
            Session session = site.named(site.name("cliënt/id %")).createSession();
            for (String name : List.of("with space", "with/slash", "größe", "a:b.c-d_e", "%2F", "100%")) {
                session.createDurableConsumer(site.topic(), name).close();
                site.send(site.topic(), name);
                MessageConsumer consumer = session.createDurableConsumer(site.topic(), name);
                Site.is(name, Site.text(consumer));
                consumer.close();
                session.unsubscribe(name);
            }
        });
        suite.add("durable: 500 messages wait", site -> {
            Session session = site.named(site.name("wait")).createSession();
            session.createDurableConsumer(site.topic(), "s").close();
            Session sending = site.another("jms.forceAsyncSend=true").createSession();
            MessageProducer producer = sending.createProducer(site.topic());
            for (int at = 0; at < 500; at++) {
                producer.send(sending.createTextMessage("" + at));
            }
            sending.close();
            MessageConsumer consumer = session.createDurableConsumer(site.topic(), "s");
            for (int at = 0; at < 500; at++) {
                Site.is("" + at, Site.text(consumer));
            }
            consumer.close();
            session.unsubscribe("s");
        });
        suite.add("durable: JMSContext", site -> {
            try (JMSContext own = site.factory("").createContext()) {
                own.setClientID(site.name("context"));
                own.createDurableConsumer(site.topic(), "s").close();
                own.createProducer().send(site.topic(), "x");
                Site.is("x", own.createDurableConsumer(site.topic(), "s").receiveBody(String.class, Site.SOON_MS));
            }
        });
    }

    private static TreeSet<String> turns(MessageConsumer... consumers) throws JMSException {
        TreeSet<String> found = new TreeSet<>();
        int quiet = 0;
        for (int turn = 0; quiet < consumers.length; turn++) {
            Message message = consumers[turn % consumers.length].receive(100);
            quiet = message == null ? quiet + 1 : 0;
            if (message != null) {
                Site.check(found.add(((TextMessage) message).getText()), "twice");
            }
        }
        return found;
    }

    private static void shared(Scenarios suite) {
        suite.add("shared: each message once", site -> {
            Session one = site.another("").createSession();
            Session two = site.another("").createSession();
            MessageConsumer first = one.createSharedConsumer(site.topic(), site.name("share"));
            MessageConsumer second = two.createSharedConsumer(site.topic(), site.name("share"));
            site.send(site.topic(), "1", "2", "3", "4");
            Site.is(new TreeSet<>(List.of("1", "2", "3", "4")), turns(first, second));
        });
        suite.add("shared: both get some", site -> {
            Session session = site.another("jms.prefetchPolicy.all=1").createSession();
            MessageConsumer first = session.createSharedConsumer(site.topic(), site.name("some"));
            MessageConsumer second = session.createSharedConsumer(site.topic(), site.name("some"));
            site.send(site.topic(), "1", "2");
            Site.is(2, new TreeSet<>(List.of(Site.text(first), Site.text(second))).size());
        });
        suite.add("shared: of one client id", site -> {
            Session session = site.named(site.name("shares")).createSession();
            MessageConsumer first = session.createSharedConsumer(site.topic(), "s");
            MessageConsumer second = session.createSharedConsumer(site.topic(), "s");
            Session others = site.another("").createSession();
            MessageConsumer other = others.createSharedConsumer(site.topic(), "s");
            site.send(site.topic(), "1", "2");
            Site.is(new TreeSet<>(List.of("1", "2")), turns(first, second));
            Site.is(List.of("1", "2"), Site.texts(other, 2));
        });
        suite.add("shared: ends with its last consumer", site -> {
            Session session = site.session();
            MessageConsumer first = session.createSharedConsumer(site.topic(), site.name("last"));
            MessageConsumer second = session.createSharedConsumer(site.topic(), site.name("last"));
            first.close();
            site.send(site.topic(), "kept");
            Site.is("kept", Site.text(second));
            second.close();
            site.send(site.topic(), "gone");
            Site.empty(session.createSharedConsumer(site.topic(), site.name("last")));
        });
        suite.add("shared: a selector", site -> {
            Session session = site.session();
            MessageConsumer consumer = session.createSharedConsumer(site.topic(), site.name("selector"), "n = 1");
            MessageProducer producer = session.createProducer(site.topic());
            for (int at = 0; at < 2; at++) {
                TextMessage message = session.createTextMessage("" + at);
                message.setIntProperty("n", at);
                producer.send(message);
            }
            Site.is("1", Site.text(consumer));
            Site.empty(consumer);
        });
        suite.add("shared: another selector while it is used", site -> {
            Session session = site.session();
            session.createSharedConsumer(site.topic(), site.name("s"), "n = 1");
            Site.fails(JMSException.class, () -> session.createSharedConsumer(site.topic(), site.name("s"), "n = 2"));
            Site.fails(JMSException.class, () -> session.createSharedConsumer(site.topic(), site.name("s")));
        });
        suite.add("shared: another topic while it is used", site -> {
            Session session = site.session();
            session.createSharedConsumer(site.topic(), site.name("s"));
            Topic other = session.createTopic(site.name("other/"));
            Site.fails(JMSException.class, () -> session.createSharedConsumer(other, site.name("s")));
        });
        suite.add("shared durable: while away", site -> {
            Session session = site.named(site.name("shared")).createSession();
            session.createSharedDurableConsumer(site.topic(), "s").close();
            site.send(site.topic(), "1", "2");
            MessageConsumer first = session.createSharedDurableConsumer(site.topic(), "s");
            MessageConsumer second = session.createSharedDurableConsumer(site.topic(), "s");
            Site.is(new TreeSet<>(List.of("1", "2")), turns(first, second));
            first.close();
            second.close();
            session.unsubscribe("s");
        });
        suite.add("shared durable: without a client id", site -> {
            String name = site.name("everywhere");
            Session one = site.another("").createSession();
            one.createSharedDurableConsumer(site.topic(), name).close();
            site.send(site.topic(), "x");
            Session two = site.another("").createSession();
            MessageConsumer consumer = two.createSharedDurableConsumer(site.topic(), name);
            Site.is("x", Site.text(consumer));
            consumer.close();
            two.unsubscribe(name);
            Site.fails(InvalidDestinationException.class, () -> two.unsubscribe(name));
        });
        suite.add("shared durable: unsubscribe of an active one", site -> {
            Session session = site.named(site.name("active")).createSession();
            MessageConsumer consumer = session.createSharedDurableConsumer(site.topic(), "s");
            Site.fails(JMSException.class, () -> session.unsubscribe("s"));
            consumer.close();
            session.unsubscribe("s");
        });
        suite.add("shared durable: unsubscribe while another connection uses it", site -> {
            String name = site.name("used");
            MessageConsumer consumer = site.another("").createSession().createSharedDurableConsumer(site.topic(), name);
            Session session = site.session();
            Site.fails(JMSException.class, () -> session.unsubscribe(name));
            site.send(site.topic(), "still");
            Site.is("still", Site.text(consumer));
            consumer.close();
            session.unsubscribe(name);
        });
        suite.add("shared durable: another selector while it is used", site -> {
            Session session = site.named(site.name("used")).createSession();
            MessageConsumer used = session.createSharedDurableConsumer(site.topic(), "s", "n = 1");
            Site.fails(JMSException.class, () -> session.createSharedDurableConsumer(site.topic(), "s", "n = 2"));
            used.close();
            session.unsubscribe("s");
        });
        suite.add("shared durable: another selector begins anew", site -> {
            Session session = site.named(site.name("anew")).createSession();
            session.createSharedDurableConsumer(site.topic(), "s").close();
            site.send(site.topic(), "old");
            MessageConsumer consumer = session.createSharedDurableConsumer(site.topic(), "s", "n IS NULL");
            Site.empty(consumer);
            consumer.close();
            session.unsubscribe("s");
        });
        suite.add("shared durable: transacted", site -> {
            Session session = site.another("").createSession(Session.SESSION_TRANSACTED);
            MessageConsumer consumer = session.createSharedDurableConsumer(site.topic(), site.name("tx"));
            site.send(site.topic(), "x");
            Site.is("x", Site.text(consumer));
            session.rollback();
            Site.is(2, Site.next(consumer).getIntProperty("JMSXDeliveryCount"));
            session.commit();
            consumer.close();
            session.unsubscribe(site.name("tx"));
        });
    }

    private static void mixed(Scenarios suite) {
        suite.add("shared and shared durable of one name", site -> {
            Session session = site.named(site.name("mixed")).createSession();
            MessageConsumer shared = session.createSharedConsumer(site.topic(), "s");
            MessageConsumer durable = session.createSharedDurableConsumer(site.topic(), "s");
            site.send(site.topic(), "x");
            Site.is("x", Site.text(shared));
            Site.is("x", Site.text(durable));
            durable.close();
            session.unsubscribe("s");
        });
        suite.add("shared durable over a durable one in use", site -> {
            Session session = site.named(site.name("kinds")).createSession();
            MessageConsumer consumer = session.createDurableConsumer(site.topic(), "s");
            Site.fails(JMSException.class, () -> session.createSharedDurableConsumer(site.topic(), "s"));
            consumer.close();
            session.unsubscribe("s");
        });
        suite.add("durable over a shared durable one in use", site -> {
            Session session = site.named(site.name("kinds")).createSession();
            MessageConsumer consumer = session.createSharedDurableConsumer(site.topic(), "s");
            Site.fails(JMSException.class, () -> session.createDurableConsumer(site.topic(), "s"));
            consumer.close();
            session.unsubscribe("s");
        });
        suite.add("subscriptions of a null topic", site -> {
            Session session = site.named(site.name("null")).createSession();
            Site.fails(InvalidDestinationException.class, () -> session.createConsumer(null));
            Site.fails(InvalidDestinationException.class, () -> session.createDurableConsumer(null, "s"));
            Site.fails(InvalidDestinationException.class, () -> session.createSharedConsumer(null, "s"));
        });
    }

    private static void temporary(Scenarios suite) {
        suite.add("temporary queue: request and reply", site -> {
            Session session = site.session();
            TemporaryQueue own = session.createTemporaryQueue();
            Message request = session.createTextMessage("request");
            request.setJMSReplyTo(own);
            session.createProducer(site.queue()).send(request);
            Session serving = site.another("").createSession();
            Message found = Site.next(serving.createConsumer(site.queue()));
            serving.createProducer(found.getJMSReplyTo()).send(serving.createTextMessage("answer"));
            Site.is("answer", Site.text(session.createConsumer(own)));
        });
        suite.add("temporary topic: request and reply", site -> {
            Session session = site.session();
            TemporaryTopic own = session.createTemporaryTopic();
            MessageConsumer answers = session.createConsumer(own);
            Message request = session.createTextMessage("request");
            request.setJMSReplyTo(own);
            session.createProducer(site.queue()).send(request);
            Session serving = site.another("").createSession();
            Message found = Site.next(serving.createConsumer(site.queue()));
            serving.createProducer(found.getJMSReplyTo()).send(serving.createTextMessage("answer"));
            Site.is("answer", Site.text(answers));
        });
        suite.add("temporary queue: QueueRequestor", site -> {
            Session server = site.another("").createSession();
            MessageProducer answers = server.createProducer(null);
            server.createConsumer(site.queue()).setMessageListener(request -> {
                try {
                    answers.send(request.getJMSReplyTo(), server.createTextMessage("answer"));
                } catch (JMSException problem) {
                    throw new RuntimeException(problem);
                }
            });
            try (var connection = site.factory("").createQueueConnection()) {
                connection.start();
                QueueSession session = connection.createQueueSession(false, Session.AUTO_ACKNOWLEDGE);
                QueueRequestor requestor = new QueueRequestor(session, site.queue());
                for (int time = 0; time < 3; time++) {
                    Message answer = requestor.request(session.createTextMessage("request"));
                    Site.is("answer", answer.getBody(String.class));
                }
                requestor.close();
            }
        });
        suite.add("temporary queue: consumer of another connection", site -> {
            TemporaryQueue own = site.session().createTemporaryQueue();
            Session other = site.another("").createSession();
            Site.fails(JMSException.class, () -> other.createConsumer(own));
        });
        suite.add("temporary queue: every session of its connection", site -> {
            TemporaryQueue own = site.session().createTemporaryQueue();
            site.send(own, "x");
            Site.is("x", Site.text(site.session().createConsumer(own)));
        });
        suite.add("temporary queue: deleted", site -> {
            Session session = site.session();
            TemporaryQueue own = session.createTemporaryQueue();
            site.send(own, "x");
            own.delete();
            Site.fails(JMSException.class, () -> session.createConsumer(own));
            Site.fails(JMSException.class, () -> site.send(own, "y"));
        });
        suite.add("temporary queue: not deleted while it is consumed", site -> {
            Session session = site.session();
            TemporaryQueue own = session.createTemporaryQueue();
            MessageConsumer consumer = session.createConsumer(own);
            Site.fails(JMSException.class, own::delete);
            consumer.close();
            own.delete();
        });
        suite.add("temporary topic: deleted", site -> {
            Session session = site.session();
            TemporaryTopic own = session.createTemporaryTopic();
            MessageConsumer consumer = session.createConsumer(own);
            Site.fails(JMSException.class, own::delete);
            consumer.close();
            own.delete();
        });
        suite.add("temporary queue: gone with its connection", site -> {
            Connection connection = site.another("");
            TemporaryQueue own = connection.createSession().createTemporaryQueue();
            Session session = site.session();
            MessageProducer open = session.createProducer(null);
            open.send(own, session.createTextMessage("there"));
            connection.close();
            Site.fails(JMSException.class, () -> session.createProducer(own));
            Site.fails(JMSException.class, () -> open.send(own, session.createTextMessage("gone")));
        });
        suite.add("temporary queue: in a transaction", site -> {
            Session session = site.session(Session.SESSION_TRANSACTED);
            TemporaryQueue own = session.createTemporaryQueue();
            session.createProducer(own).send(session.createTextMessage("x"));
            session.commit();
            MessageConsumer consumer = session.createConsumer(own);
            Site.is("x", Site.text(consumer));
            session.rollback();
            Site.is("x", Site.text(consumer));
            session.commit();
        });
        suite.add("temporary queues: 200 of one connection", site -> {
            Session session = site.session();
            List<TemporaryQueue> made = new ArrayList<>();
            TreeSet<String> names = new TreeSet<>();
            for (int at = 0; at < 200; at++) {
                made.add(session.createTemporaryQueue());
                names.add(made.get(at).getQueueName());
            }
            Site.is(200, names.size());
            for (TemporaryQueue one : made) {
                one.delete();
            }
        });
    }
}
