// The machine: its drawing and its latency matrix as linked views, drawn as reported and as
// measured if these differ.

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { pageWidth } from './view-checks';
import { Workspace, OUTPUT } from './pinwise';
import { makeRecord, writeReport } from './records';

useBrowser();

/** A report of a simulated machine whose measurement agrees with what it reports. */
function writeAgreeingReport(
  machine = 'sim:package:2 l3:2 core:2 pu:2',
): string {
  const workspace = new Workspace();
  workspace.run('topology --measure --seed 1 --machine', machine);
  return workspace.report('last');
}

const writeContradictedReport = (): string =>
  writeReport([makeRecord('topology')!]);

/** The matrix as HTML. */
const matrixContent = (page: Page): Promise<string> =>
  page.locator('.matrix').evaluate((matrix) => matrix.innerHTML);

const linkedCpus = (page: Page): Promise<string[]> =>
  page
    .locator('.drawing .cpu.linked')
    .evaluateAll((cpus) =>
      cpus.map((cpu) => (cpu as SVGElement).dataset['cpu']!),
    );

test.each([
  [1280, true],
  [360, false],
])(
  'at %i pixels drawing and matrix stand beside each other: %s',
  async (width, isBeside) => {
    const { page } = await open(writeAgreeingReport(), { width });
    const drawn = (await page.locator('.drawing').boundingBox())!;
    const matrix = (await page.locator('.matrix').boundingBox())!;
    expect(matrix.x > drawn.x + drawn.width - 1).toBe(isBeside);
    expect(matrix.y > drawn.y + drawn.height).toBe(!isBeside);
    expect(await pageWidth(page)).toBeLessThanOrEqual(width);
  },
);

test('a CPU of the drawing marks its row and column, and a cell its two CPUs', async () => {
  const { page } = await open(writeAgreeingReport(), { width: 1280 });
  const cpu = (number: number) =>
    page.locator(`.drawing [data-cpu="${number}"]`);
  await cpu(0).waitFor();
  const before = await matrixContent(page);
  await cpu(3).hover();
  const third = await matrixContent(page);
  expect(third).not.toBe(before);
  expect(await linkedCpus(page)).toEqual(['3']);
  await cpu(5).hover();
  expect(await matrixContent(page)).not.toBe(third);
  await page.mouse.move(2, 2);
  await expect.poll(() => matrixContent(page)).toBe(before);
  expect(await linkedCpus(page)).toEqual([]);
  // The same by keyboard.
  await cpu(0).focus();
  for (let step = 0; step < 3; step += 1)
    await page.keyboard.press('ArrowRight');
  await expect.poll(() => matrixContent(page)).toBe(third);
  await page.locator('.matrix').focus();
  await page.keyboard.press('ArrowDown');
  const shown = await page.locator('.matrix-frame + .status-line').innerText();
  const pair = /^CPUs? (\d+)(?: and (\d+))?/.exec(shown)!;
  const expected = [pair[1]!, pair[2] ?? pair[1]!];
  expect((await linkedCpus(page)).sort()).toEqual(
    [...new Set(expected)].sort(),
  );
  await page.keyboard.press('Tab');
  expect(await linkedCpus(page)).toEqual([]);
});

test('a contradicted machine is drawn as reported and as measured, with hatched differences', async () => {
  const { page } = await open(writeContradictedReport(), { width: 1280 });
  const sides = page.locator('.drawing .side');
  await sides.first().waitFor();
  expect(await sides.locator('h3').allInnerTexts()).toEqual([
    'As reported',
    'As measured',
  ]);
  // Eight cores and one cache are reported, four cores and two caches exist.
  const kinds = (side: number, kind: string): Promise<number> =>
    sides.nth(side).locator(`.unit.${kind}`).count();
  expect([await kinds(0, 'core'), await kinds(0, 'llc')]).toEqual([8, 1]);
  expect([await kinds(1, 'core'), await kinds(1, 'llc')]).toEqual([4, 2]);
  expect(await sides.nth(0).locator('.differs').count()).toBe(10);
  expect(await sides.nth(1).locator('.differs').count()).toBe(6);
  await page.locator('.drawing [data-cpu="2"]').first().hover();
  expect(await linkedCpus(page)).toEqual(['2', '2']);
  await page.getByLabel('Units').selectOption('measured');
  expect(await sides.count()).toBe(1);
  expect(await page.locator('.drawing [tabindex="0"]').count()).toBe(1);
});

test('an agreeing machine is drawn once, and its matrix has two scales', async () => {
  const { page } = await open(writeAgreeingReport(), { width: 1280 });
  await page.locator('.drawing .cpu').first().waitFor();
  expect(await page.locator('.drawing .side').count()).toBe(1);
  expect(await page.locator('.differs').count()).toBe(0);
  expect(await page.getByLabel('Units').count()).toBe(0);
  const logarithmic = await matrixContent(page);
  await page.getByLabel('Scale').selectOption('linear');
  await expect.poll(() => matrixContent(page)).not.toBe(logarithmic);
  await page.getByLabel('Scale').selectOption('log');
  await expect.poll(() => matrixContent(page)).toBe(logarithmic);
});

test('a small matrix is drawn as vectors, a large one on a canvas', async () => {
  const small = await open(writeAgreeingReport(), { width: 1280 });
  const figures = small.page.locator('.matrix [aria-label="text"] text');
  await figures.first().waitFor();
  // Each pair twice, no CPU with itself.
  expect(await figures.count()).toBe(16 * 15);
  expect(await small.page.locator('.matrix canvas').count()).toBe(0);
  const large = await open(
    writeAgreeingReport('sim:package:2 l3:4 core:5 pu:2'),
  );
  await large.page.locator('.matrix canvas').waitFor();
  await large.page.locator('.matrix').focus();
  await large.page.keyboard.press('ArrowRight');
  expect(
    await large.page.locator('.matrix-frame + .status-line').innerText(),
  ).toMatch(/^CPUs \d+ and \d+: [\d.]+\sns/);
});

test('machine and matrix are saved as they are drawn, also from a canvas', async () => {
  for (const [report, parts] of [
    [writeContradictedReport(), ['as reported', 'as measured', 'From ']],
    [
      writeAgreeingReport('sim:package:2 l3:4 core:5 pu:2'),
      ['<image ', '80 CPUs'],
    ],
  ] as const) {
    const { page } = await open(report, { width: 1280 });
    await page.locator('.matrix svg, .matrix canvas').first().waitFor();
    const saved = async (kind: string, what: string): Promise<Buffer> => {
      const name = `Save as ${kind}: ${what}`;
      const button = page.getByRole('button', { name });
      await page
        .locator('details.save')
        .filter({ has: page.locator(`[aria-label="${name}"]`) })
        .evaluate((menu) => menu.setAttribute('open', ''));
      const coming = page.waitForEvent('download');
      await button.click();
      return readFileSync(await (await coming).path());
    };
    const drawings = [
      (await saved('SVG', 'The machine')).toString(),
      (await saved('SVG', 'Latency between CPUs')).toString(),
    ];
    drawings.forEach((drawing, at) =>
      writeFileSync(
        path.join(OUTPUT, `machine-${parts.length}-${at}.svg`),
        drawing,
      ),
    );
    for (const part of parts) expect(drawings.join('')).toContain(part);
    expect(drawings.join('')).not.toContain('var(');
    // No style sheet comes along: every CPU has its own colours.
    const boxes = drawings[0]!.match(/<g class="cpu[^>]*><rect [^>]*>/g)!;
    expect(boxes.length).toBeGreaterThan(7);
    expect(boxes.every((box) => / fill="rgb.* stroke="/.test(box))).toBe(true);
    const png = await saved('PNG', 'The machine');
    expect(png.subarray(1, 4).toString()).toBe('PNG');
  }
});
