// The data of the spin laboratory's drawings.

import { expect, test } from 'vitest';

import type { CpuPauseRecord } from '../../records';
import { costSentence, describeCounter, withInterval } from './pause';
import { gapPlan, groupEqualLoops, scanSentence } from './scan';
import {
  budgetSentence,
  nameSetting,
  type Predicted,
  attachStep,
  describeMissing,
  sortAlgorithms,
  longestFirst,
  findCliffs,
  cpuCounts,
  toCurves,
  chooseFirst,
  dropUnnamed,
  predictSentence,
  pauseRemark,
  toReplayPoints,
  replaySentence,
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

test('the sentence names the algorithm that grows most', () => {
  expect(predictSentence(PREDICTED)).toBe(
    'Moving from old to new: steps spins 3.00 ms instead of 300 µs with 8 CPUs, 10.0 times as long.',
  );
  expect(predictSentence(dropUnnamed({}))).toBe('Spinning on this processor');
});

test('headline and chart name the longest, and say what was assumed', () => {
  const record = dropUnnamed({
    processor: { name: 'this machine', pause_ns: 24.4 },
    predictions: [
      at('clock', 24, 200, { immune: true, blind_gap_ms: 0.001 }),
      at('pauses', 24, 120),
      at('pauses', 2, 300),
    ],
  });
  expect(predictSentence(record)).toBe(
    'Predicted for 24 CPUs and a PAUSE of 24.4 ns: clock spins longest, 200 ms before it parks; pauses checks the lock least often, up to 12.0 ms apart.',
  );
  expect(longestFirst(record, 24)).toEqual(['clock', 'pauses']);
  expect(longestFirst(record, 2)).toEqual(['pauses']);
});

test('the next step names settings only if there are some', () => {
  const places = [{ kind: 'polling', share: 0.9 }] as const;
  expect(attachStep({ places: [...places] })).toBe(
    'Let it park after a bounded spin: pinwise spin advise gives the bound; the loop is below.',
  );
  const known = { ...places[0], algorithms: [{ tunables: ['A'] }] };
  expect(attachStep({ places: [known] })).toContain('settings');
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

test('a point without a measurement is explained', () => {
  const cells = [
    { delay_ms: 1, items: 3, measured: { lateness_us: 4 } },
    { delay_ms: 2, items: 0, measured: null, switched: 95, stopped: 1 },
  ];
  expect(describeMissing({ algorithms: [{ algorithm: 'a', cells }] })).toBe(
    'Not measured: a at 2 ms (all runs discarded: 95 preempted, 1 stopped by something else).',
  );
  expect(
    describeMissing({ algorithms: [{ algorithm: 'a', cells: [cells[0]!] }] }),
  ).toBe('');
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

test('the sentence of a replay names the lateness of each algorithm', () => {
  const of = (algorithm: string, late: [number, number | null][]) => ({
    algorithm,
    cells: late.map(([predicted, measured], at) => ({
      delay_ms: at + 1,
      hold_ms: 10,
      predicted: { lateness_us: predicted },
      measured: measured === null ? null : { lateness_us: measured },
      error_percent: measured === null ? null : 25,
    })),
  });
  const experiment = 'producer-consumer' as const;
  const algorithms = [
    of('old', [
      [9000, 9100],
      [9500, null],
    ]),
    of('new', [
      [30, null],
      [40, null],
    ]),
  ];
  expect(replaySentence({ experiment, algorithms })).toBe(
    'new gets a free lock 40.0 µs late (predicted) when the waiter comes 2 ms after the lock is taken, the worst of 2 delays; old gets a free lock 9.50 ms late (predicted) when the waiter comes 2 ms after the lock is taken, the worst of 2 delays.',
  );
  const say = (pairs: [number, number][]): string => {
    const checked = { ...of('a', pairs), median_error_percent: 25 };
    return replaySentence({ experiment, algorithms: [checked] });
  };
  const one = 'a gets a free lock 40.0 µs late (median) when the waiter comes ';
  expect(say([[30, 40]])).toBe(`${one}1 ms after the lock is taken.`);
  const three: [number, number][] = [
    [30, 40],
    [20, 30],
    [10, 20],
  ];
  expect(say(three)).toBe(
    `${one}1 ms after the lock is taken, the worst of 3 delays, predictions off by 25.0 %.`,
  );
  expect(replaySentence({ conclusions: ['So it is.'] })).toBe('So it is.');
});

test('a value of few valid runs is no median', () => {
  const cell = {
    delay_ms: 1,
    items: 1,
    switched: 88,
    stopped: 5,
    measured: { lateness_us: 398, lateness_low_us: 398, lateness_high_us: 398 },
  };
  const of = { algorithm: 'a', cells: [cell], median_error_percent: 2 };
  expect(replaySentence({ algorithms: [of] })).toBe(
    'Not measured well: 1 of 94 runs valid. a gets a free lock 398 µs late (1 run) when the waiter comes 1 ms after the lock is taken.',
  );
  expect(toReplayPoints(of, 'producer-consumer')[0]).toMatchObject({
    low: null,
    isThin: true,
  });
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
  expect(scanSentence(scan)).toBe(
    '3 loops with spin hints in ./spinner. main checks least often: every 50.0 ns on zen-4.',
  );
});

test('a scan answers for the machine that scanned, and says what is assumed of it', () => {
  const gaps = [
    { chip: 'here', ns: 18.6 },
    { chip: 'zen-4', ns: 18.6 },
    { chip: 'meteor-lake-p', ns: 51 },
  ];
  const scan = {
    binaries: [{ path: './queue' }],
    chips: [
      {
        id: 'here',
        pause_ns: 18.6,
        source: 'not measured: 65 cycles as zen-4',
      },
      { id: 'zen-4', pause_ns: 18.6, source: '65 cycles' },
      { id: 'meteor-lake-p', pause_ns: 51, source: '229 cycles' },
    ],
    loops: [{ function: 'wait_for', gaps }],
  };
  expect(scanSentence(scan)).toBe(
    '1 loop with spin hints in ./queue. wait_for checks every 18.6 ns here (assumed, as zen-4).',
  );
  const rows = gapPlan(scan)?.panel?.series.map(({ points }) => points[0]?.y);
  expect(rows).toEqual([-0.2, 0.2, 0]);
});

test('the budget is the time of whole PAUSEs, as in the table', () => {
  const budget = { budget_ns: 2971, budget_pauses: 83 };
  expect(budgetSentence({ ...budget, processor: { pause_ns: 35.86 } })).toBe(
    'Spin for 83 PAUSEs (2976 ns) before parking: about what parking and waking costs here.',
  );
  expect(budgetSentence(budget)).toBe(
    'Spin for 2971 ns before parking: what parking and waking costs here.',
  );
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
