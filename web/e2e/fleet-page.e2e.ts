// The page of a fleet's report, of its nodes and of its plan.

import { describe, expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import {
  HOSTILE,
  expectHostileTextIsShown,
  waitUntilDrawn,
  expectUsable,
} from './view-checks';
import { fakeNode, fakePlan, fakeReport } from './fake-fleet';
import type { Fields } from './records';
import { replaceValues, writeReport } from './records';

useBrowser();

/** A fleet's records, with hostile names of settings. */
function makeHostileFleet(): Fields[] {
  const hostile = (record: Fields, id: string): Fields => ({
    ...(replaceValues(
      record,
      () => HOSTILE,
      (value) => value,
    ) as Fields),
    id,
  });
  const report = hostile(fakeReport(), `${HOSTILE}.report`);
  const groups = (report['groups'] as Record<string, unknown>[]).map(
    (group) => ({ ...group, identity: { [HOSTILE]: HOSTILE } }),
  );
  const node = {
    ...hostile(fakeNode(), `${HOSTILE}.${HOSTILE}`),
    settings: { [HOSTILE]: HOSTILE },
  };
  return [
    { ...report, groups, tags: [`fleet:${HOSTILE}`] },
    node,
    hostile(fakePlan(), HOSTILE),
  ];
}

describe('a fleet', () => {
  test.each([
    ['its report', `${HOSTILE}.report`],
    ['a node', `${HOSTILE}.${HOSTILE}`],
    ['its plan', HOSTILE],
  ])(
    '%s shows hostile names and reasons as they are, beside each other',
    async (_, id) => {
      await expectHostileTextIsShown(
        writeReport(makeHostileFleet()),
        `#/record/${encodeURIComponent(id)}`,
      );
    },
  );

  test('the list shows hostile strings as text', async () => {
    await expectHostileTextIsShown(writeReport(makeHostileFleet()), '#/fleet');
  });

  test.each(['#/fleet', '#/record/made.n00003', '#/record/made'])(
    '%s beside its report is accessible, fits 360 px, and prints',
    async (hash) => {
      await expectUsable(
        writeReport([fakeReport(), fakeNode(), fakePlan()]),
        hash,
      );
    },
  );

  test('copies no node name with shell syntax', async () => {
    const outliers = fakeReport()['outliers'] as Record<string, unknown>[];
    const report = {
      ...fakeReport(),
      outliers: [...outliers, { ...outliers[0], node: '$(reboot)' }],
    };
    const { page } = await open(writeReport([report]));
    await page
      .context()
      .grantPermissions(['clipboard-read', 'clipboard-write']);
    const copied = async (button: string): Promise<string> => {
      await page.getByRole('button', { name: button }).click();
      await page.getByText('Copied').first().waitFor();
      return page.evaluate(() => navigator.clipboard.readText());
    };
    expect(await copied('Copy a,b,c: names of the outliers')).toBe(
      'n00003,n00010,n00017',
    );
    expect(await page.locator('.lists').first().textContent()).toContain(
      '4 nodes; 1 name that no host can have is not copied',
    );
    await page
      .getByRole('combobox', { name: /^Group/ })
      .selectOption({ label: 'Group 1: EPYC 7000' });
    expect(await copied('Copy n[1-3]: names of the outliers')).toBe(
      'n[00003,00017]',
    );
  });

  test('its map fills the list of nodes by cause, node and figure', async () => {
    const made = fakeReport();
    const [common] = made['common'] as { group: unknown; nodes: string[] }[];
    common!.group = null;
    common!.nodes = common!.nodes.slice(0, 2);
    const { page } = await open(writeReport([made]));
    await waitUntilDrawn(page);
    const map = page.locator('.heat');
    const list = page.locator('.node-list').first();
    expect(await map.locator('.cause').allTextContents()).toEqual([
      'numa-nodes-per-package = 1: 2 nodes',
      'Nothing in common: 1 node',
    ]);
    expect(await list.textContent()).toBe('n[00003,00010,00017]');
    await map
      .getByRole('button', { name: 'numa-nodes-per-package = 1:' })
      .click();
    expect(await list.textContent()).toBe('n[00003,00010]');
    await map.getByRole('button', { name: 'n00003' }).click();
    expect(await list.textContent()).toBe('n00010');
    await page.getByRole('button', { name: 'All outliers' }).click();
    await page
      .getByRole('combobox', { name: /^Figure or setting/ })
      .selectOption({ label: 'wiring · figure 1 (3)' });
    expect(await list.textContent()).toBe('n[00003,00010,00017]');
    expect(await page.locator('.outliers').locator('tbody tr').count()).toBe(3);
    const status = page.locator('.heat-map .status-line');
    for (const row of await map.locator('tr:has(td.named)').all()) {
      const name = await row.locator('th').textContent();
      await row.locator('td.named').first().hover();
      expect(await status.textContent()).toContain(name!);
    }
    await map.locator('td.named').first().focus();
    const first = await status.textContent();
    await page.keyboard.press('ArrowDown');
    expect(await status.textContent()).not.toBe(first);
  });

  test('is narrowed by figure and words, and sorted', async () => {
    const { page } = await open(writeReport([fakeReport()]));
    const rows = page.locator('.outliers').locator('tbody tr');
    expect(await rows.count()).toBe(9);
    await page
      .getByRole('combobox', { name: /^Figure or setting/ })
      .selectOption({ index: 1 });
    expect(await rows.count()).toBe(3);
    await page
      .getByRole('combobox', { name: /^Figure or setting/ })
      .selectOption({ index: 0 });
    const words = page.getByLabel(/^Narrow: All anomalies/);
    await words.fill('n00017 latency');
    expect(await rows.count()).toBe(1);
    await words.fill('');
    await page
      .locator('.outliers')
      .getByRole('button', { name: 'Change' })
      .click();
    const ratios = (await rows.locator('td:nth-child(5)').allTextContents())
      .filter((text) => text !== '–')
      .map((text) => Number(text.replace('−', '-').replace(/ %$/, '')));
    expect(ratios).toEqual([...ratios].sort((a, b) => b - a));
  });

  test('hundreds of nodes are shown 20 at a time', async () => {
    const { page } = await open(
      writeReport([
        fakeReport({
          groups: 1,
          nodes: 1000,
          figures: 3,
          outlying: 75,
          each: 1,
        }),
      ]),
    );
    // The map replaces the table, which would make a page of many screens.
    const height = await page.evaluate(
      () => document.documentElement.scrollHeight,
    );
    expect(height).toBeLessThan(3500);
    const nodes = page.locator('.outliers').first();
    await nodes.getByText('Every anomaly').click();
    expect(await nodes.locator('tbody tr').count()).toBe(20);
    expect(await nodes.getByRole('status').textContent()).toBe(
      '20 of 150 shown',
    );
    for (const shown of [40, 60, 80, 100, 120, 140, 150]) {
      const more = nodes.locator('.more');
      expect(await more.textContent()).toBe(
        `Show ${shown === 150 ? 10 : 20} more`,
      );
      await more.click();
      expect(await nodes.locator('tbody tr').count()).toBe(shown);
    }
    expect(await nodes.locator('.more').isVisible()).toBe(false);
  });

  test('its dots have names, and arrow keys go from one to the next', async () => {
    const { page } = await open(writeReport([fakeReport(), fakeNode()]), {
      hash: '#/record/made.report',
    });
    await waitUntilDrawn(page);
    const group = page.locator('details.group').first();
    expect(await group.locator('.dot').count()).toBe(4);
    expect(await group.locator('.dot[tabindex="0"]').count()).toBe(1);
    const focused = (): Promise<string | null> =>
      page.evaluate(
        () => document.activeElement?.getAttribute('aria-label') ?? null,
      );
    await group.locator('.dot[tabindex="0"]').focus();
    const first = await focused();
    expect(first).toMatch(/^n000\d\d: memory latency is 1\.\d\d times/);
    expect(await group.locator('.strip-tip').textContent()).toBe(first);
    await page.keyboard.press('ArrowRight');
    expect(await focused()).not.toBe(first);
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toContain('figure 1');
    await page.keyboard.press('Escape');
    expect(await group.locator('.strip-tip').count()).toBe(0);
    await page.keyboard.press('Home');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() =>
      location.hash.startsWith('#/record/made.n'),
    );
  });
});
