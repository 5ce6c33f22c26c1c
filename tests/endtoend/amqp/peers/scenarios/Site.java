import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import org.apache.qpid.jms.JmsConnectionFactory;

/** What one scenario works with: connections that end with it, destinations that no other one uses, and checks. */
final class Site implements AutoCloseable {
    static final long SOON_MS = 5_000;

    /** Something that is expected to fail. */
    interface Action {
        void run() throws Exception;
    }

    final String url;
    private final int number;
    private final List<AutoCloseable> opened = new ArrayList<>();
    private Connection first;

    Site(String url, int number) {
        this.url = url;
        this.number = number;
    }

    // -- connections, sessions and destinations ------------------------------------------------------

    JmsConnectionFactory factory(String options) {
        return new JmsConnectionFactory(url + (options.isEmpty() ? "" : "?" + options));
    }

    /** The scenario's first connection, which is started. */
    Connection connection() throws JMSException {
        if (first == null) {
            first = another("");
        }
        return first;
    }

    /** One more connection, which is started. */
    Connection another(String options) throws JMSException {
        Connection made = unstarted(options);
        made.start();
        return made;
    }

    Connection unstarted(String options) throws JMSException {
        Connection made = factory(options).createConnection();
        opened.add(made);
        return made;
    }

    /** One more connection with a client id, which is started. */
    Connection named(String clientId) throws JMSException {
        Connection made = unstarted("");
        made.setClientID(clientId);
        made.start();
        return made;
    }

    JMSContext context(int mode) {
        JMSContext made = factory("").createContext(mode);
        opened.add(made);
        return made;
    }

    JMSContext context() {
        return context(JMSContext.AUTO_ACKNOWLEDGE);
    }

    Session session() throws JMSException {
        return session(Session.AUTO_ACKNOWLEDGE);
    }

    Session session(int mode) throws JMSException {
        return connection().createSession(mode);
    }

    Queue queue() throws JMSException {
        return session().createQueue("s" + number);
    }

    Queue second() throws JMSException {
        return session().createQueue("s" + number + "b");
    }

    Topic topic() throws JMSException {
        return session().createTopic("t/" + number);
    }

    /** A name that no other scenario uses. */
    String name(String text) {
        return text + number;
    }

    // -- messages ------------------------------------------------------------------------------------

    /** Send texts. */
    void send(Destination to, String... texts) throws JMSException {
        try (Session session = session(); MessageProducer producer = session.createProducer(to)) {
            for (String text : texts) {
                producer.send(session.createTextMessage(text));
            }
        }
    }

    /** Send a message to the queue, and take it from there. */
    <M extends Message> M through(Session session, M message) throws JMSException {
        return through(session, message, queue());
    }

    @SuppressWarnings("unchecked")
    <M extends Message> M through(Session session, M message, Destination by) throws JMSException {
        try (MessageConsumer consumer = session.createConsumer(by);
                MessageProducer producer = session.createProducer(by)) {
            producer.send(message);
            return (M) next(consumer);
        }
    }

    static Message next(MessageConsumer consumer) throws JMSException {
        Message found = consumer.receive(SOON_MS);
        check(found != null, "no message came");
        return found;
    }

    static String text(MessageConsumer consumer) throws JMSException {
        return ((TextMessage) next(consumer)).getText();
    }

    /** The texts of the next messages. */
    static List<String> texts(MessageConsumer consumer, int count) throws JMSException {
        List<String> found = new ArrayList<>();
        while (found.size() < count) {
            found.add(text(consumer));
        }
        return found;
    }

    /** The texts of what is left, as one client sees it at once. */
    List<String> rest(Destination from) throws JMSException {
        List<String> found = new ArrayList<>();
        try (Session session = session(); MessageConsumer consumer = session.createConsumer(from)) {
            for (Message one = consumer.receiveNoWait(); one != null; one = consumer.receiveNoWait()) {
                found.add(((TextMessage) one).getText());
            }
        }
        return found;
    }

    static List<String> texts(QueueBrowser browser) throws JMSException {
        List<String> found = new ArrayList<>();
        for (Object one : Collections.list(browser.getEnumeration())) {
            found.add(((TextMessage) one).getText());
        }
        return found;
    }

    static void empty(MessageConsumer consumer) throws JMSException {
        Message found = consumer.receiveNoWait();
        check(found == null, "one message too many: " + found);
    }

    // -- checks --------------------------------------------------------------------------------------

    static void check(boolean good, String what) {
        if (!good) {
            throw new AssertionError(what);
        }
    }

    static void is(Object expected, Object found) {
        check(Objects.deepEquals(expected, found), "expected " + expected + ", found " + found);
    }

    static void fails(Class<? extends Throwable> kind, Action action) {
        try {
            action.run();
        } catch (Throwable problem) {
            check(kind.isInstance(problem), "expected " + kind.getSimpleName() + ", came " + problem);
            return;
        }
        throw new AssertionError("expected " + kind.getSimpleName() + ", nothing came");
    }

    @Override
    public void close() throws Exception {
        for (AutoCloseable one : opened) {
            one.close();
        }
    }
}
