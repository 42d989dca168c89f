// How long the report of a large fleet takes to be seen, and the view of a
// store that holds ten thousand nodes; `npm run bench`. It prints figures and
// judges none of them.

import { statSync } from 'node:fs';
import { test } from 'vitest';

import { open, useBrowser } from './browser';
import { tell } from './figures';
import { fakeReport } from './fake-fleet';
import { Bench } from './pinwise';
import { reportOf } from './records';
import { Site } from './site';

useBrowser();

const NODES = 10_000;
const REPEATS = 9;

/** Milliseconds from the address until the view is drawn. */
async function views(address: string, selector: string): Promise<number[]> {
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
  const report = reportOf([
    fakeReport({
      groups: 3,
      nodes: NODES,
      figures: 50,
      outlying: 400,
      each: 8,
    }),
  ]);
  tell(
    'report of a fleet: from the address to the view',
    await views(`file://${report}`, '.strips .dot'),
  );
  console.log(`report: ${(statSync(report).size / 1e6).toFixed(2)} MB`);
});

test('the site of a store with ten thousand nodes', async () => {
  const bench = new Bench();
  bench.run('fleet simulate --nodes', `${NODES}`, '--seed', '1');
  const site = await Site.start(bench);
  tell(
    'view of all fleets',
    await views(`${site.address}#/fleet`, 'main table'),
  );
  tell(
    'a node',
    await views(
      `${site.address}#/record/sim-${NODES}-1.n00001`,
      'article table',
    ),
  );
  tell('the history', await views(`${site.address}#/history`, 'table.records'));
  await site.stop();
});
