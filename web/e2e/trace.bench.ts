// How fast a trace of a million slices is drawn: `npm run bench`, started by
// `cargo lab page`. It prints figures and checks none.

import { execFileSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';

import { open, useBrowser } from './browser';
import { printTimes } from './figures';
import { fakeTrace } from './fake-trace';
import { OUTPUT, PINWISE } from './pinwise';

useBrowser();

const SLICES = Number(process.env['SLICES'] ?? 1_000_000);
/** The number of spans with shares of other programs. */
const SPANS = 500;

/** The report is opened this many times. */
const ROUNDS = 9;

/** A task of the page of 50 ms and more. */
interface Task {
  start: number;
  duration: number;
}

/** Collects the page's long tasks. */
function watchTasks(): void {
  const tasks: Task[] = [];
  Object.assign(window, { tasks });
  new PerformanceObserver((list) =>
    tasks.push(
      ...list
        .getEntries()
        .map(({ startTime, duration }) => ({ start: startTime, duration })),
    ),
  ).observe({ type: 'longtask', buffered: true });
}

test('a million slices', { timeout: 600_000 }, async () => {
  const report = path.join(OUTPUT, 'million.html');
  const made = fakeTrace({ slices: SLICES, cpus: 32, threads: 96 });
  const timeline = made['timeline'] as Record<string, unknown>;
  timeline['span_s'] = Number(made['elapsed_s']) / SPANS;
  timeline['spans'] = Array.from({ length: 32 }, (_, cpu) => ({
    cpu,
    own: Array.from({ length: SPANS }, () => 0.5),
    foreign: Array.from({ length: SPANS }, (_, at) => (at % 8) / 16),
  }));
  const record = path.join(OUTPUT, 'million.json');
  writeFileSync(record, JSON.stringify(made));
  const words = ['--store', 'none', 'record', 'report', record, '-o', report];
  execFileSync(PINWISE, words, { stdio: 'ignore' });
  console.log(`report: ${(statSync(report).size / 1e6).toFixed(1)} MB`);
  const answers: number[] = [];
  const firsts: number[] = [];
  const loading: number[] = [0];
  for (let round = 0; round < ROUNDS; round += 1) {
    // By the page's clock, as for all views: opening a tab is not part of the time.
    const opened = await open(report, { before: watchTasks });
    await opened.page.waitForFunction(
      () =>
        [...document.querySelectorAll('article h2')].some((title) =>
          title.textContent?.includes('Figures'),
        ),
      undefined,
      { polling: 'raf' },
    );
    // It is painted by the frame after the one in which it exists.
    const answered = await opened.page.evaluate(
      () =>
        new Promise<number>((done) =>
          requestAnimationFrame(() => done(performance.now())),
        ),
    );
    answers.push(answered);
    const drawn = await opened.page.waitForFunction(
      () =>
        document.querySelector('canvas[data-frames]') !== null &&
        performance.now(),
      undefined,
      { polling: 'raf' },
    );
    firsts.push(Number(await drawn.jsonValue()));
    await opened.page.waitForTimeout(1_000);
    const tasks = await opened.page.evaluate(
      () => (window as unknown as { tasks: Task[] }).tasks,
    );
    loading.push(
      ...tasks
        .filter(({ start }) => start > answered)
        .map(({ duration }) => duration),
    );
    await opened.close();
  }
  const slices = `trace, ${SLICES.toLocaleString('en-US')} slices`;
  printTimes(
    `${slices}: from the address to the answer, figures and findings`,
    answers,
  );
  printTimes(`${slices}: from then on, tasks of 50 ms and more`, loading);
  printTimes(
    `${slices}: from the address to the first frame of the timeline`,
    firsts,
  );
  const { page } = await open(report);
  const canvas = page.locator('canvas[data-frames]');
  await canvas.waitFor();
  await page.evaluate(() => {
    const tasks: number[] = [];
    Object.assign(window, { tasks });
    new PerformanceObserver((list) =>
      tasks.push(...list.getEntries().map((entry) => entry.duration)),
    ).observe({ type: 'longtask' });
  });
  for (const rows of ['cpus', 'threads']) {
    await page.getByLabel('Rows', { exact: false }).first().selectOption(rows);
    await canvas.focus();
    const steps = await page.evaluate(
      async (keys: string[]) => {
        const drawn = document.querySelector<HTMLCanvasElement>(
          'canvas[data-frames]',
        )!;
        const frame = (): Promise<number> =>
          new Promise((done) => requestAnimationFrame(done));
        await frame();
        await frame();
        const shown: { paint: number; whole: number }[] = [];
        for (const key of keys) {
          const before = performance.now();
          const frames = drawn.dataset['frames'];
          drawn.dispatchEvent(
            new KeyboardEvent('keydown', {
              key,
              bubbles: true,
              cancelable: true,
            }),
          );
          while (drawn.dataset['frames'] === frames) await frame();
          shown.push({
            paint: Number(drawn.dataset['frameMs']),
            whole: performance.now() - before,
          });
        }
        return shown;
      },
      Array.from({ length: 50 }, (_, step) =>
        step % 10 === 9
          ? 'Home'
          : step % 3 === 2
            ? 'ArrowRight'
            : step % 10 === 8
              ? '-'
              : '+',
      ),
    );
    printTimes(
      `trace, rows are ${rows}, zoom and pan: painting a frame`,
      steps.map((step) => step.paint),
    );
    printTimes(
      `trace, rows are ${rows}, zoom and pan: from the key to the frame`,
      steps.map((step) => step.whole),
    );
  }
  await page.getByRole('button', { name: 'Whole trace' }).click();
  await page.getByRole('button', { name: 'Select what is seen' }).click();
  await page.getByLabel('Colour by').selectOption('cause');
  await page.getByLabel('Find thread').fill('worker-7');
  await page.waitForTimeout(500);
  // The browser tells of tasks of 50 ms and more; 0: there was none.
  const tasks = await page.evaluate(
    () => (window as unknown as { tasks: number[] }).tasks,
  );
  printTimes('trace, after load: tasks of 50 ms and more', [0, ...tasks]);
});
