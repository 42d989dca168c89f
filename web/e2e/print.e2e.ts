// Print: from wide and narrow windows in the dark theme, no mark and no label lies
// outside the page or is cut by its drawing, and nothing is dark.

import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { fakeNode, fakePlan, fakeReport } from './fake-fleet';
import type { Fields } from './records';
import { KINDS, recordWorkspace, makeRecord, writeReport } from './records';

useBrowser();

/** The width of A4 within usual margins, CSS pixels. */
const PAPER_WIDTH = 680;

/** Silences resize observers during print, as browsers do when they lay out paper. */
function muteResizeObservers(): void {
  const Own = window.ResizeObserver;
  window.ResizeObserver = class extends Own {
    constructor(act: ResizeObserverCallback) {
      super((...all) => {
        if (!document.documentElement.dataset['paper']) act(...all);
      });
    }
  };
}

/** Lays out the page as for print. */
async function layOutOnPaper(page: Page): Promise<void> {
  await page.locator('main h1').first().waitFor();
  await page.evaluate(
    () =>
      new Promise((done) =>
        requestAnimationFrame(() => requestAnimationFrame(() => done(null))),
      ),
  );
  await page.evaluate(() => {
    document.documentElement.dataset['paper'] = 'yes';
    dispatchEvent(new Event('beforeprint'));
  });
  await page.setViewportSize({ width: PAPER_WIDTH, height: 900 });
  await page.emulateMedia({ media: 'print' });
}

/** Elements outside of the paper, or cut by their drawing. */
const findCutElements = (page: Page): Promise<string[]> =>
  page.evaluate((width) => {
    const found: string[] = [];
    const add = (one: Element, why: string): void => {
      const { left, right, top, bottom } = one.getBoundingClientRect();
      found.push(
        `${why}: ${one.tagName}.${one.getAttribute('class') ?? ''} '${(one.textContent ?? '').slice(0, 40)}' ${[left, right, top, bottom].map(Math.round).join(' ')}`,
      );
    };
    const scrolled = scrollY;
    for (const one of document.querySelectorAll('main *')) {
      if (one.closest('.offscreen, .words, [hidden], defs, clipPath')) continue;
      const box = one.getBoundingClientRect();
      if (box.width === 0 && box.height === 0) continue;
      if (box.right > width + 1 || box.left < -1) add(one, 'outside the page');
      const drawing = one.closest('svg');
      if (
        !drawing ||
        drawing === one ||
        !/^(text|path|rect|line|circle)$/.test(one.tagName)
      )
        continue;
      const frame = drawing.getBoundingClientRect();
      const isOut =
        box.left < frame.left - 2 ||
        box.right > frame.right + 2 ||
        box.top < frame.top - 2 ||
        box.bottom > frame.bottom + 2;
      if (isOut && getComputedStyle(drawing).overflow !== 'visible')
        add(one, 'cut by its drawing');
    }
    scrollTo(0, scrolled);
    return found.slice(0, 8);
  }, PAPER_WIDTH);

/** Canvases whose picture is stretched, or whose corner is dark. */
const findSpoiltCanvases = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll('canvas')].flatMap((canvas) => {
      const { width, height } = canvas.getBoundingClientRect();
      if (width === 0 || height === 0) return [];
      const shape = canvas.width / canvas.height / (width / height);
      const { data } = canvas
        .getContext('2d')!
        .getImageData(0, 0, canvas.width, canvas.height);
      // The background and the text of the dark theme, in more than 2 %: mixed colours hit one by
      // chance.
      let dark = 0;
      for (let at = 0; at < data.length; at += 4) {
        const colour = (data[at]! << 16) | (data[at + 1]! << 8) | data[at + 2]!;
        if (colour === 0x15181c || colour === 0xe6e9ec) dark += 1;
      }
      const isDark = dark > data.length / 4 / 50;
      return [
        ...(Math.abs(shape - 1) > 0.05
          ? [
              `stretched by ${shape.toFixed(2)}: ${canvas.parentElement!.outerHTML.slice(0, 300)}`,
            ]
          : []),
        ...(isDark
          ? [`dark: ${dark} of ${data.length / 4}, ${canvas.className}`]
          : []),
      ];
    }),
  );

async function expectWholeOnPaper(file: string, hash = ''): Promise<void> {
  for (const width of [1900, 390]) {
    const { page } = await open(file, {
      hash,
      width,
      colorScheme: 'dark',
      before: muteResizeObservers,
    });
    await layOutOnPaper(page);
    expect(await findCutElements(page), `from ${width} px`).toEqual([]);
    expect(await findSpoiltCanvases(page), `from ${width} px`).toEqual([]);
    expect(
      await page.evaluate(() => getComputedStyle(document.body).color),
    ).toBe('rgb(0, 0, 0)');
  }
}

describe('on A4', () => {
  test.for(KINDS)('a record of kind %s is whole', async (kind) => {
    const record = makeRecord(kind);
    if (record === null)
      return console.log(`SKIPPED: this machine makes no ${kind}`);
    await expectWholeOnPaper(writeReport([record]));
  });

  test('a machine of 64 CPUs is whole', async () => {
    const workspace = recordWorkspace();
    const record = workspace.json<Fields>(
      '-q topology --measure --machine',
      'sim:package:2 numa:2 l3:2 core:4 pu:2',
    );
    await expectWholeOnPaper(writeReport([record]));
  });

  test('the lists are whole', async () => {
    const report = writeReport([fakeReport(), fakeNode(), fakePlan()]);
    await expectWholeOnPaper(report, '#/fleet');
    await expectWholeOnPaper(report, '#/history');
  });
});
