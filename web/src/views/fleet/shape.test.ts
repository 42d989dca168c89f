// Groups of similar hosts, ratios, outliers.

import { describe, expect, test } from 'vitest';

import { fakeEntry } from '../../fake-entry';
import type { Entry } from '../../source';
import { toFleet, groupName, newestEntries, verdictText } from './shape';

const node = (host: string, value: number, more: Partial<Entry> = {}): Entry =>
  fakeEntry(`${host}-${value}`, {
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
    const fleet = toFleet([...steady, node('n7', 162)]);
    expect(fleet.nodes[0]!.host).toBe('n7');
    expect(verdictText(fleet)).toBe(
      '6 hosts in 1 group of similar machines. Furthest from its peers is n7: memory latency ×1.79 their median.',
    );
  });

  test('changes around zero have no ratio', () => {
    const figure = { name: 'sum', low: null, high: null };
    const change = (host: string, value: number, schema: string): Entry =>
      node(host, value, { schema, figures: [{ ...figure, unit: '%', value }] });
    const gates = [3.5, 1].map((v, at) =>
      change(`n${at}`, v, 'pinwise.gate/1'),
    );
    expect(toFleet(gates).columns).toEqual([]);
    const signed = [-11.3, 1].map((v, at) =>
      change(`n${at}`, v, 'pinwise.topology/1'),
    );
    expect(toFleet(signed).columns).toEqual([]);
  });

  test('says that hosts without peers cannot be compared', () => {
    const other = node('n7', 162, { machine: 'EPYC, shape cd, kernel 6.1' });
    expect(verdictText(toFleet([steady[0]!, other]))).toBe(
      '2 hosts in 2 groups of similar machines: none has a peer to compare with.',
    );
  });

  test('nodes of another shape are not compared', () => {
    const fleet = toFleet([
      ...steady,
      node('n7', 162, { machine: 'EPYC, shape cd, kernel 6.1' }),
    ]);
    const alone = fleet.nodes.find(({ host }) => host === 'n7')!;
    expect([...alone.cells.values()][0]!.ratio).toBeNull();
    expect(fleet.groups.map((group) => group.nodes)).toEqual([5, 1]);
    expect(groupName('EPYC, shape ab, kernel 6.1')).toBe(
      groupName('EPYC, shape ab, kernel 6.9, microcode 0x1'),
    );
    expect(groupName(null)).toBe('machine unknown');
  });

  test('only the newest complete record of a host and question counts', () => {
    const old = node('a', 1, { time: '2025-01-01T00:00:00Z' });
    const cut = node('a', 2, { time: '2027-01-01T00:00:00Z', complete: false });
    expect(
      newestEntries([old, cut, node('a', 3)]).map(
        (entry) => entry.figures[0]!.value,
      ),
    ).toEqual([3]);
  });

  test('figures of only one node have no column, and figures of the same name are kept apart', () => {
    const same = {
      name: 'read',
      unit: 'GB/s',
      value: 1,
      low: null,
      high: null,
    };
    const pair = { figures: [same, { ...same, value: 2 }] };
    const fleet = toFleet([
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

test('hosts of other records are not counted as nodes of fleets', () => {
  const other = node('n7', 162, { machine: 'EPYC, shape cd, kernel 6.1' });
  expect(verdictText(toFleet([steady[0]!, other]), true)).toBe(
    '2 hosts of records other than fleet nodes, in 2 groups of similar machines: none has a peer to compare with.',
  );
});

test('names of groups have no hashes, and differ', () => {
  const other = node('n7', 162, { machine: 'EPYC, shape cd, kernel 6.1' });
  const xeon = node('n8', 162, { machine: 'Xeon, shape ef' });
  expect(
    toFleet([...steady, other, xeon]).groups.map((group) => group.name),
  ).toEqual(['EPYC, topology 1', 'EPYC, topology 2', 'Xeon']);
});
