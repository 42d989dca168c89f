// Numbers of records, which may be missing, and medians of many.

/** A number that can be drawn. */
export const finite = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value);

/** What is made of a number; null if there is none. */
export const given = <Made>(
  value: unknown,
  make: (value: number) => Made,
): Made | null => (finite(value) ? make(value) : null);

/** What is made of each item, without nulls. */
export const filterMap = <Item, Made>(
  items: Iterable<Item>,
  make: (item: Item, at: number) => Made | null,
): Made[] => Array.from(items, make).filter((made) => made !== null);

/** Things by what they have in common, in their order. */
export function groupBy<Item, Key>(
  items: Iterable<Item>,
  keyOf: (item: Item) => Key,
): Map<Key, [Item, ...Item[]]> {
  const groups = new Map<Key, [Item, ...Item[]]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

/** How often things occur, the most frequent first. */
export const tally = <Item>(items: Iterable<Item>): [Item, number][] =>
  [...groupBy(items, (item) => item)]
    .map(([item, all]): [Item, number] => [item, all.length])
    .sort((a, b) => b[1] - a[1]);

/** A number that a logarithmic axis can show. */
export const positive = (value: unknown): value is number =>
  finite(value) && value > 0;

/** The ends of an interval, if both are known and `is` takes them. */
export const ends = (
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
