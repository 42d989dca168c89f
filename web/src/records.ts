// The program's types for records: every field may be missing.

export type * from '../generated/records';
export { SCHEMAS } from '../generated/records';

export type Maybe<T> = T | null | undefined;

/** A record that says this much. */
export type Having<T, K extends keyof T> = T & {
  [Name in K]-?: NonNullable<T[Name]>;
};
