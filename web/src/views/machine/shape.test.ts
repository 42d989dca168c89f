// The machine's units, groups and orders.

import { describe, expect, test } from 'vitest';

import { scalePosition } from '../../colour-scale';
import { listChoices, buildColouring, chooseFirst, toLetters } from './figures';
import { chooseColumns, layOut, chooseSizes } from './layout';
import { readMachine } from './record';
import {
  type Unit,
  describeCaches,
  comparedLevels,
  describeGroups,
  memoryRows,
  orderPlaces,
  reportedGroups,
  findRuns,
  buildUnits,
  verdictSentence,
} from './shape';
import {
  contradictedLevels,
  describeDifference,
  differsOn,
  buildUnitsOfSide,
} from './sides';

const cpu = (
  number: number,
  core: number | null,
  llc: number | null,
  more: Record<string, unknown> = {},
): Record<string, unknown> => ({
  cpu: number,
  core,
  llc,
  numa_node: 0,
  package: 0,
  kind: null,
  smt_rank: 0,
  online: true,
  allowed: true,
  ...more,
});

const figure = (value: number): Record<string, unknown> => ({
  value,
  low: value * 0.9,
  high: value * 1.1,
  batches: 9,
  switched: 0,
  stolen: 0,
});

/** Four CPUs with caches reported as {0,1} {2,3}, and measured as {0,2} {1,3}. */
const crossed = (): ReturnType<typeof readMachine> =>
  readMachine({
    schema: 'pinwise.topology/1',
    cpus: [cpu(0, 0, 0), cpu(1, 1, 0), cpu(2, 2, 1), cpu(3, 3, 1)],
    caches: [
      { level: 3, type: 'unified', size_bytes: 33554432, cpus: '0-1' },
      { level: 3, type: 'unified', size_bytes: 33554432, cpus: '2-3' },
    ],
    contradictions: [
      {
        level: 'llc',
        claim: 'c',
        measured: 'm',
        confidence: 0.99,
        advice: 'a',
      },
    ],
    measured: {
      cpus: [0, 1, 2, 3],
      latency_ns: [
        [null, 90, 30, 90],
        [90, null, 90, 30],
        [30, 90, null, 90],
        [90, 30, 90, null],
      ],
      pairs: [
        {
          a: 0,
          b: 2,
          latency_ns: [figure(30)],
          contention_integer: figure(1.02),
        },
      ],
      levels: [
        {
          kind: 'llc',
          groups: ['0,2', '1,3'],
          inside_ns: 30,
          outside_ns: 90,
          confidence: 0.99,
          evidence: 'e',
        },
      ],
      verdicts: [
        { level: 'smt', verdict: 'agrees' },
        { level: 'llc', verdict: 'contradicted', confidence: 0.99 },
      ],
      pause: [{ cpu: 0, pause_ns: figure(20) }],
    },
  });

const flat = (units: Unit[], kind: Unit['kind']): Unit[] =>
  units.flatMap((unit) => [
    ...(unit.kind === kind ? [unit] : []),
    ...flat(unit.children, kind),
  ]);

describe('memory', () => {
  const node = (
    number: number,
    cpus: string,
    more: Record<string, unknown> = {},
  ): Record<string, unknown> => ({
    node: number,
    cpus,
    memory_bytes: 2 ** 34,
    allowed: true,
    memory_kind: null,
    near_cpus: null,
    bandwidth_mb_per_s: null,
    latency_ns: null,
    ...more,
  });
  const rows = (nodes: Record<string, unknown>[]) =>
    memoryRows(
      readMachine({ schema: 'pinwise.topology/1', numa_nodes: nodes }),
    );

  test('of one kind, all with CPUs, has no table', () => {
    expect(rows([node(0, '0-1'), node(1, '2-3')])).toEqual([]);
  });

  test('of several kinds is listed with figures of the firmware', () => {
    const hbm = {
      near_cpus: '0-3',
      memory_kind: 'HBM',
      bandwidth_mb_per_s: 90_000,
      latency_ns: 120,
    };
    expect(rows([node(0, '0-3'), node(1, '', hbm), node(2, '')])).toEqual([
      [0, '0-3', '16 GiB', null, null, null],
      [1, 'none, nearest 0-3', '16 GiB', 'HBM', '90.0 GB/s', '120 ns'],
      [2, 'none', '16 GiB', null, null, null],
    ]);
  });
});

describe('units', () => {
  test('are nested, unknown ones last', () => {
    const machine = readMachine({
      schema: 'pinwise.topology/1',
      cpus: [
        cpu(0, 0, 0),
        cpu(1, 0, 0),
        cpu(2, 1, 0),
        cpu(3, null, null, { package: null, numa_node: null, online: false }),
      ],
    });
    const units = buildUnits(machine);
    expect(units.map((unit) => unit.names[0])).toEqual([
      'Package 0',
      'Offline',
    ]);
    expect(flat(units, 'core').map((core) => core.children.length)).toEqual([
      2, 1,
    ]);
    expect(flat(units, 'cpu').map((unit) => unit.cpu!.cpu)).toEqual([
      0, 1, 2, 3,
    ]);
  });

  test('nodes contain packages if there are fewer nodes, and lie within caches if there are more', () => {
    const wide = readMachine({
      schema: '',
      cpus: [cpu(0, 0, 0), cpu(1, 1, 1, { package: 1 })],
    });
    expect(buildUnits(wide)[0]!.kind).toBe('node');
    const divided = readMachine({
      schema: '',
      cpus: [cpu(0, 0, 0), cpu(1, 1, 0, { numa_node: 1 })],
    });
    expect(
      flat(buildUnits(divided), 'llc')[0]!.children.map((child) => child.kind),
    ).toEqual(['node', 'node']);
  });

  test('cores that share a cache below the last level form a cluster', () => {
    const machine = readMachine({
      schema: '',
      cpus: [0, 1, 2, 3].map((n) => cpu(n, n, 0)),
      caches: [
        { level: 3, type: 'unified', size_bytes: null, cpus: '0-3' },
        { level: 2, type: 'unified', size_bytes: 2097152, cpus: '0-1' },
        { level: 2, type: 'unified', size_bytes: 2097152, cpus: '2-3' },
      ],
    });
    expect(
      flat(buildUnits(machine), 'cluster').map((unit) => unit.names[0]),
    ).toEqual(['L2 · 2 MiB', 'L2 · 2 MiB']);
    expect(describeCaches(machine)).toEqual([
      '2 × L2 2 MiB, each for 2 CPUs',
      'L3 for 4 CPUs',
    ]);
  });
});

describe('groups', () => {
  test('are compared as reported and measured, contradictions first', () => {
    const levels = comparedLevels(crossed());
    expect(levels.map((row) => [row.level, row.verdict])).toEqual([
      ['llc', 'contradicted'],
      ['smt', 'agrees'],
    ]);
    expect(describeGroups(levels[0]!.reported)).toBe('{0-1}, {2-3}');
    expect(describeGroups(levels[0]!.measured!.groups)).toBe('{0,2}, {1,3}');
    expect(describeGroups(levels[1]!.reported)).toBe('4 CPUs, each by itself');
  });

  test('orders put the CPUs of a group side by side', () => {
    const machine = crossed();
    expect(orderPlaces(machine, 'reported')).toEqual([0, 1, 2, 3]);
    expect(orderPlaces(machine, 'measured')).toEqual([0, 2, 1, 3]);
    expect(
      findRuns(
        [
          [0, 2],
          [1, 3],
        ],
        [0, 2, 1, 3],
      ),
    ).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(findRuns(reportedGroups(machine, 'llc'), [0, 2, 1, 3])).toEqual([
      [0, 0],
      [1, 1],
      [2, 2],
      [3, 3],
    ]);
  });

  test('the answer is taken from the record', () => {
    const machine = crossed();
    machine.measured!.answer = '';
    expect(verdictSentence(machine)).toMatch(/^The system reports /);
    machine.measured!.answer = 'The kernel is right.';
    expect(verdictSentence(machine)).toBe('The kernel is right.');
  });

  test('a contradicted level is coloured at first', () => {
    const machine = crossed();
    expect(chooseFirst(machine)).toBe('level:0');
    const groups = buildColouring(machine, 'level:0', 0);
    expect(machine.cpus.map((c) => groups.words(c).slice(0, 7))).toEqual([
      'group A',
      'group B',
      'group A',
      'group B',
    ]);
    expect([
      toLetters(0),
      toLetters(25),
      toLetters(26),
      toLetters(701),
      toLetters(702),
    ]).toEqual(['A', 'Z', 'AA', 'ZZ', 'AAA']);
  });

  test('figures relate CPUs to the chosen one; unmeasured ones are described as such', () => {
    const machine = crossed();
    expect(listChoices(machine).map((c) => c.key)).toEqual([
      'state',
      'latency',
      'contention',
      'pause',
      'level:0',
    ]);
    const latency = buildColouring(machine, 'latency', 1);
    expect(latency.words(machine.cpus[3]!)).toBe('latency to CPU 1: 30.0 ns');
    expect(latency.words(machine.cpus[1]!)).toBe('the chosen CPU');
    const contention = buildColouring(machine, 'contention', 2);
    expect(contention.words(machine.cpus[0]!)).toContain('1.02');
    expect(contention.words(machine.cpus[1]!)).toBe('not measured');
  });
});

describe('damaged fields', () => {
  test('are left out without an error', () => {
    const machine = readMachine({
      schema: 'pinwise.topology/1',
      cpus: [null, 3, { cpu: 'x' }, { cpu: 4 }] as unknown[],
      caches: 'none',
      contradictions: [{}],
      measured: {
        levels: [{ groups: ['</script>'] }],
        pairs: [[]],
        latency_ns: [null, [1]],
        ladder: { points: [{ bytes: null }] },
        drift: {},
        pause: [null],
      },
    });
    expect(machine.cpus.map((c) => c.cpu)).toEqual([4]);
    expect(machine.measured!.ladder).toBeNull();
    expect(machine.measured!.levels[0]!.groups).toEqual([]);
    expect(() => [
      buildUnits(machine),
      comparedLevels(machine),
      verdictSentence(machine),
      buildColouring(machine, chooseFirst(machine), 0),
    ]).not.toThrow();
  });
});

describe('the layout', () => {
  test('keeps 1,024 CPUs within the page, at any width', () => {
    const cpus = Array.from({ length: 1024 }, (_, n) =>
      cpu(n, n >> 1, n >> 4, { numa_node: n >> 7, package: n >> 8 }),
    );
    const units = buildUnits(readMachine({ schema: '', cpus }));
    for (const width of [328, 700, 1068]) {
      const plan = layOut(units, width, chooseSizes(1024));
      expect(plan.width).toBeLessThanOrEqual(width);
      expect(plan.boxes).toHaveLength(4);
    }
  });

  test('prefers full rows', () => {
    expect(chooseColumns(8, 50, 30, 1000, 2)).toBe(4);
    expect(chooseColumns(6, 50, 50, 1000, 1.5)).toBe(3);
    expect(chooseColumns(5, 400, 50, 360, 3)).toBe(1);
  });
});

describe('the two sides of a machine', () => {
  const names = (units: Unit[], kind: Unit['kind']): (string | undefined)[] =>
    flat(units, kind).map((unit) => unit.names[0]);
  const cpus = (unit: Unit): number[] =>
    unit.cpu ? [unit.cpu.cpu] : unit.children.flatMap(cpus);
  const groups = (units: Unit[], kind: Unit['kind']): number[][] =>
    flat(units, kind).map(cpus);

  test('have the groups of the report and of the measurement', () => {
    const machine = crossed();
    expect(contradictedLevels(machine)).toEqual(['llc']);
    const [reported, measured] = [
      buildUnitsOfSide(machine, 'reported'),
      buildUnitsOfSide(machine, 'measured'),
    ];
    expect(groups(reported, 'llc')).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(groups(measured, 'llc')).toEqual([
      [0, 2],
      [1, 3],
    ]);
    expect(names(reported, 'llc')[0]).toBe('L3 0 · 32 MiB');
    expect(names(measured, 'llc')).toEqual(['LLC A', 'LLC B']);
    expect(names(measured, 'core')[0]).toBe('core 0');
    // What is said of a CPU is what the report says, on either side.
    expect(flat(measured, 'cpu').map((unit) => unit.cpu!.llc)).toEqual([
      0, 1, 0, 1,
    ]);
  });

  test('differ only in units of contradicted levels', () => {
    const machine = crossed();
    for (const side of ['reported', 'measured'] as const) {
      const units = buildUnitsOfSide(machine, side);
      const differs = differsOn(machine, side);
      expect(flat(units, 'llc').map(differs)).toEqual([true, true]);
      expect(flat(units, 'core').some(differs)).toBe(false);
      expect(flat(units, 'package').some(differs)).toBe(false);
    }
    expect(describeDifference(machine)).toMatch(
      /^The last-level caches differ\./,
    );
  });

  test('share the units of a level that are right', () => {
    const machine = crossed();
    machine.measured!.levels[0]!.groups = [[0, 1]];
    expect(groups(buildUnitsOfSide(machine, 'measured'), 'llc')).toEqual([
      [0, 1],
      [2],
      [3],
    ]);
    const units = buildUnitsOfSide(machine, 'reported');
    expect(flat(units, 'llc').map(differsOn(machine, 'reported'))).toEqual([
      false,
      true,
    ]);
  });

  test('have no measured unit if no group was found', () => {
    const machine = crossed();
    machine.measured!.levels = [];
    expect(groups(buildUnitsOfSide(machine, 'measured'), 'llc')).toEqual([]);
  });

  test('are equal if nothing is contradicted', () => {
    const machine = { ...crossed(), contradictions: [] };
    expect(buildUnitsOfSide(machine, 'measured')).toEqual(buildUnits(machine));
    expect(describeDifference(machine)).toBe('');
  });
});

describe('the scale of the matrix', () => {
  test('is logarithmic or linear', () => {
    const ends = { low: 10, high: 1000 };
    expect(scalePosition(100, ends, true)).toBeCloseTo(0.5, 9);
    expect(scalePosition(505, ends, false)).toBeCloseTo(0.5, 9);
    expect(scalePosition(10, { low: 10, high: 10 }, false)).toBe(0.5);
  });
});
