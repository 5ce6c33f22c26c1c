import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * What JMS 2.0 applications do, as scenarios that pass or fail: URL [TEXT]. One line for each, with tabs between its
 * name, `passed` or `failed`, and why; with a text, only those that have it in their name.
 *
 * <p>The broker has queues s1, s1b, s2, … for the scenarios by their numbers, or makes them; `exclusive`, which has one
 * consumer at a time; `groups`, where each group goes to one consumer.
 */
public class Scenarios {
    /** What a scenario does; what it throws is why it fails. */
    interface Scenario {
        void run(Site site) throws Exception;
    }

    static final int AT_ONCE = 6;
    static final int PATIENCE_S = 20;

    private final Map<String, Scenario> all = new LinkedHashMap<>();

    void add(String name, Scenario scenario) {
        if (all.put(name, scenario) != null) {
            throw new IllegalArgumentException("twice: " + name);
        }
    }

    static Scenarios every() {
        Scenarios suite = new Scenarios();
        Bodies.add(suite);
        Headers.add(suite);
        Producing.add(suite);
        Consuming.add(suite);
        Selecting.add(suite);
        Transacting.add(suite);
        Subscribing.add(suite);
        Connecting.add(suite);
        return suite;
    }

    static String outcome(String url, int number, Scenario scenario) {
        try (Site site = new Site(url, number)) {
            scenario.run(site);
            return "passed\t";
        } catch (Throwable problem) {
            StackTraceElement place = null;
            for (StackTraceElement step : problem.getStackTrace()) {
                boolean ours = step.getFileName() != null && !step.getClassName().contains(".");
                if (place == null && ours && !step.getClassName().equals("Site")) {
                    place = step;
                }
            }
            String text = problem.toString().replaceAll("\\s+", " ");
            return "failed\t" + text + (place == null ? "" : " at " + place.getFileName() + ":" + place.getLineNumber());
        }
    }

    static String inTime(Future<String> future) throws Exception {
        try {
            return future.get(PATIENCE_S, TimeUnit.SECONDS);
        } catch (TimeoutException late) {
            future.cancel(true);
            return "failed\tnot done after " + PATIENCE_S + " s";
        }
    }

    public static void main(String[] words) throws Exception {
        String part = words.length > 1 ? words[1] : "";
        ExecutorService workers = Executors.newFixedThreadPool(AT_ONCE);
        List<String> names = new ArrayList<>();
        List<Future<String>> outcomes = new ArrayList<>();
        int number = 0;
        for (Map.Entry<String, Scenario> one : every().all.entrySet()) {
            int own = ++number;
            if (one.getKey().contains(part)) {
                names.add(one.getKey());
                outcomes.add(workers.submit(() -> outcome(words[0], own, one.getValue())));
            }
        }
        for (int at = 0; at < names.size(); at++) {
            System.out.println(names.get(at) + "\t" + inTime(outcomes.get(at)));
        }
        System.exit(0);
    }
}
