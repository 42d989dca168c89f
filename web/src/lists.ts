// Lists: what is made of their items, and items grouped and counted.

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
