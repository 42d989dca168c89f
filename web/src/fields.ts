// Reads fields of records of any content: a missing value, or one of another type than in the
// schema, is null or empty.

export const fields = <T extends object>(
  value: T | null | undefined,
): Partial<T> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? value
    : {};
export const list = <T>(
  value: readonly T[] | null | undefined,
): readonly T[] => (Array.isArray(value) ? value : []);
export const items = <T>(value: readonly T[] | null | undefined): T[] =>
  list(value).filter((item) => typeof item === 'object' && item !== null);
export const number = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;
export const numbers = (
  value: readonly number[] | null | undefined,
): number[] => list(value).filter((item) => number(item) !== null);
export const text = (value: unknown): string =>
  typeof value === 'string' ? value : '';
export const texts = (value: readonly string[] | null | undefined): string[] =>
  list(value).filter((item) => typeof item === 'string');

/** Maps items, without nulls. */
export const mapItems = <T, Made>(
  value: readonly T[] | null | undefined,
  make: (item: T) => Made | null,
): Made[] =>
  items(value)
    .map(make)
    .filter((made) => made !== null);
