// Schemas of records, read from their text.

import { expect, test } from 'vitest';

import { SCHEMAS } from './records';
import { schemaOf } from './schema';

test.each(Object.entries(SCHEMAS))(
  'a record of %s in version %i is known',
  (name, version) => {
    expect(schemaOf({ schema: `pinwise.${name}/${version}` })).toBe(name);
  },
);

test('a newer version is refused, an unknown name is not', () => {
  expect(() => schemaOf({ schema: 'pinwise.trace/2' })).toThrow(
    'this page knows pinwise.trace/1',
  );
  expect(schemaOf({ schema: 'pinwise.later/2' })).toBe('later');
});
