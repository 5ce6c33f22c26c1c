import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSContext;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;

/** Transacted sessions. */
final class Transacting {
    private Transacting() {}

    static void add(Scenarios suite) {
        sending(suite);
        receiving(suite);
        both(suite);
        errors(suite);
    }

    private static void sending(Scenarios suite) {
        suite.add("transaction: sent with commit", site -> {
            Session session = site.session(Session.SESSION_TRANSACTED);
            MessageConsumer consumer = site.session().createConsumer(site.queue());
            MessageProducer producer = session.createProducer(site.queue());
            producer.send(session.createTextMessage("one"));
            producer.send(session.createTextMessage("two"));
            Site.empty(consumer);
            session.commit();
            Site.is(List.of("one", "two"), Site.texts(consumer, 2));
        });
        suite.add("transaction: not sent with rollback", site -> {
            Session session = site.session(Session.SESSION_TRANSACTED);
            MessageProducer producer = session.createProducer(site.queue());
            producer.send(session.createTextMessage("gone"));
            session.rollback();
            producer.send(session.createTextMessage("kept"));
            session.commit();
            Site.is(List.of("kept"), site.rest(site.queue()));
        });
        suite.add("transaction: to queues and a topic", site -> {
            Session session = site.session(Session.SESSION_TRANSACTED);
            MessageConsumer topic = site.session().createConsumer(site.topic());
            MessageProducer producer = session.createProducer(null);
            producer.send(site.queue(), session.createTextMessage("first"));
            producer.send(site.second(), session.createTextMessage("second"));
            producer.send(site.topic(), session.createTextMessage("topic"));
            Site.empty(topic);
            session.commit();
            Site.is("topic", Site.text(topic));
            Site.is(List.of("first"), site.rest(site.queue()));
            Site.is(List.of("second"), site.rest(site.second()));
        });
        suite.add("transaction: 2,000 messages", site -> {
            Session session = site.session(Session.SESSION_TRANSACTED);
            MessageProducer producer = session.createProducer(site.queue());
            for (int at = 0; at < 2_000; at++) {
                producer.send(session.createTextMessage("" + at));
            }
            session.commit();
            MessageConsumer consumer = session.createConsumer(site.queue());
            for (int at = 0; at < 2_000; at++) {
                Site.is("" + at, Site.text(consumer));
            }
            session.commit();
            Site.is(List.of(), site.rest(site.queue()));
        });
        suite.add("transaction: the producer is closed before", site -> {
            Session session = site.session(Session.SESSION_TRANSACTED);
            MessageProducer producer = session.createProducer(site.queue());
            producer.send(session.createTextMessage("one"));
            producer.close();
            session.commit();
            Site.is(List.of("one"), site.rest(site.queue()));
        });
        suite.add("transaction: the session is closed without an end", site -> {
            Session session = site.session(Session.SESSION_TRANSACTED);
            session.createProducer(site.queue()).send(session.createTextMessage("gone"));
            session.close();
            Site.is(List.of(), site.rest(site.queue()));
        });
    }

    private static void receiving(Scenarios suite) {
        suite.add("transaction: taken with commit", site -> {
            site.send(site.queue(), "one", "two");
            try (Session session = site.session(Session.SESSION_TRANSACTED)) {
                Site.is("one", Site.text(session.createConsumer(site.queue())));
                session.commit();
            }
            Site.is(List.of("two"), site.rest(site.queue()));
        });
        suite.add("transaction: rolled back comes again", site -> {
            site.send(site.queue(), "one", "two");
            Session session = site.session(Session.SESSION_TRANSACTED);
            MessageConsumer consumer = session.createConsumer(site.queue());
            Site.is(List.of("one", "two"), Site.texts(consumer, 2));
            session.rollback();
            for (String text : List.of("one", "two")) {
                TextMessage again = (TextMessage) Site.next(consumer);
                Site.is(text, again.getText());
                Site.is(true, again.getJMSRedelivered());
                Site.is(2, again.getIntProperty("JMSXDeliveryCount"));
            }
            session.commit();
            Site.empty(consumer);
        });
        suite.add("transaction: three rollbacks count", site -> {
            site.send(site.queue(), "one");
            Session session = site.session(Session.SESSION_TRANSACTED);
            MessageConsumer consumer = session.createConsumer(site.queue());
            for (int count = 1; count < 4; count++) {
                Site.is(count, Site.next(consumer).getIntProperty("JMSXDeliveryCount"));
                session.rollback();
            }
            Site.is(4, Site.next(consumer).getIntProperty("JMSXDeliveryCount"));
            session.commit();
        });
        suite.add("transaction: the consumer is closed before", site -> {
            site.send(site.queue(), "one", "two");
            try (Session session = site.session(Session.SESSION_TRANSACTED)) {
                MessageConsumer consumer = session.createConsumer(site.queue());
                Site.next(consumer);
                consumer.close();
                session.commit();
            }
            Site.is(List.of("two"), site.rest(site.queue()));
        });
        suite.add("transaction: rolled back after its consumer", site -> {
            site.send(site.queue(), "one");
            try (Session session = site.session(Session.SESSION_TRANSACTED)) {
                MessageConsumer consumer = session.createConsumer(site.queue());
                Site.next(consumer);
                consumer.close();
                session.rollback();
            }
            Site.is(List.of("one"), site.rest(site.queue()));
        });
        suite.add("transaction: a session closed without an end gives back", site -> {
            site.send(site.queue(), "one", "two");
            try (Session session = site.session(Session.SESSION_TRANSACTED)) {
                Site.texts(session.createConsumer(site.queue()), 2);
            }
            Site.is(List.of("one", "two"), site.rest(site.queue()));
        });
        suite.add("transaction: of a durable subscription", site -> {
            Session session = site.named(site.name("tx")).createSession(Session.SESSION_TRANSACTED);
            MessageConsumer consumer = session.createDurableConsumer(site.topic(), "s");
            site.send(site.topic(), "one");
            Site.is("one", Site.text(consumer));
            session.rollback();
            Site.is("one", Site.text(consumer));
            session.commit();
            consumer.close();
            session.unsubscribe("s");
        });
        suite.add("transaction: prefetch 1", site -> {
            site.send(site.queue(), "1", "2", "3");
            Session session = site.another("jms.prefetchPolicy.all=1").createSession(Session.SESSION_TRANSACTED);
            MessageConsumer consumer = session.createConsumer(site.queue());
            Site.is(List.of("1", "2"), Site.texts(consumer, 2));
            session.rollback();
            Site.is(List.of("1", "2", "3"), Site.texts(consumer, 3));
            session.commit();
        });
    }

    private static void both(Scenarios suite) {
        suite.add("transaction: taken here and sent there", site -> {
            site.send(site.queue(), "one");
            Session session = site.session(Session.SESSION_TRANSACTED);
            MessageConsumer consumer = session.createConsumer(site.queue());
            MessageProducer producer = session.createProducer(site.second());
            for (boolean commit : new boolean[] {false, true}) {
                producer.send(session.createTextMessage(Site.text(consumer) + " moved"));
                if (commit) {
                    session.commit();
                } else {
                    session.rollback();
                }
            }
            Site.empty(consumer);
            Site.is(List.of("one moved"), site.rest(site.second()));
        });
        suite.add("transactions of two sessions", site -> {
            Session one = site.session(Session.SESSION_TRANSACTED);
            Session two = site.session(Session.SESSION_TRANSACTED);
            one.createProducer(site.queue()).send(one.createTextMessage("one"));
            two.createProducer(site.queue()).send(two.createTextMessage("two"));
            two.commit();
            one.rollback();
            Site.is(List.of("two"), site.rest(site.queue()));
        });
        suite.add("transactions of 150 sessions", site -> {
            List<Session> sessions = new ArrayList<>();
            for (int at = 0; at < 150; at++) {
                Session session = site.session(Session.SESSION_TRANSACTED);
                session.createProducer(site.queue()).send(session.createTextMessage("x"));
                sessions.add(session);
            }
            for (Session session : sessions) {
                session.commit();
            }
            Site.is(150, site.rest(site.queue()).size());
        });
        suite.add("transaction: nothing in it", site -> {
            Session session = site.session(Session.SESSION_TRANSACTED);
            session.commit();
            session.rollback();
            session.commit();
        });
        suite.add("transaction: request and reply need two", site -> {
            Session session = site.session(Session.SESSION_TRANSACTED);
            MessageConsumer answers = session.createConsumer(site.second());
            TextMessage request = session.createTextMessage("request");
            request.setJMSReplyTo(site.second());
            session.createProducer(site.queue()).send(request);
            session.commit();
            Session serving = site.session();
            Message found = Site.next(serving.createConsumer(site.queue()));
            serving.createProducer(found.getJMSReplyTo()).send(serving.createTextMessage("answer"));
            Site.is("answer", Site.text(answers));
            session.commit();
        });
        suite.add("JMSContext: transacted", site -> {
            JMSContext context = site.context(JMSContext.SESSION_TRANSACTED);
            context.createProducer().send(site.queue(), "gone");
            context.rollback();
            context.createProducer().send(site.queue(), "kept");
            context.commit();
            Site.is(List.of("kept"), site.rest(site.queue()));
        });
    }

    private static void errors(Scenarios suite) {
        suite.add("transaction: where there is none", site -> {
            Session session = site.session();
            Site.is(false, session.getTransacted());
            Site.fails(IllegalStateException.class, session::commit);
            Site.fails(IllegalStateException.class, session::rollback);
        });
        suite.add("transaction: recover", site -> {
            Session session = site.session(Session.SESSION_TRANSACTED);
            Site.is(true, session.getTransacted());
            Site.fails(IllegalStateException.class, session::recover);
        });
        suite.add("transaction: acknowledge does nothing", site -> {
            site.send(site.queue(), "one");
            try (Session session = site.session(Session.SESSION_TRANSACTED)) {
                Site.next(session.createConsumer(site.queue())).acknowledge();
            }
            Site.is(List.of("one"), site.rest(site.queue()));
        });
    }
}
