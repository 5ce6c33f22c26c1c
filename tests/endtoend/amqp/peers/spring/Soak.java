import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageListener;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.amqp.AMQPComponent;
import org.apache.camel.component.jms.JmsMessage;
import org.apache.camel.impl.DefaultCamelContext;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.springframework.jms.listener.DefaultMessageListenerContainer;

/**
 * Producers of persistent messages with fail-over, and who consumes them: URL KIND, where KIND is how a Spring container
 * acknowledges (transacted, client, auto), or alone, a transacted one that connects again itself, or camel, a route from
 * queue work to queue done that does so, too. Listeners fail now and then, but with auto. Each tenth of a second a line
 * says how many messages were acknowledged to producers and how many came. With a line of input producers stop; when all
 * has come, or nothing comes any more, the account is a last line.
 */
public class Soak {
    static final int FAILS = 50;

    static JmsConnectionFactory factory(String url) {
        JmsConnectionFactory made = new JmsConnectionFactory(url);
        made.setForceSyncSend(true);
        return made;
    }

    /** Notes what comes, and fails the first time with some of it. */
    static void take(Account account, Message message, boolean fails) throws JMSException {
        String name = message.getBody(String.class);
        if (account.came(message) == 0 && fails && Math.floorMod(name.hashCode(), FAILS) == 0) {
            throw new IllegalStateException("the listener fails");
        }
    }

    static DefaultMessageListenerContainer container(String url, String kind, String queue, Account account, boolean fails) {
        DefaultMessageListenerContainer made = new DefaultMessageListenerContainer();
        made.setConnectionFactory(factory(url));
        made.setDestinationName(queue);
        made.setConcurrentConsumers(2);
        made.setRecoveryInterval(100);
        made.setErrorHandler(problem -> { });
        switch (kind) {
            case "client" -> made.setSessionAcknowledgeMode(Session.CLIENT_ACKNOWLEDGE);
            case "auto" -> made.setSessionAcknowledgeMode(Session.AUTO_ACKNOWLEDGE);
            default -> made.setSessionTransacted(true);
        }
        made.setMessageListener((MessageListener) message -> {
            try {
                take(account, message, fails);
            } catch (JMSException problem) {
                throw new IllegalStateException(problem);
            }
        });
        made.afterPropertiesSet();
        made.start();
        return made;
    }

    static DefaultCamelContext route(String url, Account account) throws Exception {
        AMQPComponent amqp = new AMQPComponent(factory(url));
        amqp.setTransacted(true);
        amqp.setLazyCreateTransactionManager(false);
        amqp.setCacheLevelName("CACHE_CONSUMER");
        amqp.setConcurrentConsumers(2);
        amqp.setRecoveryInterval(100);
        amqp.setErrorHandlerLogStackTrace(false);
        DefaultCamelContext camel = new DefaultCamelContext();
        camel.addComponent("amqp", amqp);
        camel.addRoutes(new RouteBuilder() {
            @Override
            public void configure() {
                from("amqp:queue:work")
                    .to("amqp:queue:done")
                    .process(exchange -> take(account, exchange.getIn(JmsMessage.class).getJmsMessage(), true));
            }
        });
        camel.getShutdownStrategy().setTimeout(5);
        camel.start();
        return camel;
    }

    public static void main(String[] words) throws Exception {
        String url = words[0];
        String kind = words[1];
        Account account = new Account();
        List<Producer> producers = new ArrayList<>();
        for (boolean transacted : new boolean[] {false, true}) {
            producers.add(new Producer(factory("failover:(" + url + ")?failover.maxReconnectDelay=100"), account, "work", transacted));
        }
        // What the route moves is judged by what comes out of it, and what it took by what came again.
        Account moved = new Account();
        // A listener that sends while the connection is lost waits for ever without sendTimeout: its container closes the
        // connection then, and Qpid JMS waits there for the end of the send. With it, a send may time out while Qpid JMS
        // connects again: the close of its producer waits for ever then, or what the consumer has prefetched is given out
        // no more. It happens to a route, which sends all the time.
        String own = kind.equals("alone") || kind.equals("camel") ? url
            : "failover:(" + url + ")?failover.maxReconnectDelay=100&jms.sendTimeout=2000";
        DefaultCamelContext camel = kind.equals("camel") ? route(own, moved) : null;
        DefaultMessageListenerContainer container =
            container(own, kind, camel == null ? "work" : "done", account, !kind.equals("auto"));
        producers.forEach(Thread::start);
        while (System.in.available() == 0) {
            tell(account);
        }
        for (Producer one : producers) {
            one.stopping = true;
        }
        for (Producer one : producers) {
            one.join(20_000);
        }
        for (int quiet = 0, before = -1; quiet < (account.lost().isEmpty() ? 5 : 100); quiet++) {
            int now = account.came.size() + account.marked.get();
            quiet = now == before ? quiet : 0;
            before = now;
            tell(account);
        }
        container.shutdown();
        if (camel != null) {
            camel.close();
        }
        moved.sent.putAll(account.sent);
        Set<String> silent = account.silent();
        silent.addAll(moved.silent());
        for (Producer one : producers) {
            if (one.failure != null) {
                one.failure.printStackTrace();
            }
        }
        System.out.println("account " + account.acknowledged.size() + " lost " + account.lost().size() + " silent "
            + silent.size() + " marked " + (account.marked.get() + moved.marked.get()) + " " + account.lost() + silent);
        System.exit(producers.stream().allMatch(one -> one.failure == null) ? 0 : 1);
    }

    static void tell(Account account) throws InterruptedException {
        System.out.println("at " + account.acknowledged.size() + " " + account.came.size());
        System.out.flush();
        Thread.sleep(100);
    }
}
