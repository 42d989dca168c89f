// The time until the report of a large comparison is drawn: `npm run bench`, started by
// `cargo lab page`, which measures how long writing it takes.

import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { printTimes } from './figures';
import { Workspace } from './pinwise';

useBrowser();

const MACHINE = `topology = "package:2 l3:2 core:4 pu:2"
[workload.default]
base_s = 0.5
threads = 4
[noise]
sd = 0.02
`;
const PLACES = [
  'os-default',
  'one-llc',
  'one-core',
  'spread*4',
  'one-package',
  'one-llc:1',
  'one-package:1',
  'cpu:0-2',
  'cpu:0,2,4,6',
  'cpu:0,8',
];
const REPEATS = 15;

test('a comparison of 10 arms and 100 runs each', async () => {
  const workspace = new Workspace();
  workspace.file('ten.toml', MACHINE);
  workspace.run(
    '-q --machine sim:ten.toml compare --seed 1 --max-runs 100 --precision 0.01%',
    ...PLACES.flatMap((place) => ['--place', place]),
    '--',
    'prog',
  );
  const record = workspace.newest<{ arms: { runs: unknown[] }[] }>();
  const report = workspace.report(record.id);
  const views: number[] = [];
  for (let repeat = 0; repeat < REPEATS; repeat += 1) {
    const { page, close } = await open(report);
    const drawn = await page.waitForFunction(
      () => {
        const stages = [...document.querySelectorAll('.stage')].filter(
          (stage) => stage.clientWidth > 0,
        );
        return (
          stages.length > 0 &&
          stages.every((stage) => stage.querySelector('svg')) &&
          performance.now()
        );
      },
      undefined,
      { polling: 'raf' },
    );
    views.push(Number(await drawn.jsonValue()));
    await close();
  }
  const runs = record.arms.reduce((sum, arm) => sum + arm.runs.length, 0);
  printTimes(
    `comparison, ${record.arms.length} arms, ${runs} runs: from the address to all charts drawn`,
    views,
  );
  expect(record.arms.length).toBe(PLACES.length);
});
