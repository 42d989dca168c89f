// The history and the fleet: views of many records.

import { describe, expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import {
  HOSTILE,
  makeHostComparisons,
  expectHostileTextIsShown,
  pageWidth,
  waitUntilDrawn,
  expectUsable,
} from './view-checks';
import type { Fields } from './records';
import { makeRecord, replaceValues, writeReport } from './records';

useBrowser();

describe('views of many records', () => {
  test.each(['#/history', '#/fleet', '#/record/none'])(
    '%s is accessible, fits 360 px, and prints',
    async (hash) => {
      await expectUsable(writeReport(makeHostComparisons()), hash);
    },
  );

  test.each(['#/history', '#/fleet'])(
    '%s shows hostile strings as they are',
    async (hash) => {
      const records = makeHostComparisons().map((record, at) => ({
        ...(replaceValues(
          record,
          () => HOSTILE,
          (value) => value,
        ) as Fields),
        id: `${HOSTILE}${at}`,
        started: `2026-01-0${at + 1}T00:00:00Z`,
        host: { hostname: `${HOSTILE}${at}` },
      }));
      await expectHostileTextIsShown(writeReport(records), hash);
    },
  );

  test('a record with a hostile id opens from the list', async () => {
    const records = makeHostComparisons()
      .slice(0, 2)
      .map((record, at) => ({ ...record, id: `${HOSTILE}/?#%${at}` }));
    const { page } = await open(writeReport(records), { hash: '#/history' });
    await page.locator('a.title').first().click();
    await page.waitForFunction(() => location.hash.startsWith('#/record/'));
    await waitUntilDrawn(page);
    expect(await page.locator('main div.problem').allTextContents()).toEqual(
      [],
    );
  });

  test('a report of two records opens on what changed', async () => {
    const record = makeRecord('comparison')!;
    const host = { ...(record['host'] as object), simulated: false };
    const records = [0, 1].map((at) => ({
      ...record,
      id: `20260101-00000${at}-00000000`,
      host,
    }));
    const { page } = await open(writeReport(records));
    await waitUntilDrawn(page);
    expect(await page.locator('h1').textContent()).toMatch(
      /, before and after$/,
    );
  });

  test('the fleet names the node that stands out', async () => {
    const { page } = await open(writeReport(makeHostComparisons()), {
      hash: '#/fleet',
    });
    await waitUntilDrawn(page);
    expect(await page.locator('p.verdict').textContent()).toMatch(
      /^6 hosts .* is node5: .* ×1\.[78]\d their median\.$/,
    );
    expect(await page.locator('.fleet tbody th').first().textContent()).toBe(
      'node5',
    );
  });

  test('questions over time have a line each, and the plot zooms where it is dragged', async () => {
    const records = makeHostComparisons().map((record) => ({
      ...record,
      host: { ...(record['host'] as object), hostname: 'node' },
    }));
    const { page } = await open(writeReport(records), { hash: '#/history' });
    await waitUntilDrawn(page);
    expect(await page.locator('.questions .sparkline').count()).toBe(1);
    await page.locator('.questions th a').click();
    const stage = page.locator('figure.chart .stage');
    await stage.locator('svg').first().waitFor();
    const dots = stage.locator('[aria-label="dot"] path');
    expect(await dots.count()).toBe(6);
    await stage.getByText('wall-clock time, lower is better').waitFor();
    const box = (await stage.boundingBox())!;
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width * 0.4, y);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.9, y, { steps: 4 });
    await page.mouse.up();
    expect(await dots.count()).toBeLessThan(6);
    expect(new URL(page.url()).hash).toMatch(/&from=2026-01-0\d.*&to=2026/);
    await page.reload();
    await waitUntilDrawn(page);
    expect(await dots.count()).toBeLessThan(6);
    await page.getByRole('button', { name: 'All times' }).click();
    expect(await dots.count()).toBe(6);
    await page.getByLabel('From (UTC)').fill('2026-01-05');
    expect(await dots.count()).toBe(2);
  });

  test('a phone shows records below the folded questions', async () => {
    const records = makeHostComparisons().map((record) => ({
      ...record,
      host: { ...(record['host'] as object), hostname: 'node' },
    }));
    const { page } = await open(writeReport(records), {
      hash: '#/history',
      width: 390,
    });
    await waitUntilDrawn(page);
    const table = page.locator('.questions table');
    expect(await table.isVisible()).toBe(false);
    expect(await page.locator('.records a.title').first().isVisible()).toBe(
      true,
    );
    await page.getByText('1 question measured more than once').click();
    expect(await table.isVisible()).toBe(true);
  });

  test('filters with long values are no wider than a phone', async () => {
    const records = makeHostComparisons().map((record) => ({
      ...record,
      tags: [`nightly-${'on-every-node-'.repeat(6)}`],
      host: { ...(record['host'] as object), hostname: 'node' },
    }));
    const { page } = await open(writeReport(records), {
      hash: '#/history',
      width: 390,
    });
    await waitUntilDrawn(page);
    await page.getByText('Filters').click();
    expect(await pageWidth(page)).toBeLessThanOrEqual(390);
  });

  test('records that cannot be compared with the chosen one are disabled', async () => {
    const record = makeRecord('comparison')!;
    const host = record['host'] as object;
    const comparisons = ['node0', 'node1'].map((hostname, at) => ({
      ...record,
      id: `20260101-00000${at}-00000000`,
      host: { ...host, simulated: false, hostname },
    }));
    const records = [...comparisons, makeRecord('topology')!];
    const { page } = await open(writeReport(records), { hash: '#/history' });
    await waitUntilDrawn(page);
    const boxes = page.locator('.pick input');
    expect(await boxes.count()).toBe(3);
    await page
      .locator('tr', { hasText: 'node0' })
      .getByRole('checkbox')
      .check();
    const other = page.locator('tr', { hasText: 'topology' });
    expect(await other.getByRole('checkbox').isDisabled()).toBe(true);
    expect(await other.getByRole('checkbox').getAttribute('title')).toBe(
      'Cannot be compared: is a machine, the chosen one a comparison',
    );
    await page
      .locator('tr', { hasText: 'node1' })
      .getByRole('checkbox')
      .check();
    await page
      .getByRole('link', { name: 'Compare the two chosen records' })
      .waitFor();
  });

  test('words narrow the list and are in the address', async () => {
    const { page } = await open(writeReport(makeHostComparisons()), {
      hash: '#/history',
    });
    await waitUntilDrawn(page);
    expect(await page.locator('tbody tr').count()).toBe(6);
    await page.getByLabel('Words').fill('NODE3');
    await page.waitForFunction(
      () => document.querySelectorAll('tbody tr').length === 1,
    );
    expect(new URL(page.url()).hash).toBe('#/history?text=NODE3');
    expect(
      await page.evaluate(() => document.activeElement?.getAttribute('type')),
    ).toBe('search');
    await page.getByLabel('Words').fill('nothing of the kind');
    await page.getByText('No matching records.').waitFor();
  });
});
