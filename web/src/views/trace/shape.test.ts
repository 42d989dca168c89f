// A trace's timeline and figures, without a canvas.

import { describe, expect, test } from 'vitest';

import { toHead } from '../../table';
import { Bytes, fakeTrace, packSlices } from '../../../e2e/fake-trace';
import { type Slices, decodeSlices, decodeWaits } from './decode';
import {
  type OrderedSlices,
  lanesByCpu,
  lanesByThread,
  findSlice,
  ColumnSums,
} from './lanes';
import type { LowerBound, TraceRecord } from '../../records';
import { describePlace } from './describe';
import { previousCpus, sortByTime } from './order';
import {
  panWindow,
  rowName,
  buildScene,
  roundTicks,
  clampWindow,
  zoomWindow,
} from './scene';
import { finish } from './steps';
import * as shape from './shape';

/** Thread 7 runs on CPU 0, then 1, then 2; thread 9 on CPU 1 between. CPUs 0 and 1 are a core. */
const SMALL: TraceRecord = {
  elapsed_s: 100e-6,
  cores: [
    { core: 0, cpus: '0-1', own_s: 1 },
    { core: 1, cpus: '2-3', own_s: 1 },
  ],
  cpus: [0, 1, 2].map((cpu) => ({ cpu, own_s: 0 })),
  threads: [
    { thread: 9, name: 'nine', cpu_s: 2 },
    { thread: 7, name: 'sev\u0007en', cpu_s: 1 },
  ],
  timeline: {
    packed: packSlices([
      [7, 2, 60_000, 10_000, 'ended'],
      [7, 0, 0, 20_000],
      [9, 1, 5_000, 30_000],
      [7, 1, 40_000, 10_000, 'preempted'],
    ]),
  },
};

const ordered = (slices: Slices): OrderedSlices => {
  const order = finish(sortByTime(slices));
  return { slices, order, previous: finish(previousCpus(slices, order)) };
};

test('a polled trace names the command that sees more', () => {
  const tiers = ['proc', 'bpf'].map((tier) => ({ tier, available: true }));
  const source = {
    kind: 'command' as const,
    command: ['sh', '-c', 'a b'],
    placement: 'one-core',
  };
  expect(shape.isPolled({ tier: 'proc' })).toBe(true);
  expect(shape.isPolled({ ...SMALL, tier: 'proc' })).toBe(false);
  expect(shape.betterTrace({ tiers, source })).toBe(
    "pinwise trace --tier bpf --place one-core -- sh -c 'a b'",
  );
  expect(
    shape.betterTrace({ tiers, source: { kind: 'process', pid: 7 } }),
  ).toBe('pinwise trace --tier bpf --pid 7');
  expect(shape.betterTrace({ tiers: tiers.slice(0, 1), source })).toBe(
    'pinwise trace tiers',
  );
});

describe('packed slices', () => {
  test('are unchanged after decoding', () => {
    const bytes = new Bytes();
    for (const value of [5, 10, 4, 0, 300, 1, 1_000_000_000_000, 2, 6])
      bytes.varint(value);
    const packed = {
      form: 'varint/1',
      count: 3,
      threads: [70, 90],
      ends: ['blocked', 'preempted', 'ended', 'unreported'],
      cpus: [{ cpu: 3, count: 3, bytes: bytes.base64() }],
    };
    const slices = finish(decodeSlices({ packed }))!;
    expect([...slices.start]).toEqual([5, 15, 1_000_000_000_315]);
    expect([...slices.length]).toEqual([10, 300, 2]);
    expect([...slices.thread]).toEqual([1, 0, 1]);
    expect([...slices.end]).toEqual([0, 1, 2]);
    expect([...slices.cpu]).toEqual([3, 3, 3]);
  });

  test('are read as the program writes them', () => {
    // The tests of src/record/timeline.rs have the same bytes.
    const packed = {
      form: 'varint/1',
      count: 3,
      threads: [7, 9],
      ends: ['blocked', 'preempted', 'ended', 'unreported'],
      cpus: [{ cpu: 2, count: 3, bytes: 'BQoAAAMFZAEC' }],
    };
    const slices = finish(decodeSlices({ packed }))!;
    expect([...slices.start]).toEqual([5, 15, 118]);
    expect([...slices.length]).toEqual([10, 3, 1]);
    expect([...slices.thread].map((place) => slices.threads[place])).toEqual([
      7, 9, 7,
    ]);
    expect([...slices.end].map((place) => slices.ends[place])).toEqual([
      'blocked',
      'preempted',
      'ended',
    ]);
  });

  test.each([
    ['a newer form', { form: 'varint/2' }],
    ['a count that lies', { count: 4 }],
    ['a thread that is not there', { threads: [70] }],
    [
      'bytes cut off',
      { cpus: [{ cpu: 0, count: 1, bytes: 'gIA=' }], count: 1 },
    ],
  ])('are refused: %s', (_, change) => {
    const bytes = new Bytes();
    for (const value of [5, 10, 4]) bytes.varint(value);
    const packed = {
      form: 'varint/1',
      count: 1,
      threads: [70, 90],
      ends: ['blocked'],
      cpus: [{ cpu: 3, count: 1, bytes: bytes.base64() }],
      ...change,
    };
    expect(() => finish(decodeSlices({ packed }))).toThrow(
      /damaged or of a newer layout/,
    );
  });

  test('of a synthetic record never overlap, on a CPU or of a thread', () => {
    const record = fakeTrace({
      slices: 5_000,
      cpus: 8,
      threads: 20,
    }) as TraceRecord;
    const scene = buildScene(record);
    for (const rows of ['cpus', 'threads'] as const) {
      const lanes = scene.lanes(rows)!;
      expect(lanes.origin.length).toBe(5_000);
      lanes.keys.forEach((_, row) => {
        for (
          let at = lanes.first[row]! + 1;
          at < lanes.first[row + 1]!;
          at += 1
        ) {
          expect(lanes.start[at]!).toBeGreaterThanOrEqual(
            lanes.start[at - 1]! + lanes.length[at - 1]!,
          );
        }
      });
    }
    expect(finish(decodeWaits(record.timeline!.waits))!.count).toBeGreaterThan(
      100,
    );
  });
});

describe('rows', () => {
  const slices = finish(decodeSlices(SMALL.timeline!))!;

  test('hold the slices of their CPU or thread in the order of time', () => {
    const cpus = lanesByCpu(ordered(slices), [2, 1, 0, 5]);
    expect([...cpus.first]).toEqual([0, 1, 3, 4, 4]);
    expect([...cpus.start].map(Math.round)).toEqual([60_000, 5_000, 40_000, 0]);
    const seven = slices.threads.indexOf(7);
    const threads = finish(lanesByThread(ordered(slices), [seven]));
    expect([...threads.colour]).toEqual([0, 1, 2]);
    expect(findSlice(threads, 0, 19_000)).toBe(0);
    expect(findSlice(threads, 0, 30_000)).toBeNull();
  });

  test('sum to shares of pixel columns', () => {
    const lanes = lanesByCpu(ordered(slices), [1]);
    const columns = new ColumnSums(10, lanes.colours).sum(lanes, 0, 0, 100_000);
    const expected = [0.5, 1, 1, 0.5, 1, 0, 0, 0, 0, 0];
    columns.share.forEach((share, at) =>
      expect(share).toBeCloseTo(expected[at]!, 6),
    );
    expect(slices.threads[columns.colour[1]!]).toBe(9);
    expect(slices.threads[columns.colour[4]!]).toBe(7);
  });

  test('colour a column by the key with most of its time', () => {
    const packed = packSlices([
      [1, 0, 0, 30],
      [2, 0, 30, 25],
      [1, 0, 60, 10],
      [2, 0, 70, 20],
    ]);
    const many = finish(decodeSlices({ packed }))!;
    const lanes = lanesByCpu(ordered(many), [0]);
    const { share, colour, count } = new ColumnSums(1, lanes.colours).sum(
      lanes,
      0,
      0,
      100,
    );
    expect(share[0]).toBeCloseTo(0.85, 9);
    expect(many.threads[colour[0]!]).toBe(2);
    expect(count[0]).toBe(4);
  });

  test('have the same sums in one window or in parts', () => {
    const scene = buildScene(
      fakeTrace({
        slices: 3_000,
        cpus: 2,
        threads: 5,
      }) as TraceRecord,
    );
    const lanes = scene.lanes('cpus')!;
    const busy = (width: number, from: number, to: number): number =>
      new ColumnSums(width, lanes.colours)
        .sum(lanes, 0, from, to)
        .share.reduce((sum, share) => sum + share * ((to - from) / width), 0);
    const whole = busy(700, 0, scene.span);
    expect(
      busy(13, 0, scene.span / 3) + busy(900, scene.span / 3, scene.span),
    ).toBeCloseTo(whole, 0);
    const length = [...lanes.length.subarray(0, lanes.first[1]!)].reduce(
      (sum, ns) => sum + ns,
      0,
    );
    expect(whole).toBeCloseTo(length, 0);
  });
});

describe('places in words', () => {
  const scene = buildScene(SMALL);

  test('name threads, moves and unknown parts', () => {
    expect(rowName(scene, 'cpus', 2)).toBe('CPU 2 · core 1');
    expect(rowName(scene, 'threads', 0)).toBe('nine 9');
    expect(describePlace(scene, 'cpus', 0, 1_000)).toContain(
      'sev\\u{7}en 7 from 0 s for 20.0 µs, then waiting',
    );
    expect(describePlace(scene, 'threads', 1, 45_000)).toMatch(
      /then preempted; it came from CPU 0, the same core/,
    );
    expect(describePlace(scene, 'threads', 1, 65_000)).toMatch(
      /it came from CPU 1, another core/,
    );
    expect(describePlace(scene, 'cpus', 2, 1_000)).toContain(
      'no traced thread',
    );
    expect(describePlace(scene, 'threads', 1, 99_000)).toContain(
      'not on a CPU any more',
    );
  });

  test('zoom about a time and stay within the trace', () => {
    const half = zoomWindow({ from: 0, to: 1e6 }, 0.5, 250_000, 1e6);
    expect(half).toEqual({ from: 125_000, to: 625_000 });
    expect(zoomWindow(half, 100, 250_000, 1e6)).toEqual({ from: 0, to: 1e6 });
    expect(zoomWindow({ from: 0, to: 2_000 }, 0.01, 0, 1e6)).toEqual({
      from: 0,
      to: 1_000,
    });
    expect(panWindow({ from: 900, to: 1_000 }, 5, 1_000)).toEqual({
      from: 900,
      to: 1_000,
    });
    expect(clampWindow({ from: -5, to: 20 }, 10)).toEqual({ from: 0, to: 10 });
    expect(roundTicks(0, 1_000, 5)).toEqual([0, 200, 400, 600, 800, 1_000]);
  });
});

describe('verdict', () => {
  test('is the conclusion, or without one the first finding', () => {
    const findings = [{ sentence: 'Threads waited.', advice: '' }];
    const answer = { sentence: 'Short of CPUs.', advice: '' };
    expect(shape.verdictSentence({ findings, answer })).toBe('Short of CPUs.');
    expect(shape.verdictSentence({ findings })).toBe('Threads waited.');
  });
});

describe('figures', () => {
  test('leave out unknown values', () => {
    const shown = shape.headlineFigures({
      elapsed_s: 2,
      totals: { cpu_s: 1, switches: null },
    });
    expect(shown['Elapsed']).toBe('2.00 s');
    expect(shown['Switches']).toBeNull();
    const bounded = shape.headlineFigures({
      totals: { cpu_s: 1 },
      waits: { total_s: 3 },
      lower_bounds: ['queued'],
    });
    expect(bounded['Waited in run queues']).toBe('at least 3.00 s');
    expect(bounded['CPU time']).toBe('1.00 s');
    const queued = (lower_bounds: LowerBound[]): unknown =>
      shape.headlineFigures({
        waits: { total_s: 3, is_upper_bound: true },
        lower_bounds,
      })['Waited in run queues'];
    expect(queued([])).toBe('at most 3.00 s');
    expect(queued(['queued'])).toBe('about 3.00 s');
    expect(shape.migrationTable({})).toBeNull();
    expect(
      shape.waitTable({
        waits: { because: { scheduler_s: 3, mask_s: 1, starting_s: 0 } },
      })!.rows,
    ).toEqual([
      ['another allowed CPU idled', '3.00 s', '75.0 %'],
      ['only CPUs idled that its mask forbids', '1.00 s', '25.0 %'],
    ]);
  });

  test('say what blocked threads waited for', () => {
    expect(shape.blockedTable({})).toBeNull();
    const blocked = [
      {
        process: 7,
        name: 'server',
        looks: 4,
        parts: [
          { what: 'lock' as const, looks: 3 },
          { what: 'events' as const, looks: 1 },
        ],
      },
    ];
    expect(shape.blockedTable({ blocked })!.rows).toEqual([
      ['server 7', 'a lock, work or another thread (futex)', '3', '75.0 %'],
      ['server 7', 'events (poll, epoll, select)', '1', '25.0 %'],
    ]);
  });
});

describe('interrupts', () => {
  test('are rows with their shares of each CPU', () => {
    const table = shape.interruptTable({
      interrupts: {
        stolen_s: 0.132,
        stolen_percent: 25.4,
        causes: [
          {
            kind: 'interrupt',
            name: 'eth0-rx-1',
            irq: 38,
            count: 1234,
            seconds: 0.13,
            stolen_s: 0.06,
            cpus: [
              { cpu: 1, percent: 12 },
              { cpu: 2, percent: 0.5 },
            ],
          },
          { kind: 'softirq', name: 'NET_RX', count: 2 },
          { kind: 'nmi', name: '', count: 1 },
          { kind: 'cpu-interrupt', name: 'local_timer', count: 1 },
        ],
      },
    });
    expect(table?.caption).toContain('25.4 % of its CPU time');
    expect(table?.rows[0]).toEqual([
      'eth0-rx-1 (IRQ 38)',
      '1,234',
      '130 ms',
      '60.0 ms',
      'CPU 1: 12.0 %, CPU 2: 0.5 %',
    ]);
    expect(table?.rows.map((row) => row[0]).slice(1)).toEqual([
      'softirq NET_RX',
      'nmi',
      'local_timer',
    ]);
  });
  test('are left out if they were not traced', () => {
    expect(shape.interruptTable({})).toBeNull();
  });
});

test('functions that wait for a lock are rows with shares and times', () => {
  const thread = (first: number, second: number) => ({
    places: [
      { what: 'mutex', place: 'push', looks: first },
      { what: 'mutex', place: 'log', looks: second },
      { what: 'condition', place: 'idle', looks: 9 },
    ],
  });
  const record = {
    blocked: [{ threads: [thread(1, 2), thread(2, 3)] }],
    findings: [{ check: 'lock_waits', evidence: { seconds: 4 } }],
  };
  expect(shape.lockTable(record)?.rows).toEqual([
    ['log', '62 %', '2.50 s'],
    ['push', '38 %', '1.50 s'],
  ]);
  expect(shape.lockTable({ blocked: [] })).toBeNull();
  const once = [{ what: 'mutex' as const, place: 'log', looks: 1 }];
  expect(
    shape.lockTable({ blocked: [{ threads: [{ places: once }] }] }),
  ).toBeNull();
});

describe('memory', () => {
  test('is a row for each NUMA node', () => {
    const table = shape.memoryTable({
      memory: {
        looks: 4,
        huge_percent: 12.5,
        local: { percent: 60, low: 50, high: 75 },
        nodes: [
          { node: 0, bytes: 3 << 20, last_bytes: 1 << 20, cpu_percent: 20 },
          { node: 1, bytes: 1 << 20, last_bytes: 0, cpu_percent: 80 },
        ],
      },
    });
    expect(table?.caption).toBe(
      'Memory: 4.00 MiB on average over 4 looks, 12.5 % in huge pages; local 60.0 % (50.0 % to 75.0 %) if all threads use all pages alike',
    );
    expect(table?.rows.map((row) => row[2])).toEqual(['75.0 %', '25.0 %']);
    expect(shape.memoryTable({})).toBeNull();
  });
});

test('CPUs with unknown time have a column for it', () => {
  const named = (unknown_s: number | null): (string | number | null)[] => {
    const cpus = [{ cpu: 0, own_s: 25e-6, unknown_s }];
    const table = shape.cpuTable({ ...SMALL, cpus });
    const at = table!.columns.findIndex(
      (column) => toHead(column).name === 'Unknown',
    );
    return table!.rows.map((row) => (at < 0 ? null : (row[at] as string)));
  };
  expect(named(50e-6)).toEqual(['50.0 %']);
  expect(named(0)).toEqual([null]);
  expect(named(null)).toEqual([null]);
});
