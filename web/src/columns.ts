// Restores JSON from the columns in which long reports hold it; crates/report/src/columns.rs
// writes them.

/** Marks can refer to this many of the most recent values. */
const MAX_REFERENCED = 24;

/** The column of the values at one position of the JSON, across all objects and lists. */
interface Place {
  column: readonly string[];
  /** Number of entries that were read. */
  read: number;
  item?: Place;
  fields: Map<string, Place>;
}

/** The JSON that the columns contain. */
export function fromColumns(text: string): string {
  const [shapes, ...columns] = text
    .split('\n\n')
    .map((column) => column.split('\n'));
  const names = shapes!.map((shape) =>
    shape
      ? (JSON.parse(shape) as string[]).map((name) => JSON.stringify(name))
      : [],
  );
  const recent: string[] = [];
  let used = 0;
  const next = (): Place => ({
    column: columns[used++]!,
    read: 0,
    fields: new Map(),
  });
  const field = (place: Place, name: string): string => {
    let own = place.fields.get(name);
    if (!own) place.fields.set(name, (own = next()));
    return `${name}:${value(own)}`;
  };
  const value = (place: Place): string => {
    const entry = place.column[place.read++]!;
    // Called only for marks, because other entries may be millions of characters long.
    const number = (): number => Number(entry.slice(1));
    if (entry[0] === '#')
      return `{${names[number()]!.map((name) => field(place, name)).join()}}`;
    if (entry[0] === '*')
      return `[${Array.from({ length: number() }, () => value((place.item ??= next()))).join()}]`;
    const text = entry[0] === '~' ? recent.at(-1 - number())! : entry;
    recent.push(text);
    if (recent.length > 64 * MAX_REFERENCED)
      recent.splice(0, recent.length - MAX_REFERENCED);
    return text;
  };
  return value(next());
}
