// One record, one meaning: the first figures of the page stand in the text, too.

import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { KINDS, recordBench, recordOf, reportOf } from './records';

useBrowser();

const numbers = (text: string): string[] =>
  text.match(/\d+(?:[.,]\d+)*(?:e-?\d+)?/g) ?? [];

/** Kinds whose first table on the page goes further than the text: all functions, all algorithms, shares, distances. */
const RICHER = new Set([
  'trace',
  'spin-predict',
  'profile',
  'profile-diff',
  'fleet-report',
]);

test.for(KINDS)(
  'the first figures of %s are those of its text',
  async (kind) => {
    const record = recordOf(kind);
    if (record === null)
      return console.log(`SKIPPED: this machine makes no ${kind}`);
    const file = recordBench().file('shown.json', JSON.stringify(record));
    const shown = new Set(numbers(recordBench().run('record', 'show', file)));
    const { page, close } = await open(reportOf([record]));
    await page.locator('main h1').first().waitFor();
    const text = await page.evaluate(
      (selectors) =>
        selectors
          .map(
            (one) =>
              (document.querySelector(one) as HTMLElement | null)?.innerText ??
              '',
          )
          .join('\n'),
      ['main .headline', ...(RICHER.has(kind) ? [] : ['main table'])],
    );
    await close();
    expect(numbers(text).filter((number) => !shown.has(number))).toEqual([]);
  },
);
