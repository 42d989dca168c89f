import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Threads that write down the mask with which they begin, then the number of CPUs that the JVM counts. */
public final class Masks {
    private static String own() {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/thread-self/status"))) {
                if (line.startsWith("Cpus_allowed:")) {
                    return line.substring(13).trim().replace(",", "");
                }
            }
        } catch (java.io.IOException error) {
            return error.toString();
        }
        return "?";
    }

    public static void main(String[] arguments) throws InterruptedException {
        int many = Integer.parseInt(arguments[0]);
        String[] masks = new String[many + 1];
        masks[0] = own();
        List<Thread> threads = new ArrayList<>();
        for (int number = 1; number <= many; number++) {
            int place = number;
            Thread thread = new Thread(() -> masks[place] = own());
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        for (int number = 0; number <= many; number++) {
            System.out.println(number + " " + masks[number]);
        }
        System.out.println("processors " + Runtime.getRuntime().availableProcessors());
    }
}
