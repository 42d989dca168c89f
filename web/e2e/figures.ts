// Figures of a benchmark, a line of JSON each, for `cargo lab page`.

const at = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;

/** The middle, the 95th percentile and the worst of some times, milliseconds. */
export function tell(what: string, times: readonly number[]): void {
  const sorted = [...times].sort((a, b) => a - b);
  console.log(
    JSON.stringify({
      what,
      ms: at(sorted, 0.5),
      p95: at(sorted, 0.95),
      worst: sorted.at(-1)!,
      count: sorted.length,
    }),
  );
}
