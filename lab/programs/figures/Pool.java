import java.util.stream.*;
public class Pool {
  public static void main(String[] a) {
    double s = IntStream.range(0, 400).parallel().mapToDouble(i -> {
      double x = i; for (int k = 0; k < 1_000_000; k++) x = Math.sqrt(x * x + k); return x; }).sum();
    System.out.println(s);
  }
}
