// Sentences of verdicts.

import { expect, test } from 'vitest';

import { splitAdvice, splitVerdict } from './method';

test('a verdict is split after its first sentence', () => {
  expect(splitVerdict('a is faster by 1.5 %. 3 of 12 ran. See b.')).toEqual([
    'a is faster by 1.5 %.',
    '3 of 12 ran. See b.',
  ]);
  expect(splitVerdict('No end')).toEqual(['No end', '']);
});

test('a command at the end of advice is split off', () => {
  expect(splitAdvice('Compare them: pinwise fleet report f.')).toEqual([
    'Compare them',
    'pinwise fleet report f',
  ]);
  expect(splitAdvice('Move it: echo 0-1 > /proc/irq/6/x')?.[1]).toBe(
    'echo 0-1 > /proc/irq/6/x',
  );
  expect(splitAdvice('See more: `pinwise a -- P`.')?.[1]).toBe(
    'pinwise a -- P',
  );
  for (const other of ['Run: pinwise a. Then rest.', 'Change nothing.'])
    expect(splitAdvice(other)).toBeNull();
});
