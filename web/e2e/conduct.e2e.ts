// How every view behaves: for those who use a keyboard or a screen reader, on
// small screens and on paper, and with records that mean harm.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';

import type { Opened } from './browser';
import { open, useBrowser } from './browser';
import { madeNode, madePlan, madeReport } from './made-fleet';
import type { Fields } from './records';
import {
  KINDS,
  pageWith,
  recordBench,
  recordOf,
  replaced,
  reportOf,
} from './records';

useBrowser();

const AXE = readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);

interface AxeResult {
  violations: {
    id: string;
    impact: string | null;
    nodes: { target: unknown[]; failureSummary?: string }[];
  }[];
}

/** Waits until charts have their size and are drawn. */
async function settled(page: Page): Promise<void> {
  await page.locator('main h1').first().waitFor();
  await page.locator('main [aria-busy=true]').waitFor({ state: 'detached' });
  await page.evaluate(
    () =>
      new Promise((done) =>
        requestAnimationFrame(() => requestAnimationFrame(() => done(null))),
      ),
  );
}

/** What is folded away must behave, too. */
async function openAll(page: Page): Promise<void> {
  await page.evaluate(() =>
    document
      .querySelectorAll('main details')
      .forEach((details) => ((details as HTMLDetailsElement).open = true)),
  );
  await settled(page);
}

/** The rules of WCAG 2.2 at level AA, and those that axe calls good practice. */
const RULES = [
  ...['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
  'best-practice',
];

/** Violations of any weight, in words. */
async function violations(page: Page): Promise<string[]> {
  const result = await page.evaluate(
    async ([source, rules]) => {
      if (!('axe' in window)) (0, eval)(source);
      return (
        window as unknown as {
          axe: { run(options: object): Promise<AxeResult> };
        }
      ).axe.run({ runOnly: { type: 'tag', values: rules } });
    },
    [AXE, RULES] as const,
  );
  return result.violations.map(
    (violation) =>
      `${violation.id}: ${violation.nodes
        .slice(0, 3)
        .map(
          (node) => `${node.target.join(' ')} (${node.failureSummary ?? ''})`,
        )
        .join('; ')}`,
  );
}

const width = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth);

/** Nothing failed, nothing was asked for but the file itself. */
function quiet({ errors, requests }: Opened): void {
  expect(errors).toEqual([]);
  expect(
    requests.filter(
      (address) =>
        !address.startsWith('file:') &&
        !address.startsWith('data:') &&
        !address.startsWith('blob:'),
    ),
  ).toEqual([]);
}

/** Everything that a reader with any need meets on one view. */
async function wellBehaved(file: string, hash: string): Promise<void> {
  const opened = await open(`${new URL(`file://${file}`).href}${hash}`, {
    bypassCSP: true,
  });
  const { page } = opened;
  await settled(page);
  await openAll(page);
  expect(await violations(page), 'light').toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  await settled(page);
  expect(await violations(page), 'dark').toEqual([]);
  await page.setViewportSize({ width: 360, height: 700 });
  await settled(page);
  expect(await width(page), 'width at 360 px').toBeLessThanOrEqual(360);
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await settled(page);
  expect(
    await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
  ).toBe('rgb(255, 255, 255)');
  expect(await page.locator('main h1').first().isVisible()).toBe(true);
  for (const control of [
    '.bar nav',
    '.theme',
    '.copier',
    '.controls',
    '.skip',
  ]) {
    const shown = await page
      .locator(control)
      .evaluateAll(
        (all) =>
          all.filter((one) => getComputedStyle(one).display !== 'none').length,
      );
    expect(shown, `${control} on paper`).toBe(0);
  }
  quiet(opened);
  await opened.close();
}

describe.each(KINDS)('a record of kind %s', (kind) => {
  test('is accessible, fits 360 px, and prints', async (context) => {
    const record = recordOf(kind);
    if (!record) return context.skip('this machine cannot make one');
    await wellBehaved(reportOf([record]), '');
  });

  test('shows hostile strings as they are', async (context) => {
    const record = recordOf(kind);
    if (!record) return context.skip('this machine cannot make one');
    await harmless(
      reportOf([
        replaced(
          record,
          () => HOSTILE,
          (value) => value,
        ) as Fields,
      ]),
      '',
    );
  });

  test('is shown with hostile CPU lists', async (context) => {
    const record = recordOf(kind);
    if (!record) return context.skip('this machine cannot make one');
    for (const list of ['0-9999999', '5-1,,-3,0x7', '1e9', '0-3,<b>,\u202e7'])
      await drawn(reportOf([withCpuLists(record, list) as Fields]));
  });

  test('fits 360 px with long words in every field', async (context) => {
    const record = recordOf(kind);
    if (!record) return context.skip('this machine cannot make one');
    // Words that say which of a few things it is, and lists of CPUs, stay.
    const long = replaced(
      record,
      (text) =>
        /^[a-z_-]{2,14}$|^\d[\d,-]*$/.test(text)
          ? text
          : text.slice(0, 4) + 'long'.repeat(60),
      (value) => value,
    ) as Fields;
    const opened = await open(reportOf([long]), { width: 360, height: 700 });
    await settled(opened.page);
    await openAll(opened.page);
    expect(await width(opened.page)).toBeLessThanOrEqual(360);
    quiet(opened);
    await opened.close();
  });

  test('shows what a pointer is at on every row of its charts', async (context) => {
    const record = recordOf(kind);
    if (!record) return context.skip('this machine cannot make one');
    const opened = await open(reportOf([record]));
    await settled(opened.page);
    const { visited, missed } = await missedRows(opened.page);
    expect(missed).toEqual([]);
    if (kind === 'comparison') expect(visited).toBeGreaterThan(5);
    quiet(opened);
    await opened.close();
  });

  test('is shown without its numbers', async (context) => {
    const record = recordOf(kind);
    if (!record) return context.skip('this machine cannot make one');
    await drawn(
      reportOf([
        replaced(
          record,
          (text) => text,
          () => null,
        ) as Fields,
      ]),
    );
  });

  test('is shown without all of its fields', async (context) => {
    const record = recordOf(kind);
    if (!record) return context.skip('this machine cannot make one');
    await drawn(reportOf([{ schema: record.schema }]));
  });
});

/** What would run, call out or turn the writing around if anything let it. */
const HOSTILE =
  '</script><img src=x onerror=alert(1)>"\'`${1}\u0007\u001b[31m\u202eevil\u2066\u0085';
const CONTROLS =
  '[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u200b-\\u200f\\u202a-\\u202e\\u2066-\\u2069]';

/** Hostile strings are text: nothing runs, nothing is asked for, no character hides. */
async function harmless(file: string, hash: string): Promise<void> {
  const opened = await open(`${new URL(`file://${file}`).href}${hash}`);
  const { page } = opened;
  await settled(page);
  await openAll(page);
  expect(await page.locator('main div.problem').allTextContents()).toEqual([]);
  expect(
    await page
      .locator('img, iframe, object, embed, link[rel=stylesheet]')
      .count(),
  ).toBe(0);
  expect(await page.locator('script').count()).toBe(2);
  expect(
    await page.evaluate(() => document.querySelector('main')!.textContent),
  ).toContain('</script><img src=x onerror=alert(1)>');
  const hidden = await page.evaluate((controls) => {
    const found: string[] = [];
    const check = (text: string | null, where: string): void => {
      const at = text?.search(new RegExp(controls)) ?? -1;
      if (at >= 0)
        found.push(
          `${where}: ${JSON.stringify(text!.slice(Math.max(0, at - 60), at + 10))}`,
        );
    };
    check(document.title, 'title');
    const walker = document.createTreeWalker(
      document.body,
      NodeFilter.SHOW_TEXT,
    );
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.parentElement?.tagName !== 'SCRIPT')
        check(
          node.textContent,
          node.parentElement?.outerHTML.slice(0, 80) ?? '',
        );
    }
    for (const element of document.querySelectorAll('[aria-label], [title]')) {
      check(
        element.getAttribute('aria-label'),
        `aria-label of ${element.tagName}`,
      );
      check(element.getAttribute('title'), `title of ${element.tagName}`);
    }
    return found.slice(0, 5);
  }, CONTROLS);
  expect(hidden).toEqual([]);
  quiet(opened);
  await opened.close();
}

/** The record with other lists wherever it has CPUs as text. */
function withCpuLists(value: unknown, list: string): unknown {
  if (Array.isArray(value))
    return value.map((item) => withCpuLists(item, list));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      typeof item === 'string' && /^\d+([-,]\d+)*$/.test(item)
        ? list
        : withCpuLists(item, list),
    ]),
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

/** The view stands, whatever is missing. */
async function drawn(file: string): Promise<void> {
  const opened = await open(file);
  await settled(opened.page);
  expect(
    await opened.page.locator('main div.problem').allTextContents(),
  ).toEqual([]);
  quiet(opened);
  await opened.close();
}

/** Comparisons of several hosts and days, one of them slower. */
function fleet(): Fields[] {
  const record = recordOf('comparison')!;
  const host = record['host'] as Record<string, unknown>;
  return Array.from({ length: 6 }, (_, at) => ({
    ...(replaced(
      record,
      (text) => text,
      (value) => (at === 5 ? value * 1.8 : value * (1 + at / 1000)),
    ) as Fields),
    id: `20260101-00000${at}-00000000`,
    started: `2026-01-0${at + 1}T00:00:00Z`,
    tags: ['nightly'],
    host: { ...host, simulated: false, hostname: `node${at}` },
  }));
}

/** A fleet's records, and names of settings that mean harm, too. */
function hostileFleet(): Fields[] {
  const hostile = (record: Fields, id: string): Fields => ({
    ...(replaced(
      record,
      () => HOSTILE,
      (value) => value,
    ) as Fields),
    id,
  });
  const report = hostile(madeReport(), `${HOSTILE}.report`);
  const groups = (report['groups'] as Record<string, unknown>[]).map(
    (group) => ({ ...group, identity: { [HOSTILE]: HOSTILE } }),
  );
  const node = {
    ...hostile(madeNode(), `${HOSTILE}.${HOSTILE}`),
    settings: { [HOSTILE]: HOSTILE },
  };
  return [
    { ...report, groups, tags: [`fleet:${HOSTILE}`] },
    node,
    hostile(madePlan(), HOSTILE),
  ];
}

describe('a fleet', () => {
  test.each([
    ['its report', `${HOSTILE}.report`],
    ['a node', `${HOSTILE}.${HOSTILE}`],
    ['what was asked', HOSTILE],
  ])(
    '%s shows hostile names and reasons as they are, beside each other',
    async (_, id) => {
      await harmless(
        reportOf(hostileFleet()),
        `#/record/${encodeURIComponent(id)}`,
      );
    },
  );

  test('the list shows hostile strings as they are', async () => {
    await harmless(reportOf(hostileFleet()), '#/fleet');
  });

  test.each(['#/fleet', '#/record/made.n00003', '#/record/made'])(
    '%s with a report at hand is accessible, fits 360 px, and prints',
    async (hash) => {
      await wellBehaved(reportOf([madeReport(), madeNode(), madePlan()]), hash);
    },
  );

  test('copies no name that a shell would take for more', async () => {
    const outliers = madeReport()['outliers'] as Record<string, unknown>[];
    const report = {
      ...madeReport(),
      outliers: [...outliers, { ...outliers[0], node: '$(reboot)' }],
    };
    const { page, close } = await open(reportOf([report]));
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
    await close();
  });

  test('its map fills the list of nodes by cause, node and figure', async () => {
    const made = madeReport();
    const [common] = made['common'] as { group: unknown; nodes: string[] }[];
    common!.group = null;
    common!.nodes = common!.nodes.slice(0, 2);
    const opened = await open(reportOf([made]));
    const { page } = opened;
    await settled(page);
    const map = page.locator('.heat');
    const list = page.locator('.node-list').first();
    expect(await map.locator('.cause').allTextContents()).toEqual([
      'numa-nodes-per-package = 1: 2 nodes',
      'Nothing in common is known: 1 node',
    ]);
    expect(await list.textContent()).toBe('n[00003,00010,00017]');
    await map
      .getByRole('button', { name: 'numa-nodes-per-package = 1:' })
      .click();
    expect(await list.textContent()).toBe('n[00003,00010]');
    await map.getByRole('button', { name: 'n00003' }).click();
    expect(await list.textContent()).toBe('n00010');
    await page.getByRole('button', { name: 'All outliers' }).click();
    await map.getByRole('button', { name: 'wiring · figure 1' }).click();
    expect(await list.textContent()).toBe('n[00003,00010,00017]');
    expect(
      await page.locator('.outliers').nth(1).locator('tbody tr').count(),
    ).toBe(3);
    expect(
      await page.getByText('4 quiet figures: no node differs').count(),
    ).toBe(1);
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
    quiet(opened);
    await opened.close();
  });

  test('is narrowed by figure and words, and sorted', async () => {
    const { page, close } = await open(reportOf([madeReport()]));
    const rows = page.locator('.outliers').nth(1).locator('tbody tr');
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
      .nth(1)
      .getByRole('button', { name: 'Ratio' })
      .click();
    const ratios = (await rows.locator('td:nth-child(5)').allTextContents())
      .filter((text) => text !== '–')
      .map((text) => Number(text.slice(1)));
    expect(ratios).toEqual([...ratios].sort((a, b) => a - b));
    await close();
  });

  test('hundreds of nodes come in portions', async () => {
    const { page, close } = await open(
      reportOf([
        madeReport({
          groups: 1,
          nodes: 1000,
          figures: 3,
          outlying: 350,
          each: 1,
        }),
      ]),
    );
    const nodes = page.locator('.outliers').first();
    expect(await nodes.locator('tbody tr').count()).toBe(300);
    expect(await nodes.getByRole('status').textContent()).toBe(
      '300 of 350 shown',
    );
    await nodes.getByRole('button', { name: 'Show 300 more' }).click();
    expect(await nodes.locator('tbody tr').count()).toBe(350);
    expect(
      await nodes.getByRole('button', { name: 'Show 300 more' }).isVisible(),
    ).toBe(false);
    await close();
  });

  test('its dots have names, and arrow keys go from one to the next', async () => {
    const opened = await open(
      `file://${reportOf([madeReport(), madeNode()])}#/record/made.report`,
    );
    const { page } = opened;
    await settled(page);
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
    expect(opened.errors).toEqual([]);
    await opened.close();
  });
});

describe('views of many records', () => {
  test.each(['#/history', '#/fleet', '#/record/none'])(
    '%s is accessible, fits 360 px, and prints',
    async (hash) => {
      await wellBehaved(reportOf(fleet()), hash);
    },
  );

  test.each(['#/history', '#/fleet'])(
    '%s shows hostile strings as they are',
    async (hash) => {
      const records = fleet().map((record, at) => ({
        ...(replaced(
          record,
          () => HOSTILE,
          (value) => value,
        ) as Fields),
        id: `${HOSTILE}${at}`,
        started: `2026-01-0${at + 1}T00:00:00Z`,
        host: { hostname: `${HOSTILE}${at}` },
      }));
      await harmless(reportOf(records), hash);
    },
  );

  test('a record with a hostile id opens from the list', async () => {
    const records = fleet()
      .slice(0, 2)
      .map((record, at) => ({ ...record, id: `${HOSTILE}/?#%${at}` }));
    const { page, close } = await open(reportOf(records));
    await page.locator('a.title').first().click();
    await page.waitForFunction(() => location.hash.startsWith('#/record/'));
    await settled(page);
    expect(await page.locator('main div.problem').allTextContents()).toEqual(
      [],
    );
    await close();
  });

  test('the fleet names the node that stands out', async () => {
    const { page, close } = await open(
      `${new URL(`file://${reportOf(fleet())}`).href}#/fleet`,
    );
    await settled(page);
    expect(await page.locator('.findings li').first().textContent()).toMatch(
      /^node5: .* 1\.[78]\d times the median of its group of 6/,
    );
    await close();
  });

  test('questions over time have a line each, and the plot zooms where it is dragged', async () => {
    const records = fleet().map((record) => ({
      ...record,
      host: { ...(record['host'] as object), hostname: 'node' },
    }));
    const opened = await open(
      `${new URL(`file://${reportOf(records)}`).href}#/history`,
    );
    const { page } = opened;
    await settled(page);
    expect(await page.locator('.questions .sparkline').count()).toBe(1);
    await page.locator('.questions th a').click();
    const stage = page.locator('figure.chart .stage');
    await stage.locator('svg').first().waitFor();
    const dots = stage.locator('[aria-label="dot"] path');
    expect(await dots.count()).toBe(6);
    const box = (await stage.boundingBox())!;
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width * 0.4, y);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.9, y, { steps: 4 });
    await page.mouse.up();
    expect(await dots.count()).toBeLessThan(6);
    expect(new URL(page.url()).hash).toMatch(/&from=2026-01-0\d.*&to=2026/);
    await page.reload();
    await settled(page);
    expect(await dots.count()).toBeLessThan(6);
    await page.getByRole('button', { name: 'All times' }).click();
    expect(await dots.count()).toBe(6);
    await page.getByLabel('From (UTC)').fill('2026-01-05');
    expect(await dots.count()).toBe(2);
    quiet(opened);
    await opened.close();
  });

  test('records that cannot be compared with the chosen one take no part', async () => {
    const record = recordOf('comparison')!;
    const host = record['host'] as object;
    const comparisons = ['node0', 'node1'].map((hostname, at) => ({
      ...record,
      id: `20260101-00000${at}-00000000`,
      host: { ...host, simulated: false, hostname },
    }));
    const records = [...comparisons, recordOf('topology')!];
    const opened = await open(
      `${new URL(`file://${reportOf(records)}`).href}#/history`,
    );
    const { page } = opened;
    await settled(page);
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
    quiet(opened);
    await opened.close();
  });

  test('the list is narrowed by words, which stand in the address', async () => {
    const { page, close } = await open(
      `${new URL(`file://${reportOf(fleet())}`).href}#/history`,
    );
    await settled(page);
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
    await page.getByText('No record passes these filters.').waitFor();
    await close();
  });
});

describe('on a phone', () => {
  test('the first column of a table stays while the others move', async () => {
    const opened = await open(reportOf([recordOf('comparison')!]), {
      width: 390,
      height: 800,
    });
    const { page } = opened;
    await settled(page);
    const table = page.locator('.scroll', { hasText: 'Spread (cv)' }).first();
    const [first, last] = [
      table.locator('tbody th').first(),
      table.locator('tbody td').first(),
    ];
    const left = async (one: typeof first): Promise<number> =>
      (await one.boundingBox())!.x;
    const before = [await left(first), await left(last)];
    await table.evaluate((one) => (one.scrollLeft = 60));
    expect(await left(first)).toBe(before[0]);
    expect(await left(last)).toBeLessThan(before[1]!);
    expect(
      await table.evaluate((one) => getComputedStyle(one).backgroundImage),
    ).toContain('linear-gradient');
    quiet(opened);
    await opened.close();
  });
});

describe('the keyboard', () => {
  test('reaches all that can be used, and what has the focus is seen', async () => {
    const { page, close } = await open(reportOf([recordOf('topology')!]));
    await settled(page);
    const visited: string[] = [];
    for (let step = 0; step < 60; step += 1) {
      await page.keyboard.press('Tab');
      const told = await page.evaluate(() => {
        const now = document.activeElement;
        if (!now || now === document.body) return null;
        const style = getComputedStyle(now);
        const box = now.querySelector(':scope > rect');
        const isSeen =
          (style.outlineStyle !== 'none' &&
            parseFloat(style.outlineWidth) >= 2) ||
          (box !== null && parseFloat(getComputedStyle(box).strokeWidth) >= 3);
        return {
          name: `${now.tagName.toLowerCase()}.${now.getAttribute('class') ?? ''}`,
          isSeen,
        };
      });
      if (told === null) break;
      expect(told.isSeen, told.name).toBe(true);
      visited.push(told.name);
    }
    expect(visited[0]).toBe('a.skip');
    for (const wanted of [
      'a.name',
      'select.',
      'g.cpu',
      'div.matrix',
      'div.stage',
      'button.copy',
    ]) {
      expect(
        visited.some((name) => name.startsWith(wanted)),
        wanted,
      ).toBe(true);
    }
    // One stop for all CPUs: arrow keys go from one to the next.
    expect(visited.filter((name) => name.startsWith('g.cpu'))).toHaveLength(1);
    await close();
  });

  test('goes from CPU to CPU and from pair to pair', async () => {
    const { page, close } = await open(reportOf([recordOf('topology')!]));
    await settled(page);
    await page.locator('.drawing .cpu[tabindex="0"]').focus();
    const told = page.locator('.drawing + .status-line');
    expect(await told.textContent()).toContain('CPU 0,');
    await page.keyboard.press('ArrowRight');
    expect(await told.textContent()).toContain('CPU 1,');
    await page.keyboard.press('End');
    expect(await told.textContent()).toContain('CPU 7,');
    await page.locator('.matrix').focus();
    await page.keyboard.press('ArrowRight');
    expect(
      await page.locator('.matrix-frame + .status-line').textContent(),
    ).toMatch(/^CPUs \d+ and \d+: [\d.]+ ns/);
    await close();
  });

  test('skips to the content', async () => {
    const { page, close } = await open(reportOf([recordOf('comparison')!]));
    await settled(page);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main');
    await close();
  });

  test('is at the new heading after a step, and the step is told', async () => {
    const { page, close } = await open(reportOf(fleet()));
    await settled(page);
    await page.getByRole('link', { name: 'Fleet' }).click();
    await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe(
      'Fleet',
    );
    expect(await page.title()).toBe('Fleet · pinwise');
    expect(await page.locator('.offscreen[role=status]').textContent()).toBe(
      'Fleet · pinwise',
    );
    expect(
      await page
        .getByRole('link', { name: 'Fleet' })
        .getAttribute('aria-current'),
    ).toBe('page');
    await close();
  });
});

describe('what cannot be shown', () => {
  const entry = {
    id: 'a',
    schema: 'pinwise.trace/99',
    time: '',
    host: '',
    title: 'a',
    verdict: '',
    complete: true,
    tags: [],
    subject: null,
    machine: null,
    figures: [],
  };
  const data = (record: unknown): string =>
    JSON.stringify({
      from: 'file',
      pinwise_version: '0',
      records: [{ entry, record }],
    });

  test.each([
    [
      'a newer record',
      data({ schema: 'pinwise.trace/99' }),
      '',
      'schema pinwise.trace/99',
      'newer pinwise',
    ],
    [
      'a record without a schema',
      data({ cut: 1 }),
      '',
      'schema is missing',
      'truncated',
    ],
    [
      'data that end early',
      data({ schema: 'pinwise.trace/1' }).slice(0, -9),
      '',
      'cut off or damaged',
      'pinwise record report',
    ],
    [
      'data without records',
      '{"from":"file"}',
      '',
      'records are missing',
      'pinwise record report',
    ],
    [
      'a missing record',
      data({ schema: 'pinwise.trace/1' }),
      '#/record/none',
      "no record 'none'",
      'History',
    ],
    [
      'a missing difference',
      data({ schema: 'pinwise.trace/1' }),
      '#/diff/a/b',
      'does not compare',
      'pinwise record diff a b',
    ],
    [
      'an unknown place',
      data({ schema: 'pinwise.trace/1' }),
      '#/nowhere',
      "no 'nowhere'",
      'history',
    ],
  ])('%s is told with what to do', async (_, text, hash, message, hint) => {
    const opened = await open(
      `${new URL(`file://${pageWith(text)}`).href}${hash}`,
    );
    const problem = opened.page.locator('div.problem');
    await problem.waitFor();
    expect(await problem.getAttribute('role')).toBe('alert');
    expect(await problem.locator('p').nth(0).textContent()).toContain(message);
    expect(await problem.locator('p').nth(1).textContent()).toContain(hint);
    quiet(opened);
    await opened.close();
  });

  test('the program refuses truncated, newer and missing records in one line', () => {
    const bench = recordBench();
    const text = JSON.stringify(recordOf('comparison'));
    const refused = (argument: string): string => {
      try {
        bench.run(
          'record',
          'report',
          argument,
          '-o',
          `${bench.folder}/refused.html`,
        );
      } catch (error) {
        const told = error as { status: number; stderr: string };
        expect(told.status).toBe(2);
        return told.stderr;
      }
      throw new Error(`'${argument}' was taken`);
    };
    expect(
      refused(bench.file('cut.json', text.slice(0, text.length / 2))),
    ).toContain('damaged');
    expect(
      refused(bench.file('newer.json', '{"schema":"pinwise.trace/99"}')),
    ).toContain('newer');
    expect(refused('20200101-000000-00000000')).toContain(
      '20200101-000000-00000000',
    );
  });
});
