// The schemas that the page knows are those that the program writes.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import { KNOWN, parseSchema, schemaOf } from './schema';

interface Schemas {
  $defs: Record<string, { properties?: { schema?: { const?: string } } }>;
}

const { $defs } = JSON.parse(
  readFileSync(new URL('../../schema/records.json', import.meta.url), 'utf8'),
) as Schemas;
const written = new Map(
  Object.values($defs).flatMap(({ properties }) => {
    const parsed = parseSchema(properties?.schema?.const);
    return parsed ? [[parsed.name, parsed.version]] : [];
  }),
);

test.each(Object.entries(KNOWN))(
  'the program writes %s in version %i',
  (name, version) => {
    expect(written.get(name)).toBe(version);
    expect(schemaOf({ schema: `pinwise.${name}/${version}` })).toBe(name);
  },
);

test('a newer version is refused, a name that is not known is not', () => {
  expect(() => schemaOf({ schema: 'pinwise.trace/2' })).toThrow(
    'this page knows pinwise.trace/1',
  );
  expect(schemaOf({ schema: 'pinwise.later/2' })).toBe('later');
});
