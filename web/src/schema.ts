// Which schemas this page knows, and what is said of those that it does not.

import type { AnyRecord } from './source';
import { PageError } from './source';

/** Splits "pinwise.trace/1". */
export function parseSchema(
  text: unknown,
): { name: string; version: number } | null {
  const match =
    typeof text === 'string' ? /^pinwise\.([a-z-]+)\/(\d+)$/.exec(text) : null;
  return match ? { name: match[1]!, version: Number(match[2]) } : null;
}

/** The newest version of each schema that the page draws. */
export const KNOWN: Readonly<Record<string, number>> = {
  comparison: 1,
  bench: 1,
  diff: 1,
  gate: 1,
  jitter: 1,
  topology: 1,
  trace: 1,
  search: 1,
  profile: 1,
  'profile-diff': 1,
  'spin-pause': 1,
  'spin-predict': 1,
  'spin-replay': 1,
  'spin-attach': 1,
  'spin-advice': 1,
  'spin-scan': 1,
  reproduction: 1,
  fleet: 1,
  'fleet-diff': 1,
  'fleet-node': 1,
  'fleet-report': 1,
};

/** The name of the record's schema; refuses what is newer, unknown or no record. */
export function schemaOf(record: AnyRecord): string {
  const schema = parseSchema(record.schema);
  if (!schema) {
    throw new PageError(
      'This is no record of pinwise: its schema is missing.',
      'It may be truncated; export it again.',
    );
  }
  const known = KNOWN[schema.name];
  if (known !== undefined && schema.version > known) {
    throw new PageError(
      `The record is of schema ${record.schema}, this page knows pinwise.${schema.name}/${known}.`,
      'A newer pinwise shows it.',
    );
  }
  return schema.name;
}
