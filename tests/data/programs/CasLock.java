import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Threads that take a lock by compareAndSet, or by tickets, without a hint. Usage: CasLock SECONDS cas|ticket
 *
 * The owner sleeps, so that nearly all CPU time is that of the waiters, however busy the machine is. Prints "warm"
 * when the lock has been taken 200 times, which is when its code has long been compiled. The main thread prints it:
 * a branch that the lock's code takes for the first time would send that code back to the interpreter.
 */
public class CasLock {
  static final AtomicReference<Thread> owner = new AtomicReference<>();
  static final AtomicLong next = new AtomicLong();
  static final AtomicLong served = new AtomicLong();
  static long sum;
  static volatile int taken;

  static void work() throws InterruptedException {
    for (int i = 0; i < 20_000; i++) sum += i * sum;
    taken++;
    Thread.sleep(1);
  }

  static void byCas(long end) throws InterruptedException {
    Thread self = Thread.currentThread();
    while (System.nanoTime() < end) {
      while (!owner.compareAndSet(null, self)) {}
      work();
      owner.set(null);
    }
  }

  static void byTicket(long end) throws InterruptedException {
    while (System.nanoTime() < end) {
      long mine = next.getAndIncrement();
      while (served.get() != mine) {}
      work();
      served.set(mine + 1);
    }
  }

  public static void main(String[] arguments) throws Exception {
    long end = System.nanoTime() + (long) (1e9 * Double.parseDouble(arguments[0]));
    boolean isCas = arguments[1].equals("cas");
    Thread[] threads = new Thread[4];
    for (int i = 0; i < threads.length; i++) {
      threads[i] = new Thread(() -> {
        try {
          if (isCas) byCas(end); else byTicket(end);
        } catch (InterruptedException ended) {
          throw new IllegalStateException(ended);
        }
      });
      threads[i].start();
    }
    while (taken < 200) Thread.sleep(1);
    System.out.println("warm");
    for (Thread thread : threads) thread.join();
    System.out.println(sum);
  }
}
