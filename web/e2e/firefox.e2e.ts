// The page in Firefox, over WebDriver BiDi: every kind of record is drawn
// without complaint, hovers hit, commands are chosen and copied.

import { existsSync } from 'node:fs';

import { describe, expect, test } from 'vitest';

import {
  launchFirefox,
  open,
  useBrowser,
  type OpenOptions,
  type Opened,
} from './browser';
import { KINDS, makeRecord, writeReport } from './records';

const FIREFOX = [
  process.env['FIREFOX'] ?? '',
  '/usr/bin/firefox-esr',
  '/usr/bin/firefox',
].find((path) => path !== '' && existsSync(path));

if (FIREFOX === undefined)
  console.log('SKIPPED: no Firefox (apt-get install firefox-esr)');

/** Opens a report, once it is drawn. */
async function openDrawn(file: string, look?: OpenOptions): Promise<Opened> {
  const opened = await open(file, look);
  await opened.page.waitForSelector('main h1');
  await opened.page.evaluate(
    () =>
      new Promise((done) =>
        requestAnimationFrame(() => requestAnimationFrame(() => done(null))),
      ),
  );
  return opened;
}

describe.runIf(FIREFOX !== undefined)('in Firefox', () => {
  useBrowser(() => launchFirefox(FIREFOX!));

  test.for(KINDS)(
    'a record of kind %s is drawn, wide and narrow',
    async (kind) => {
      const record = makeRecord(kind);
      if (record === null)
        return console.log(`SKIPPED: this machine makes no ${kind}`);
      const file = writeReport([record]);
      for (const width of [1280, 390]) {
        const { page } = await openDrawn(file, { width });
        expect(await page.$$('main div.problem')).toEqual([]);
        const seen = await page.evaluate(() => ({
          overflow:
            document.documentElement.scrollWidth -
            document.documentElement.clientWidth,
          empty: [...document.querySelectorAll('figure.chart .stage')].filter(
            (stage) =>
              stage.clientWidth > 0 &&
              !stage.closest('details:not([open])') &&
              !stage.querySelector('svg path, svg rect, svg line'),
          ).length,
        }));
        expect(seen, `${width} px`).toEqual({ overflow: 0, empty: 0 });
      }
    },
  );

  test('a pointer on a row shows its figures, a tab its command', async () => {
    const record = makeRecord('comparison')!;
    const { page } = await openDrawn(writeReport([record]));
    const stage = (await page.$(
      'figure[data-chart^="Change against"] .stage',
    ))!;
    const rows = await stage.$$eval('[aria-label="dot"] path', (dots) =>
      dots.map((dot) => {
        const { top, height } = dot.getBoundingClientRect();
        return top + height / 2;
      }),
    );
    expect(rows.length).toBeGreaterThan(1);
    const { x, width } = (await stage.boundingBox())!;
    const said: string[] = [];
    for (const y of rows) {
      await page.mouse.move(x + width / 2, y);
      said.push(
        await page.$eval('.stage .tip', (tip) => tip.textContent ?? ''),
      );
    }
    const arms = (record['contrasts'] as { arm: string }[]).map((c) => c.arm);
    expect(said.map((text) => text.split('\n')[0]).sort()).toEqual(arms.sort());
    const tabs = await page.$$('[role=tab]');
    for (const tab of tabs) {
      await tab.click();
      expect(
        await tab.evaluate((one) => one.getAttribute('aria-selected')),
      ).toBe('true');
    }
    const { commands } = record['verdict'] as { commands: { line: string }[] };
    // A single command has no tab.
    const panel = tabs.length > 0 ? '.copy-panel:not([hidden]) code' : 'code';
    const shown = await page.$$eval(panel, (all) =>
      all.map((code) => code.textContent),
    );
    expect(shown).toContain(commands.at(-1)?.line ?? record['again']);
  });

  test('the timeline is painted', async () => {
    const { page } = await openDrawn(writeReport([makeRecord('trace')!]));
    await page.waitForSelector('canvas[data-frames]');
    const colours = await page.$eval('.lanes canvas', (element) => {
      const canvas = element as HTMLCanvasElement;
      const { data } = canvas
        .getContext('2d')!
        .getImageData(0, 0, canvas.width, canvas.height);
      const found = new Set<number>();
      for (let at = 0; at < data.length; at += 400)
        found.add((data[at]! << 16) | (data[at + 1]! << 8) | data[at + 2]!);
      return found.size;
    });
    expect(colours).toBeGreaterThan(3);
  });
});
