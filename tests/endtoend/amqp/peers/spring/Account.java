import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.TextMessage;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What was sent and what came, of messages whose text is their name. A client that fails over sends again what was not
 * answered, without a word to its program: such a message may be there as often as that may have happened.
 */
class Account {
    final Set<String> acknowledged = ConcurrentHashMap.newKeySet();
    final Map<String, Integer> sent = new ConcurrentHashMap<>();
    final Map<String, Integer> came = new ConcurrentHashMap<>();
    final Map<String, Integer> unmarked = new ConcurrentHashMap<>();
    final AtomicInteger marked = new AtomicInteger();

    /** Counts that a message may have left so many times. */
    void sent(String name, int times) {
        sent.merge(name, times, Integer::sum);
    }

    /** Notes a message that a consumer has; returns how often it had it before. */
    int came(Message message) throws JMSException {
        String name = ((TextMessage) message).getText();
        if (message.getJMSRedelivered() || message.getIntProperty("JMSXDeliveryCount") > 1) {
            marked.incrementAndGet();
        } else {
            unmarked.merge(name, 1, Integer::sum);
        }
        return came.merge(name, 1, Integer::sum) - 1;
    }

    /** Names of messages that were acknowledged to their producer and never came. */
    Set<String> lost() {
        Set<String> found = new TreeSet<>(acknowledged);
        found.removeAll(came.keySet());
        return found;
    }

    /** Names of messages that came again without a word, more often than they may have been sent. */
    Set<String> silent() {
        Set<String> found = new TreeSet<>();
        unmarked.forEach((name, times) -> {
            if (times > sent.getOrDefault(name, 0)) {
                found.add(name);
            }
        });
        return found;
    }
}
