// Numbers of records, which may be missing, and medians of many.

/** A number that can be drawn. */
export const finite = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value);

/** Maps a number; null if there is none. */
export const mapNumber = <Made>(
  value: unknown,
  make: (value: number) => Made,
): Made | null => (finite(value) ? make(value) : null);

/** A number that a logarithmic axis can show. */
export const positive = (value: unknown): value is number =>
  finite(value) && value > 0;

/** The ends of an interval, if both are known and pass `is`. */
export const knownEnds = (
  low: unknown,
  high: unknown,
  is = positive,
): { low: number | null; high: number | null } =>
  is(low) && is(high) ? { low, high } : { low: null, high: null };

/** The value below which that share of sorted values lies, interpolated linearly. */
export function quantile(
  sorted: readonly number[],
  share: number,
): number | null {
  if (sorted.length === 0) return null;
  const at = share * (sorted.length - 1);
  const below = sorted[Math.floor(at)]!;
  const above = sorted[Math.ceil(at)]!;
  return below + (above - below) * (at - Math.floor(at));
}

export const ascending = (values: readonly number[]): number[] =>
  [...values].sort((a, b) => a - b);

/** The median of some values; null if there are none. */
export const median = (values: readonly number[]): number | null =>
  quantile(ascending(values), 0.5);

interface Bounds {
  low?: number | null | undefined;
  high?: number | null | undefined;
}

/** Half the interval of the ratio of two figures, logarithmic, as if they were independent; NaN where
 * an interval is unknown. */
export function ratioError(...figures: readonly Bounds[]): number {
  return Math.hypot(
    ...figures.map(({ low, high }) =>
      positive(low) && positive(high) ? Math.log(high / low) / 2 : NaN,
    ),
  );
}
