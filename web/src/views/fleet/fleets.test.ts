// Fleets of a store, without their nodes.

import { describe, expect, test } from 'vitest';

import { fakeEntry } from '../../fake-entry';
import type { Entry, Filter, Source } from '../../source';
import { listFleets, joinPlansAndReports } from './fleets';

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

  test('are found by two requests, without nodes', async () => {
    const asked: Filter[] = [];
    const list = async (filter: Filter) => {
      asked.push(filter);
      return { records: [], total: 25, hosts: [], schemas: [], tags: [] };
    };
    expect((await listFleets({ list } as unknown as Source)).more).toBe(5);
    expect(asked.map((filter) => filter.schema)).toEqual([
      'pinwise.fleet/1',
      'pinwise.fleet-report/1',
    ]);
    expect(
      asked.every((filter) => filter.limit !== undefined && filter.limit <= 20),
    ).toBe(true);
  });
});
