import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.qpid.jms.JmsConnection;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.apache.qpid.jms.JmsConnectionListener;

/** Sends persistent messages until it is told to stop, one by one or some in a transaction; sends again what failed. */
class Producer extends Thread {
    static final int TOGETHER = 5;
    /** Messages that wait for consumers, beyond which none is sent: they are to be consumed in time at the end. */
    static final int AHEAD = 1_000;

    final JmsConnectionFactory factory;
    final Account account;
    final String queue;
    final boolean transacted;
    final AtomicInteger interruptions = new AtomicInteger();
    volatile boolean stopping;
    volatile Exception failure;

    Producer(JmsConnectionFactory factory, Account account, String queue, boolean transacted) {
        this.factory = factory;
        this.account = account;
        this.queue = queue;
        this.transacted = transacted;
    }

    @Override
    public void run() {
        try (Connection connection = factory.createConnection()) {
            ((JmsConnection) connection).addConnectionListener((JmsConnectionListener) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {JmsConnectionListener.class}, (self, method, given) -> {
                    if (method.getName().equals("onConnectionInterrupted")) {
                        interruptions.incrementAndGet();
                    }
                    return null;
                }));
            connection.start();
            Session session = connection.createSession(transacted ? Session.SESSION_TRANSACTED : Session.AUTO_ACKNOWLEDGE);
            MessageProducer producer = session.createProducer(session.createQueue(queue));
            for (int number = 0; !stopping; number++) {
                List<String> names = new ArrayList<>();
                for (int one = 0; one < (transacted ? TOGETHER : 1); one++) {
                    names.add((transacted ? "t" : "s") + number + "." + one);
                }
                send(session, producer, names);
                do {
                    Thread.sleep(2);
                } while (!stopping && account.acknowledged.size() - account.came.size() > AHEAD);
            }
        } catch (Exception problem) {
            failure = problem;
        }
    }

    /** Sends messages together until they are acknowledged. */
    void send(Session session, MessageProducer producer, List<String> names) throws JMSException {
        boolean done = false;
        while (!done) {
            int before = interruptions.get();
            try {
                for (String name : names) {
                    producer.send(session.createTextMessage(name));
                }
                if (transacted) {
                    session.commit();
                }
                done = true;
            } catch (JMSException problem) {
                // It is sent again, unless nobody waits for it any more.
                if (stopping) {
                    names.forEach(name -> account.sent(name, 1 + interruptions.get() - before));
                    return;
                }
            }
            names.forEach(name -> account.sent(name, 1 + interruptions.get() - before));
        }
        account.acknowledged.addAll(names);
    }
}
