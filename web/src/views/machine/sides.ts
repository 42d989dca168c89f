// The machine from two sides: as the system reports it, and as it was
// measured. They differ at levels that the measurement contradicts.

import { formatCpus } from '../../cpus';
import { letters } from './figures';
import type { Cpu, Machine } from './record';
import { type Unit, LEVELS, reportedGroups, unitsOf } from './shape';

export type Side = 'reported' | 'measured';

/** Which level a unit of the drawing belongs to. */
const LEVEL_OF: Readonly<Partial<Record<Unit['kind'], string>>> = {
  core: 'smt',
  llc: 'llc',
  node: 'numa',
  package: 'package',
};

/** Levels at which the measurement contradicts the report. */
export function contradictedLevels(machine: Machine): string[] {
  const shown = new Set(machine.contradictions.map(({ level }) => level));
  return LEVELS.map(({ level }) => level).filter((level) => shown.has(level));
}

/** Groups of a contradicted level as measured; a record names those of two and more CPUs, the others are alone. None: nothing was found to be shared. */
function measuredGroups(machine: Machine, level: string): number[][] {
  const { measured } = machine;
  const found = measured?.levels.find(({ kind }) => kind === level)?.groups;
  if (!measured || !found?.length) return [];
  const grouped = new Set(found.flat());
  const alone = measured.cpus.filter((cpu) => !grouped.has(cpu));
  return [...found, ...alone.map((cpu) => [cpu])];
}

/** The units of a side. Of a contradicted level, measured units are lettered: they have no numbers of the system. */
export function unitsOfSide(machine: Machine, side: Side): Unit[] {
  const levels = side === 'measured' ? contradictedLevels(machine) : [];
  if (levels.length === 0) return unitsOf(machine);
  const of = new Map(
    levels.map((level) => [level, groupOf(measuredGroups(machine, level))]),
  );
  const cpus = machine.cpus.map((cpu): Cpu => {
    const unit = (level: string, reported: number | null): number | null =>
      of.has(level) ? (of.get(level)!.get(cpu.cpu) ?? null) : reported;
    return {
      ...cpu,
      core: unit('smt', cpu.core),
      llc: unit('llc', cpu.llc),
      node: unit('numa', cpu.node),
      package: unit('package', cpu.package),
    };
  });
  // Sizes of caches are the report's: of measured groups they are not known.
  const caches = levels.includes('llc') ? [] : machine.caches;
  const shown = new Map(machine.cpus.map((cpu) => [cpu.cpu, cpu]));
  return withLetters(
    unitsOf({ ...machine, cpus, caches }),
    new Set(levels),
    shown,
  );
}

function groupOf(groups: readonly (readonly number[])[]): Map<number, number> {
  return new Map(groups.flatMap((cpus, at) => cpus.map((cpu) => [cpu, at])));
}

/** Letters for measured units; CPUs are again what the report says of them. */
function withLetters(
  units: Unit[],
  levels: ReadonlySet<string>,
  shown: ReadonlyMap<number, Cpu>,
): Unit[] {
  return units.map((unit) => {
    const cpu = unit.cpu && shown.get(unit.cpu.cpu);
    if (cpu) return { ...unit, cpu };
    const children = withLetters(unit.children, levels, shown);
    const isMeasured = levels.has(LEVEL_OF[unit.kind] ?? '');
    if (!isMeasured || unit.number === undefined) return { ...unit, children };
    const letter = letters(unit.number);
    const words = unit.kind === 'llc' ? 'LLC' : unit.kind;
    return { ...unit, children, names: [`${words} ${letter}`, letter] };
  });
}

/** The CPUs of a unit that can be compared, as a list. */
const keyOf = (level: string, cpus: readonly number[]): string =>
  `${level} ${formatCpus(cpus)}`;

/** Is this unit one that the other side does not have? */
export function differsOn(
  machine: Machine,
  side: Side,
): (unit: Unit) => boolean {
  const levels = new Set(contradictedLevels(machine));
  const measured = new Set(machine.measured?.cpus);
  const other = new Set<string>();
  for (const level of levels) {
    const groups =
      side === 'reported'
        ? measuredGroups(machine, level)
        : reportedGroups(machine, level);
    for (const cpus of groups)
      other.add(
        keyOf(
          level,
          cpus.filter((cpu) => measured.has(cpu)),
        ),
      );
  }
  return (unit) => {
    const level = LEVEL_OF[unit.kind];
    if (level === undefined || !levels.has(level)) return false;
    const cpus = cpusOf(unit).filter((cpu) => measured.has(cpu));
    return cpus.length > 0 && !other.has(keyOf(level, cpus));
  };
}

const cpusOf = (unit: Unit): number[] =>
  unit.cpu ? [unit.cpu.cpu] : unit.children.flatMap(cpusOf);

/** What differs, as a sentence; "" if nothing does. */
export function differenceWords(machine: Machine): string {
  const levels = contradictedLevels(machine);
  const units = LEVELS.filter(({ level }) => levels.includes(level)).map(
    ({ unit }) => `${unit}s`,
  );
  if (units.length === 0) return '';
  const last = units.pop()!;
  const list = units.length > 0 ? `${units.join(', ')} and ${last}` : last;
  return `The ${list} differ. Hatched: units that only this side has.`;
}
