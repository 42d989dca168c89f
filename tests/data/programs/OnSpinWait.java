/** A thread that waits for a flag as the manual of Thread.onSpinWait says. Usage: OnSpinWait MS */
public class OnSpinWait {
  static volatile boolean isOver;

  public static void main(String[] arguments) throws Exception {
    Thread waiter =
        new Thread(
            () -> {
              while (!isOver) Thread.onSpinWait();
            });
    waiter.start();
    Thread.sleep(Long.parseLong(arguments[0]));
    isOver = true;
    waiter.join();
  }
}
