import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;

/** Ways to wait in Java. Usage: Waits WAY SECONDS */
public class Waits {
  static volatile boolean over;
  static final AtomicBoolean taken = new AtomicBoolean(true);
  static final ReentrantLock held = new ReentrantLock();
  static final ConcurrentLinkedQueue<Integer> queue = new ConcurrentLinkedQueue<>();
  static final CompletableFuture<Integer> later = new CompletableFuture<>();

  static void await(String way) {
    switch (way) {
      case "flag" -> { while (!over) {} }
      case "hint" -> { while (!over) Thread.onSpinWait(); }
      case "yields" -> { while (!over) Thread.yield(); }
      case "exchange" -> { while (!taken.compareAndSet(false, true) && !over) {} }
      case "try_lock" -> { while (!held.tryLock() && !over) {} }
      case "queue" -> { while (queue.poll() == null && !over) {} }
      case "future" -> { while (!later.isDone() && !over) {} }
      case "deadline" -> { long end = System.nanoTime() + 3_600_000_000_000L; while (System.nanoTime() < end && !over) {} }
    }
  }

  public static void main(String[] words) throws Exception {
    held.lock();
    Thread waiter = new Thread(() -> await(words[0]));
    waiter.start();
    Thread.sleep((long) (1000 * Double.parseDouble(words[1])));
    over = true;
    waiter.join();
  }
}
