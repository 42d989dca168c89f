// A gate: the verdict in a word, and the runs behind a benchmark.

import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { expectUsable } from './view-checks';
import { makeRecord, writeReport } from './records';

useBrowser();

test('the verdict is a word, and benchmarks that need attention are first', async () => {
  const { page } = await open(writeReport([makeRecord('gate')!]));
  expect(await page.locator('.verdict').textContent()).toMatch(
    /^FAIL 1 of 4 benchmarks is slower: parse by /,
  );
  const rows = page.locator('.gate tbody').first().locator('th');
  expect((await rows.allTextContents()).slice(0, 2)).toEqual([
    'parse',
    'broken',
  ]);
});

test('a row of the chart opens its benchmark: sentence, command and pairs', async () => {
  const gate = makeRecord('gate')!;
  const { page } = await open(writeReport([gate]));
  await page.getByText('2 benchmarks passed').first().click();
  const row = page
    .locator('.stage [aria-label="y-axis tick label"] text')
    .getByText('encode');
  await row.click();
  const benchmark = page.locator('details[open] details[open]');
  expect(await benchmark.locator('summary').first().textContent()).toBe(
    'encode: passed',
  );
  expect(await benchmark.locator('p').first().textContent()).toMatch(
    /^encode is not slower by 2\.0\s% or more/,
  );
  expect(await benchmark.locator('.command code').textContent()).toBe(
    'encode big.json',
  );
  await benchmark.locator('.stage [aria-label="dot"]').first().waitFor();
  const encode = (
    gate['benchmarks'] as { name: string; pairs: unknown[] }[]
  ).find(({ name }) => name === 'encode')!;
  expect(
    await benchmark.locator('.stage [aria-label="dot"] path').count(),
  ).toBe(encode.pairs.length);
});

test('gates of successive commits are a history with changes', async () => {
  const gate = makeRecord('gate')!;
  const build = (side: string, at: number): object => ({
    ...(gate[side] as object),
    name: `${at}`.repeat(8),
    commit: `${at}`.repeat(40),
  });
  // The ratio that a history chains, next to that of the verdict.
  const link = (ratio: number): object => ({ ratio, error: 0.004, pairs: 20 });
  const measured = gate['benchmarks'] as { ratio: number | null }[];
  const benchmarks = measured.map((one) => ({
    ...one,
    link: one.ratio === null ? null : link(one.ratio),
  }));
  const report = writeReport(
    [1, 2, 3].map((at) => ({
      ...gate,
      benchmarks,
      id: `gate-${at}`,
      started: `2026-01-0${at}T00:00:00Z`,
      base: build('base', at),
      head: build('head', at + 1),
    })),
  );
  const hash = `#/history?subject=${encodeURIComponent('gate · suite.toml')}`;
  await expectUsable(report, hash);
  const { page } = await open(`file://${report}${hash}`);
  await page.getByLabel('Figure').selectOption('parse');
  const part = page.locator('section', { hasText: 'from commit to commit' });
  await part.locator('.stage svg').waitFor();
  expect(await part.locator('.verdict').textContent()).toMatch(
    /^parse got worse by wall-clock time in 1111111111\.\.4444444444: \+/,
  );
  expect(await part.locator('.changes li').first().textContent()).toMatch(
    /^1111111111\.\.4444444444: slower: \+.*, over 3 steps$/,
  );
  expect(await page.locator('tbody .muted').first().textContent()).toMatch(
    /^✗ 1 of 4 benchmarks is slower/,
  );
  // The index says the same of its first figure.
  const own = page.locator('.verdict').first();
  await page.getByLabel('Figure').selectOption({ index: 0 });
  const said = (await own.textContent())!;
  await page.goto(`file://${report}#/history`);
  await page.locator('.questions td', { hasText: said }).waitFor();
});
