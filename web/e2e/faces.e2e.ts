// One record, one meaning: the first figures of the page stand in the text, too.

import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { KINDS, recordBench, recordOf, reportOf } from './records';

useBrowser();

const numbers = (text: string): string[] => text.match(/\d+(?:[.,]\d+)*(?:e-?\d+)?/g) ?? [];

test.for(KINDS)('the first figures of %s are those of its text', async (kind) => {
  const record = recordOf(kind);
  if (record === null) return console.log(`SKIPPED: this machine makes no ${kind}`);
  const file = recordBench().file('shown.json', JSON.stringify(record));
  const shown = new Set(numbers(recordBench().run('show', file)));
  const { page, close } = await open(reportOf([record]));
  await page.locator('main h1').first().waitFor();
  const text = await page.evaluate(() => {
    const words = (selector: string): string => (document.querySelector(selector) as HTMLElement | null)?.innerText ?? '';
    return `${words('main .headline')}\n${words('main table')}`;
  });
  await close();
  expect(numbers(text).filter((number) => !shown.has(number))).toEqual([]);
});
