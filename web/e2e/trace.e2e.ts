// Traces and profiles, as the program writes them, in a browser.

import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';

import { type OpenOptions, open, useBrowser } from './browser';
import { pageWidth } from './view-checks';
import { fakeTrace } from './fake-trace';
import { Workspace } from './pinwise';
import { writePageOfRecord } from './records';

useBrowser();

/** A text of ftrace: two threads take turns on CPU 0, one moves to CPU 1. */
function ftraceText(): string {
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

function writeTraceReport(): string {
  const workspace = new Workspace();
  const file = workspace.file('small.txt', ftraceText());
  workspace.run(
    '--machine',
    'sim:package:1 core:2 pu:1',
    'trace',
    'import',
    file,
  );
  return workspace.report('last');
}

const cursorText = (page: Page): Promise<string> =>
  page.locator('figure[data-chart="Timeline"] .place').innerText();
const windowText = (page: Page): Promise<string> =>
  page.locator('figure[data-chart="Timeline"] > .status').innerText();

test('a trace is zoomed by keyboard, wheel and selection', async () => {
  const { page, canvas } = await openTrace(writeTraceReport());
  expect(await cursorText(page)).toBe('');
  await canvas.focus();
  expect(await cursorText(page)).toContain('CPU 0');
  const whole = await windowText(page);
  await page.keyboard.press('+');
  const closer = await windowText(page);
  expect(closer).not.toBe(whole);
  await page.keyboard.press('ArrowRight');
  expect(await windowText(page)).not.toBe(closer);
  await page.keyboard.press('Home');
  expect(await windowText(page)).toBe(whole);
  await page.keyboard.press('.');
  const first = await cursorText(page);
  await page.keyboard.press('ArrowDown');
  const second = await cursorText(page);
  expect(first).toContain('CPU 0');
  expect(second).toContain('CPU 1');
  const box = (await canvas.boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.6, box.y + 30);
  await page.mouse.wheel(0, -400);
  await expect.poll(() => windowText(page)).not.toBe(whole);
  await page.getByRole('button', { name: 'Whole trace' }).click();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 30, { steps: 4 });
  await page.mouse.up();
  await page.getByRole('button', { name: 'Zoom to the selection' }).click();
  await expect.poll(() => windowText(page)).not.toBe(whole);
});

/** Writes a page with a trace of many slices. */
const writePackedPage = (cpus = 8): string =>
  writePageOfRecord(fakeTrace({ slices: 30_000, cpus, threads: 24 }));

/** Opens a trace and waits until its timeline is drawn. */
async function openTrace(file: string, look: OpenOptions = {}) {
  const { page } = await open(file, look);
  const canvas = page.locator('canvas[data-frames]');
  await canvas.waitFor();
  return { page, canvas };
}

/** Text of the table of the selection: the caption, and the first row. */
const selectionText = (page: Page): Promise<string> =>
  page.getByRole('region', { name: 'Selection' }).first().innerText();

test('the timeline is directly below the headline and takes 70 % of the height', async () => {
  for (const height of [800, 1080]) {
    const { page, canvas } = await openTrace(writePackedPage(64), {
      width: 1280,
      height,
    });
    const box = (await canvas.boundingBox())!;
    expect(box.height / height).toBeCloseTo(0.7, 1);
    expect(box.y).toBeLessThan(480);
    const before = await page.evaluate(() =>
      [...document.querySelectorAll('main h2')].map((h2) => h2.textContent),
    );
    expect(before[0]).toBe('Timeline');
    const grip = page.getByRole('separator', {
      name: 'Height of the timeline',
    });
    await grip.focus();
    await page.keyboard.press('ArrowDown');
    await expect
      .poll(async () => (await canvas.boundingBox())!.height)
      .toBeCloseTo(box.height + 40, 0);
  }
});

test('a span is selected by drag, by keyboard and by button, with totals of its threads', async () => {
  const { page, canvas } = await openTrace(writeTraceReport());
  await page.getByRole('button', { name: 'Select what is seen' }).click();
  const all = await selectionText(page);
  expect(all).toContain('2 threads');
  expect(all).toMatch(/alpha 11\s+4\.40\sms\s+89\.8\s%/);
  expect(all).toMatch(/beta 12\s+400\sµs/);
  const row = page
    .getByRole('region', { name: 'Selection' })
    .locator('tbody tr');
  expect(await row.first().locator('td').last().innerText()).toBe('1');
  const box = (await canvas.boundingBox())!;
  // From the middle on alpha runs alone, on CPU 1.
  await page.mouse.move(box.x + box.width * 0.6, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 40, { steps: 4 });
  await page.mouse.up();
  await expect.poll(() => selectionText(page)).toContain('1 thread');
  expect(await row.count()).toBe(1);
  expect(await row.first().innerText()).toMatch(/100\s%/);
  await canvas.focus();
  await page.keyboard.press('Escape');
  expect(await page.getByRole('region', { name: 'Selection' }).count()).toBe(0);
  await page.keyboard.press('Shift+ArrowRight');
  await page.keyboard.press('Shift+ArrowRight');
  expect(await selectionText(page)).toContain('1 thread');
  await page.keyboard.press('z');
  await expect.poll(() => windowText(page)).toMatch(/: 196\sµs of 4\.90\sms/);
});

test('a click follows the thread below it, the next click stops that', async () => {
  const { page, canvas } = await openTrace(writeTraceReport());
  const box = (await canvas.boundingBox())!;
  const shown = page.locator('.timeline .found');
  // Alpha is on CPU 1, the second row, from the first fifth on.
  const second = [box.x + box.width * 0.7, box.y + box.height * 0.8] as const;
  await page.mouse.click(...second);
  await expect.poll(() => shown.innerText()).toBe('following alpha 11');
  await page.mouse.click(...second);
  await expect.poll(() => shown.innerText()).toBe('');
  // Nothing runs on CPU 0 any more.
  await page.mouse.click(second[0], box.y + box.height * 0.4);
  expect(await cursorText(page)).toContain('no traced thread');
  expect(await shown.innerText()).toBe('');
});

test('the state is in the address and restored from it', async () => {
  const report = writeTraceReport();
  const first = await openTrace(report);
  expect(new URL(first.page.url()).hash).toBe('');
  await first.page.getByLabel('Find thread').fill('alph');
  await first.page.getByLabel('Find thread').press('Enter');
  await first.page.getByRole('button', { name: 'Zoom in' }).click();
  await first.page.getByRole('button', { name: 'Select what is seen' }).click();
  // The address follows a moment later.
  await expect
    .poll(() => first.page.url())
    .toMatch(
      /#\/record\/[^/]+\/timeline\?from=.*&to=.*&thread=11&find=alph&selected=/,
    );
  const earlier = first.page.url();
  await first.page.getByRole('button', { name: 'Later' }).click();
  await expect.poll(() => first.page.url()).not.toBe(earlier);
  const [address, window, table] = [
    first.page.url(),
    await windowText(first.page),
    await selectionText(first.page),
  ];
  // The button copies the same, even before the address has followed.
  await first.page.evaluate(() => {
    navigator.clipboard.writeText = (text) => {
      document.body.dataset['copied'] = text;
      return Promise.resolve();
    };
  });
  await first.page
    .getByRole('button', { name: 'Copy link: the address of what is shown' })
    .click();
  expect(await first.page.locator('body').getAttribute('data-copied')).toBe(
    address,
  );
  const again = await openTrace(address);
  expect(await windowText(again.page)).toBe(window);
  expect(await selectionText(again.page)).toBe(table);
  expect(await again.page.locator('.timeline .found').innerText()).toBe(
    '1 of 2 threads, following alpha 11',
  );
});

test('a damaged address shows the whole trace', async () => {
  const report = writePackedPage();
  const { page } = await openTrace(report, {
    hash: '#/record/made/timeline?from=x&to=9&thread=77&rows=cores&selected=2',
  });
  expect(await windowText(page)).toBe('');
  expect(await page.locator('.timeline .found').innerText()).toBe('');
});

test('a followed thread keeps its colour, others fade', async () => {
  const { page, canvas } = await openTrace(writePackedPage());
  /** How many strong colours the rows have: faded ones are near the background. */
  const strong = (): Promise<number> =>
    canvas.evaluate((element) => {
      const drawn = element as HTMLCanvasElement;
      const copy = document.createElement('canvas');
      [copy.width, copy.height] = [drawn.width - 160, drawn.height - 24];
      const brush = copy.getContext('2d', { willReadFrequently: true })!;
      brush.drawImage(drawn, -160, -24);
      const { data } = brush.getImageData(0, 0, copy.width, copy.height);
      let count = 0;
      for (let at = 0; at < data.length; at += 4) {
        const parts = [data[at]!, data[at + 1]!, data[at + 2]!];
        if (Math.max(...parts) - Math.min(...parts) > 90) count += 1;
      }
      return count;
    });
  await canvas.focus();
  for (let step = 0; step < 4; step += 1) await page.keyboard.press('+');
  await expect.poll(strong).toBeGreaterThan(2_000);
  const all = await strong();
  await page.keyboard.press('.');
  await page.keyboard.press('Enter');
  const shown = page.locator('.timeline .found');
  await expect.poll(() => shown.innerText()).toMatch(/^following worker-\d+/);
  await expect.poll(strong).toBeLessThan(all / 2);
  await page.keyboard.press('Escape');
  await expect.poll(() => shown.innerText()).toBe('');
  const box = (await canvas.boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.5, box.y + 50);
  await expect
    .poll(() => page.locator('.tip').innerText())
    .toContain(await cursorText(page));
  await page.mouse.move(box.x - 20, box.y - 20);
  expect(await page.locator('.tip').isVisible()).toBe(false);
});

test('other programs are hatched where no traced thread ran', async () => {
  /** Pixels of the rows in the colour of the hatching, #6b7178. */
  const hatched = async (foreign: number[]): Promise<number> => {
    const record = fakeTrace({ slices: 20, cpus: 2, threads: 2 });
    const timeline = record['timeline'] as Record<string, unknown>;
    timeline['span_s'] = record['elapsed_s'];
    timeline['spans'] = [0, 1].map((cpu) => ({ cpu, own: [0], foreign }));
    const { page, canvas } = await openTrace(writePageOfRecord(record));
    const legend = await page.locator('.timeline .legend').innerText();
    expect(legend.includes('other programs')).toBe(foreign.length > 0);
    const many = await canvas.evaluate((element) => {
      const drawn = element as HTMLCanvasElement;
      const brush = drawn.getContext('2d')!;
      const { data } = brush.getImageData(160, 24, drawn.width, drawn.height);
      let count = 0;
      for (let at = 0; at < data.length; at += 4)
        if (data[at] === 0x6b && data[at + 1] === 0x71 && data[at + 2] === 0x78)
          count += 1;
      return count;
    });
    return many;
  };
  const [whole, half] = [await hatched([1]), await hatched([0.5])];
  expect(await hatched([])).toBe(0);
  expect(half).toBeGreaterThan(500);
  expect(half / whole).toBeCloseTo(0.5, 1);
});

test('the strip of the whole trace moves the window, by pointer and keyboard', async () => {
  const { page } = await openTrace(writePackedPage());
  const strip = page.getByRole('slider', { name: 'Part of the trace' });
  await page.getByRole('button', { name: 'Zoom in' }).click();
  const middle = await windowText(page);
  expect(await strip.getAttribute('aria-valuenow')).toBe('50');
  await strip.focus();
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => windowText(page)).not.toBe(middle);
  const box = (await strip.boundingBox())!;
  await page.mouse.click(box.x + box.width - 5, box.y + 10);
  await expect.poll(() => strip.getAttribute('aria-valuenow')).toBe('75');
});

test.each([
  ['cause', 'another allowed CPU idled'],
  ['thread', 'and 18 more'],
  ['cpu', 'queued'],
] as const)(
  'colours by %s are in the address and explained',
  async (by, words) => {
    const { page } = await openTrace(writePackedPage());
    await page.getByLabel('Colour by').selectOption(by);
    await expect.poll(() => page.url()).toContain(`colour=${by}`);
    const zoom = page.getByRole('button', { name: 'Zoom in' });
    for (let times = 0; times < 5; times += 1) await zoom.click();
    const legend = page.locator('.timeline .legend');
    expect(await legend.innerText()).toContain(words);
    expect(
      await page
        .getByLabel('Colour by')
        .locator('option[value=llc]')
        .getAttribute('disabled'),
    ).not.toBeNull();
  },
);

test('the legend names threads only where their colours show', async () => {
  const { page } = await openTrace(writePackedPage());
  const legend = page.locator('.timeline .legend');
  const names = async (): Promise<boolean> =>
    (await legend.innerText()).includes('worker-');
  await expect.poll(names).toBe(false);
  const zoom = page.getByRole('button', { name: 'Zoom in' });
  for (let times = 0; times < 5; times += 1) await zoom.click();
  await expect.poll(names).toBe(true);
  await page.getByRole('button', { name: 'Whole trace' }).click();
  await expect.poll(names).toBe(false);
});

test('slices are coloured by last-level cache with a topology of the machine', async () => {
  const workspace = new Workspace();
  const machine = 'sim:package:1 l3:2 core:1 pu:1';
  const file = workspace.file('small.txt', ftraceText());
  workspace.run('topology --measure --seed 1 --machine', machine);
  workspace.run('trace import', file, '--machine', machine);
  const ids = workspace.history().map(({ id }) => id);
  const { page } = await open(workspace.report(...ids));
  await page.getByRole('link', { name: /trace/ }).first().click();
  await page.locator('canvas[data-frames]').waitFor();
  await page.getByLabel('Colour by').selectOption('llc');
  expect(await page.locator('.timeline .legend').innerText()).toMatch(
    /last-level cache 0\s+last-level cache 1/,
  );
});

test('thread rows tell where a thread came from, and the thread table sorts', async () => {
  const { page, canvas } = await openTrace(writeTraceReport());
  const legend = page.locator('.timeline .legend');
  expect(await legend.innerText()).toContain('alpha 11');
  await page
    .getByLabel('Rows', { exact: false })
    .first()
    .selectOption('threads');
  expect(await legend.innerText()).toMatch(/^\s*CPU 0\s+CPU 1/);
  await canvas.focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('.');
  await expect.poll(() => cursorText(page)).toContain('alpha 11');
  const shown = new Set<string>();
  for (let step = 0; step < 4; step += 1) {
    await page.keyboard.press(',');
    shown.add(await cursorText(page));
  }
  await page.keyboard.press('.');
  await page.keyboard.press('.');
  shown.add(await cursorText(page));
  await page.keyboard.press('.');
  shown.add(await cursorText(page));
  expect(
    [...shown].some((text) =>
      text.includes('it came from CPU 0, another core'),
    ),
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
});

test.each([
  [360, 'light'],
  [360, 'dark'],
  [1100, 'dark'],
] as const)(
  'a packed trace fits %i pixels, %s, and waits are found',
  async (width, colorScheme) => {
    const { page } = await openTrace(writePackedPage(), {
      width,
      colorScheme,
    });
    expect(await pageWidth(page)).toBeLessThanOrEqual(width);
    // One row of controls stands above the picture; on a phone the rest folds.
    const tools = page.locator('.timeline .tools');
    expect((await tools.boundingBox())!.height).toBeLessThan(70);
    const more = page.getByRole('button', { name: 'More', exact: true });
    if (await more.isVisible()) await more.click();
    expect(await page.getByLabel('Find thread').isVisible()).toBe(true);
    await page.getByText('Each, with its place in the timeline').click();
    const row = page
      .getByRole('region', { name: /longest of|Waits, the longest/ })
      .locator('tbody tr')
      .first();
    const [name, waited] = [
      await row.locator('th').innerText(),
      await row.locator('td').first().innerText(),
    ];
    await row.getByRole('button').click();
    await expect.poll(() => cursorText(page)).toContain(`queued on CPU`);
    expect(await cursorText(page)).toContain(name);
    expect(await cursorText(page)).toContain(waited);
  },
);

test('a flame graph is searched, inverted and walked by keyboard', async () => {
  const workspace = new Workspace();
  workspace.run(
    'profile -- sh -c',
    'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done',
  );
  const { page } = await open(workspace.report('last'), { width: 360 });
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
  const invert = figure.getByRole('checkbox', { name: /^Invert/ });
  await invert.focus();
  await page.keyboard.press('Space');
  expect(await line.innerText()).toBe(before);
  expect(page.url()).toMatch(/\/calls\?find=.+&inverted=$/);
  await page.reload();
  expect(await invert.isChecked()).toBe(true);
  expect(await figure.getByRole('searchbox').inputValue()).toBe(
    call.split(' ')[0]!,
  );
  await canvas.focus();
  await page.keyboard.press('ArrowDown');
  expect(await line.innerText()).toContain('in its own code.');
  await page.keyboard.press('ArrowDown');
  expect(await line.innerText()).toContain('in calls from here.');
  await invert.click();
  expect(await line.innerText()).toBe(before);
  const save = figure.locator('details.save');
  await save.locator('summary').click();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    save.getByRole('button', { name: /^Save as SVG/ }).click(),
  ]);
  expect(download.suggestedFilename()).toBe('pinwise-flame-graph.svg');
  const drawing = readFileSync(await download.path(), 'utf8');
  const name = call.split(' ')[0]!;
  expect(drawing).toContain('<title>Flame graph</title>');
  expect(drawing).toContain(`<title>${name}: `);
  await save.locator('summary').click();
  expect(await pageWidth(page)).toBeLessThanOrEqual(360);
});
