// Figures that the drawing can be coloured by: each CPU's own, or its relation
// to a chosen CPU.

import { digits, quantity } from '../../format';
import type { Cpu, Machine } from './record';

/** A figure to colour by. */
export interface FigureChoice {
  key: string;
  name: string;
  /** Does it show how a CPU relates to a chosen one? */
  relates: boolean;
}

/** Figures on a scale of equal ratios. */
export interface ScaleColouring {
  kind: 'scale';
  /** The figure: "latency to CPU 0". */
  name: string;
  unit: string;
  low: number;
  high: number;
  values: ReadonlyMap<number, number>;
  /** A CPU's figure as a whole: "latency to CPU 0: 14.0 ns". */
  words: (cpu: Cpu) => string;
}

/** CPUs by class. */
export interface ClassColouring {
  kind: 'classes';
  names: readonly string[];
  classOf: ReadonlyMap<number, number>;
  words: (cpu: Cpu) => string;
}

export type Colouring = ScaleColouring | ClassColouring;

const LEVEL_NAMES: Readonly<Record<string, string>> = {
  smt: 'cores',
  llc: 'last-level caches',
  package: 'packages',
  other: 'groups',
};

/** What the drawing of a machine can be coloured by. */
export function listChoices(machine: Machine): FigureChoice[] {
  const found: FigureChoice[] = [
    { key: 'state', name: 'allowed, not allowed, offline', relates: false },
  ];
  if (machine.kinds.length > 1)
    found.push({ key: 'kind', name: 'kind of CPU', relates: false });
  const measured = machine.measured;
  if (!measured) return found;
  if (measured.latency.some((row) => row.some((ns) => ns !== null)))
    found.push({
      key: 'latency',
      name: 'latency to a chosen CPU',
      relates: true,
    });
  if (measured.pairs.some((pair) => pair.contention))
    found.push({
      key: 'contention',
      name: 'contention with a chosen CPU',
      relates: true,
    });
  if (measured.pause.length > 0)
    found.push({
      key: 'pause',
      name: 'cost of the spin-wait hint',
      relates: false,
    });
  measured.levels.forEach((level, at) => {
    if (level.groups.length > 0)
      found.push({
        key: `level:${at}`,
        name: `measured ${LEVEL_NAMES[level.kind] ?? 'groups'}`,
        relates: false,
      });
  });
  return found;
}

/** The colouring shown at first: measured groups that contradict the report, else latency. */
export function chooseFirst(machine: Machine): string {
  const keys = listChoices(machine).map((choice) => choice.key);
  const contradicted = machine.contradictions.map((c) => c.level);
  const levels = machine.measured?.levels ?? [];
  for (const kind of ['llc', 'package', 'smt']) {
    const at = levels.findIndex(
      (level) => level.kind === kind && contradicted.includes(kind),
    );
    if (at >= 0 && keys.includes(`level:${at}`)) return `level:${at}`;
  }
  return ['latency', 'kind'].find((key) => keys.includes(key)) ?? 'state';
}

/** The colouring of a figure; `chosen` is the CPU to which others are related. */
export function buildColouring(
  machine: Machine,
  key: string,
  chosen: number,
): Colouring {
  if (key === 'latency')
    return scaleColouring(
      latenciesTo(machine, chosen),
      'ns',
      `latency to CPU ${chosen}`,
      chosen,
    );
  if (key === 'contention')
    return scaleColouring(
      contentionsWith(machine, chosen),
      '×',
      `time beside CPU ${chosen} over time alone`,
      chosen,
    );
  if (key === 'pause') {
    const values = new Map(
      (machine.measured?.pause ?? []).map((p) => [p.cpu, p.ns.value]),
    );
    return scaleColouring(values, 'ns', 'spin-wait hint', null);
  }
  if (key.startsWith('level:'))
    return groupColouring(machine, Number(key.slice(6)));
  return key === 'kind' ? kindColouring(machine) : stateColouring(machine);
}

/** Formats a figure so that it fits a CPU's box. */
export const shortFigure = (value: number): string =>
  digits(value, value >= 100 ? 3 : 2);

function scaleColouring(
  values: ReadonlyMap<number, number>,
  unit: string,
  name: string,
  chosen: number | null,
): ScaleColouring {
  const all = [...values.values()].filter((value) => value > 0);
  return {
    kind: 'scale',
    name,
    unit,
    low: all.length > 0 ? Math.min(...all) : 0,
    high: all.length > 0 ? Math.max(...all) : 0,
    values,
    words: (cpu) => {
      if (cpu.cpu === chosen) return 'the chosen CPU';
      const value = values.get(cpu.cpu);
      return value === undefined
        ? 'not measured'
        : `${name}: ${quantity(value, unit)}`;
    },
  };
}

function latenciesTo(machine: Machine, chosen: number): Map<number, number> {
  const measured = machine.measured;
  const row = measured?.latency[measured.cpus.indexOf(chosen)] ?? [];
  const found = new Map<number, number>();
  measured?.cpus.forEach((cpu, at) => {
    const ns = row[at];
    if (typeof ns === 'number' && cpu !== chosen) found.set(cpu, ns);
  });
  return found;
}

function contentionsWith(
  machine: Machine,
  chosen: number,
): Map<number, number> {
  const found = new Map<number, number>();
  for (const pair of machine.measured?.pairs ?? []) {
    if (!pair.contention || (pair.a !== chosen && pair.b !== chosen)) continue;
    found.set(pair.a === chosen ? pair.b : pair.a, pair.contention.value);
  }
  return found;
}

function groupColouring(machine: Machine, at: number): ClassColouring {
  const level = machine.measured?.levels[at];
  const classOf = new Map<number, number>();
  level?.groups.forEach((group, number) =>
    group.forEach((cpu) => classOf.set(cpu, number)),
  );
  const what = LEVEL_NAMES[level?.kind ?? ''] ?? 'groups';
  return {
    kind: 'classes',
    names: (level?.groups ?? []).map((_, number) => toLetters(number)),
    classOf,
    words: (cpu) =>
      classOf.has(cpu.cpu)
        ? `group ${toLetters(classOf.get(cpu.cpu)!)} of the measured ${what}`
        : `in no group of the measured ${what}`,
  };
}

/** A, B, … Z, AA, AB, …: groups have letters, so that readers do not take them for unit numbers. */
export function toLetters(number: number): string {
  const last = String.fromCharCode(65 + (number % 26));
  return number < 26 ? last : toLetters(Math.floor(number / 26) - 1) + last;
}

function kindColouring(machine: Machine): ClassColouring {
  const classOf = new Map<number, number>();
  machine.kinds.forEach((kind, at) =>
    kind.cpus.forEach((cpu) => classOf.set(cpu, at)),
  );
  return {
    kind: 'classes',
    names: machine.kinds.map((kind) => kind.name),
    classOf,
    words: (cpu) =>
      classOf.has(cpu.cpu)
        ? `kind ${machine.kinds[classOf.get(cpu.cpu)!]!.name}`
        : 'kind unknown',
  };
}

const STATES = ['allowed', 'not allowed', 'offline'] as const;

/** May this process use the CPU? */
export const stateOf = (cpu: Cpu): (typeof STATES)[number] =>
  !cpu.online ? 'offline' : cpu.allowed ? 'allowed' : 'not allowed';

function stateColouring(machine: Machine): ClassColouring {
  const names = STATES.filter((state) =>
    machine.cpus.some((cpu) => stateOf(cpu) === state),
  );
  return {
    kind: 'classes',
    names,
    classOf: new Map(
      machine.cpus.map((cpu) => [cpu.cpu, names.indexOf(stateOf(cpu))]),
    ),
    words: stateOf,
  };
}

/** A CPU as a sentence for screen readers and the line below the drawing. */
export function describeCpu(machine: Machine, cpu: Cpu): string {
  const kind = machine.kinds.find((k) => k.cpus.includes(cpu.cpu))?.name;
  const units: [string, number | null][] = [
    ['core', cpu.core],
    ['last-level cache', cpu.llc],
    ['NUMA node', cpu.node],
    ['package', cpu.package],
  ];
  const shown = units
    .filter(([, number]) => number !== null)
    .map(([name, number]) => `${name} ${number}`);
  const state = stateOf(cpu);
  return [
    `CPU ${cpu.cpu}`,
    ...(kind ? [`kind ${kind}`] : []),
    ...shown,
    ...(state === 'allowed' ? [] : [state]),
  ].join(', ');
}
