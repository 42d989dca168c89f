// Prints the figures of benchmarks, a line of JSON each, for `cargo lab page`.

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;

/** Prints the median, the 95th percentile and the longest of times in milliseconds. */
export function printTimes(what: string, times: readonly number[]): void {
  const sorted = [...times].sort((a, b) => a - b);
  console.log(
    JSON.stringify({
      what,
      ms: percentile(sorted, 0.5),
      p95: percentile(sorted, 0.95),
      worst: sorted.at(-1)!,
      count: sorted.length,
    }),
  );
}
