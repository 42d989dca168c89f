// Messages about records whose schema this page does not know.

import { SCHEMAS } from './records';
import { type AnyRecord, PageError } from './source';

/** Splits "pinwise.trace/1". */
export function parseSchema(
  text: unknown,
): { name: string; version: number } | null {
  const match =
    typeof text === 'string' ? /^pinwise\.([a-z-]+)\/(\d+)$/.exec(text) : null;
  return match ? { name: match[1]!, version: Number(match[2]) } : null;
}

/** The name of the record's schema; refuses newer, unknown and malformed ones. */
export function schemaOf(record: AnyRecord): string {
  const schema = parseSchema(record.schema);
  if (!schema) {
    throw new PageError(
      'Not a pinwise record: its schema is missing.',
      'It may be truncated; export it again.',
    );
  }
  const known = (SCHEMAS as Record<string, number>)[schema.name];
  if (known !== undefined && schema.version > known) {
    throw new PageError(
      `The record is of schema ${record.schema}, this page knows pinwise.${schema.name}/${known}.`,
      'Open it with a newer pinwise.',
    );
  }
  return schema.name;
}
