import jakarta.jms.CompletionListener;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.IllegalStateException;
import jakarta.jms.IllegalStateRuntimeException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.InvalidDestinationRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSProducer;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageFormatRuntimeException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/** Producers: order, priorities, times to live, delays, asynchronous sends and the chains of JMSProducer. */
final class Producing {
    private Producing() {}

    static void add(Scenarios suite) {
        order(suite);
        times(suite);
        asynchronous(suite);
        simplified(suite);
        errors(suite);
    }

    private static void order(Scenarios suite) {
        suite.add("order of one producer", site -> {
            Session session = site.session();
            List<String> sent = new ArrayList<>();
            for (int at = 0; at < 200; at++) {
                sent.add("text" + at);
            }
            site.send(site.queue(), sent.toArray(new String[0]));
            try (MessageConsumer consumer = session.createConsumer(site.queue())) {
                Site.is(sent, Site.texts(consumer, 200));
            }
        });
        suite.add("priorities: higher first", site -> {
            Session session = site.session();
            try (MessageProducer producer = session.createProducer(site.queue())) {
                for (int priority : new int[] {1, 9, 4, 0, 9, 5}) {
                    producer.send(session.createTextMessage("" + priority), DeliveryMode.PERSISTENT, priority, 0);
                }
            }
            Site.is(List.of("9", "9", "5", "4", "1", "0"), site.rest(site.queue()));
        });
        suite.add("one producer for many destinations", site -> {
            Session session = site.session();
            try (MessageProducer producer = session.createProducer(null);
                    MessageConsumer topic = session.createConsumer(site.topic())) {
                producer.send(site.queue(), session.createTextMessage("first"));
                producer.send(site.second(), session.createTextMessage("second"));
                producer.send(site.topic(), session.createTextMessage("topic"));
                Site.is("topic", Site.text(topic));
            }
            Site.is(List.of("first"), site.rest(site.queue()));
            Site.is(List.of("second"), site.rest(site.second()));
        });
        suite.add("what a send says goes before the producer", site -> {
            Session session = site.session();
            try (MessageProducer producer = session.createProducer(site.queue());
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                producer.setPriority(2);
                producer.setTimeToLive(100_000);
                producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
                producer.send(session.createMessage(), DeliveryMode.PERSISTENT, 7, 0);
                Message found = Site.next(consumer);
                Site.is(7, found.getJMSPriority());
                Site.is(0L, found.getJMSExpiration());
                Site.is(DeliveryMode.PERSISTENT, found.getJMSDeliveryMode());
            }
        });
        suite.add("not persistent: 500 messages", site -> {
            Session session = site.session();
            try (MessageProducer producer = session.createProducer(site.queue());
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
                for (int at = 0; at < 500; at++) {
                    producer.send(session.createTextMessage("" + at));
                }
                for (int at = 0; at < 500; at++) {
                    Site.is("" + at, Site.text(consumer));
                }
            }
        });
        suite.add("jms.forceAsyncSend: 500 messages", site -> {
            Session session = site.another("jms.forceAsyncSend=true").createSession();
            try (MessageProducer producer = session.createProducer(site.queue());
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                for (int at = 0; at < 500; at++) {
                    producer.send(session.createTextMessage("" + at));
                }
                for (int at = 0; at < 500; at++) {
                    Site.is("" + at, Site.text(consumer));
                }
            }
        });
        suite.add("presettled producers and consumers", site -> {
            Session session = site.another("jms.presettlePolicy.presettleAll=true").createSession();
            site.send(site.queue(), "there");
            Site.is("sent", site.through(session, session.createTextMessage("sent"), site.topic()).getText());
            try (MessageConsumer consumer = session.createConsumer(site.queue())) {
                Site.is("there", Site.text(consumer));
            }
            Site.is(List.of(), site.rest(site.queue()));
        });
    }

    private static void times(Scenarios suite) {
        suite.add("time to live: gone", site -> {
            Session session = site.session();
            try (MessageProducer producer = session.createProducer(site.queue())) {
                producer.send(session.createTextMessage("short"), DeliveryMode.PERSISTENT, 4, 1);
                producer.send(session.createTextMessage("long"), DeliveryMode.PERSISTENT, 4, 60_000);
                producer.send(session.createTextMessage("always"));
            }
            Thread.sleep(50);
            Site.is(List.of("long", "always"), site.rest(site.queue()));
        });
        suite.add("time to live: not browsed", site -> {
            Session session = site.session();
            try (MessageProducer producer = session.createProducer(site.queue())) {
                producer.send(session.createTextMessage("short"), DeliveryMode.PERSISTENT, 4, 1);
                producer.send(session.createTextMessage("always"));
            }
            Thread.sleep(50);
            Site.is(List.of("always"), Site.texts(session.createBrowser(site.queue())));
        });
        suite.add("time to live: of a durable subscription", site -> {
            Session session = site.named(site.name("ttl")).createSession();
            session.createDurableConsumer(site.topic(), "s").close();
            try (MessageProducer producer = session.createProducer(site.topic())) {
                producer.send(session.createTextMessage("short"), DeliveryMode.PERSISTENT, 4, 1);
                producer.send(session.createTextMessage("always"));
            }
            Thread.sleep(50);
            try (MessageConsumer consumer = session.createDurableConsumer(site.topic(), "s")) {
                Site.is("always", Site.text(consumer));
                Site.empty(consumer);
            }
            session.unsubscribe("s");
        });
        suite.add("delivery delay", site -> {
            Session session = site.session();
            try (MessageProducer producer = session.createProducer(site.queue());
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                producer.setDeliveryDelay(300);
                long before = System.currentTimeMillis();
                TextMessage sent = session.createTextMessage("late");
                producer.send(sent);
                Site.empty(consumer);
                Message found = Site.next(consumer);
                Site.check(System.currentTimeMillis() - before >= 300, "too early");
                Site.is(sent.getJMSDeliveryTime(), found.getJMSDeliveryTime());
            }
        });
        suite.add("delivery delay: the shorter one first", site -> {
            Session session = site.session();
            try (MessageProducer producer = session.createProducer(site.queue());
                    MessageConsumer consumer = session.createConsumer(site.queue())) {
                for (int delay : new int[] {500, 250, 0}) {
                    producer.setDeliveryDelay(delay);
                    producer.send(session.createTextMessage("" + delay));
                }
                Site.is(List.of("0", "250", "500"), Site.texts(consumer, 3));
            }
        });
        suite.add("delivery delay: over a topic", site -> {
            Session session = site.session();
            try (MessageProducer producer = session.createProducer(site.topic());
                    MessageConsumer consumer = session.createConsumer(site.topic())) {
                producer.setDeliveryDelay(300);
                long before = System.currentTimeMillis();
                producer.send(session.createTextMessage("late"));
                Site.next(consumer);
                Site.check(System.currentTimeMillis() - before >= 300, "too early");
            }
        });
        suite.add("delivery delay: begins with the send in a transaction", site -> {
            Session session = site.session(Session.SESSION_TRANSACTED);
            try (MessageProducer producer = session.createProducer(site.queue());
                    MessageConsumer consumer = site.session().createConsumer(site.queue())) {
                producer.setDeliveryDelay(300);
                producer.send(session.createTextMessage("late"));
                session.commit();
                Site.empty(consumer);
                Site.is("late", Site.text(consumer));
            }
        });
    }

    /** Takes what asynchronous sends come to. */
    private static final class Completed implements CompletionListener {
        final List<String> told = Collections.synchronizedList(new ArrayList<>());
        final AtomicReference<Exception> failed = new AtomicReference<>();
        private final CountDownLatch left;

        Completed(int count) {
            left = new CountDownLatch(count);
        }

        @Override
        public void onCompletion(Message message) {
            try {
                told.add(((TextMessage) message).getText());
            } catch (JMSException problem) {
                failed.set(problem);
            }
            left.countDown();
        }

        @Override
        public void onException(Message message, Exception problem) {
            failed.set(problem);
            left.countDown();
        }

        List<String> all() throws InterruptedException {
            Site.check(left.await(Site.SOON_MS, TimeUnit.MILLISECONDS), "not completed");
            return told;
        }
    }

    private static void asynchronous(Scenarios suite) {
        suite.add("asynchronous sends complete in order", site -> {
            Session session = site.session();
            Completed completed = new Completed(100);
            List<String> sent = new ArrayList<>();
            try (MessageProducer producer = session.createProducer(site.queue())) {
                for (int at = 0; at < 100; at++) {
                    sent.add("" + at);
                    producer.send(session.createTextMessage("" + at), completed);
                }
                Site.is(sent, completed.all());
            }
            Site.is(sent, site.rest(site.queue()));
        });
        suite.add("asynchronous send of JMSProducer", site -> {
            JMSContext context = site.context();
            Completed completed = new Completed(1);
            context.createProducer().setAsync(completed).send(site.queue(), "text");
            Site.is(List.of("text"), completed.all());
        });
        suite.add("asynchronous sends: close waits", site -> {
            Session session = site.session();
            Completed completed = new Completed(50);
            MessageProducer producer = session.createProducer(site.queue());
            for (int at = 0; at < 50; at++) {
                producer.send(session.createTextMessage("" + at), completed);
            }
            session.close();
            Site.is(50, completed.told.size());
        });
        suite.add("asynchronous send in a transaction", site -> {
            Session session = site.session(Session.SESSION_TRANSACTED);
            Completed completed = new Completed(2);
            try (MessageProducer producer = session.createProducer(site.queue())) {
                producer.send(session.createTextMessage("one"), completed);
                producer.send(session.createTextMessage("two"), completed);
                session.commit();
            }
            Site.is(2, completed.all().size());
            Site.is(List.of("one", "two"), site.rest(site.queue()));
        });
        suite.add("asynchronous send: a listener does not close its producer", site -> {
            Session session = site.session();
            AtomicReference<Throwable> came = new AtomicReference<>();
            CountDownLatch done = new CountDownLatch(1);
            MessageProducer producer = session.createProducer(site.queue());
            producer.send(session.createTextMessage("x"), new CompletionListener() {
                @Override
                public void onCompletion(Message message) {
                    try {
                        session.close();
                    } catch (Throwable problem) {
                        came.set(problem);
                    }
                    done.countDown();
                }

                @Override
                public void onException(Message message, Exception problem) {
                    came.set(problem);
                    done.countDown();
                }
            });
            Site.check(done.await(Site.SOON_MS, TimeUnit.MILLISECONDS), "not completed");
            Site.check(came.get() instanceof IllegalStateException, "" + came.get());
        });
        suite.add("asynchronous send: no listener", site -> {
            Session session = site.session();
            MessageProducer producer = session.createProducer(site.queue());
            Site.fails(IllegalArgumentException.class, () -> producer.send(session.createMessage(), null));
        });
    }

    private static void simplified(Scenarios suite) {
        suite.add("JMSProducer: a chain", site -> {
            JMSContext context = site.context();
            JMSProducer producer = context.createProducer();
            producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT)
                    .setPriority(7)
                    .setTimeToLive(60_000)
                    .setJMSCorrelationID("c")
                    .setJMSType("t")
                    .setJMSReplyTo(site.second())
                    .setProperty("int", 1)
                    .setProperty("text", "two")
                    .send(site.queue(), "body");
            Message found = context.createConsumer(site.queue()).receive(Site.SOON_MS);
            Site.is("body", found.getBody(String.class));
            Site.is(7, found.getJMSPriority());
            Site.is(DeliveryMode.NON_PERSISTENT, found.getJMSDeliveryMode());
            Site.is(found.getJMSTimestamp() + 60_000, found.getJMSExpiration());
            Site.is("c", found.getJMSCorrelationID());
            Site.is("t", found.getJMSType());
            Site.is(site.second().getQueueName(), ((Queue) found.getJMSReplyTo()).getQueueName());
            Site.is(1, found.getObjectProperty("int"));
            Site.is("two", found.getObjectProperty("text"));
        });
        suite.add("JMSProducer: a body of each class", site -> {
            JMSContext context = site.context();
            JMSConsumer consumer = context.createConsumer(site.queue());
            JMSProducer producer = context.createProducer();
            producer.send(site.queue(), "text")
                    .send(site.queue(), Map.of("key", (Object) 1))
                    .send(site.queue(), new byte[] {1, 2})
                    .send(site.queue(), new ArrayList<>(List.of("object")))
                    .send(site.queue(), (String) null);
            Site.is("text", consumer.receiveBody(String.class, Site.SOON_MS));
            Site.is(Map.of("key", 1), consumer.receiveBody(Map.class, Site.SOON_MS));
            Site.is(new byte[] {1, 2}, consumer.receiveBody(byte[].class, Site.SOON_MS));
            Site.is(List.of("object"), consumer.receiveBody(ArrayList.class, Site.SOON_MS));
            Site.is(null, consumer.receive(Site.SOON_MS).getBody(String.class));
        });
        suite.add("JMSProducer: its properties go before the message's", site -> {
            JMSContext context = site.context();
            Message sent = context.createTextMessage("x");
            sent.setStringProperty("who", "message");
            sent.setStringProperty("other", "message");
            context.createProducer().setProperty("who", "producer").send(site.queue(), sent);
            Message found = context.createConsumer(site.queue()).receive(Site.SOON_MS);
            Site.is("producer", found.getStringProperty("who"));
            Site.is("message", found.getStringProperty("other"));
        });
        suite.add("JMSProducer: cleared properties", site -> {
            JMSContext context = site.context();
            JMSProducer producer = context.createProducer().setProperty("a", 1).clearProperties().setProperty("b", 2);
            Site.is(1, producer.getPropertyNames().size());
            producer.send(site.queue(), "x");
            Message found = context.createConsumer(site.queue()).receive(Site.SOON_MS);
            Site.check(!found.propertyExists("a") && found.propertyExists("b"), "properties");
        });
        suite.add("JMSProducer: delivery delay", site -> {
            JMSContext context = site.context();
            JMSConsumer consumer = context.createConsumer(site.queue());
            long before = System.currentTimeMillis();
            context.createProducer().setDeliveryDelay(300).send(site.queue(), "late");
            Site.is("late", consumer.receiveBody(String.class, Site.SOON_MS));
            Site.check(System.currentTimeMillis() - before >= 300, "too early");
        });
        suite.add("JMSConsumer: a body of another class stays", site -> {
            JMSContext context = site.context();
            context.createProducer().send(site.queue(), "text");
            JMSConsumer consumer = context.createConsumer(site.queue());
            Site.fails(MessageFormatRuntimeException.class, () -> consumer.receiveBody(Map.class, Site.SOON_MS));
            Site.is("text", consumer.receiveBody(String.class, Site.SOON_MS));
        });
    }

    private static void errors(Scenarios suite) {
        suite.add("no destination", site -> {
            Session session = site.session();
            Message message = session.createMessage();
            MessageProducer producer = session.createProducer(null);
            Site.fails(UnsupportedOperationException.class, () -> producer.send(message));
            Site.fails(InvalidDestinationException.class, () -> producer.send((Destination) null, message));
            Site.fails(InvalidDestinationRuntimeException.class, () -> site.context().createProducer().send(null, "x"));
        });
        suite.add("another destination than the producer's", site -> {
            Session session = site.session();
            MessageProducer producer = session.createProducer(site.queue());
            Site.fails(UnsupportedOperationException.class, () -> producer.send(site.second(), session.createMessage()));
        });
        suite.add("priority, mode and delay that are none", site -> {
            MessageProducer producer = site.session().createProducer(site.queue());
            Site.fails(JMSException.class, () -> producer.setPriority(10));
            Site.fails(JMSException.class, () -> producer.setDeliveryMode(7));
            Site.fails(IllegalStateRuntimeException.class, () -> {
                JMSContext context = site.context();
                context.close();
                context.createProducer().send(site.queue(), "x");
            });
        });
        suite.add("a queue of a new name", site -> {
            Session session = site.session();
            Queue queue = session.createQueue(site.name("new"));
            Site.is("x", site.through(session, session.createTextMessage("x"), queue).getText());
        });
    }
}
