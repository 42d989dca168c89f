// The local site: the page of a store while other processes write to it.

import { chmodSync, existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { Workspace, OUTPUT } from './pinwise';
import { beginComparison, Site } from './site';

useBrowser();

const RUNS = 'figure[data-chart="Every run"]';

/** The number of runs of all arms, from the chart's own table. */
const countRuns = (page: Page): Promise<number> =>
  page
    .locator(`${RUNS} table tbody tr`)
    .evaluateAll((rows) =>
      rows.reduce(
        (sum, row) =>
          sum + Number((row as HTMLTableRowElement).cells[1]?.textContent),
        0,
      ),
    );

const chartContent = (page: Page): Promise<string> =>
  page
    .locator(`${RUNS} .stage svg`)
    .first()
    .evaluate((svg) => svg.outerHTML);

/** Waits until `look` finds something. */
async function waitUntil<T>(
  look: () => Promise<T | null | undefined | false>,
): Promise<T> {
  for (;;) {
    const found = await look();
    if (found) return found;
    await new Promise((go) => setTimeout(go, 100));
  }
}

test('a running comparison is drawn as it grows', async () => {
  const workspace = new Workspace();
  const site = await Site.start(workspace);
  const { page, close } = await open(site.address);
  await page.getByRole('heading', { level: 1, name: 'Records' }).waitFor();
  await page.evaluate(() => document.body.setAttribute('data-kept', 'yes'));

  const comparing = beginComparison(workspace, 12);
  // The list shows the record without a reload.
  await page.getByRole('link', { name: /sleep/ }).first().click();
  await page.getByText('Running: this page grows with it.').waitFor();
  await page.locator(`${RUNS} .stage svg`).first().waitFor();
  expect(await page.locator('.running').textContent()).toMatch(
    /^block \d+ · [\d.]+\sm?s · \d+ runs · at most [\d.]+\sm?s left$/,
  );
  await page
    .locator('figure[data-chart="Narrowing, block by block"] .stage svg')
    .first()
    .waitFor();
  const [first, before] = [await countRuns(page), await chartContent(page)];
  const later = await waitUntil(async () => {
    const now = await countRuns(page);
    return now > first && now;
  });
  expect(later).toBeLessThanOrEqual(24);
  await waitUntil(async () => (await chartContent(page)) !== before);
  await page.screenshot({
    path: path.join(OUTPUT, 'serve-running.png'),
    fullPage: true,
  });

  await comparing.ended;
  await page.getByText('Ended.', { exact: true }).waitFor();
  expect(await countRuns(page)).toBe(24);
  expect(await page.locator('.running').count()).toBe(0);
  expect(await page.locator('.verdict').textContent()).not.toBe('');
  expect(await page.locator('body').getAttribute('data-kept')).toBe('yes');
  await close();
  const { status, stderr } = await site.stop();
  expect(status).toBe(0);
  expect(stderr).not.toContain('warning');
});

test('a killed comparison is reported as cut off', async () => {
  const workspace = new Workspace();
  const site = await Site.start(workspace);
  const { child, ended } = beginComparison(workspace, 1000);
  const { page } = await open(site.address);
  await page.getByRole('link', { name: /sleep/ }).first().click();
  await page.getByText('Running: this page grows with it.').waitFor();
  child.kill('SIGKILL');
  await ended;
  await page
    .getByText('Cut off: the pinwise that wrote it ended first.')
    .waitFor();
});

test('the file that --open passes to the browser opens the site', async () => {
  const workspace = new Workspace();
  const opener = workspace.file(
    'xdg-open',
    `#!/bin/sh\nprintf %s "$1" > '${workspace.folder}/new'\nmv '${workspace.folder}/new' '${workspace.folder}/opened'\n`,
  );
  chmodSync(opener, 0o755);
  const site = await Site.start(workspace, ['--open'], {
    PATH: `${workspace.folder}:${process.env['PATH']}`,
  });
  const given = path.join(workspace.folder, 'opened');
  const file = await waitUntil(
    async () => existsSync(given) && readFileSync(given, 'utf8'),
  );
  const { page, close } = await open(file);
  await page.waitForURL(`${site.address}**`);
  await page.getByRole('heading', { level: 1, name: 'Records' }).waitFor();
  await close();
  const { stderr } = await site.stop();
  expect(stderr).not.toContain('warning');
});

test('a record that is missing, and a site that has ended, are reported', async () => {
  const workspace = new Workspace();
  workspace.comparison();
  const site = await Site.start(workspace);
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
