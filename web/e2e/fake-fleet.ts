// A synthetic fleet, of sizes and with hostile words that no real cluster here has. fleet.e2e.ts
// tests the records that the program itself writes.

import { readFileSync } from 'node:fs';

import type { Fields } from './records';

/** A small generator with a seed, so that each test has the same fleet. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
}

export interface FleetSize {
  groups: number;
  nodes: number;
  figures: number;
  /** Outliers, in `each` figures. */
  outlying: number;
  each: number;
}

const SMALL: FleetSize = {
  groups: 2,
  nodes: 40,
  figures: 6,
  outlying: 3,
  each: 2,
};

const nodeName = (at: number): string => `n${`${at}`.padStart(5, '0')}`;
const figureName = (at: number): string =>
  at === 0 ? 'memory latency' : `figure ${at}`;

/** The report of a fleet. */
export function fakeReport(size: FleetSize = SMALL): Fields {
  const chance = randomNumbers(7);
  const groups = Array.from({ length: size.groups }, (_, group) => ({
    name: `EPYC ${7000 + group}`,
    nodes: Math.floor(size.nodes / size.groups),
    identity: {
      'cpu model': `EPYC ${7000 + group}`,
      kernel: '6.12.0',
      bios: `2.${group}`,
    },
    figures: Array.from({ length: size.figures }, (_unused, at) => {
      const median = 90 * (1 + at) * (1 + group / 4);
      return {
        step: 'wiring',
        name: figureName(at),
        unit: 'ns',
        nodes: Math.floor(size.nodes / size.groups),
        median,
        spread: 0.03,
        p5: median * 0.95,
        p95: median * 1.05,
        least: median * 0.9,
        greatest: median * 1.9,
      };
    }),
  }));
  const outliers = Array.from({ length: size.outlying }, (_, at) => at).flatMap(
    (at) => makeOutliers(at, size, chance),
  );
  const nodes = [...new Set(outliers.map((outlier) => outlier.node))];
  return {
    schema: 'pinwise.fleet-report/1',
    id: 'made.report',
    fleet: 'made',
    submitted: '2026-11-22T10:00:00Z',
    started: '2026-11-22T11:00:00Z',
    host: 'head',
    tags: ['fleet:made', 'burn-in'],
    asked: size.nodes,
    nodes: size.nodes - 2,
    complete: size.nodes - 3,
    false_discovery_rate: 0.05,
    judged: size.nodes * size.figures,
    groups,
    outliers,
    common: [
      {
        group: 0,
        figures: ['wiring · memory latency'],
        nodes,
        setting: 'numa-nodes-per-package',
        value: '1',
        outliers_with: nodes.length,
        others_with: 1,
        others: groups[0]!.nodes - nodes.length,
        adjusted_p: 0.00001,
        sentence: `All ${nodes.length} outliers have numa-nodes-per-package = 1, and 1 other.`,
      },
    ],
    findings: [
      {
        check: 'missing',
        severity: 'warning',
        weight: 1,
        sentence: 'Two nodes have no record.',
        advice: 'Run pinwise fleet resume made.',
        evidence: {},
      },
    ],
    sentence: `${nodes.length} of ${size.nodes - 2} nodes differ from their peers.`,
  };
}

function makeOutliers(
  at: number,
  size: FleetSize,
  chance: () => number,
): Record<string, unknown>[] {
  const group = at % size.groups;
  const node = nodeName(at * 7 + 3);
  const measured = Array.from({ length: size.each }, (_, figure) => {
    const typical = 90 * (1 + figure) * (1 + group / 4);
    const ratio = chance() < 0.8 ? 1.3 + chance() * 0.6 : 0.6 + chance() * 0.2;
    return {
      node,
      group,
      kind: 'figure',
      figure: `wiring · ${figureName(figure)}`,
      unit: 'ns',
      value: typical * ratio,
      typical,
      ratio,
      z: Math.log(ratio) / 0.03,
      adjusted_p: 1e-6,
      setting: null,
      typical_setting: null,
      record: `made.${node}`,
      sentence: `${node}: ${figureName(figure)} is ${ratio.toFixed(2)} times that of its group.`,
    };
  });
  const setting = {
    node,
    group,
    kind: 'setting',
    figure: 'numa-nodes-per-package',
    unit: '',
    value: null,
    typical: null,
    ratio: null,
    z: null,
    adjusted_p: null,
    setting: '1',
    typical_setting: '4',
    record: `made.${node}`,
    sentence: `${node}: numa-nodes-per-package is 1, its group has 4.`,
  };
  return [...measured, setting];
}

/** Records with fixed contents: a fleet's plan, a node, and a difference of two groups. */
const FIXED = readFileSync(new URL('fake-fleet.json', import.meta.url), 'utf8');
const readFixed = (kind: string): Fields =>
  (JSON.parse(FIXED) as Record<string, Fields>)[kind]!;

export const fakePlan = (): Fields => readFixed('fleet');
export const fakeNode = (): Fields => readFixed('fleet-node');
export const fakeDiff = (): Fields => readFixed('fleet-diff');
