// Commands as tabs.

import { expect, test } from 'vitest';

import { recordCommands, tabName } from './headline';

test('a tab is named after the tool', () => {
  const commands = [
    { what: 'with taskset', line: 'taskset -c 0 p' },
    { what: 'as it is', line: 'p' },
  ];
  expect(
    recordCommands(commands, 'again').map(([what]) => tabName(what)),
  ).toEqual(['taskset', 'as it is', 'experiment again']);
  expect(tabName('Run it ')).toBe('run');
});
