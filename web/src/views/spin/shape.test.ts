// The data of the spin laboratory's drawings.

import { expect, test } from 'vitest';

import type { CpuPauseRecord } from '../../records';
import { costSentence, describeCounter, withInterval } from './pause';
import { gapPlan, groupEqualLoops } from './scan';
import {
  nameSetting,
  type Predicted,
  firstName,
  sortAlgorithms,
  longestFirst,
  findCliffs,
  cpuCounts,
  toCurves,
  chooseFirst,
  dropUnnamed,
  pauseRemark,
  toReplayPoints,
} from './shape';

const at = (
  algorithm: string,
  cpus: number,
  total_ms: number | null,
  more: Partial<Predicted['predictions'][number]> = {},
): Predicted['predictions'][number] => ({
  algorithm,
  cpus,
  total_ms,
  blind_gap_ms: total_ms === null ? null : total_ms / 10,
  ...more,
});

const PREDICTED: Predicted = {
  schema: 'pinwise.spin-predict/1',
  processor: { name: 'new', pause_ns: 50 },
  from: { name: 'old', pause_ns: 5 },
  predictions: [
    ...[1, 2, 3, 4, 5, 6, 7, 8].map((cpus) =>
      at('steps', cpus, cpus < 5 ? 1 : 3),
    ),
    ...[1, 2, 3, 4, 5, 6, 7, 8].map((cpus) => at('grows', cpus, cpus)),
    ...[1, 8].map((cpus) => at('endless', cpus, null, { never_parks: true })),
    ...[1, 8].map((cpus) => at('unknown', cpus, null)),
  ],
  moves: [
    {
      algorithm: 'steps',
      cpus: 8,
      from_ms: 0.3,
      to_ms: 3,
      ratio: 10,
      from_blind_gap_ms: 0.03,
    },
    { algorithm: 'endless', cpus: 8, from_ms: null, to_ms: null },
  ],
  cliffs: [
    { algorithm: 'steps', changes_at: [5] },
    { algorithm: 'grows', changes_at: [2, 3, 4, 5, 6, 7, 8] },
  ],
};

test('a cliff is a jump, not steady growth', () => {
  const marks = findCliffs(PREDICTED);
  expect([...marks.keys()]).toEqual(['steps']);
  expect(marks.get('steps')).toEqual([{ cpus: 5, shownAt: 5, ratio: 3 }]);
});

test('a cliff between two predictions is marked at the later one', () => {
  const few = PREDICTED.predictions!.filter((p) => [1, 4, 8].includes(p.cpus));
  expect(findCliffs({ ...PREDICTED, predictions: few }).get('steps')).toEqual([
    { cpus: 5, shownAt: 8, ratio: 3 },
  ]);
});

test('algorithms are sorted by their longest spin, and those with cliffs are drawn first', () => {
  expect(sortAlgorithms(PREDICTED)).toEqual([
    'endless',
    'grows',
    'steps',
    'unknown',
  ]);
  expect(chooseFirst(PREDICTED, 2)).toEqual(['steps', 'grows']);
  expect(cpuCounts(PREDICTED)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
});

test('curves show the chosen algorithms on both chips, without unknown points', () => {
  const found = toCurves(PREDICTED, ['steps', 'endless'], 'gap');
  expect(found.map((c) => [c.algorithm, c.isFrom, c.points.length])).toEqual([
    ['steps', false, 8],
    ['steps', true, 1],
  ]);
  expect(found[1]!.points).toEqual([[8, 0.03]]);
});

test('a prediction without its algorithm or CPUs is left out', () => {
  const damaged = {
    predictions: [{ cpus: 2 }, { algorithm: 'a' }, at('b', 2, 1)],
    moves: [{ cpus: 2 }],
  };
  expect(dropUnnamed(damaged)).toEqual({
    predictions: [at('b', 2, 1)],
    moves: [],
  });
});

test('an algorithm has the first of its names, else its id', () => {
  expect(
    firstName({ name: 'Monitor / AwareLock', algorithm: 'awarelock' }),
  ).toBe('Monitor');
  expect(firstName({ name: null, algorithm: 'awarelock' })).toBe('awarelock');
});

test('cycles without a counter say how they were counted', () => {
  expect(
    describeCounter({
      counter_unavailable: 'No cycle counter available.',
      cpus: [{ pause_cycles: 90, method: 'add-chain' } as CpuPauseRecord],
    }),
  ).toBe(
    'No cycle counter available. Cycles are derived from the clock, by timing dependent additions.',
  );
});

test('remarks name algorithms that hardly depend on PAUSE', () => {
  expect(pauseRemark(at('a', 1, 1, { unit: 'time' }))).toBe(
    'goes by the clock',
  );
  expect(
    pauseRemark(at('a', 1, null, { never_parks: true, unit: 'pause' })),
  ).toBe('endless');
  expect(
    pauseRemark(at('a', 1, 1, { longest_pauses: 3, total_pauses: 1 })),
  ).toBe('varies');
});

test('an unmeasured cell has only a prediction', () => {
  const [first] = toReplayPoints(
    {
      algorithm: 'a',
      cells: [
        {
          delay_ms: 2,
          hold_ms: 10,
          predicted: { lateness_us: 5 },
          measured: null,
          unstable: true,
        },
      ],
    },
    'producer-consumer',
  );
  expect(first).toMatchObject({
    at_ms: 2,
    predicted: 5,
    measured: null,
    isUnstable: true,
  });
  expect(
    toReplayPoints(
      { algorithm: 'a', cells: [{ delay_ms: 2, hold_ms: 10 }] },
      'handoff',
    )[0]!.at_ms,
  ).toBe(10);
});

test('a value of few valid runs has no quartiles', () => {
  const measured = { lateness_us: 398, lateness_low_us: 398 };
  const of = { cells: [{ delay_ms: 1, items: 1, measured }] };
  expect(toReplayPoints(of, 'producer-consumer')[0]).toMatchObject({
    low: null,
    isThin: true,
  });
});

test('the algorithms of a ladder spin, longest first', () => {
  const record = dropUnnamed({
    predictions: [
      at('clock', 24, 200, { immune: true, blind_gap_ms: 0.001 }),
      at('pauses', 24, 120),
      at('pauses', 2, 300),
    ],
  });
  expect(longestFirst(record, 24)).toEqual(['clock', 'pauses']);
  expect(longestFirst(record, 2)).toEqual(['pauses']);
});

test('equal loops share a row, and the one that checks least often is first', () => {
  const loop = (address: string, name: string, ns: number) => ({
    address,
    function: name,
    kind: 'polling' as const,
    binary: 0,
    gaps: [{ chip: 'zen-4', ns }],
  });
  const scan = {
    binaries: [{ path: './spinner' }],
    loops: [
      loop('0x10', 'wait', 5),
      loop('0x20', 'wait', 5),
      loop('0x30', 'main', 50),
    ],
  };
  expect(
    groupEqualLoops(scan).map((group) => group.map(({ address }) => address)),
  ).toEqual([['0x30'], ['0x10', '0x20']]);
});

test('a scan compares by the model of this machine, and draws equal gaps side by side', () => {
  const loop = (name: string, [model, other]: readonly [number, number]) => ({
    function: name,
    gaps: [
      { chip: 'zen-4', ns: model },
      { chip: 'zen-3', ns: model },
      { chip: 'meteor-lake-p', ns: other },
    ],
  });
  const scan = {
    assumed_as: 'zen-4',
    chips: ['zen-4', 'zen-3', 'meteor-lake-p'].map((id) => ({ id })),
    loops: [loop('less', [10, 900]), loop('more', [18.6, 51])],
  };
  expect(groupEqualLoops(scan).map(([one]) => one.function)).toEqual([
    'more',
    'less',
  ]);
  const series = gapPlan(scan)?.panel?.series;
  expect(series?.map(({ name }) => name)).toEqual([
    'zen-4 (this model)',
    'zen-3',
    'meteor-lake-p',
  ]);
  expect(series?.map(({ points }) => points[0]?.y)).toEqual([-0.2, 0.2, 0]);
});

test('settings of the same name are told apart by their versions', () => {
  const row = { runtime: 'libomp', setting: 'KMP_BLOCKTIME' };
  const rows = [
    { ...row, versions: 'LLVM 18 and later, which know units' },
    { ...row, versions: 'LLVM before 18' },
    { runtime: 'jemalloc', setting: 'mutex_max_spin', versions: '5.3' },
  ];
  expect(rows.map((one) => nameSetting(one, rows))).toEqual([
    'libomp: KMP_BLOCKTIME, LLVM 18 and later',
    'libomp: KMP_BLOCKTIME, LLVM before 18',
    'jemalloc: mutex_max_spin',
  ]);
});

test('an interval that rounds to its figure is left out', () => {
  const said = (low: number | null, high: number) =>
    withInterval(34.31, low, high, (value) => value.toFixed(1));
  expect(said(34.29, 34.33)).toBe('34.3');
  expect(said(34, 34.33)).toBe('34.3 (34.0 to 34.3)');
  expect(said(null, 34.33)).toBe('34.3');
});

test('the cost of PAUSE is one figure, or a range over the CPUs', () => {
  const sentence = (...cpus: CpuPauseRecord[]): string =>
    costSentence({ instruction: 'PAUSE', cpus });
  const cpu = { pause_ns: 27.55, pause_cycles: 77.3 };
  expect(sentence(cpu, cpu)).toBe('PAUSE takes 27.6 ns (77 cycles) on 2 CPUs.');
  expect(sentence(cpu, { pause_ns: 43, pause_cycles: 120 })).toBe(
    'PAUSE takes 27.6 ns to 43.0 ns (77 to 120 cycles) on 2 CPUs.',
  );
  expect(sentence({ pause_ns: null })).toBe('No cost was measured.');
});
