// A node beside its peers.

import { describe, expect, test } from 'vitest';

import { readReport } from '../fleet-report/record';
import type { FleetNode } from '../../records';
import {
  changeRows,
  describeClock,
  nodeOutliers,
  figureRows,
  groupOfNode,
  describeSteps,
  nodeSentence,
} from './shape';

const node = (more: Partial<FleetNode> = {}): FleetNode => ({
  schema: 'pinwise.fleet-node/1',
  id: 'f.n1',
  fleet: 'f',
  node: 'n1',
  host: { cpu_model: 'EPYC', kernel: '6.1' },
  settings: { bios: '2.1', smt: 'off' },
  steps: [
    { name: 'a', state: 'done' },
    { name: 'b', state: 'failed' },
    { name: 'c', state: 'missing' },
  ],
  figures: [
    {
      step: 'a',
      name: 'latency',
      unit: 'ns',
      value: 180,
      low: 170,
      high: 190,
    },
    { step: 'a', name: 'other', unit: '', value: 2, low: null, high: null },
    { step: 'a', name: 'no figure', unit: '', value: null },
  ],
  ...more,
});

const group = (
  name: string,
  identity: Record<string, string>,
): Record<string, unknown> => ({
  name,
  nodes: 4,
  identity,
  figures: [{ step: 'a', name: 'latency', unit: 'ns', nodes: 4, median: 90 }],
});

const report = (outliers: unknown[] = []) =>
  readReport({
    schema: 'pinwise.fleet-report/1',
    id: 'f.report',
    fleet: 'f',
    groups: [
      group('old', { cpu: 'Xeon', bios: '1.0' }),
      group('new', { cpu: 'EPYC', bios: '2.0', kernel: '6.1' }),
    ],
    outliers,
  });

describe('a node', () => {
  test('is in the most similar group, or the one in the report', () => {
    expect(groupOfNode(node(), report())!.name).toBe('new');
    expect(
      groupOfNode(node(), report([{ node: 'n1', group: 0, figure: 'x' }]))!
        .name,
    ).toBe('old');
    expect(
      groupOfNode(node({ host: null, settings: {} }), report()),
    ).toBeNull();
  });

  test('has its figures beside the median of its group', () => {
    const outliers = nodeOutliers(
      node(),
      report([
        { node: 'n1', group: 1, figure: 'a · latency' },
        { node: 'n2', group: 1, figure: 'a · other' },
      ]),
    );
    expect(outliers).toHaveLength(1);
    const rows = figureRows(node(), report().groups[1]!, outliers).map((row) =>
      row.map((cell) => cell.text),
    );
    expect(rows[0]).toEqual([
      'a · latency',
      '180 ns',
      '90.0 ns',
      '+100 %',
      '170 ns to 190 ns',
      'outlier',
    ]);
    expect(rows[1]).toEqual(['a · other', '2.00', '–', '–', '–', '']);
    expect(rows).toHaveLength(2);
    const other = [{ node: 'n1', group: 1, figure: 'a · other' }];
    const [first] = figureRows(
      node(),
      report().groups[1]!,
      report(other).outliers,
    );
    expect(first?.[0]?.text).toBe('a · other');
  });

  test('tells which steps were done, and the offset of its clock', () => {
    expect(describeSteps(node())).toBe(
      '1 of 3 steps done; failed: b; missing: c.',
    );
    const answer = { sentence: 'The wiring is right.', advice: '' };
    expect(nodeSentence(node({ answer }), null)).toBe(answer.sentence);
    expect(nodeSentence(node(), null)).toBe(describeSteps(node()));
    expect(nodeSentence(node({ answer }), [])).toBe(
      'The wiring is right; no anomaly beside its peers.',
    );
    expect(describeClock(4.2)).toBe('4.20 s ahead');
    expect(describeClock(-120)).toBe('120 s behind');
    expect([describeClock(0.3), describeClock(null)]).toEqual(['', '']);
  });
});

test('what a step compared is named with its interval', () => {
  const change = {
    of: 'one-core against os-default',
    change: '+0.3 %',
    interval: '',
    standing: 'undecided',
  };
  const steps = [{ name: 'gzip', changes: [change] }, { name: 'b' }];
  expect(changeRows(node({ steps }))).toEqual([
    ['gzip · one-core against os-default', '+0.3 %', '–', 'undecided'],
  ]);
});
