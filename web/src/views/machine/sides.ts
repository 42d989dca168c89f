// The machine as the system reports it, and as it was measured. These sides
// differ at levels where the measurement contradicts the report.

import { formatCpus } from '../../cpus';
import { toLetters } from './figures';
import type { Cpu, Machine } from './record';
import { type Unit, LEVELS, reportedGroups, buildUnits } from './shape';

export type Side = 'reported' | 'measured';

/** The level to which a unit of the drawing belongs. */
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

/** Groups of a contradicted level as measured: those of the record, which have two or more CPUs,
 * and each other CPU alone. Empty if no group was found. */
function measuredGroups(machine: Machine, level: string): number[][] {
  const { measured } = machine;
  const found = measured?.levels.find(({ kind }) => kind === level)?.groups;
  if (!measured || !found?.length) return [];
  const grouped = new Set(found.flat());
  const alone = measured.cpus.filter((cpu) => !grouped.has(cpu));
  return [...found, ...alone.map((cpu) => [cpu])];
}

/** The units of a side. Measured units of a contradicted level have letters: the system gives them
 * no numbers. */
export function buildUnitsOfSide(machine: Machine, side: Side): Unit[] {
  const levels = side === 'measured' ? contradictedLevels(machine) : [];
  if (levels.length === 0) return buildUnits(machine);
  const groupsByLevel = new Map(
    levels.map((level) => [
      level,
      groupIndexByCpu(measuredGroups(machine, level)),
    ]),
  );
  const cpus = machine.cpus.map((cpu): Cpu => {
    const unit = (level: string, reported: number | null): number | null =>
      groupsByLevel.has(level)
        ? (groupsByLevel.get(level)!.get(cpu.cpu) ?? null)
        : reported;
    return {
      ...cpu,
      core: unit('smt', cpu.core),
      llc: unit('llc', cpu.llc),
      node: unit('numa', cpu.node),
      package: unit('package', cpu.package),
    };
  });
  // The report has sizes only of its own caches, not of measured groups.
  const caches = levels.includes('llc') ? [] : machine.caches;
  const shown = new Map(machine.cpus.map((cpu) => [cpu.cpu, cpu]));
  return letterUnits(
    buildUnits({ ...machine, cpus, caches }),
    new Set(levels),
    shown,
  );
}

function groupIndexByCpu(
  groups: readonly (readonly number[])[],
): Map<number, number> {
  return new Map(groups.flatMap((cpus, at) => cpus.map((cpu) => [cpu, at])));
}

/** Names measured units by letters and puts back the reported CPUs. */
function letterUnits(
  units: Unit[],
  levels: ReadonlySet<string>,
  shown: ReadonlyMap<number, Cpu>,
): Unit[] {
  return units.map((unit) => {
    const cpu = unit.cpu && shown.get(unit.cpu.cpu);
    if (cpu) return { ...unit, cpu };
    const children = letterUnits(unit.children, levels, shown);
    const isMeasured = levels.has(LEVEL_OF[unit.kind] ?? '');
    if (!isMeasured || unit.number === undefined) return { ...unit, children };
    const letter = toLetters(unit.number);
    const words = unit.kind === 'llc' ? 'LLC' : unit.kind;
    return { ...unit, children, names: [`${words} ${letter}`, letter] };
  });
}

/** A key by which units of both sides are compared. */
const unitKey = (level: string, cpus: readonly number[]): string =>
  `${level} ${formatCpus(cpus)}`;

/** Returns a test: does the other side lack this unit? */
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
        unitKey(
          level,
          cpus.filter((cpu) => measured.has(cpu)),
        ),
      );
  }
  return (unit) => {
    const level = LEVEL_OF[unit.kind];
    if (level === undefined || !levels.has(level)) return false;
    const cpus = cpusOf(unit).filter((cpu) => measured.has(cpu));
    return cpus.length > 0 && !other.has(unitKey(level, cpus));
  };
}

const cpusOf = (unit: Unit): number[] =>
  unit.cpu ? [unit.cpu.cpu] : unit.children.flatMap(cpusOf);

/** The levels that differ, in a sentence; empty if none does. */
export function describeDifference(machine: Machine): string {
  const levels = contradictedLevels(machine);
  const units = LEVELS.filter(({ level }) => levels.includes(level)).map(
    ({ unit }) => `${unit}s`,
  );
  if (units.length === 0) return '';
  const last = units.pop()!;
  const list = units.length > 0 ? `${units.join(', ')} and ${last}` : last;
  return `The ${list} differ. Hatched: units that only this side has.`;
}
