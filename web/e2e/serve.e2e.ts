// The local site: what the page shows of a store while others write it.

import { chmodSync, existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { Bench, OUTPUT } from './pinwise';
import { beginComparison, Site } from './site';

useBrowser();

const RUNS = 'figure[data-chart="Every run"]';

/** Runs of all arms, as the chart's own table has them. */
const runs = (page: Page): Promise<number> =>
  page
    .locator(`${RUNS} table tbody tr`)
    .evaluateAll((rows) =>
      rows.reduce(
        (sum, row) =>
          sum + Number((row as HTMLTableRowElement).cells[1]?.textContent),
        0,
      ),
    );

const picture = (page: Page): Promise<string> =>
  page
    .locator(`${RUNS} .stage svg`)
    .first()
    .evaluate((svg) => svg.outerHTML);

/** Waits until `look` finds something. */
async function until<T>(
  look: () => Promise<T | null | undefined | false>,
): Promise<T> {
  for (;;) {
    const found = await look();
    if (found) return found;
    await new Promise((go) => setTimeout(go, 100));
  }
}

test('a comparison that runs is drawn as it grows', async () => {
  const bench = new Bench();
  const site = await Site.start(bench);
  const { page, close } = await open(site.address);
  await page.getByRole('heading', { level: 1, name: 'History' }).waitFor();
  await page.evaluate(() => document.body.setAttribute('data-kept', 'yes'));

  const comparing = beginComparison(bench, 12);
  // The list shows the record without a reload.
  await page.getByRole('link', { name: /sleep/ }).first().click();
  await page.getByText('Running: this page grows with it.').waitFor();
  await page.locator(`${RUNS} .stage svg`).first().waitFor();
  expect(await page.locator('.running').textContent()).toMatch(
    /^block \d+ · [\d.]+ m?s · \d+ runs · at most [\d.]+ m?s left$/,
  );
  await page
    .locator('figure[data-chart="Narrowing, block by block"] .stage svg')
    .first()
    .waitFor();
  const [first, before] = [await runs(page), await picture(page)];
  const later = await until(async () => {
    const now = await runs(page);
    return now > first && now;
  });
  expect(later).toBeLessThanOrEqual(24);
  await until(async () => (await picture(page)) !== before);
  await page.screenshot({
    path: path.join(OUTPUT, 'serve-running.png'),
    fullPage: true,
  });

  await comparing.ended;
  await page.getByText('Ended.', { exact: true }).waitFor();
  expect(await runs(page)).toBe(24);
  expect(await page.locator('.running').count()).toBe(0);
  expect(await page.locator('.verdict').textContent()).not.toBe('');
  expect(await page.locator('body').getAttribute('data-kept')).toBe('yes');
  await close();
  const { status, stderr } = await site.stop();
  expect(status).toBe(0);
  expect(stderr).not.toContain('warning');
});

test('a comparison that is killed is said to be cut off', async () => {
  const bench = new Bench();
  const site = await Site.start(bench);
  const { child, ended } = beginComparison(bench, 1000);
  const { page } = await open(site.address);
  await page.getByRole('link', { name: /sleep/ }).first().click();
  await page.getByText('Running: this page grows with it.').waitFor();
  child.kill('SIGKILL');
  await ended;
  await page
    .getByText('Cut off: the pinwise that wrote it ended first.')
    .waitFor();
});

test('the file that --open gives the browser leads to the site', async () => {
  const bench = new Bench();
  const opener = bench.file(
    'xdg-open',
    `#!/bin/sh\nprintf %s "$1" > '${bench.folder}/new'\nmv '${bench.folder}/new' '${bench.folder}/opened'\n`,
  );
  chmodSync(opener, 0o755);
  const site = await Site.start(bench, ['--open'], {
    PATH: `${bench.folder}:${process.env['PATH']}`,
  });
  const given = path.join(bench.folder, 'opened');
  const file = await until(
    async () => existsSync(given) && readFileSync(given, 'utf8'),
  );
  const { page, close } = await open(file);
  await page.waitForURL(`${site.address}**`);
  await page.getByRole('heading', { level: 1, name: 'History' }).waitFor();
  await close();
  const { stderr } = await site.stop();
  expect(stderr).not.toContain('warning');
});

test('a record that is missing, and a site that has ended, are reported', async () => {
  const bench = new Bench();
  bench.comparison();
  const site = await Site.start(bench);
  const { page } = await open(`${site.address}#/record/nothing`, {
    canFail: true,
  });
  await page
    .getByRole('alert')
    .getByText("No record has the id 'nothing'")
    .waitFor();
  await page.evaluate(() => (location.hash = '#/history'));
  await page.getByRole('link', { name: /prog/ }).first().waitFor();
  await site.stop();
  await page.getByRole('link', { name: /prog/ }).first().click();
  await page
    .getByRole('alert')
    .getByText('pinwise serve does not answer.')
    .waitFor();
});
