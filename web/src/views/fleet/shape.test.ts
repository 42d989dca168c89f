// Groups of similar hosts, ratios, outliers.

import { describe, expect, test } from 'vitest';

import { madeEntry } from '../../made-entry';
import type { Entry } from '../../source';
import {
  chancePercent,
  fleetOf,
  groupOf,
  modifiedZ,
  newest,
  Z_LIMIT,
} from './shape';
import { median } from '../../numbers';

const node = (host: string, value: number, more: Partial<Entry> = {}): Entry =>
  madeEntry(`${host}-${value}`, {
    schema: 'pinwise.topology/1',
    host,
    subject: 'topology',
    machine: 'EPYC, shape ab, kernel 6.1',
    figures: [
      { name: 'memory latency', unit: 'ns', value, low: null, high: null },
    ],
    ...more,
  });

const steady = [88, 89, 90, 91, 92].map((value, at) => node(`n${at}`, value));

describe('a fleet', () => {
  test('names the node that stands out, with its ratio', () => {
    const fleet = fleetOf([...steady, node('n7', 162)]);
    expect(fleet.findings.map((finding) => finding.host)).toEqual(['n7']);
    expect(fleet.findings[0]!.sentence).toMatch(
      /^n7: memory latency 1\.79 times the median of its group of 6 \(162 ns against 90\.5 ns; robust z 3\d/,
    );
    expect(fleet.nodes[0]!.host).toBe('n7');
  });

  test('nodes of another shape are no equals', () => {
    const fleet = fleetOf([
      ...steady,
      node('n7', 162, { machine: 'EPYC, shape cd, kernel 6.1' }),
    ]);
    expect(fleet.findings).toEqual([]);
    expect(fleet.groups.map((group) => group.nodes)).toEqual([5, 1]);
    expect(groupOf('EPYC, shape ab, kernel 6.1')).toBe(
      groupOf('EPYC, shape ab, kernel 6.9, microcode 0x1'),
    );
    expect(groupOf(null)).toBe('machine unknown');
  });

  test('groups of fewer than four have ratios and no outliers', () => {
    const fleet = fleetOf([node('a', 90), node('b', 91), node('c', 900)]);
    expect(fleet.findings).toEqual([]);
    const cells = fleet.nodes.map((n) => [...n.cells.values()][0]!);
    expect(cells.map((cell) => cell.z)).toEqual([null, null, null]);
    expect(Math.max(...cells.map((cell) => cell.ratio!))).toBeCloseTo(900 / 91);
  });

  test('only the newest complete record of a host and question counts', () => {
    const old = node('a', 1, { time: '2025-01-01T00:00:00Z' });
    const cut = node('a', 2, { time: '2027-01-01T00:00:00Z', complete: false });
    expect(
      newest([old, cut, node('a', 3)]).map((entry) => entry.figures[0]!.value),
    ).toEqual([3]);
  });

  test('figures of one node alone are no column, and figures of the same name are kept apart', () => {
    const same = {
      name: 'read',
      unit: 'GB/s',
      value: 1,
      low: null,
      high: null,
    };
    const pair = { figures: [same, { ...same, value: 2 }] };
    const fleet = fleetOf([
      node('a', 1, pair),
      node('b', 1, pair),
      node('c', 5),
    ]);
    expect(fleet.columns.map((column) => column.name)).toEqual([
      'read',
      'read (2)',
    ]);
  });
});

describe('statistics', () => {
  test('modified z-scores are those of the definition', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    const z = modifiedZ([1, 2, 3, 4, 100]);
    expect(z[4]).toBeCloseTo(0.6745 * 97);
    expect(z[2]).toBe(0);
    expect(modifiedZ([5, 5, 5, 5])).toEqual([0, 0, 0, 0]);
    expect(modifiedZ([5, 5, 5, 5, 6])[4]).toBeCloseTo(1 / (0.2 * 1.253314));
  });

  test('chance marks as many figures as the page says', () => {
    let seed = 12345;
    const uniform = (): number => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      return (seed + 0.5) / 2 ** 32;
    };
    const normal = (): number =>
      Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
    for (const nodes of [4, 5, 6, 8, 12, 16, 32]) {
      let marked = 0;
      for (let time = 0; time < 4000; time += 1) {
        const scores = modifiedZ(Array.from({ length: nodes }, normal));
        if (scores.some((score) => Math.abs(score) > Z_LIMIT)) marked += 1;
      }
      expect(Math.abs(marked / 40 - chancePercent(nodes))).toBeLessThan(4);
    }
  });
});
