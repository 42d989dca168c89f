// The machine's units within each other, groups as reported and as measured,
// and orders of CPUs that put near ones side by side.

import { formatCpus } from '../../cpus';
import { bytes, count, quantity } from '../../format';
import type { Cache, Cpu, Level, Machine } from './record';
import { filterMap, groupBy } from '../../lists';

/** A unit of the drawing; a CPU is one without children. */
export interface Unit {
  kind: 'package' | 'node' | 'llc' | 'cluster' | 'core' | 'cpu';
  /** Names, the longest first; the drawing takes the first that fits. */
  names: string[];
  /** Its number in the report. */
  number?: number;
  children: Unit[];
  cpu?: Cpu;
}

type Group = Exclude<Unit['kind'], 'cpu'>;

interface UnitLevel {
  kind: Group;
  unitOf: (cpu: Cpu) => number | null;
  names: (number: number, cpus: readonly Cpu[]) => string[];
}

const CACHE_TYPE: Readonly<Record<string, string>> = {
  data: 'd',
  instruction: 'i',
};

/** Formats a size without decimals that are zero: "32 MiB". */
export const formatSize = (size: number | null): string =>
  bytes(size).replace(/\.0+ /, ' ');

/** The usual short name of a cache: "L1d", "L2". */
const cacheName = (cache: Pick<Cache, 'level' | 'type'>): string =>
  `L${cache.level}${CACHE_TYPE[cache.type] ?? ''}`;

/** The outermost cache that any of these CPUs use. */
function findOutermostCache(
  machine: Machine,
  cpus: readonly Cpu[],
): Cache | undefined {
  const wanted = new Set(cpus.map((cpu) => cpu.cpu));
  return machine.caches
    .filter(
      (cache) =>
        cache.type !== 'instruction' &&
        cache.cpus.some((cpu) => wanted.has(cpu)),
    )
    .sort((a, b) => b.level - a.level)[0];
}

/** Clusters by CPU: several cores that share a cache, but fewer than share their last-level cache. */
function clustersByCpu(machine: Machine): Map<number, number> {
  const clusters = new Map<number, number>();
  const known = new Map(machine.cpus.map((cpu) => [cpu.cpu, cpu]));
  const inner = machine.caches
    .filter((cache) => cache.type !== 'instruction')
    .sort((a, b) => a.level - b.level);
  for (const [at, cache] of inner.entries()) {
    const cpus = cache.cpus.flatMap((cpu) => known.get(cpu) ?? []);
    const cores = new Set(cpus.map((cpu) => cpu.core ?? `cpu ${cpu.cpu}`));
    const llc = cpus[0]?.llc;
    const llcCpus = machine.cpus.filter((cpu) => cpu.llc === llc).length;
    if (cores.size < 2 || cpus.length >= llcCpus) continue;
    for (const cpu of cpus) clusters.set(cpu.cpu, at);
  }
  return clusters;
}

/** A measured size that differs by less than this factor is as reported. */
const MAX_SIZE_RATIO = 1.5;

/** Levels of caches whose reported size the measurement did not confirm, and what it found. */
export function findDoubtfulSizes({ measured }: Machine): Map<number, string> {
  const isDoubted = measured?.verdicts.some(
    ({ level, verdict }) => level === 'cache' && verdict !== 'agrees',
  );
  const plateaus = (isDoubted && measured?.ladder?.plateaus) || [];
  return new Map(
    filterMap(plateaus, ({ level, effective, reported }) => {
      if (!level || !effective || !reported) return null;
      const ratio = Math.max(effective / reported, reported / effective);
      return ratio > MAX_SIZE_RATIO
        ? [
            level,
            `L${level}?: ${formatSize(effective)} measured of ${formatSize(reported)} reported.`,
          ]
        : null;
    }),
  );
}

function unitLevels(machine: Machine): UnitLevel[] {
  const clusters = clustersByCpu(machine);
  const doubtful = findDoubtfulSizes(machine);
  const memory = new Map(machine.nodes.map((node) => [node.node, node.bytes]));
  const withSize = (name: string, size: number | null | undefined): string[] =>
    size ? [`${name} · ${formatSize(size)}`, name] : [name];
  const outer: UnitLevel[] = [
    {
      kind: 'package',
      unitOf: (cpu) => cpu.package,
      names: (n) => [`Package ${n}`, `P${n}`],
    },
    {
      kind: 'node',
      unitOf: (cpu) => cpu.node,
      names: (n) => [
        withSize(`NUMA node ${n}`, memory.get(n))[0]!,
        withSize(`N${n}`, memory.get(n))[0]!,
        `NUMA node ${n}`,
        `N${n}`,
      ],
    },
    {
      kind: 'llc',
      unitOf: (cpu) => cpu.llc,
      names: (n, cpus) => {
        const cache = findOutermostCache(machine, cpus);
        return cache
          ? [
              ...withSize(`${cacheName(cache)} ${n}`, cache.bytes).map(
                (name) => name + (doubtful.has(cache.level) ? '?' : ''),
              ),
              `${n}`,
            ]
          : [`LLC ${n}`, `${n}`];
      },
    },
  ];
  // Nodes may contain packages or caches or lie within them: the level with fewer units is outside.
  const units = (level: UnitLevel): number =>
    new Set(machine.cpus.map(level.unitOf)).size;
  const nested = outer
    .filter((level) => machine.cpus.some((cpu) => level.unitOf(cpu) !== null))
    .sort((a, b) => units(a) - units(b));
  const inner: UnitLevel[] = [
    {
      kind: 'cluster',
      unitOf: (cpu) => clusters.get(cpu.cpu) ?? null,
      names: (n) => {
        const cache = machine.caches
          .filter((c) => c.type !== 'instruction')
          .sort((a, b) => a.level - b.level)[n];
        return cache ? [...withSize(cacheName(cache), cache.bytes), ''] : [''];
      },
    },
    {
      kind: 'core',
      unitOf: (cpu) => cpu.core,
      names: (n) => [`core ${n}`, `${n}`, ''],
    },
  ];
  return [...nested, ...inner];
}

/** The machine as units within each other; CPUs whose units are unknown are last. */
export function buildUnits(machine: Machine): Unit[] {
  const all = unitLevels(machine);
  const isKnown = (cpu: Cpu): boolean =>
    all.some((level) => level.unitOf(cpu) !== null);
  const rest = machine.cpus.filter((cpu) => !isKnown(cpu));
  const units = divideIntoUnits(machine.cpus.filter(isKnown), all);
  if (rest.length === 0) return units;
  const names = rest.every((cpu) => !cpu.online)
    ? ['Offline']
    : ['Units unknown', 'unknown'];
  return [
    ...units,
    { kind: 'package', names, children: divideIntoUnits(rest, []) },
  ];
}

function divideIntoUnits(
  cpus: readonly Cpu[],
  levels: readonly UnitLevel[],
): Unit[] {
  const [level, ...inner] = levels;
  if (!level)
    return cpus.map((cpu) => ({
      kind: 'cpu',
      names: [`${cpu.cpu}`],
      children: [],
      cpu,
    }));
  const groups = groupBy(cpus, level.unitOf);
  const known = [...groups.entries()].filter(
    (entry): entry is [number, [Cpu, ...Cpu[]]] => entry[0] !== null,
  );
  const units: Unit[] = known
    .sort((a, b) => a[0] - b[0])
    .map(([number, members]) => ({
      kind: level.kind,
      names: level.names(number, members),
      number,
      children: divideIntoUnits(members, inner),
    }));
  return [...units, ...divideRest(groups.get(null), inner)];
}

const divideRest = (
  cpus: Cpu[] | undefined,
  inner: readonly UnitLevel[],
): Unit[] => (cpus ? divideIntoUnits(cpus, inner) : []);

/** The machine's caches in words, equal ones together: "4 × L3 32 MiB, each for 8 CPUs". */
export function describeCaches(machine: Machine): string[] {
  const sorted = [...machine.caches].sort(
    (a, b) => a.level - b.level || a.type.localeCompare(b.type),
  );
  const words = sorted.map((cache) => {
    const size = cache.bytes === null ? '' : ` ${formatSize(cache.bytes)}`;
    return `${cacheName(cache)}${size}, ${cache.cpus.length === 1 ? 'one for each CPU' : `each for ${cache.cpus.length} CPUs`}`;
  });
  return [...groupBy(words, (one) => one)].map(([one, all]) =>
    all.length > 1
      ? `${all.length} × ${one}`
      : one.replace(', each for', ' for'),
  );
}

/** NUMA nodes of which more is known than their CPUs and size, or that have no CPUs; empty if
 * all are plain. */
export function memoryRows(machine: Machine): (string | number | null)[][] {
  const isPlain = (node: Machine['nodes'][number]): boolean =>
    node.cpus.length > 0 &&
    node.memory === '' &&
    node.bandwidth === null &&
    node.latency === null;
  if (machine.nodes.every(isPlain)) return [];
  return machine.nodes.map((node) => [
    node.node,
    formatCpus(node.cpus) ||
      (node.near ? `none, nearest ${node.near}` : 'none'),
    node.bytes === null ? null : formatSize(node.bytes),
    node.memory || null,
    node.bandwidth === null ? null : quantity(node.bandwidth / 1e3, 'GB/s'),
    node.latency === null ? null : quantity(node.latency, 'ns'),
  ]);
}

/** Levels whose groups can be both reported and measured. */
export const LEVELS: readonly {
  level: string;
  unit: string;
  unitOf: (cpu: Cpu) => number | null;
}[] = [
  { level: 'smt', unit: 'core', unitOf: (cpu) => cpu.core },
  { level: 'llc', unit: 'last-level cache', unitOf: (cpu) => cpu.llc },
  { level: 'numa', unit: 'NUMA node', unitOf: (cpu) => cpu.node },
  { level: 'package', unit: 'package', unitOf: (cpu) => cpu.package },
];

/** The groups of a level as the system reports them. */
export function reportedGroups(machine: Machine, level: string): number[][] {
  const unitOf = LEVELS.find((known) => known.level === level)?.unitOf;
  if (!unitOf) return [];
  const used = machine.cpus.filter(
    (cpu) => unitOf(cpu) !== null && cpu.online && cpu.allowed,
  );
  return [...groupBy(used, (cpu) => unitOf(cpu)!)]
    .sort((a, b) => a[0] - b[0])
    .map(([, cpus]) => cpus.map(({ cpu }) => cpu));
}

/** The first groups in words: "{0-3} {4-7} … (8 in all)"; if each has one CPU, their number. */
export function describeGroups(
  groups: readonly (readonly number[])[],
  most = 8,
): string {
  if (groups.length === 0) return '–';
  if (groups.every((group) => group.length === 1))
    return `${count(groups.length, 'CPU')}, each by itself`;
  const shown = groups
    .slice(0, most)
    .map((group) => `{${formatCpus(group)}}`)
    .join(', ');
  return groups.length > most ? `${shown} … (${groups.length} in all)` : shown;
}

/** The groups of a level as reported and as measured. */
export interface ComparedLevel {
  level: string;
  unit: string;
  reported: number[][];
  measured: Level | null;
  verdict: string;
  confidence: number | null;
}

/** All levels, the contradicted ones first. */
export function comparedLevels(machine: Machine): ComparedLevel[] {
  const measured = machine.measured;
  if (!measured) return [];
  const rank = (verdict: string): number =>
    ['contradicted', 'cannot_tell', 'agrees'].indexOf(verdict) + 1 || 4;
  return LEVELS.map(({ level, unit }) => {
    const verdict = measured.verdicts.find((v) => v.level === level);
    return {
      level,
      unit,
      reported: reportedGroups(machine, level),
      measured: measured.levels.find((l) => l.kind === level) ?? null,
      verdict: verdict?.verdict ?? '',
      confidence: verdict?.confidence ?? null,
    };
  })
    .filter((row) => row.verdict !== '' || row.measured !== null)
    .sort((a, b) => rank(a.verdict) - rank(b.verdict));
}

export type Order = 'number' | 'reported' | 'measured';

/** The CPUs of the matrix in an order, as indices of `measured.cpus`. */
export function orderPlaces(machine: Machine, order: Order): number[] {
  const measured = machine.measured;
  if (!measured) return [];
  const places = measured.cpus.map((_, at) => at);
  if (order === 'number') return places;
  const keys =
    order === 'reported'
      ? reportedKeys(machine)
      : measuredKeys(measured.levels);
  const key = (at: number): number[] => keys(measured.cpus[at]!);
  return places.sort((a, b) => compareKeys(key(a), key(b)) || a - b);
}

function compareKeys(a: readonly number[], b: readonly number[]): number {
  for (const [at, value] of a.entries()) {
    const difference = value - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function reportedKeys(machine: Machine): (cpu: number) => number[] {
  const keyByCpu = new Map(
    machine.cpus.map((cpu) => [
      cpu.cpu,
      [cpu.package, cpu.node, cpu.llc, cpu.core].map((n) => n ?? 1e9),
    ]),
  );
  return (cpu) => keyByCpu.get(cpu) ?? [1e9, 1e9, 1e9, 1e9];
}

/** Sort keys, the outermost level first; a CPU without a group is placed by its number. */
function measuredKeys(levels: readonly Level[]): (cpu: number) => number[] {
  const outward = [...levels].reverse().map((level) => {
    const first = new Map<number, number>();
    for (const group of level.groups)
      for (const cpu of group) first.set(cpu, Math.min(...group));
    return first;
  });
  return (cpu) => outward.map((first) => first.get(cpu) ?? cpu);
}

/** Runs of neighbours of one group in an order of CPUs: first and last index. A group whose CPUs
 * are apart has several. */
export function findRuns(
  groups: readonly (readonly number[])[],
  cpus: readonly number[],
): [number, number][] {
  const group = new Map<number, number>();
  for (const [at, members] of groups.entries())
    for (const cpu of members) group.set(cpu, at);
  const runs: [number, number][] = [];
  for (let at = 0; at < cpus.length;) {
    const own = group.get(cpus[at]!);
    let end = at;
    while (
      own !== undefined &&
      end + 1 < cpus.length &&
      group.get(cpus[end + 1]!) === own
    )
      end += 1;
    if (own !== undefined) runs.push([at, end]);
    at = end + 1;
  }
  return runs;
}

const describeShape = (machine: Machine): string =>
  filterMap(
    ['packages', 'numa_nodes', 'llcs', 'cores', 'cpus'] as const,
    (name) => {
      const number = machine.counts[name];
      const one = {
        packages: 'package',
        numa_nodes: 'NUMA node',
        llcs: 'last-level cache',
        cores: 'core',
        cpus: 'CPU',
      }[name];
      return typeof number === 'number' ? count(number, one) : null;
    },
  ).join(', ');

/** The record's answer; without a measurement, what the system reports. */
export const verdictSentence = (machine: Machine): string =>
  machine.measured?.answer ||
  `The system reports ${describeShape(machine) || count(machine.cpus.length, 'CPU')}.`;
