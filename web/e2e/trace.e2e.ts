// Traces and profiles, as the program writes them, in a browser.

import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { madeTrace, writeReport } from './made-trace';
import { Bench } from './pinwise';

useBrowser();

const PAGE =
  process.env['PINWISE_PAGE'] ??
  path.join(path.dirname(fileURLToPath(import.meta.url)), '../dist/page.html');

/** A ftrace text: two threads take turns on CPU 0, one moves to CPU 1. */
function ftrace(): string {
  const lines = ['# tracer: nop', '#'];
  const line = (us: number, cpu: number, text: string): void => {
    lines.push(
      `          <idle>-0     [00${cpu}] d..2.   100.${String(us).padStart(6, '0')}: ${text}`,
    );
  };
  const to = (
    us: number,
    cpu: number,
    prev: string,
    state: string,
    next: string,
  ): void =>
    line(
      us,
      cpu,
      `sched_switch: prev_comm=${prev.split(':')[0]} prev_pid=${prev.split(':')[1]} prev_prio=120 prev_state=${state} ==> next_comm=${next.split(':')[0]} next_pid=${next.split(':')[1]} next_prio=120`,
    );
  to(100, 0, 'swapper/0:0', 'R', 'alpha:11');
  to(300, 0, 'alpha:11', 'R', 'beta:12');
  to(700, 0, 'beta:12', 'S', 'alpha:11');
  to(900, 0, 'alpha:11', 'S', 'swapper/0:0');
  line(950, 0, 'sched_wakeup: comm=alpha pid=11 prio=120 target_cpu=001');
  to(1000, 1, 'swapper/1:0', 'R', 'alpha:11');
  to(5000, 1, 'alpha:11', 'S', 'swapper/1:0');
  return `${lines.join('\n')}\n`;
}

function tracePage(): string {
  const bench = new Bench();
  const file = bench.file('small.txt', ftrace());
  const report = path.join(bench.folder, 'trace.html');
  const told = bench.run(
    '--machine',
    'sim:package:1 core:2 pu:1',
    'trace',
    'import',
    file,
  );
  const id = /Record (\S+)\./.exec(told)![1]!;
  bench.run('report', id, '-o', report);
  return report;
}

const place = (page: Page): Promise<string> =>
  page.locator('figure[data-chart="Timeline"] .place').innerText();
const seen = (page: Page): Promise<string> =>
  page.locator('figure[data-chart="Timeline"] > .status').innerText();

test('a trace is zoomed by keyboard, wheel and drag, and says what is seen', async () => {
  const { page, errors, requests, close } = await open(tracePage());
  const canvas = page.locator('canvas[data-frames]');
  await canvas.waitFor();
  await canvas.focus();
  const whole = await seen(page);
  await page.keyboard.press('+');
  const closer = await seen(page);
  expect(closer).not.toBe(whole);
  await page.keyboard.press('ArrowRight');
  expect(await seen(page)).not.toBe(closer);
  await page.keyboard.press('Home');
  expect(await seen(page)).toBe(whole);
  await page.keyboard.press('.');
  const first = await place(page);
  await page.keyboard.press('ArrowDown');
  const second = await place(page);
  expect(first).toContain('CPU 0');
  expect(second).toContain('CPU 1');
  const box = (await canvas.boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.6, box.y + 30);
  await page.mouse.wheel(0, -400);
  await expect.poll(() => seen(page)).not.toBe(whole);
  await page.getByRole('button', { name: 'Whole trace' }).click();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 30, { steps: 4 });
  await page.mouse.up();
  await expect.poll(() => seen(page)).not.toBe(whole);
  expect(errors).toEqual([]);
  expect(requests.filter((address) => !address.startsWith('file:'))).toEqual(
    [],
  );
  await close();
});

test('thread rows tell where a thread came from, and the table of threads sorts', async () => {
  const { page, errors, close } = await open(tracePage());
  const canvas = page.locator('canvas[data-frames]');
  await canvas.waitFor();
  await page
    .getByLabel('Rows', { exact: false })
    .first()
    .selectOption('threads');
  await canvas.focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('.');
  await expect.poll(() => place(page)).toContain('alpha 11');
  const told = new Set<string>();
  for (let step = 0; step < 4; step += 1) {
    await page.keyboard.press(',');
    told.add(await place(page));
  }
  await page.keyboard.press('.');
  await page.keyboard.press('.');
  told.add(await place(page));
  await page.keyboard.press('.');
  told.add(await place(page));
  expect(
    [...told].some((text) => text.includes('it came from CPU 0, another core')),
  ).toBe(true);
  const names = (): Promise<string[]> =>
    page.locator('.sortable tbody th').allInnerTexts();
  await page
    .locator('.sortable thead')
    .getByRole('button', { name: 'Thread' })
    .click();
  const up = await names();
  await page
    .locator('.sortable thead')
    .getByRole('button', { name: 'Thread' })
    .click();
  expect(await names()).toEqual([...up].reverse());
  expect(errors).toEqual([]);
  await close();
});

test.each([
  [360, 'light'],
  [360, 'dark'],
  [1100, 'dark'],
] as const)(
  'a packed trace fits %i pixels, %s, and waits are found',
  async (width, colorScheme) => {
    const report = path.join(new Bench().folder, 'packed.html');
    writeReport(
      PAGE,
      report,
      madeTrace({ slices: 30_000, cpus: 8, threads: 24 }),
    );
    const { page, errors, close } = await open(report, { width, colorScheme });
    await page.locator('canvas[data-frames]').waitFor();
    expect(
      await page.evaluate(() => document.documentElement.scrollWidth),
    ).toBeLessThanOrEqual(width);
    const row = page
      .getByRole('region', { name: /longest of|Waits, the longest/ })
      .locator('tbody tr')
      .first();
    const [name, waited] = [
      await row.locator('th').innerText(),
      await row.locator('td').first().innerText(),
    ];
    await row.getByRole('button').click();
    await expect.poll(() => place(page)).toContain(`queued on CPU`);
    expect(await place(page)).toContain(name);
    expect(await place(page)).toContain(waited);
    expect(errors).toEqual([]);
    await close();
  },
);

test('a flame graph is searched and walked by keyboard', async () => {
  const bench = new Bench();
  const report = path.join(bench.folder, 'profile.html');
  const told = bench.run(
    'profile',
    '--',
    'sh',
    '-c',
    'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done',
  );
  const id = /Record (\S+)\./.exec(told)![1]!;
  bench.run('report', id, '-o', report);
  const { page, errors, close } = await open(report, { width: 360 });
  const figure = page.locator('figure[data-chart="Flame graph"]');
  const canvas = figure.locator('canvas');
  await canvas.focus();
  const line = figure.locator('.place');
  const before = await line.innerText();
  await page.keyboard.press('ArrowDown');
  const call = await line.innerText();
  expect(call).not.toBe(before);
  await page.keyboard.press('Enter');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Home');
  expect(await line.innerText()).toBe(before);
  await figure.getByRole('searchbox').fill(call.split(' ')[0]!);
  await expect
    .poll(() => figure.locator('.tools .status').innerText())
    .toMatch(/\d call.*% of all time/);
  expect(
    await page.evaluate(() => document.documentElement.scrollWidth),
  ).toBeLessThanOrEqual(360);
  expect(errors).toEqual([]);
  await close();
});
