// Fleets of a store, without their nodes.

import { describe, expect, test } from 'vitest';

import { fakeEntry } from '../../fake-entry';
import type { Entry, Filter, Source } from '../../source';
import {
  type KnownFleet,
  fleetsSentence,
  joinPlansAndReports,
  listFleets,
  recordedNodes,
} from './fleets';

const entry = (id: string, kind: string, time: string): Entry =>
  fakeEntry(id, { schema: `pinwise.${kind}/1`, time });

describe('fleets', () => {
  test('are plans with their reports, by the time that is shown', () => {
    const fleets = joinPlansAndReports(
      [entry('a', 'fleet', '2026-01-01'), entry('b', 'fleet', '2026-01-03')],
      [
        entry('a.report', 'fleet-report', '2026-01-04'),
        entry('c.report', 'fleet-report', '2026-01-02'),
      ],
    );
    expect(
      fleets.map((fleet) => [fleet.id, fleet.plan?.id, fleet.report?.id]),
    ).toEqual([
      ['b', 'b', undefined],
      ['c', undefined, 'c.report'],
      ['a', 'a', 'a.report'],
    ]);
  });

  test('are found without loading nodes, which are counted', async () => {
    const asked: Filter[] = [];
    const list = async (filter: Filter) => {
      asked.push(filter);
      const records =
        filter.schema === 'pinwise.fleet/1'
          ? [entry('a', 'fleet', '2026-01-01')]
          : [];
      return { records, total: 25, hosts: [], schemas: [], tags: [] };
    };
    const { known, more } = await listFleets({ list } as unknown as Source);
    expect(more).toBe(5);
    expect(known[0]!.recorded).toBe(25);
    expect(asked.map(({ schema, tag, limit }) => [schema, tag, limit])).toEqual(
      [
        ['pinwise.fleet/1', undefined, 20],
        ['pinwise.fleet-report/1', undefined, 20],
        ['pinwise.fleet-node/1', 'fleet:a', 1],
      ],
    );
  });

  const fleet = (
    id: string,
    verdict: string,
    recorded: number,
  ): KnownFleet => ({
    id,
    plan: { ...entry(id, 'fleet', '2026-01-01'), verdict },
    report: null,
    recorded,
  });
  const judged: KnownFleet = {
    ...fleet('a', '12 nodes requested via slurm', 12),
    report: {
      ...entry('a.report', 'fleet-report', '2026-01-02'),
      verdict: '2 of 12 nodes differ from their peers: n5, n8.',
    },
  };

  test('begin with the newest result and those that have none', () => {
    const [b, c] = [fleet('b', '', 0), fleet('c', '', 0)];
    const result = 'a: 2 of 12 nodes differ from their peers: n5, n8';
    expect(fleetsSentence([judged])).toBe(`${result}.`);
    expect(fleetsSentence([b, judged])).toBe(`${result}; b not compared yet.`);
    expect(fleetsSentence([b, c, judged])).toBe(
      `${result}; 2 fleets not compared yet.`,
    );
    expect(fleetsSentence([b])).toBe('b not compared yet.');
  });

  test('say how many of the requested nodes have a record', () => {
    expect(
      recordedNodes(fleet('a', '12,000 nodes requested via slurm', 1500)),
    ).toBe('1,500 of 12,000');
    expect(recordedNodes(fleet('a', '1 node requested via local', 0))).toBe(
      '0 of 1',
    );
    expect(recordedNodes(fleet('a', 'words of a newer version', 3))).toBe('3');
    expect(recordedNodes({ ...judged, plan: null, recorded: 0 })).toBeNull();
  });
});
