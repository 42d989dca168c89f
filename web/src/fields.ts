// Fields of records, whatever stands in them: what is missing, or of another
// type, is null or empty.

export type Fields = Record<string, unknown>;

export const fields = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : {};
export const list = (value: unknown): unknown[] =>
  Array.isArray(value) ? value : [];
export const items = (value: unknown): Fields[] =>
  list(value).filter(
    (item): item is Fields => typeof item === 'object' && item !== null,
  );
export const number = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;
export const numbers = (value: unknown): number[] =>
  list(value).filter((item): item is number => number(item) !== null);
export const text = (value: unknown): string =>
  typeof value === 'string' ? value : '';
export const texts = (value: unknown): string[] =>
  list(value).filter((item): item is string => typeof item === 'string');

/** What `make` makes of each item, without those of which it makes nothing. */
export function each<T>(value: unknown, make: (item: Fields) => T | null): T[] {
  return items(value).flatMap((item) => {
    const made = make(item);
    return made === null ? [] : [made];
  });
}
