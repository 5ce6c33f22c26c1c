import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.JournalType;
import org.apache.activemq.artemis.core.remoting.impl.netty.NettyAcceptor;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;

/**
 * An Artemis for clients of AMQP and MQTT: PORT FOLDER [keep]. It is in memory, or keeps what it has in the folder. It makes queues
 * and topics that are asked for, prints its port when it is there, and ends with its input.
 */
public class ArtemisPeer {
    public static void main(String[] words) throws Exception {
        ConfigurationImpl configuration = new ConfigurationImpl();
        boolean keeps = words.length > 2;
        configuration.setPersistenceEnabled(keeps).setSecurityEnabled(false).setJMXManagementEnabled(false);
        configuration.setJournalDirectory(words[1]).setLargeMessagesDirectory(words[1]);
        configuration.setBindingsDirectory(words[1]).setPagingDirectory(words[1]);
        configuration.setJournalType(JournalType.NIO).setJournalBufferTimeout_NIO(1_000_000);
        configuration.addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + words[0] + "?protocols=AMQP,MQTT;amqpIdleTimeout=4000");
        configuration.addAddressSetting("#", new AddressSettings().setMaxDeliveryAttempts(-1)
                .setDefaultGroupRebalance(true).setAutoDeleteQueues(false).setAutoDeleteAddresses(false));
        configuration.addQueueConfiguration(
                QueueConfiguration.of("exclusive").setRoutingType(RoutingType.ANYCAST).setExclusive(true));
        EmbeddedActiveMQ artemis = new EmbeddedActiveMQ();
        artemis.setConfiguration(configuration).start();
        NettyAcceptor acceptor = (NettyAcceptor) artemis.getActiveMQServer().getRemotingService().getAcceptor("amqp");
        System.out.println(acceptor.getActualPort());
        while (System.in.read() >= 0) {}
        System.exit(0);
    }
}
