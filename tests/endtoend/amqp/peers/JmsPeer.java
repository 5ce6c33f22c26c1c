import jakarta.jms.*;
import java.util.Enumeration;
import java.util.TreeMap;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Sends to an address, or receives messages from it, with Qpid JMS: URL send ADDRESS KIND BODY (KIND is text, bytes or
 * map; a map is KEY=NUMBER), URL receive ADDRESS COUNT. Each message that comes is one line: its kind, a colon, its body.
 */
public class JmsPeer {
    static Destination destination(JMSContext context, String address) {
        if (address.startsWith("queue://")) {
            return context.createQueue(address.substring(8));
        }
        return context.createTopic(address.substring(8));
    }

    static void send(JMSContext context, Destination to, String kind, String body) throws JMSException {
        JMSProducer producer = context.createProducer().setProperty("peer", "jms").setProperty("number", 7);
        if (kind.equals("bytes")) {
            producer.send(to, body.getBytes());
        } else if (kind.equals("map")) {
            MapMessage message = context.createMapMessage();
            String[] pair = body.split("=");
            message.setInt(pair[0], Integer.parseInt(pair[1]));
            producer.send(to, message);
        } else {
            producer.send(to, body);
        }
    }

    static String shown(Message message) throws JMSException {
        if (message instanceof TextMessage) {
            return "text:" + ((TextMessage) message).getText();
        }
        if (message instanceof MapMessage) {
            TreeMap<String, Object> found = new TreeMap<>();
            for (Enumeration<?> names = ((MapMessage) message).getMapNames(); names.hasMoreElements();) {
                String name = (String) names.nextElement();
                found.put(name, ((MapMessage) message).getObject(name));
            }
            return "map:" + found;
        }
        return "bytes:" + new String(message.getBody(byte[].class));
    }

    /** Logs in with JMS_USER and JMS_PASSWORD of the environment, or without a name. */
    static JMSContext context(String url) {
        JmsConnectionFactory factory = new JmsConnectionFactory(url);
        String user = System.getenv("JMS_USER");
        return user == null ? factory.createContext() : factory.createContext(user, System.getenv("JMS_PASSWORD"));
    }

    public static void main(String[] words) throws Exception {
        try (JMSContext context = context(words[0])) {
            Destination address = destination(context, words[2]);
            if (words[1].equals("send")) {
                send(context, address, words[3], words[4]);
                return;
            }
            try (JMSConsumer consumer = context.createConsumer(address)) {
                for (int left = Integer.parseInt(words[3]); left > 0; left--) {
                    Message message = consumer.receive(30000);
                    System.out.println(message == null ? "nothing" : shown(message));
                }
            }
        }
    }
}
