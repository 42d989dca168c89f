// Traces with so many slices that the rest of the page is shown before them.

import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { fakeTrace } from './fake-trace';
import { writePageOfRecord } from './records';

useBrowser();

const SENTENCE = 'Threads waited for a CPU while others idled.';

interface Timelines {
  packed: { cpus: { bytes: string }[] };
  spans: unknown;
}

function writeLongTrace(
  change: (timeline: Timelines) => void = () => undefined,
) {
  const record = fakeTrace({ slices: 120_000, cpus: 8, threads: 24 });
  record['findings'] = [{ sentence: SENTENCE }];
  change(record['timeline'] as Timelines);
  return writePageOfRecord(record);
}

interface Observed {
  /** The page's text while slices are being read. */
  text?: string;
  hasTimeline?: boolean;
  /** Is it drawn when paper is requested? */
  isPrinted?: boolean;
}

/** Records the page's content while it says that slices are being read. */
function watchReading(): void {
  const seen: Observed = {};
  Object.assign(window, { seen });
  new MutationObserver(() => {
    if (seen.text !== undefined || !document.querySelector('.reading')) return;
    seen.text = document.querySelector('article')!.textContent;
    seen.hasTimeline = document.querySelector('.timeline') !== null;
  }).observe(document, { childList: true, subtree: true });
}

/** Prints while the page says that slices are being read. */
function printEarly(): void {
  const seen: Observed = {};
  Object.assign(window, { seen });
  new MutationObserver(() => {
    if (seen.isPrinted !== undefined || !document.querySelector('.reading'))
      return;
    dispatchEvent(new Event('beforeprint'));
    seen.isPrinted = document.querySelector('canvas[data-frames]') !== null;
    dispatchEvent(new Event('afterprint'));
  }).observe(document, { childList: true, subtree: true });
}

test('the answer is shown before the timeline is read', async () => {
  const { page } = await open(writeLongTrace(), { before: watchReading });
  await page.locator('canvas[data-frames]').waitFor();
  const seen = await page.evaluate(
    () => (window as unknown as { seen: Observed }).seen,
  );
  expect(seen.hasTimeline).toBe(false);
  expect(seen.text).toContain('Reading 120,000 slices …');
  expect(seen.text).toContain(SENTENCE);
  for (const heading of ['Figures', 'Longest waits', 'Threads'])
    expect(seen.text).toContain(heading);
  expect(await page.locator('.reading').count()).toBe(0);
  await page.getByText('Each, with its place in the timeline').click();
  await page
    .getByRole('button', { name: /^Show the wait of/ })
    .first()
    .click();
  await expect
    .poll(() => page.url(), { timeout: 60_000 })
    .toContain('/timeline?from=');
});

test('a print waits for the timeline', async () => {
  const { page } = await open(writeLongTrace(), {
    before: printEarly,
  });
  await page.locator('canvas[data-frames]').waitFor();
  const seen = await page.evaluate(
    () => (window as unknown as { seen: Observed }).seen,
  );
  expect(seen.isPrinted).toBe(true);
  expect(await page.locator('canvas[data-frames]').count()).toBe(1);
});

test('a link to a part of a long trace shows that part', async () => {
  const { page } = await open(writeLongTrace(), {
    hash: '#/record/made/timeline?from=0.01&to=0.02&thread=1003&rows=threads',
  });
  await page.locator('canvas[data-frames]').waitFor();
  const seen = page.locator('figure[data-chart="Timeline"] > .status');
  expect(await seen.innerText()).toMatch(/10\.0000\sms to 20\.0000\sms/);
  expect(await page.locator('.timeline .found').innerText()).toContain(
    'following worker-3',
  );
  const top = await page
    .locator('section[aria-label="Timeline"]')
    .evaluate((section) => section.getBoundingClientRect().top);
  expect(Math.abs(top)).toBeLessThan(200);
});

test('damaged slices are reported, and the rest is shown', async () => {
  const report = writeLongTrace((timeline) => {
    timeline.packed.cpus[3]!.bytes = timeline.packed.cpus[3]!.bytes.slice(8);
  });
  const { page } = await open(report);
  const note = page.locator('section[aria-label="Timeline"] [role="note"]');
  await note.waitFor();
  expect(await note.innerText()).toBe(
    'The timeline is drawn without a part: its slices are damaged or of a newer layout.',
  );
  expect(await page.locator('article').innerText()).toContain(SENTENCE);
});

test('a timeline that cannot be drawn is reported, and the rest is shown', async () => {
  const report = writeLongTrace((timeline) => {
    timeline.spans = { length: 1 };
  });
  const { page } = await open(report);
  const note = page.locator('section[aria-label="Timeline"] [role="note"]');
  await note.waitFor();
  expect(await note.innerText()).toContain('The timeline cannot be drawn: ');
  expect(await page.locator('article').innerText()).toContain(SENTENCE);
});
