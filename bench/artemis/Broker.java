import java.io.File;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.ActiveMQServer;
import org.apache.activemq.artemis.core.server.ActiveMQServers;
import org.apache.activemq.artemis.core.server.JournalType;

/** Runs an Artemis broker with an AMQP acceptor: PORT FOLDER [persistent]. Its journal syncs as soon as it can. */
public class Broker {
    public static void main(String[] words) throws Exception {
        boolean persistent = words.length > 2;
        File folder = new File(words[1]);
        ConfigurationImpl settings = new ConfigurationImpl();
        settings.setSecurityEnabled(false).setPersistenceEnabled(persistent).setJMXManagementEnabled(false);
        settings.setBrokerInstance(folder);
        settings.setMaxDiskUsage(-1);
        for (String part : new String[] {"journal", "bindings", "paging", "large"}) {
            new File(folder, part).mkdirs();
        }
        settings.setJournalDirectory(folder + "/journal").setBindingsDirectory(folder + "/bindings");
        settings.setPagingDirectory(folder + "/paging").setLargeMessagesDirectory(folder + "/large");
        settings.setJournalType(JournalType.NIO).setJournalBufferTimeout_NIO(50_000);
        settings.setJournalSyncNonTransactional(true).setJournalSyncTransactional(true);
        settings.addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + words[0] + "?protocols=AMQP;tcpNoDelay=true");
        ActiveMQServer server = ActiveMQServers.newActiveMQServer(settings, persistent);
        server.start();
        System.out.println("ready " + server.getVersion().getFullVersion());
        Thread.currentThread().join();
    }
}
