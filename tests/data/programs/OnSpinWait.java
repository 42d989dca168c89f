/** A thread that waits for a flag as the manual of Thread.onSpinWait says. Usage: OnSpinWait SECONDS,
 * after what compilation takes */
public class OnSpinWait {
  static volatile boolean isOver;

  public static void main(String[] arguments) throws Exception {
    Thread waiter =
        new Thread(
            () -> {
              while (!isOver) Thread.onSpinWait();
            });
    waiter.start();
    Thread.sleep(700 + (long) (1000 * Double.parseDouble(arguments[0])));
    isOver = true;
    waiter.join();
  }
}
