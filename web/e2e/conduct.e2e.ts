// How the view of every kind of record behaves.

import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import {
  HOSTILE,
  expectDrawn,
  expectHarmless,
  openAll,
  settle,
  expectWellBehaved,
  pageWidth,
} from './conduct';
import type { Fields } from './records';
import { KINDS, recordOf, replaceValues, reportOf } from './records';

useBrowser();

describe.each(KINDS)('a record of kind %s', (kind) => {
  const check = (claim: string, act: (record: Fields) => Promise<void>) =>
    test(claim, async (context) => {
      const record = recordOf(kind);
      if (!record) return context.skip('this machine cannot make one');
      await act(record);
    });

  check('is accessible, fits 360 px, and prints', async (record) => {
    await expectWellBehaved(reportOf([record]), '');
  });

  check('shows hostile strings as they are', async (record) => {
    await expectHarmless(
      reportOf([
        replaceValues(
          record,
          () => HOSTILE,
          (value) => value,
        ) as Fields,
      ]),
      '',
    );
  });

  check('is shown with hostile CPU lists', async (record) => {
    await expectDrawn(reportOf([withCpuLists(record) as Fields]));
  });

  check('fits 360 px with long words in every field', async (record) => {
    // Words of a small fixed set, and lists of CPUs, stay.
    const long = replaceValues(
      record,
      (text) =>
        /^[a-z_-]{2,14}$|^\d[\d,-]*$/.test(text)
          ? text
          : text.slice(0, 4) + 'long'.repeat(60),
      (value) => value,
    ) as Fields;
    const opened = await open(reportOf([long]), { width: 360, height: 700 });
    await settle(opened.page);
    await openAll(opened.page);
    expect(await pageWidth(opened.page)).toBeLessThanOrEqual(360);
  });

  check(
    'shows what a pointer is at on every row of its charts',
    async (record) => {
      const opened = await open(reportOf([record]));
      await settle(opened.page);
      const { visited, missed } = await missedRows(opened.page);
      expect(missed).toEqual([]);
      if (kind === 'comparison') expect(visited).toBeGreaterThan(5);
    },
  );

  check('is shown without its numbers', async (record) => {
    await expectDrawn(
      reportOf([
        replaceValues(
          record,
          (text) => text,
          () => null,
        ) as Fields,
      ]),
    );
  });

  check('is shown without all of its fields', async (record) => {
    await expectDrawn(reportOf([{ schema: record.schema }]));
  });
});

const LISTS = ['0-9999999', '5-1,,-3,0x7', '1e9', '0-3,<b>,\u202e7'];

/** The record with one list after the other wherever it has CPUs as text. */
function withCpuLists(record: Fields): unknown {
  let lists = 0;
  return replaceValues(
    record,
    (text) =>
      /^\d+([-,]\d+)*$/.test(text) ? LISTS[lists++ % LISTS.length] : text,
    (number) => number,
  );
}

/** Rows of charts at which a pointer finds nothing, or another row. */
async function missedRows(
  page: Page,
): Promise<{ visited: number; missed: string[] }> {
  const missed: string[] = [];
  let visited = 0;
  for (const stage of await page.locator('figure.chart .stage').all()) {
    if (!(await stage.isVisible())) continue;
    await stage.scrollIntoViewIfNeeded();
    const names = stage.locator(
      '[aria-label="y-axis tick label"] text, [aria-label="dot"] path',
    );
    const places = await names.evaluateAll((all) =>
      [
        ...new Set(
          all.map((one) => {
            const { top, height } = one.getBoundingClientRect();
            return Math.round(top + height / 2);
          }),
        ),
      ].slice(0, 60),
    );
    const isRows = await stage.evaluate((one) => one.dataset['rows'] === 'yes');
    if (!isRows) continue;
    const { x, y, width } = (await stage.boundingBox())!;
    const view = page.viewportSize()!.height;
    for (const at of places) {
      if (
        at < Math.max(0, y) ||
        at > Math.min(view, y + (await stage.boundingBox())!.height)
      )
        continue;
      visited += 1;
      await page.mouse.move(x + width * 0.6, at);
      const seen = await stage.evaluate((one) => {
        const tip = one.querySelector<HTMLElement>('.tip');
        const row = one.querySelector<HTMLElement>('.tip-row');
        return {
          tip: tip?.hidden ? '' : (tip?.textContent ?? ''),
          top: row?.getBoundingClientRect().top ?? 0,
          bottom: row?.getBoundingClientRect().bottom ?? 0,
        };
      });
      if (seen.tip === '' || at < seen.top - 1 || at > seen.bottom + 1)
        missed.push(
          `${await stage.getAttribute('aria-label')} at ${at}: '${seen.tip}'`,
        );
    }
    await page.mouse.move(0, 0);
  }
  return { visited, missed: missed.slice(0, 5) };
}
