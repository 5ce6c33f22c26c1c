import jakarta.jms.DeliveryMode;
import jakarta.jms.InvalidSelectorException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;

/** Selectors (JMS 2.0, 3.8): each row is one, with the messages that it selects. */
final class Selecting {
    private Selecting() {}

    /**
     * What each selector selects of three messages:
     *
     * <ul>
     *   <li>a: n 5, price 2.5, colour red, big true, JMSType order, priority 9, correlation id c1, tiny (byte) 1
     *   <li>b: n -3, price 10.0, colour 'light blue', big false, text 5, not persistent, long 2^40
     *   <li>c: nothing but name 50%_off and quote it's
     * </ul>
     */
    private static final String[][] ROWS = {
        {"n = 5", "a"},
        {"n <> 5", "b"},
        {"n > 4.5", "a"},
        {"n = 5.0", "a"},
        {"n >= -3 AND n < 5", "b"},
        {"-n = 3", "b"},
        {"n + 1 = 6", "a"},
        {"n - 1 = 4", "a"},
        {"n * 2 = 10", "a"},
        {"price / 2 = 1.25", "a"},
        {"2 + 3 * 1 = n", "a"},
        {"(2 + 3) * 1 = n", "a"},
        {"n BETWEEN 1 AND 5", "a"},
        {"n NOT BETWEEN 1 AND 5", "b"},
        {"price BETWEEN 2.5 AND 10", "a b"},
        {"price = 1E1", "b"},
        {"price < 2.6e0", "a"},
        {"long = 1099511627776", "b"},
        {"long > 1000000000000L", "b"},
        {"tiny = 1", "a"},
        {"colour = 'red'", "a"},
        {"colour <> 'red'", "b"},
        {"colour IN ('red', 'green')", "a"},
        {"colour NOT IN ('red', 'green')", "b"},
        {"colour LIKE 'r%'", "a"},
        {"colour LIKE '_ed'", "a"},
        {"colour LIKE 'light%e'", "b"},
        {"colour NOT LIKE 'r%'", "b"},
        {"name LIKE '50\\%\\_%' ESCAPE '\\'", "c"},
        {"name LIKE '50!%!_off' ESCAPE '!'", "c"},
        {"quote = 'it''s'", "c"},
        {"n IS NULL", "c"},
        {"n IS NOT NULL", "a b"},
        {"big", "a"},
        {"NOT big", "b"},
        {"big = TRUE", "a"},
        {"big = false", "b"},
        {"big <> TRUE", "b"},
        {"big AND n = 5", "a"},
        {"big OR n = -3", "a b"},
        {"NOT (n = 5)", "b"},
        {"n = 5 OR n IS NULL", "a c"},
        {"NOT n = 5 AND colour LIKE '%blue'", "b"},
        {"missing = 1 OR n = 5", "a"},
        {"NOT (missing = 1)", ""},
        {"missing <> 'x'", ""},
        {"text = '5'", "b"},
        {"text = 5", ""},
        {"colour = 5", ""},
        {"n = '5'", ""},
        {"Colour = 'red'", ""},
        {"TRUE", "a b c"},
        {"JMSType = 'order'", "a"},
        {"JMSType IS NULL", "b c"},
        {"JMSPriority > 4", "a"},
        {"JMSPriority = 4", "b c"},
        {"JMSDeliveryMode = 'NON_PERSISTENT'", "b"},
        {"JMSDeliveryMode = 'PERSISTENT'", "a c"},
        {"JMSCorrelationID = 'c1'", "a"},
        {"JMSTimestamp > 1000", "a b c"},
        {"JMSMessageID LIKE 'ID:%'", "a b c"},
        {"JMSXGroupID = 'g'", "c"},
        {"JMSXGroupSeq = 2", "c"},
        {"n=5", "a"},
        {"n = 5 or\n colour like 'light%'", "a b"},
        {"0x5 = n", "a"},
    };

    private static final List<String> WRONG =
            List.of("n =", "= 5", "n LIKE 5", "colour IN ()", "n BETWEEN 1", "(n = 5", "'text", "n IS 5", "AND");

    static void add(Scenarios suite) {
        for (String[] row : ROWS) {
            suite.add("selector: " + row[0].replace('\n', ' '), site -> selects(site, row[0], row[1]));
        }
        for (String wrong : WRONG) {
            suite.add("selector that is none: " + wrong, site -> {
                Session session = site.session();
                Site.fails(InvalidSelectorException.class, () -> session.createConsumer(site.queue(), wrong));
                Site.is("x", site.through(session, session.createTextMessage("x")).getText());
            });
        }
        suite.add("selector: what is not selected stays", site -> {
            Session session = site.session();
            for (int at = 0; at < 6; at++) {
                send(site, session, "" + at, at);
            }
            try (MessageConsumer odd = session.createConsumer(site.queue(), "n = 1 OR n = 3 OR n = 5")) {
                Site.is(List.of("1", "3", "5"), Site.texts(odd, 3));
                Site.empty(odd);
            }
            Site.is(List.of("0", "2", "4"), site.rest(site.queue()));
        });
        suite.add("selector: two consumers, each its own", site -> {
            Session session = site.session();
            MessageConsumer low = session.createConsumer(site.queue(), "n < 3");
            MessageConsumer high = session.createConsumer(site.queue(), "n >= 3");
            for (int at = 0; at < 6; at++) {
                send(site, session, "" + at, at);
            }
            Site.is(List.of("0", "1", "2"), Site.texts(low, 3));
            Site.is(List.of("3", "4", "5"), Site.texts(high, 3));
        });
        suite.add("selector: past 2,000 that it does not select", site -> {
            Session session = site.another("jms.forceAsyncSend=true").createSession();
            MessageProducer producer = session.createProducer(site.queue());
            for (int at = 0; at <= 2_000; at++) {
                TextMessage message = session.createTextMessage("" + at);
                message.setIntProperty("n", at);
                producer.send(message);
            }
            try (MessageConsumer last = session.createConsumer(site.queue(), "n = 2000")) {
                Site.is("2000", Site.text(last));
                Site.empty(last);
            }
        });
        suite.add("selector: none where it is blank", site -> {
            Session session = site.session();
            MessageConsumer consumer = session.createConsumer(site.queue(), "");
            Site.is(null, consumer.getMessageSelector());
            send(site, session, "x", 1);
            Site.is("x", Site.text(consumer));
        });
    }

    private static void send(Site site, Session session, String text, int n) throws Exception {
        try (MessageProducer producer = session.createProducer(site.queue())) {
            TextMessage message = session.createTextMessage(text);
            message.setIntProperty("n", n);
            producer.send(message);
        }
    }

    private static void selects(Site site, String selector, String expected) throws Exception {
        Session session = site.session();
        try (MessageProducer producer = session.createProducer(site.queue())) {
            Message a = session.createTextMessage("a");
            a.setIntProperty("n", 5);
            a.setDoubleProperty("price", 2.5);
            a.setStringProperty("colour", "red");
            a.setBooleanProperty("big", true);
            a.setByteProperty("tiny", (byte) 1);
            a.setJMSType("order");
            a.setJMSCorrelationID("c1");
            producer.send(a, DeliveryMode.PERSISTENT, 9, 0);
            Message b = session.createTextMessage("b");
            b.setIntProperty("n", -3);
            b.setFloatProperty("price", 10f);
            b.setStringProperty("colour", "light blue");
            b.setBooleanProperty("big", false);
            b.setStringProperty("text", "5");
            b.setLongProperty("long", 1L << 40);
            producer.send(b, DeliveryMode.NON_PERSISTENT, 4, 0);
            Message c = session.createTextMessage("c");
            c.setStringProperty("name", "50%_off");
            c.setStringProperty("quote", "it's");
            c.setStringProperty("JMSXGroupID", "g");
            c.setIntProperty("JMSXGroupSeq", 2);
            producer.send(c);
        }
        List<String> found = new ArrayList<>();
        try (MessageConsumer consumer = session.createConsumer(site.queue(), selector)) {
            for (Message one = consumer.receiveNoWait(); one != null; one = consumer.receiveNoWait()) {
                found.add(((TextMessage) one).getText());
            }
        }
        Site.is(expected, String.join(" ", found));
    }
}
