public class Sum {
    public static void main(String[] a) {
        System.out.println(java.util.stream.LongStream.range(0, 30_000_000).parallel().map(i -> i * i % 7).sum());
    }
}
