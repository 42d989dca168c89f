// Reports of experiments, opened from disk: they show what the records contain.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';

import { type Opened, open, useBrowser } from './browser';
import { joinUnits } from '../src/format';
import { splitVerdict } from '../src/method';
import { makeRecord, writePageOfRecord, writeReport } from './records';
import { pageWidth } from './view-checks';
import { Workspace, OUTPUT, PINWISE, SHARE } from './pinwise';

useBrowser();

interface ComparisonRecord {
  id: string;
  best: string;
  again: string;
  verdict: { sentence: string; commands: { line: string }[] };
  arms: { name: string; runs: unknown[] }[];
}

let shared: { report: string; record: ComparisonRecord } | undefined;

/** A comparison that the tests share. */
function sharedComparison(): { report: string; record: ComparisonRecord } {
  const workspace = new Workspace();
  shared ??= { report: workspace.comparison(), record: workspace.newest() };
  return shared;
}

const findChart = (page: Page, name: string): Locator =>
  page.locator(`figure.chart[data-chart^="${name}"]`);

/** Runs a command copied from the page, and checks that its record has the same verdict. */
function expectSameVerdictAgain(workspace: Workspace, command: string): void {
  workspace.file(
    'again.sh',
    `pinwise() { '${PINWISE}' --store '${workspace.store}' -q "$@"; }\n${command} >/dev/null`,
  );
  execFileSync('sh', ['again.sh'], { cwd: workspace.folder });
  const verdicts = workspace.history().map(({ verdict }) => verdict);
  expect(verdicts.length).toBe(2);
  expect(verdicts[0]).toBe(verdicts[1]);
}

test('the verdict, and as many dots as the record has runs', async () => {
  const { report, record } = sharedComparison();
  const { page } = await open(report);
  expect(await page.locator('p.verdict').textContent()).toBe(
    joinUnits(record.verdict.sentence),
  );
  const runs = record.arms.reduce((sum, arm) => sum + arm.runs.length, 0);
  const dots = findChart(page, 'Every run');
  expect(await dots.getByRole('img').getAttribute('aria-label')).toContain(
    `${runs} runs of ${record.arms.length} arms`,
  );
  const rows = await dots
    .locator('tbody tr')
    .evaluateAll((all) =>
      all.map((row) =>
        [...row.children].slice(0, 2).map((cell) => cell.textContent),
      ),
    );
  expect(new Map(rows as [string, string][])).toEqual(
    new Map(record.arms.map((arm) => [arm.name, String(arm.runs.length)])),
  );
  // A dot for each run, and one for the median of each arm.
  expect(await dots.locator('[aria-label="dot"] path').count()).toBe(
    runs + record.arms.length,
  );
});

test('the command of the best placement is copied', async () => {
  const { report, record } = sharedComparison();
  const { page } = await open(report);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('tab', { name: 'pinwise' }).click();
  await page
    .getByRole('button', { name: 'Copy the command: Run it with pinwise' })
    .click();
  await page.getByText('Copied').waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toBe(`pinwise run --place ${record.best} -- prog`);
});

test('the copied experiment gives the same verdict again', async () => {
  const workspace = new Workspace();
  // If pinwise chooses the places, a run to count threads shifts the simulated machine's noise.
  const report = workspace.comparison(
    '--place',
    'os-default',
    '--place',
    'one-llc',
  );
  const { page } = await open(report);
  const command = await page.locator('.copy-panel code').last().textContent();
  expect(command).toMatch(/^pinwise --machine sim:share.toml compare /);
  expectSameVerdictAgain(workspace, command!);
});

test('the table of a chart opens by keyboard', async () => {
  const { report } = sharedComparison();
  const { page } = await open(report);
  const figures = findChart(page, 'Change against os-default').locator(
    '.figures',
  );
  expect(await figures.locator('table').isVisible()).toBe(false);
  await figures.locator('summary').focus();
  await page.keyboard.press('Enter');
  expect(await figures.locator('table').isVisible()).toBe(true);
  expect(await figures.locator('tbody').textContent()).toContain('faster');
});

test('a row shows its figures, by pointer and by keyboard', async () => {
  const { report, record } = sharedComparison();
  const { page } = await open(report);
  const figure = findChart(page, 'Change against os-default');
  const stage = figure.locator('.stage');
  const tip = stage.locator('.tip');
  await stage.locator('svg').first().waitFor();
  const box = (await stage.boundingBox())!;
  // The first row, far from its point.
  await page.mouse.move(box.x + box.width - 20, box.y + 40);
  expect(await tip.textContent()).toContain(record.best);
  await page.mouse.move(0, 0);
  expect(await tip.isVisible()).toBe(false);
  await stage.focus();
  await page.keyboard.press('Home');
  expect(await tip.isVisible()).toBe(true);
  expect(await tip.textContent()).toContain(record.best);
  expect(await figure.locator('[role=status]').textContent()).toBe(
    await tip.textContent(),
  );
  await page.keyboard.press('End');
  expect(await tip.textContent()).toContain('slower');
  await page.keyboard.press('Escape');
  expect(await tip.isVisible()).toBe(false);
});

test('axes have titles, and text is large enough', async () => {
  const { report } = sharedComparison();
  const { page } = await open(report);
  const figures = page.locator('figure.chart', { has: page.locator('.stage') });
  await figures.locator('svg').first().waitFor();
  for (const figure of await figures.all()) {
    for (const axis of ['x', 'y'])
      expect(
        await figure
          .locator(`[aria-label="${axis}-axis label"]`)
          .first()
          .textContent(),
      ).toMatch(/\w/);
    const sizes = await figure
      .locator('.stage text')
      .evaluateAll((all) =>
        all.map((one) => parseFloat(getComputedStyle(one).fontSize)),
      );
    expect(sizes.length).toBeGreaterThan(3);
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(12);
  }
});

test('a series of the legend is hidden and shown', async () => {
  const { report } = sharedComparison();
  const { page } = await open(report);
  const figure = findChart(page, 'Runs in time order');
  const key = figure.getByRole('button', { name: 'running median' });
  const lines = figure.locator('[aria-label="line"] path');
  await key.waitFor();
  const before = await lines.count();
  await key.press('Enter');
  expect(await key.getAttribute('aria-pressed')).toBe('false');
  expect(await lines.count()).toBe(before - 1);
  await key.press('Enter');
  expect(await lines.count()).toBe(before);
});

test('a chart is saved as SVG, PNG and CSV', async () => {
  const { report, record } = sharedComparison();
  const { page } = await open(report);
  const figure = findChart(page, 'Every run');
  await figure.locator('svg').first().waitFor();
  await figure.getByText('Save', { exact: true }).click();
  const saved = async (kind: string): Promise<Buffer> => {
    const coming = page.waitForEvent('download');
    await figure.getByRole('button', { name: `Save as ${kind}` }).click();
    const file = await coming;
    expect(file.suggestedFilename()).toBe(
      `pinwise-every-run.${kind.toLowerCase()}`,
    );
    return readFileSync(await file.path());
  };
  const runs = record.arms.reduce((sum, arm) => sum + arm.runs.length, 0);
  const csv = (await saved('CSV')).toString().trim().split('\r\n');
  expect(csv.length).toBe(1 + runs);
  const drawing = (await saved('SVG')).toString();
  writeFileSync(path.join(OUTPUT, 'every-run.svg'), drawing);
  expect(drawing).toMatch(/^<svg /);
  expect(drawing).toContain('one-llc');
  expect(drawing).not.toContain('var(');
  const picture = await saved('PNG');
  writeFileSync(path.join(OUTPUT, 'every-run.png'), picture);
  expect(picture.subarray(1, 4).toString()).toBe('PNG');
  // Twice the pixels of the page.
  expect(picture.readUInt32BE(16)).toBe(
    2 * (await figure.locator('.stage').evaluate((stage) => stage.clientWidth)),
  );
});

test('the first screen is the answer', async () => {
  const { report, record } = sharedComparison();
  const { page } = await open(report, {
    width: 1280,
    height: 800,
  });
  const ratio = findChart(page, 'Change against').locator('.stage svg').first();
  await ratio.waitFor();
  const bottomOf = (selector: string): Promise<number> =>
    page
      .locator(selector)
      .first()
      .evaluate((one) => one.getBoundingClientRect().bottom);
  for (const part of ['.advised', '.where', '.answer .stage', '.copy-block'])
    expect(await bottomOf(part), part).toBeLessThan(800);
  const advice = page.locator('.advised');
  expect(await advice.locator('.use + dd').textContent()).toContain(
    record.best,
  );
  expect(await advice.locator('button.arm').count()).toBe(record.arms.length);
  expect(await page.locator('.where svg .used').count()).toBe(4);
  await advice.getByRole('button', { name: 'compact*2' }).click();
  expect(await page.locator('.where').textContent()).toContain('CPUs 0-1');
  expect(await page.locator('.where svg .used').count()).toBe(2);
});

test('the copy block has the commands of the record, a tab each', async () => {
  const { report, record } = sharedComparison();
  const { page } = await open(report);
  const shown = page.locator('.copy-panel:visible code');
  const commands: (string | null)[] = [];
  await page.getByRole('tab').first().focus();
  for (const tab of await page.getByRole('tab').all()) {
    expect(await tab.getAttribute('aria-selected')).toBe('true');
    commands.push(await shown.textContent());
    await page.keyboard.press('ArrowRight');
  }
  expect(commands).toEqual([
    ...record.verdict.commands.map((command) => command.line),
    record.again,
  ]);
  await page.emulateMedia({ media: 'print' });
  expect(await shown.count()).toBe(commands.length);
});

test('the winner is drawn on the machine if its topology is in the report', async () => {
  const workspace = new Workspace();
  workspace.comparison();
  const { id } = workspace.history()[0]!;
  workspace.run('-q --machine sim:share.toml topology --measure');
  const report = workspace.report(id, 'last');
  const { page } = await open(`file://${report}#/record/${id}`);
  const drawn = page.locator('.small-machine');
  await drawn.waitFor();
  expect(await drawn.locator('.llc').count()).toBe(2);
  expect(await drawn.locator('.used').count()).toBe(4);
});

test('a wide window prints whole charts, as vectors', async () => {
  const { report } = sharedComparison();
  const { page } = await open(report, { width: 1900 });
  const svg = findChart(page, 'Every run').locator('.stage svg').first();
  await svg.waitFor();
  const width = (): Promise<number> =>
    svg.evaluate((one) => Number(one.getAttribute('width')));
  const onScreen = await width();
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  expect(await width()).toBeLessThan(700);
  expect(await svg.getAttribute('viewBox')).toMatch(/^0 0 6\d\d /);
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  expect(await width()).toBe(onScreen);
});

test('an arm is highlighted over time', async () => {
  const { report } = sharedComparison();
  const { page } = await open(report);
  const stage = findChart(page, 'Runs in time order').locator('.stage');
  await stage.locator('svg').first().waitFor();
  const alike = await stage.screenshot();
  await page.getByLabel('highlight the runs of').selectOption('one-llc');
  expect((await stage.screenshot()).equals(alike)).toBe(false);
});

test('dark mode changes the colours of charts', async () => {
  const { report } = sharedComparison();
  const { page } = await open(report);
  const stage = findChart(page, 'Every run').locator('.stage');
  await stage.locator('svg').first().waitFor();
  const light = await stage.screenshot();
  const background = (): Promise<string> =>
    page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await background();
  await page.getByLabel('Theme').selectOption('dark');
  expect(await background()).not.toBe(before);
  expect((await stage.screenshot()).equals(light)).toBe(false);
});

test('a long title is cut to two lines until it is unfolded', async () => {
  const { page } = await open(
    writePageOfRecord(makeRecord('comparison')!, 'prog -t 1 | '.repeat(20)),
    { width: 390 },
  );
  const height = (): Promise<number> =>
    page.locator('h1').evaluate((one) => one.clientHeight);
  const cut = await height();
  await page.getByRole('button', { name: 'Unfold' }).click();
  expect(await height()).toBeGreaterThan(cut * 2);
});

test('an undecided experiment is not advised to be done again', async () => {
  const record = makeRecord('comparison')!;
  const verdict = { kind: 'undecided', sentence: 'Undecided: a. More.' };
  const { page } = await open(
    writePageOfRecord({ ...record, again: 'pinwise again', verdict }),
  );
  expect(await page.locator('p.verdict').textContent()).toBe(verdict.sentence);
  expect(await page.getByText('pinwise again').isVisible()).toBe(false);
  await page.getByText('Do the experiment again').click();
  expect(await page.getByText('pinwise again').isVisible()).toBe(true);
});

test('an experiment that was cut off shows its runs and no verdict', async () => {
  const { record } = sharedComparison();
  const sentence = 'No verdict yet: the experiment is running.';
  const cut = {
    ...record,
    stopped: null,
    contrasts: [],
    best: null,
    verdict: { ...record.verdict, sentence },
    arms: record.arms.map((arm) => ({
      ...arm,
      estimate: null,
      runs: arm.runs.slice(0, 5),
    })),
  };
  const workspace = new Workspace();
  const file = workspace.file('cut.json', JSON.stringify(cut));
  const { page } = await open(workspace.report(file));
  expect(await page.locator('p.verdict').textContent()).toBe(sentence);
  expect(await page.locator('.headline').count()).toBe(0);
  expect(await findChart(page, 'Change against').count()).toBe(0);
  expect(
    await findChart(page, 'Every run')
      .locator('[aria-label="dot"] path')
      .count(),
  ).toBe((5 + 1) * record.arms.length);
});

test('a search: its verdict, and candidates sorted', async () => {
  const workspace = new Workspace();
  workspace.file('share.toml', SHARE);
  workspace.run(
    '--machine sim:share.toml search --seed 1 --threads 2 --max-runs 30 -- prog',
  );
  const record = workspace.newest<{
    verdict: { sentence: string };
    predictions: { arm: string }[];
  }>();
  const { page } = await open(workspace.report(record.id));
  expect(await page.locator('p.verdict').textContent()).toBe(
    joinUnits(splitVerdict(record.verdict.sentence)[0]),
  );
  const tools = page.locator('.copy-block').first().getByRole('tab');
  expect(await tools.allTextContents()).toEqual([
    'taskset',
    'pinwise',
    'systemd',
    'Slurm',
    'Docker',
    'OpenMP',
  ]);
  const rows = page.locator('.sortable tbody tr');
  expect(await rows.count()).toBe(record.predictions.length);
  // So few rows are seen at a glance.
  const filter = page.getByLabel('Narrow: Every candidate');
  expect(await filter.isVisible()).toBe(false);
  await page.getByRole('button', { name: 'Placement' }).press('Enter');
  const names = await rows.locator('th').allTextContents();
  const plain = names.map((name) => name.replace(/^[★☆] /, ''));
  expect(plain).toEqual(
    [...plain].sort((a, b) => a.localeCompare(b, 'en', { numeric: true })),
  );
  const command = await page.locator('.commands code').last().textContent();
  expect(command).toMatch(/^pinwise --machine sim:share.toml search /);
  expectSameVerdictAgain(workspace, command!);
});

test('predictions of spinning: algorithms are chosen by keyboard, cliffs are named', async () => {
  const workspace = new Workspace();
  const file = workspace.file(
    'spin.json',
    workspace.run(
      'spin predict --from broadwell --to skylake-sp --cpu-count 1..32 --format json',
    ),
  );
  const { page } = await open(workspace.report(file), {
    width: 360,
    height: 740,
  });
  expect(await page.locator('p.verdict').textContent()).toContain(
    'netfx_awarelock',
  );
  const curve = findChart(page, 'Spin before parking over the number of CPUs');
  expect(
    await findChart(page, 'Cliffs')
      .locator('tbody tr', { hasText: 'netfx_awarelock' })
      .textContent(),
  ).toContain('2, 6, 17');
  const shown = (): Promise<number> => curve.locator('tbody tr').count();
  const before = await shown();
  await page.getByText('Choose algorithms').click();
  await page.getByRole('checkbox', { name: 'nginx_spinlock' }).press(' ');
  expect(await shown()).toBe(before + 2);
  expect(await pageWidth(page)).toBeLessThanOrEqual(360);
});

test('runs that failed are a warning beside the verdict', async () => {
  const finding = {
    check: 'exit_statuses',
    severity: 'warning',
    sentence: 'All 16 runs exited with status 1.',
    advice: 'The command may have failed: run it once and read its output.',
  };
  const record = { ...makeRecord('comparison')!, findings: [finding] };
  const { page } = await open(writeReport([record]));
  const warning = page.locator('.answer .findings .warning');
  expect(await warning.textContent()).toMatch(
    /^warning All \d+ runs exited with status 1\. The command may have failed/,
  );
});

test('a joint plan begins with its programs, once it is decided', async () => {
  const program = {
    name: 'web',
    command: ['web'],
    load: null,
    metric: { name: 'wall', unit: 's', better: 'lower' },
    weight: 1,
    limit: null,
    placement: 'cpu:0',
    cpus: '0',
    default_value: 2,
    placed_value: 1,
    change: '−50.0 %',
    default_limit: null,
    placed_limit: null,
  };
  const joint = { programs: [program], plans: 4, rounds: 24, tried: [] };
  const made = makeRecord('comparison')!;
  const openWith = (kind: string): Promise<Opened> => {
    const verdict = { ...(made['verdict'] as object), kind };
    return open(writePageOfRecord({ ...made, joint, verdict }));
  };
  const { page } = await openWith('best');
  await page.locator('.stage svg').first().waitFor();
  const titles = page.locator('article > div :is(h2, figcaption strong)');
  expect(await titles.first().textContent()).toMatch(/^Programs/);
  expect(await page.locator('.advised').count()).toBe(0);
  // Of a few programs, what happened to each is seen at once.
  const fold = { hasText: 'Each program' };
  const few = await openWith('undecided');
  expect(await few.page.locator('details', fold).count()).toBe(0);
  joint.programs = [1, 2, 3, 4].map(() => program);
  const many = await openWith('undecided');
  const programs = many.page.locator('details', fold);
  expect(await programs.locator('table').isVisible()).toBe(false);
});
