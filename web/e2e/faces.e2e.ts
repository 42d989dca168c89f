// One record, one meaning: the first figures of the page are in the text as well.

import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { KINDS, recordBench, recordOf, reportOf } from './records';

useBrowser();

const numbers = (text: string): string[] =>
  text.match(/\d+(?:[.,]\d+)*(?:e-?\d+)?/g) ?? [];

/** Kinds whose first table on the page has more than the text: which of its columns the text
 * has, and of how many rows. */
const RICHER: Readonly<Record<string, readonly [RegExp, number]>> = {
  trace: [/^(Boundary|Moves)$/, 99],
  'spin-predict': [/^(Spins|Blind gap)$/, 8],
  search: [
    /^(Placement|CPUs|Runs|Measured|Expected|90 % interval|To os-default)$/,
    99,
  ],
  profile: [/^(Function|Own|Own share|With what it called|Samples)$/, 3],
  'profile-diff': [/^(Part|Change|Interval)$/, 99],
  // A map of marks: its words are those of the record.
  'fleet-report': [/^Node$/, 0],
};

test.for(KINDS)(
  'the first figures of %s are those of its text',
  async (kind) => {
    const record = recordOf(kind);
    if (record === null)
      return console.log(`SKIPPED: this machine makes no ${kind}`);
    const file = recordBench().file('shown.json', JSON.stringify(record));
    const shown = new Set(numbers(recordBench().run('record show', file)));
    const { page } = await open(reportOf([record]));
    await page.locator('main h1').first().waitFor();
    const [columns, most] = RICHER[kind] ?? [/^/, Infinity];
    const headline = await page.evaluate(
      () => document.querySelector<HTMLElement>('main .headline')?.innerText,
    );
    const table = await page.evaluate(() => {
      const rows = document.querySelector('main table')?.querySelectorAll('tr');
      return [...(rows ?? [])].map((row) =>
        [...row.cells].map((cell) => cell.innerText),
      );
    });
    const heads = table[0] ?? [];
    const compared = table
      .slice(1, 1 + Math.min(most, table.length))
      .flatMap((row) => row.filter((_, at) => columns.test(heads[at] ?? '')));
    if (most > 0 && table.length > 1) expect(compared).not.toEqual([]);
    const found = numbers([headline ?? '', ...compared].join('\n'));
    expect(found.filter((number) => !shown.has(number))).toEqual([]);
  },
);
