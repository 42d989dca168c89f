// Maps, groups and counts items of lists.

/** Maps items, without nulls. */
export const filterMap = <Item, Made>(
  items: Iterable<Item>,
  make: (item: Item, at: number) => Made | null,
): Made[] => Array.from(items, make).filter((made) => made !== null);

/** Groups items by a key, in their order. */
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

/** Counts equal items, the most frequent first. */
export const tally = <Item>(items: Iterable<Item>): [Item, number][] =>
  [...groupBy(items, (item) => item)]
    .map(([item, all]): [Item, number] => [item, all.length])
    .sort((a, b) => b[1] - a[1]);
