// Page and text of a record agree: the first figures of the page are in the text as well.

import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { KINDS, recordWorkspace, makeRecord, writeReport } from './records';

useBrowser();

const findNumbers = (text: string): string[] =>
  text.match(/\d+(?:[.,]\d+)*(?:e-?\d+)?/g) ?? [];

/** For kinds whose first table on the page has more than the text: the columns that the text has
 * as well, and the number of rows. */
const COMPARED_COLUMNS: Readonly<Record<string, readonly [RegExp, number]>> = {
  trace: [/^(Boundary|Moves)$/, 99],
  'spin-predict': [/^(Spins|Blind gap)$/, 8],
  search: [
    /^(Placement|CPUs|Runs|Measured|Expected|90 % interval|To os-default)$/,
    99,
  ],
  profile: [/^(Function|Own|Own share|With what it called|Samples)$/, 3],
  'profile-diff': [/^(Part|Change|Interval)$/, 99],
  top: [/^Thread$/, 5],
  gate: [/^(?!Smallest effect)/, 99],
  placements: [/^(?!CPUs)/, 99],
  // A map of marks: its words are those of the record.
  'fleet-report': [/^Node$/, 0],
};

test.for(KINDS)(
  'the first figures of %s are those of its text',
  async (kind) => {
    const record = makeRecord(kind);
    if (record === null)
      return console.log(`SKIPPED: this machine makes no ${kind}`);
    const file = recordWorkspace().file('shown.json', JSON.stringify(record));
    const shown = new Set(
      findNumbers(recordWorkspace().run('record show', file)),
    );
    const { page } = await open(writeReport([record]));
    await page.locator('main h1').first().waitFor();
    const [columns, most] = COMPARED_COLUMNS[kind] ?? [/^/, Infinity];
    const headline = await page.evaluate(
      () => document.querySelector<HTMLElement>('main .headline')?.innerText,
    );
    const table = await page.evaluate(() => {
      const rows = document.querySelector('main table')?.querySelectorAll('tr');
      return [...(rows ?? [])].map((row) =>
        [...row.cells]
          .filter((cell) => !cell.hidden)
          .map((cell) => cell.innerText),
      );
    });
    const heads = table[0] ?? [];
    const compared = table
      .slice(1, 1 + Math.min(most, table.length))
      .flatMap((row) => row.filter((_, at) => columns.test(heads[at] ?? '')));
    if (most > 0 && table.length > 1) expect(compared).not.toEqual([]);
    const found = findNumbers([headline ?? '', ...compared].join('\n'));
    expect(found.filter((number) => !shown.has(number))).toEqual([]);
  },
);
