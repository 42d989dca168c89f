// Checks that every view must pass: for users of a keyboard or a screen reader, on small screens
// and on paper, and with hostile records.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

import { open } from './browser';
import type { Fields } from './records';
import { makeRecord, replaceValues } from './records';

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
export async function waitUntilDrawn(page: Page): Promise<void> {
  await page.locator('main h1').first().waitFor();
  await page.locator('main [aria-busy=true]').waitFor({ state: 'detached' });
  await page.evaluate(
    () =>
      new Promise((done) =>
        requestAnimationFrame(() => requestAnimationFrame(() => done(null))),
      ),
  );
}

/** Opens folded parts, so that they are checked as well. */
export async function openDetails(page: Page): Promise<void> {
  await page.evaluate(() =>
    document
      .querySelectorAll('main details')
      .forEach((details) => ((details as HTMLDetailsElement).open = true)),
  );
  await waitUntilDrawn(page);
}

/** The rules of WCAG 2.2 at level AA, and axe's good practices. */
const AXE_TAGS = [
  ...['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
  'best-practice',
];

/** Violations of any severity, in words. */
async function findViolations(page: Page): Promise<string[]> {
  const result = await page.evaluate(
    async ([source, rules]) => {
      if (!('axe' in window)) (0, eval)(source);
      return (
        window as unknown as {
          axe: { run(options: object): Promise<AxeResult> };
        }
      ).axe.run({ runOnly: { type: 'tag', values: rules } });
    },
    [AXE, AXE_TAGS] as const,
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

/** Width of the page with all its contents, pixels. */
export const pageWidth = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth);

/** Checks that a view is accessible in both themes, fits 360 px, and prints without controls. */
export async function expectUsable(file: string, hash: string): Promise<void> {
  const { page } = await open(file, { hash, bypassCSP: true });
  await waitUntilDrawn(page);
  await openDetails(page);
  expect(await findViolations(page), 'light').toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  await waitUntilDrawn(page);
  expect(await findViolations(page), 'dark').toEqual([]);
  await page.setViewportSize({ width: 360, height: 700 });
  await waitUntilDrawn(page);
  expect(await pageWidth(page), 'width at 360 px').toBeLessThanOrEqual(360);
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await waitUntilDrawn(page);
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
}

/** Text that would run, make a request or reverse text if it were not escaped. */
export const HOSTILE =
  '</script><img src=x onerror=alert(1)>"\'`${1}\u0007\u001b[31m\u202eevil\u2066\u0085';
const HIDDEN_CHARACTERS =
  '[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u200b-\\u200f\\u202a-\\u202e\\u2066-\\u2069]';

/** Checks that hostile strings are text: nothing runs or is requested, and no control character
 * remains. */
export async function expectHostileTextIsShown(
  file: string,
  hash: string,
): Promise<void> {
  const { page } = await open(file, { hash });
  await waitUntilDrawn(page);
  await openDetails(page);
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
  }, HIDDEN_CHARACTERS);
  expect(hidden).toEqual([]);
}

/** Checks that the view is drawn without a problem. */
export async function expectDrawn(file: string): Promise<void> {
  const opened = await open(file);
  await waitUntilDrawn(opened.page);
  expect(
    await opened.page.locator('main div.problem').allTextContents(),
  ).toEqual([]);
}

/** Comparisons of several hosts and days, one of them slower. */
export function makeHostComparisons(): Fields[] {
  const record = makeRecord('comparison')!;
  const host = record['host'] as Record<string, unknown>;
  return Array.from({ length: 6 }, (_, at) => ({
    ...(replaceValues(
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
