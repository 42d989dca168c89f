// A fleet on the local site, as the program itself writes it: simulated nodes with known faults.

import path from 'node:path';
import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { joinUnits } from '../src/format';
import { splitVerdict } from '../src/method';
import { Workspace, OUTPUT } from './pinwise';
import { Site } from './site';

useBrowser();

const NODES = 400;
const FLEET = `sim-${NODES}-3`;

/** A store with a simulated fleet of 400 nodes. */
function simulateFleet(): Workspace {
  const workspace = new Workspace();
  workspace.run('-q fleet simulate --nodes', `${NODES}`, '--seed', '3');
  return workspace;
}

test('a fleet without a report says how to get one, and none of its nodes is fetched', async () => {
  const site = await Site.start(simulateFleet());
  const { page, requests } = await open(`${site.address}#/fleet`);
  await page.getByRole('heading', { level: 2, name: 'Fleets' }).waitFor();
  expect(await page.locator('.command code').first().textContent()).toBe(
    `pinwise fleet report ${FLEET}`,
  );
  expect(await page.locator('p.verdict').textContent()).toBe(
    `${FLEET} not compared yet.`,
  );
  await page.getByRole('cell', { name: `${NODES} of ${NODES}` }).waitFor();
  const asked = requests
    .map((address) => address.slice(site.address.length))
    .filter((address) => address.startsWith('api/'));
  expect(asked.length).toBeGreaterThan(0);
  expect(
    asked.filter((address) => !address.startsWith('api/records?')),
  ).toEqual([]);
  expect(asked.filter((address) => !/[?&]limit=/.test(address))).toEqual([]);
  await page.getByRole('link', { name: FLEET, exact: true }).click();
  await page
    .getByRole('heading', { level: 2, name: 'What was planted' })
    .waitFor();
  expect(await page.locator('main').textContent()).toContain(
    'This fleet is simulated',
  );
});

test('the page of a node shows its settings and figures', async () => {
  const site = await Site.start(simulateFleet());
  const { page } = await open(`${site.address}#/record/${FLEET}.n001`);
  await page.getByRole('heading', { level: 2, name: 'Figures' }).waitFor();
  expect(await page.locator('h1').textContent()).toBe(
    `node n001 of fleet ${FLEET}`,
  );
  expect(await page.locator('main').textContent()).toMatch(
    /\d+ of \d+ steps done/,
  );
  expect(
    await page.locator('section[aria-label="Figures"] tbody tr').count(),
  ).toBe(20);
  await page.getByText('Its nodes have not been compared yet:').waitFor();
  await page.screenshot({
    path: path.join(OUTPUT, 'fleet-node.png'),
    fullPage: true,
  });
});

interface FleetReport {
  sentence: string;
  groups: { figures: unknown[] }[];
  outliers: { node: string; figure: string; sentence: string }[];
}

/** The same store with the fleet's report, which is also in a file. */
function reportFleet(): {
  workspace: Workspace;
  file: string;
  report: FleetReport;
} {
  const workspace = simulateFleet();
  const file = path.join(workspace.folder, 'fleet.html');
  workspace.run('-q fleet report', FLEET, '-o', file);
  return {
    workspace,
    file,
    report: workspace.json('record show', `${FLEET}.report`) as FleetReport,
  };
}

test('the newest report is first, names outliers, and links to nodes', async () => {
  const { workspace, report } = reportFleet();
  const nodes = [...new Set(report.outliers.map((outlier) => outlier.node))];
  expect(nodes.length).toBeGreaterThan(5);
  const site = await Site.start(workspace);
  const { page, requests } = await open(`${site.address}#/fleet`);
  const result = page.locator(`section a[href="#/record/${FLEET}.report"]`);
  await result.waitFor();
  expect(await page.locator('p.verdict').textContent()).toBe(
    joinUnits(`${FLEET}: ${splitVerdict(report.sentence)[0]}`),
  );
  expect(await page.locator('.command').count()).toBe(0);
  await result.click();
  await page.getByRole('heading', { level: 2, name: 'Outliers' }).waitFor();
  expect(await page.locator('p.verdict').textContent()).toBe(
    joinUnits(splitVerdict(report.sentence)[0]),
  );
  const table = page.locator('.outliers');
  expect(await table.locator('tbody tr').count()).toBe(
    Math.min(20, report.outliers.length),
  );
  expect(await page.locator('details.group').count()).toBe(
    report.groups.length,
  );
  await page.screenshot({
    path: path.join(OUTPUT, 'fleet-report.png'),
    fullPage: true,
  });

  if ((await table.getAttribute('open')) === null)
    await table.getByText('Every anomaly').click();
  await table
    .getByRole('link', { name: nodes[0]!, exact: true })
    .first()
    .click();
  await page
    .getByRole('heading', {
      level: 1,
      name: `node ${nodes[0]} of fleet ${FLEET}`,
    })
    .waitFor();
  await page.getByRole('link', { name: 'The report of its fleet' }).waitFor();
  const outliers = report.outliers
    .filter((outlier) => outlier.node === nodes[0])
    .map((outlier) => joinUnits(outlier.sentence));
  expect(await page.locator('.findings li').allTextContents()).toEqual(
    outliers,
  );
  expect(
    await page.locator('section[aria-label="Figures"] caption').textContent(),
  ).toContain('beside the medians of');
  const loaded = new Set(
    requests
      .map((address) => address.slice(site.address.length))
      .filter((address) => address.startsWith('api/records/')),
  );
  expect([...loaded].sort()).toEqual(
    [`api/records/${FLEET}.${nodes[0]}`, `api/records/${FLEET}.report`].sort(),
  );
});

test('the plan tells how many planted faults the report names', async () => {
  const { workspace, report } = reportFleet();
  const named = new Set(report.outliers.map((outlier) => outlier.node));
  const plan = workspace.json<{
    planted: { node: string }[];
  }>('record show', FLEET);
  const found = plan.planted.filter((fault) => named.has(fault.node)).length;
  const site = await Site.start(workspace);
  const { page } = await open(`${site.address}#/record/${FLEET}`);
  await page
    .getByText(`The report names ${found} of these nodes, and`)
    .waitFor();
  expect(
    await page
      .locator('section[aria-label="What was planted"] tbody tr')
      .count(),
  ).toBe(plan.planted.length);
});

test('a fleet report opens from disk without links to nodes', async () => {
  const { file, report } = reportFleet();
  const { page } = await open(file);
  await page.getByRole('heading', { level: 2, name: 'Outliers' }).waitFor();
  expect(await page.locator('p.verdict').textContent()).toBe(
    joinUnits(splitVerdict(report.sentence)[0]),
  );
  // Nodes are not in the file.
  expect(await page.locator('.outliers a').count()).toBe(0);
});
