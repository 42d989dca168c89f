// The time until the report of a large fleet, and the views of a store with ten
// thousand nodes, are drawn: `npm run bench`. It prints figures and checks none.

import { statSync } from 'node:fs';
import { test } from 'vitest';

import { open, useBrowser } from './browser';
import { printTimes } from './figures';
import { fakeReport } from './fake-fleet';
import { Workspace } from './pinwise';
import { writeReport } from './records';
import { Site } from './site';

useBrowser();

const NODES = 10_000;
const REPEATS = 9;

/** Milliseconds from the address until the view is drawn. */
async function timeViews(address: string, selector: string): Promise<number[]> {
  const found: number[] = [];
  for (let repeat = 0; repeat < REPEATS; repeat += 1) {
    const { page, close } = await open(address);
    const drawn = await page.waitForFunction(
      (wanted) => document.querySelector(wanted) !== null && performance.now(),
      selector,
      { polling: 'raf' },
    );
    found.push(Number(await drawn.jsonValue()));
    await close();
  }
  return found;
}

test('the report of a fleet: 50 figures of 3 groups, 400 outliers in 8 figures each', async () => {
  const report = writeReport([
    fakeReport({
      groups: 3,
      nodes: NODES,
      figures: 50,
      outlying: 400,
      each: 8,
    }),
  ]);
  printTimes(
    'report of a fleet: from the address to the view',
    await timeViews(`file://${report}`, '.strips .dot'),
  );
  console.log(`report: ${(statSync(report).size / 1e6).toFixed(2)} MB`);
});

test('the site of a store with ten thousand nodes', async () => {
  const workspace = new Workspace();
  workspace.run('fleet simulate --nodes', `${NODES}`, '--seed', '1');
  const site = await Site.start(workspace);
  printTimes(
    'view of all fleets',
    await timeViews(`${site.address}#/fleet`, 'main table'),
  );
  printTimes(
    'a node',
    await timeViews(
      `${site.address}#/record/sim-${NODES}-1.n00001`,
      'article table',
    ),
  );
  printTimes(
    'the history',
    await timeViews(`${site.address}#/history`, 'table.records'),
  );
  await site.stop();
});
