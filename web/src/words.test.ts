// Quoting words for a shell, and showing invisible characters.

import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

import { visible } from './dom';
import { shellWords, breakParts } from './words';

test('invisible characters are made visible', () => {
  for (const hidden of [
    '\u0000',
    '\u001b',
    '\u009b',
    '\u00ad',
    '\u061c',
    '\u200b',
    '\u2028',
    '\u202e',
    '\u2060',
    '\u2066',
    '\u3164',
    '\ufe0f',
    '\u{e0041}',
  ]) {
    expect(visible(`a${hidden}b`)).toBe(
      `a\\u{${hidden.codePointAt(0)!.toString(16)}}b`,
    );
  }
  expect(visible('a\tb\nÄ → 日本語')).toBe('a\tb\nÄ → 日本語');
});

test('a shell reads every quoted word unchanged', () => {
  const words = [
    'a',
    'a b',
    "it's",
    '$(touch x)',
    '`x`',
    'a\nb',
    "\u001b[201~'\\",
    'a\u202eb',
    '',
    '*',
    '~',
    '!!',
    '0;x',
    '#',
  ];
  const shown = execFileSync(
    'bash',
    ['-c', `printf '%s\\0' ${shellWords(words)}`],
    { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C.UTF-8' } },
  );
  expect(shown.split('\0').slice(0, -1)).toEqual(words);
});

test('a word is shown as it is copied', () => {
  const line = shellWords(['a\nb', '\u202e', '\u001b[201~']);
  expect(visible(line)).toBe(line);
  expect(line).not.toContain('\n');
});

test('lines end after slashes, not within options', () => {
  expect(breakParts('sort --parallel=two -s 5 of os-default')).toEqual([
    ['sort ', '--parallel=two', ' ', '-s', ' 5 of os-default'],
  ]);
  expect(breakParts("'two' (--ignore-failure does)")).toEqual([
    ["'two' ", '(--ignore-failure', ' does)'],
  ]);
  expect(breakParts('> /proc/irq/6/smp_list', true)).toEqual([
    ['> /'],
    ['proc/'],
    ['irq/'],
    ['6/'],
    ['smp_list'],
  ]);
  expect(breakParts('diff 2026-01 --place os-default -- a', true)).toEqual([
    ['diff ', '2026-01', ' ', '--place', ' ', 'os-default', ' -- a'],
  ]);
});
