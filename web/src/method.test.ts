// Sentences of verdicts.

import { expect, test } from 'vitest';

import { splitVerdict } from './method';

test('a verdict is split after its first sentence', () => {
  expect(splitVerdict('a is faster by 1.5 %. 3 of 12 ran. See b.')).toEqual([
    'a is faster by 1.5 %.',
    '3 of 12 ran. See b.',
  ]);
  expect(splitVerdict('No end')).toEqual(['No end', '']);
});
