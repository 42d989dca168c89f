// Checks of the view of every kind of record.

import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import {
  HOSTILE,
  expectDrawn,
  expectHostileTextIsShown,
  openDetails,
  waitUntilDrawn,
  expectUsable,
  pageWidth,
} from './view-checks';
import type { Fields } from './records';
import { KINDS, makeRecord, replaceValues, writeReport } from './records';

useBrowser();

describe.each(KINDS)('a record of kind %s', (kind) => {
  const check = (claim: string, act: (record: Fields) => Promise<void>) =>
    test(claim, async (context) => {
      const record = makeRecord(kind);
      if (!record) return context.skip('this machine cannot make one');
      await act(record);
    });

  check('is accessible, fits 360 px, and prints', async (record) => {
    await expectUsable(writeReport([record]), '');
  });

  check('shows hostile strings as text', async (record) => {
    await expectHostileTextIsShown(
      writeReport([
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
    await expectDrawn(writeReport([replaceCpuLists(record) as Fields]));
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
    const opened = await open(writeReport([long]), { width: 360, height: 700 });
    await waitUntilDrawn(opened.page);
    await openDetails(opened.page);
    expect(await pageWidth(opened.page)).toBeLessThanOrEqual(360);
  });

  check('shows a tooltip for every row of its charts', async (record) => {
    const opened = await open(writeReport([record]));
    await waitUntilDrawn(opened.page);
    const { visited, missed } = await findMissedRows(opened.page);
    expect(missed).toEqual([]);
    if (kind === 'comparison') expect(visited).toBeGreaterThan(5);
  });

  check('is shown without its numbers', async (record) => {
    await expectDrawn(
      writeReport([
        replaceValues(
          record,
          (text) => text,
          () => null,
        ) as Fields,
      ]),
    );
  });

  check('is shown without all of its fields', async (record) => {
    await expectDrawn(writeReport([{ schema: record.schema }]));
  });
});

const HOSTILE_CPU_LISTS = [
  '0-9999999',
  '5-1,,-3,0x7',
  '1e9',
  '0-3,<b>,\u202e7',
];

/** Replaces each text that is a list of CPUs by a hostile one, in turn. */
function replaceCpuLists(record: Fields): unknown {
  let lists = 0;
  return replaceValues(
    record,
    (text) =>
      /^\d+([-,]\d+)*$/.test(text)
        ? HOSTILE_CPU_LISTS[lists++ % HOSTILE_CPU_LISTS.length]
        : text,
    (number) => number,
  );
}

/** Moves a pointer over the rows of charts; returns rows without a tooltip, or with that of another
 * row. */
async function findMissedRows(
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
