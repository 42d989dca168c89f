// Links to a part of a record and to the state of its page, and records saved as files.

import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { recordWorkspace, makeRecord, writeReport } from './records';

useBrowser();

const hashOf = (page: Page): string => new URL(page.url()).hash;

async function openReport(
  hash = '',
): Promise<Awaited<ReturnType<typeof open>>> {
  const file = writeReport([
    makeRecord('comparison')!,
    makeRecord('topology')!,
  ]);
  return open(file, { hash });
}

const comparisonId = (): string => String(makeRecord('comparison')!['id']);

test('a link to a part scrolls to it', async () => {
  const first = await openReport(`#/record/${comparisonId()}`);
  await first.page
    .context()
    .grantPermissions(['clipboard-read', 'clipboard-write']);
  await first.page
    .getByRole('button', { name: 'Copy the link to How it was measured' })
    .click();
  await first.page.getByText('link copied').waitFor();
  const link = await first.page.evaluate(() => navigator.clipboard.readText());
  expect(new URL(link).hash).toBe(
    `#/record/${comparisonId()}/how-it-was-measured`,
  );
  const second = await openReport(new URL(link).hash);
  await second.page.waitForFunction(
    () => document.activeElement?.tagName === 'H2',
  );
  const top = await second.page
    .getByRole('heading', { name: 'How it was measured' })
    .evaluate((one) => one.getBoundingClientRect().top);
  const height = second.page.viewportSize()!.height;
  expect(top).toBeGreaterThanOrEqual(0);
  expect(top).toBeLessThan(height);
});

test('choices are in the address and restored from it', async () => {
  const first = await openReport(`#/record/${comparisonId()}`);
  const arms = makeRecord('comparison')!['arms'] as { name: string }[];
  const arm = arms.at(-1)!.name;
  await first.page.locator('button.arm', { hasText: arm }).click();
  await first.page.getByLabel('highlight the runs of').selectOption(arm);
  const hash = hashOf(first.page);
  expect(new URLSearchParams(hash.split('?')[1]).get('arm')).toBe(arm);
  const second = await openReport(hash);
  expect(
    await second.page.getByLabel('highlight the runs of').inputValue(),
  ).toBe(arm);
  expect(
    await second.page.locator('button.arm[aria-pressed=true]').textContent(),
  ).toContain(arm);
  const odd = await openReport(
    `#/record/${comparisonId()}/none?arm=none&highlight=none`,
  );
  expect(await odd.page.locator('main div.problem').count()).toBe(0);
});

test('a record is saved as stored, with exact 64-bit seeds', async () => {
  const seed = '18446744073709551557';
  const file = recordWorkspace().file(
    'seed.json',
    JSON.stringify(makeRecord('comparison')).replace(
      /"seed":\d+/,
      `"seed":${seed}`,
    ),
  );
  const { page } = await open(recordWorkspace().report(file));
  await page.locator('.record-tools').getByText('Save').click();
  const saved = async (kind: string): Promise<string> => {
    const coming = page.waitForEvent('download');
    await page
      .getByRole('button', { name: `Save as ${kind}: the record` })
      .click();
    return readFileSync(await (await coming).path(), 'utf8');
  };
  const json = await saved('JSON');
  expect(json).toContain(`"seed":${seed}`);
  expect(JSON.parse(json)).toEqual(JSON.parse(readFileSync(file, 'utf8')));
  const markdown = await saved('Markdown');
  const { sentence } = makeRecord('comparison')!['verdict'] as {
    sentence: string;
  };
  expect(markdown.replaceAll('\\', '')).toContain(`**${sentence}**`);
});
