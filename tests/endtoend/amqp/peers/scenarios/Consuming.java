import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Consumers: acknowledgement, redelivery, listeners, prefetch, several at a time, browsers. */
final class Consuming {
    private static final int INDIVIDUAL = 101;

    private Consuming() {}

    static void add(Scenarios suite) {
        acknowledgement(suite);
        redelivery(suite);
        receiving(suite);
        listeners(suite);
        several(suite);
        browsers(suite);
    }

    private static void acknowledgement(Scenarios suite) {
        suite.add("client acknowledgement: of all so far", site -> {
            site.send(site.queue(), "one", "two", "three");
            try (Session session = site.session(Session.CLIENT_ACKNOWLEDGE);
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                Site.next(consumer);
                Site.next(consumer).acknowledge();
                Site.next(consumer);
            }
            Site.is(List.of("three"), site.rest(site.queue()));
        });
        suite.add("client acknowledgement: of two consumers", site -> {
            site.send(site.queue(), "one");
            site.send(site.second(), "two");
            try (Session session = site.session(Session.CLIENT_ACKNOWLEDGE);
                    MessageConsumer first = session.createConsumer(site.queue());
                    MessageConsumer second = session.createConsumer(site.second())) {
                Site.next(first);
                Site.next(second).acknowledge();
            }
            Site.is(List.of(), site.rest(site.queue()));
            Site.is(List.of(), site.rest(site.second()));
        });
        suite.add("client acknowledgement: none", site -> {
            site.send(site.queue(), "one", "two");
            try (Session session = site.session(Session.CLIENT_ACKNOWLEDGE);
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                Site.texts(consumer, 2);
            }
            Site.is(List.of("one", "two"), site.rest(site.queue()));
        });
        suite.add("client acknowledgement: after the consumer", site -> {
            site.send(site.queue(), "one", "two");
            try (Session session = site.session(Session.CLIENT_ACKNOWLEDGE)) {
                MessageConsumer consumer = session.createConsumer(site.queue());
                Message found = Site.next(consumer);
                consumer.close();
                found.acknowledge();
            }
            Site.is(List.of("two"), site.rest(site.queue()));
        });
        suite.add("automatic acknowledgement", site -> {
            site.send(site.queue(), "one", "two");
            try (Session session = site.session();
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                Site.is("one", Site.text(consumer));
            }
            Site.is(List.of("two"), site.rest(site.queue()));
        });
        suite.add("duplicates allowed", site -> {
            site.send(site.queue(), "one", "two");
            try (Session session = site.session(Session.DUPS_OK_ACKNOWLEDGE);
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                Site.is(List.of("one", "two"), Site.texts(consumer, 2));
            }
            Site.is(List.of(), site.rest(site.queue()));
        });
        suite.add("individual acknowledgement", site -> {
            site.send(site.queue(), "one", "two", "three");
            try (Session session = site.session(INDIVIDUAL);
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                Site.next(consumer);
                Site.next(consumer).acknowledge();
                Site.next(consumer);
            }
            Site.is(List.of("one", "three"), site.rest(site.queue()));
        });
        // What Qpid JMS makes of it: 1 accepted, 3 released, 4 modified as failed.
        for (int kind : new int[] {1, 3, 4}) {
            suite.add("JMS_AMQP_ACK_TYPE " + kind, site -> {
                site.send(site.queue(), "one");
                try (Session session = site.session(Session.CLIENT_ACKNOWLEDGE);
                        MessageConsumer consumer = session.createConsumer(site.queue())) {
                    Message found = Site.next(consumer);
                    found.setIntProperty("JMS_AMQP_ACK_TYPE", kind);
                    found.acknowledge();
                    if (kind == 1) {
                        Site.empty(consumer);
                        return;
                    }
                    Message again = Site.next(consumer);
                    Site.is(kind == 4, again.getJMSRedelivered());
                    again.acknowledge();
                }
            });
        }
        suite.add("JMSContext: acknowledge", site -> {
            site.send(site.queue(), "one", "two");
            try (JMSContext context = site.context(JMSContext.CLIENT_ACKNOWLEDGE)) {
                JMSConsumer consumer = context.createConsumer(site.queue());
                consumer.receive(Site.SOON_MS);
                context.acknowledge();
                consumer.receive(Site.SOON_MS);
            }
            Site.is(List.of("two"), site.rest(site.queue()));
        });
    }

    private static void redelivery(Scenarios suite) {
        suite.add("recover: again, in order, marked", site -> {
            site.send(site.queue(), "one", "two", "three");
            try (Session session = site.session(Session.CLIENT_ACKNOWLEDGE);
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                Site.texts(consumer, 2);
                session.recover();
                for (String text : List.of("one", "two")) {
                    TextMessage again = (TextMessage) Site.next(consumer);
                    Site.is(text, again.getText());
                    Site.is(true, again.getJMSRedelivered());
                    Site.is(2, again.getIntProperty("JMSXDeliveryCount"));
                }
                Message third = Site.next(consumer);
                Site.is(false, third.getJMSRedelivered());
                third.acknowledge();
            }
            Site.is(List.of(), site.rest(site.queue()));
        });
        suite.add("recover: five times counts", site -> {
            site.send(site.queue(), "one");
            try (Session session = site.session(Session.CLIENT_ACKNOWLEDGE);
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                for (int count = 1; count <= 5; count++) {
                    Site.is(count, Site.next(consumer).getIntProperty("JMSXDeliveryCount"));
                    session.recover();
                }
                Site.next(consumer).acknowledge();
            }
        });
        suite.add("recover: what is acknowledged does not come", site -> {
            site.send(site.queue(), "one", "two");
            try (Session session = site.session(Session.CLIENT_ACKNOWLEDGE);
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                Site.next(consumer).acknowledge();
                Site.next(consumer);
                session.recover();
                Site.is("two", Site.text(consumer));
            }
        });
        suite.add("recover: of a subscription", site -> {
            try (Session session = site.session(Session.CLIENT_ACKNOWLEDGE);
                    MessageConsumer consumer = session.createConsumer(site.topic())) {
                site.send(site.topic(), "one");
                Site.next(consumer);
                session.recover();
                Message again = Site.next(consumer);
                Site.is(true, again.getJMSRedelivered());
                again.acknowledge();
            }
        });
        suite.add("a session that ends without acknowledgement", site -> {
            site.send(site.queue(), "one", "two", "three");
            try (Session session = site.session(Session.CLIENT_ACKNOWLEDGE);
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                Site.texts(consumer, 2);
            }
            try (Session session = site.session(); MessageConsumer consumer = session.createConsumer(site.queue())) {
                Site.is(List.of("one", "two", "three"), Site.texts(consumer, 3));
            }
        });
        suite.add("what is prefetched only is not redelivered", site -> {
            site.send(site.queue(), "one", "two");
            try (Session session = site.session(); MessageConsumer consumer = session.createConsumer(site.queue())) {
                Site.next(consumer);
            }
            try (Session session = site.session(); MessageConsumer consumer = session.createConsumer(site.queue())) {
                Message second = Site.next(consumer);
                Site.is(false, second.getJMSRedelivered());
                Site.is(1, second.getIntProperty("JMSXDeliveryCount"));
            }
        });
        suite.add("jms.redeliveryPolicy.maxRedeliveries", site -> {
            site.send(site.queue(), "bad", "good");
            Session session = site.another("jms.redeliveryPolicy.maxRedeliveries=1&jms.prefetchPolicy.all=1")
                    .createSession(Session.CLIENT_ACKNOWLEDGE);
            try (session; MessageConsumer consumer = session.createConsumer(site.queue())) {
                for (int time = 0; time < 2; time++) {
                    Site.is("bad", Site.text(consumer));
                    session.recover();
                }
                Site.is("good", Site.text(consumer));
            }
        });
    }

    private static void receiving(Scenarios suite) {
        suite.add("receive waits for a time", site -> {
            MessageConsumer consumer = site.session().createConsumer(site.queue());
            long before = System.nanoTime();
            Site.is(null, consumer.receive(200));
            Site.check(System.nanoTime() - before >= 190_000_000L, "too early");
            Site.is(null, consumer.receiveNoWait());
        });
        suite.add("receive at once what is there", site -> {
            site.send(site.queue(), "one", "two");
            MessageConsumer consumer = site.session().createConsumer(site.queue());
            Site.check(consumer.receiveNoWait() != null && consumer.receiveNoWait() != null, "two messages");
            Site.empty(consumer);
        });
        suite.add("receive ends with its consumer", site -> {
            MessageConsumer consumer = site.session().createConsumer(site.queue());
            LinkedBlockingQueue<String> came = new LinkedBlockingQueue<>();
            Thread waiting = new Thread(() -> {
                try {
                    came.add("" + consumer.receive());
                } catch (JMSException problem) {
                    came.add(problem.toString());
                }
            });
            waiting.start();
            while (waiting.getState() == Thread.State.RUNNABLE || waiting.getState() == Thread.State.NEW) {
                Thread.onSpinWait();
            }
            consumer.close();
            Site.is("null", came.poll(Site.SOON_MS, TimeUnit.MILLISECONDS));
        });
        suite.add("nothing before the connection starts", site -> {
            site.send(site.queue(), "one");
            Connection connection = site.unstarted("");
            MessageConsumer consumer = connection.createSession().createConsumer(site.queue());
            Site.is(null, consumer.receive(100));
            connection.start();
            Site.is("one", Site.text(consumer));
        });
        suite.add("nothing while the connection is stopped", site -> {
            Connection connection = site.another("");
            MessageConsumer consumer = connection.createSession().createConsumer(site.queue());
            connection.stop();
            site.send(site.queue(), "one");
            Site.is(null, consumer.receive(100));
            connection.start();
            Site.is("one", Site.text(consumer));
        });
        for (int prefetch : new int[] {0, 1, 10}) {
            suite.add("prefetch " + prefetch, site -> {
                site.send(site.queue(), "1", "2", "3", "4", "5");
                Session session = site.another("jms.prefetchPolicy.all=" + prefetch).createSession();
                try (session; MessageConsumer consumer = session.createConsumer(site.queue())) {
                    Site.is(List.of("1", "2", "3"), Site.texts(consumer, 3));
                    Site.is("4", ((TextMessage) consumer.receiveNoWait()).getText());
                }
                Site.is(List.of("5"), site.rest(site.queue()));
            });
        }
        suite.add("prefetch 0 leaves the others to others", site -> {
            site.send(site.queue(), "1", "2", "3");
            Session pulling = site.another("jms.prefetchPolicy.all=0").createSession();
            MessageConsumer first = pulling.createConsumer(site.queue());
            Site.is("1", Site.text(first));
            MessageConsumer second = site.another("").createSession().createConsumer(site.queue());
            Site.is(List.of("2", "3"), Site.texts(second, 2));
            Site.empty(first);
        });
        suite.add("many sessions and consumers", site -> {
            Connection connection = site.connection();
            List<MessageConsumer> consumers = new ArrayList<>();
            for (int at = 0; at < 300; at++) {
                consumers.add(connection.createSession().createConsumer(site.topic()));
            }
            site.send(site.topic(), "to all");
            for (MessageConsumer consumer : consumers) {
                Site.is("to all", Site.text(consumer));
            }
        });
        suite.add("many producers and consumers of one session", site -> {
            Session session = site.session();
            List<MessageProducer> producers = new ArrayList<>();
            List<MessageConsumer> consumers = new ArrayList<>();
            for (int at = 0; at < 200; at++) {
                producers.add(session.createProducer(session.createTopic(site.name("many") + "/" + at)));
                consumers.add(session.createConsumer(session.createTopic(site.name("many") + "/" + at)));
            }
            for (int at = 0; at < 200; at++) {
                producers.get(at).send(session.createTextMessage("" + at));
                Site.is("" + at, Site.text(consumers.get(at)));
            }
        });
    }

    private static void listeners(Scenarios suite) {
        suite.add("listener", site -> {
            LinkedBlockingQueue<String> came = new LinkedBlockingQueue<>();
            Session session = site.session();
            session.createConsumer(site.queue()).setMessageListener(message -> came.add(shown(message)));
            site.send(site.queue(), "one", "two");
            Site.is("one", came.poll(Site.SOON_MS, TimeUnit.MILLISECONDS));
            Site.is("two", came.poll(Site.SOON_MS, TimeUnit.MILLISECONDS));
        });
        suite.add("listener that throws gets the message again", site -> {
            LinkedBlockingQueue<String> came = new LinkedBlockingQueue<>();
            Session session = site.session();
            session.createConsumer(site.queue()).setMessageListener(message -> {
                came.add(shown(message));
                if (came.size() == 1) {
                    throw new RuntimeException("on purpose");
                }
            });
            site.send(site.queue(), "one");
            Site.is("one", came.poll(Site.SOON_MS, TimeUnit.MILLISECONDS));
            // Qpid JMS releases it, which does not count.
            Site.check(came.poll(Site.SOON_MS, TimeUnit.MILLISECONDS).startsWith("one"), "another message");
        });
        suite.add("listener and receive", site -> {
            MessageConsumer consumer = site.session().createConsumer(site.queue());
            consumer.setMessageListener(message -> {});
            Site.fails(IllegalStateException.class, () -> consumer.receive(10));
        });
        suite.add("listener that recovers", site -> {
            LinkedBlockingQueue<String> came = new LinkedBlockingQueue<>();
            Session session = site.session(Session.CLIENT_ACKNOWLEDGE);
            session.createConsumer(site.queue()).setMessageListener(message -> {
                came.add(shown(message));
                try {
                    if (message.getJMSRedelivered()) {
                        message.acknowledge();
                    } else {
                        session.recover();
                    }
                } catch (JMSException problem) {
                    came.add(problem.toString());
                }
            });
            site.send(site.queue(), "one");
            Site.is("one", came.poll(Site.SOON_MS, TimeUnit.MILLISECONDS));
            Site.is("one again", came.poll(Site.SOON_MS, TimeUnit.MILLISECONDS));
        });
        suite.add("listener that does not close its connection", site -> {
            LinkedBlockingQueue<String> came = new LinkedBlockingQueue<>();
            Connection connection = site.another("");
            connection.createSession().createConsumer(site.queue()).setMessageListener(message -> {
                try {
                    connection.close();
                    came.add("closed");
                } catch (JMSException problem) {
                    came.add(problem.getClass().getSimpleName());
                }
            });
            site.send(site.queue(), "one");
            Site.is("IllegalStateException", came.poll(Site.SOON_MS, TimeUnit.MILLISECONDS));
        });
        suite.add("listener of a transacted session", site -> {
            LinkedBlockingQueue<String> came = new LinkedBlockingQueue<>();
            Session session = site.session(Session.SESSION_TRANSACTED);
            session.createConsumer(site.queue()).setMessageListener(message -> {
                try {
                    came.add(shown(message));
                    if (message.getJMSRedelivered()) {
                        session.commit();
                    } else {
                        session.rollback();
                    }
                } catch (JMSException problem) {
                    came.add(problem.toString());
                }
            });
            site.send(site.queue(), "one");
            Site.is("one", came.poll(Site.SOON_MS, TimeUnit.MILLISECONDS));
            Site.is("one again", came.poll(Site.SOON_MS, TimeUnit.MILLISECONDS));
        });
        suite.add("listener answers requests", site -> {
            Session serving = site.another("").createSession();
            MessageProducer answers = serving.createProducer(null);
            serving.createConsumer(site.queue()).setMessageListener(request -> {
                try {
                    TextMessage answer = serving.createTextMessage("answer to " + shown(request));
                    answer.setJMSCorrelationID(request.getJMSMessageID());
                    answers.send(request.getJMSReplyTo(), answer);
                } catch (JMSException problem) {
                    throw new RuntimeException(problem);
                }
            });
            Session session = site.session();
            Queue own = session.createTemporaryQueue();
            MessageConsumer consumer = session.createConsumer(own);
            for (String text : List.of("one", "two")) {
                TextMessage request = session.createTextMessage(text);
                request.setJMSReplyTo(own);
                session.createProducer(site.queue()).send(request);
                TextMessage answer = (TextMessage) Site.next(consumer);
                Site.is("answer to " + text, answer.getText());
                Site.is(request.getJMSMessageID(), answer.getJMSCorrelationID());
            }
        });
    }

    private static String shown(Message message) {
        try {
            return ((TextMessage) message).getText() + (message.getJMSRedelivered() ? " again" : "");
        } catch (JMSException problem) {
            return problem.toString();
        }
    }

    private static void several(Scenarios suite) {
        suite.add("consumers share a queue", site -> {
            Session session = site.another("jms.prefetchPolicy.all=1").createSession();
            MessageConsumer first = session.createConsumer(site.queue());
            MessageConsumer second = session.createConsumer(site.queue());
            site.send(site.queue(), "1", "2", "3", "4");
            TreeSet<String> found = new TreeSet<>();
            found.add(Site.text(first));
            found.add(Site.text(second));
            found.add(Site.text(first));
            found.add(Site.text(second));
            Site.is(4, found.size());
        });
        suite.add("what one consumer does not settle goes to another", site -> {
            Session session = site.another("").createSession(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer first = session.createConsumer(site.queue());
            site.send(site.queue(), "one", "two");
            Site.texts(first, 2);
            MessageConsumer second = site.session().createConsumer(site.queue());
            Site.empty(second);
            session.close();
            // Qpid JMS releases the last one first.
            Site.is(new TreeSet<>(List.of("one", "two")), new TreeSet<>(Site.texts(second, 2)));
        });
        suite.add("exclusive consumer, and who comes after it", site -> {
            Session session = site.session();
            Queue queue = session.createQueue("exclusive");
            Session one = site.another("").createSession();
            MessageConsumer first = one.createConsumer(queue);
            MessageConsumer second = site.another("").createSession().createConsumer(queue);
            site.send(queue, "1", "2");
            Site.is(List.of("1", "2"), Site.texts(first, 2));
            Site.empty(second);
            one.close();
            site.send(queue, "3");
            Site.is("3", Site.text(second));
        });
        suite.add("message groups: one consumer each, in order", site -> {
            Session session = site.session();
            Queue queue = session.createQueue("groups");
            List<MessageConsumer> consumers = new ArrayList<>();
            for (int at = 0; at < 2; at++) {
                consumers.add(site.another("").createSession().createConsumer(queue));
            }
            try (MessageProducer producer = session.createProducer(queue)) {
                for (int at = 0; at < 40; at++) {
                    TextMessage message = session.createTextMessage("" + at);
                    message.setStringProperty("JMSXGroupID", "group" + at % 8);
                    producer.send(message);
                }
            }
            Map<String, Integer> holders = new HashMap<>();
            Map<String, Integer> last = new HashMap<>();
            int left = 40;
            for (int turn = 0; left > 0; turn++) {
                Message message = consumers.get(turn % 2).receive(100);
                Site.check(message != null || turn < 200, left + " did not come");
                if (message != null) {
                    left--;
                    String group = message.getStringProperty("JMSXGroupID");
                    int number = Integer.parseInt(message.getBody(String.class));
                    holders.putIfAbsent(group, turn % 2);
                    Site.is(turn % 2, holders.get(group));
                    Site.check(last.getOrDefault(group, -1) < number, "not in order");
                    last.put(group, number);
                }
            }
        });
        suite.add("400 messages through four consumers", site -> {
            CountDownLatch left = new CountDownLatch(400);
            Map<String, Integer> seen = Collections.synchronizedMap(new HashMap<>());
            for (int at = 0; at < 4; at++) {
                site.another("").createSession().createConsumer(site.queue()).setMessageListener(message -> {
                    seen.merge(shown(message), 1, Integer::sum);
                    left.countDown();
                });
            }
            Session session = site.session();
            MessageProducer producer = session.createProducer(site.queue());
            for (int at = 0; at < 400; at++) {
                producer.send(session.createTextMessage("" + at));
            }
            Site.check(left.await(15, TimeUnit.SECONDS), left.getCount() + " did not come");
            Site.is(400, seen.size());
        });
    }

    private static void browsers(Scenarios suite) {
        suite.add("browser: all, in order, and they stay", site -> {
            site.send(site.queue(), "one", "two", "three");
            QueueBrowser browser = site.session().createBrowser(site.queue());
            Site.is(List.of("one", "two", "three"), Site.texts(browser));
            Site.is(List.of("one", "two", "three"), Site.texts(browser));
            Site.is(List.of("one", "two", "three"), site.rest(site.queue()));
        });
        suite.add("browser: none", site -> {
            Site.is(List.of(), Site.texts(site.session().createBrowser(site.queue())));
        });
        suite.add("browser: selector", site -> {
            Session session = site.session();
            MessageProducer producer = session.createProducer(site.queue());
            for (int at = 0; at < 10; at++) {
                TextMessage message = session.createTextMessage("" + at);
                message.setIntProperty("n", at);
                producer.send(message);
            }
            Site.is(List.of("7", "8", "9"), Site.texts(session.createBrowser(site.queue(), "n > 6")));
            Site.is("n > 6", session.createBrowser(site.queue(), "n > 6").getMessageSelector());
        });
        suite.add("browser: 500 messages", site -> {
            Session session = site.session();
            MessageProducer producer = session.createProducer(site.queue());
            for (int at = 0; at < 500; at++) {
                producer.send(session.createTextMessage("" + at));
            }
            Site.is(500, Site.texts(session.createBrowser(site.queue())).size());
        });
        suite.add("browser: two at a time", site -> {
            site.send(site.queue(), "one", "two");
            Session session = site.session();
            Enumeration<?> first = session.createBrowser(site.queue()).getEnumeration();
            Enumeration<?> second = session.createBrowser(site.queue()).getEnumeration();
            for (int at = 0; at < 2; at++) {
                Site.check(first.hasMoreElements() && second.hasMoreElements(), "two messages");
                Site.is(shown((Message) first.nextElement()), shown((Message) second.nextElement()));
            }
            Site.check(!first.hasMoreElements() && !second.hasMoreElements(), "two messages only");
        });
        suite.add("browser: of a temporary queue", site -> {
            Session session = site.session();
            Queue queue = session.createTemporaryQueue();
            site.send(queue, "one");
            Site.is(List.of("one"), Site.texts(session.createBrowser(queue)));
        });
        suite.add("browser: closed", site -> {
            QueueBrowser browser = site.session().createBrowser(site.queue());
            browser.close();
            Site.fails(IllegalStateException.class, browser::getEnumeration);
        });
        suite.add("browser: of JMSContext", site -> {
            site.send(site.queue(), "one");
            JMSContext context = site.context();
            Site.is(List.of("one"), Site.texts(context.createBrowser(site.queue())));
        });
    }
}
