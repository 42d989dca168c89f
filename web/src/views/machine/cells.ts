// What the cells of the latency matrix are drawn from, by Plot or on a canvas.

import { scalePosition } from '../../colour-scale';
import type { Machine, Measured } from './record';
import { type Order, reportedGroups, runsOf } from './shape';

/** What the matrix shows now. */
export interface Shown {
  order: Order;
  places: number[];
  level: string;
  row: number;
  column: number;
  /** The CPU that is pointed at in the drawing. */
  linked: number | null;
  isLog: boolean;
}

/** What cells are drawn from. */
export interface Cells {
  /** CPUs in the order of rows and columns. */
  cpus: readonly number[];
  /** Nanoseconds between those of a row and a column; null is unknown. */
  time(row: number, column: number): number | null;
  /** Position of a time on the scale, 0 to 1. */
  share(ns: number): number;
  groups: readonly Group[];
  /** Side of the picture and of a cell, pixels. */
  side: number;
  cell: number;
}

/** Neighbours that are a group, as measured or as reported. */
export interface Group {
  from: number;
  to: number;
  isReported: boolean;
}

/** Room for the CPUs' numbers, left and above. */
export const MARGIN = 32;
/** The cells of a matrix that is at most `room` pixels wide. */
export function cellsOf(
  room: number,
  machine: Machine,
  measured: Measured,
  shown: Shown,
  ends: { low: number; high: number },
): Cells {
  const { places } = shown;
  const side = Math.max(
    120,
    Math.min(room, MARGIN + Math.max(220, Math.min(760, places.length * 28))),
  );
  const cpus = places.map((place) => measured.cpus[place]!);
  return {
    cpus,
    time: (row, column) => {
      const ns = measured.latency[places[row]!]?.[places[column]!];
      return typeof ns === 'number' && ns > 0 ? ns : null;
    },
    share: (ns) => scalePosition(ns, ends, shown.isLog),
    groups: groupsOf(machine, measured, shown.level, cpus),
    side,
    cell: (side - MARGIN - 1) / Math.max(1, places.length),
  };
}

function groupsOf(
  machine: Machine,
  measured: Measured,
  level: string,
  cpus: number[],
): Group[] {
  if (level === '') return [];
  const runs = (groups: number[][], isReported: boolean): Group[] =>
    runsOf(groups, cpus).map(([from, to]) => ({ from, to, isReported }));
  const found = measured.levels.find((one) => one.kind === level)?.groups ?? [];
  const reported = reportedGroups(machine, level).filter(
    (group) => group.length > 1,
  );
  return [...runs(found, false), ...runs(reported, true)];
}

/** Places of CPUs whose number has room, beside others and before the edge. */
export function numbered({ cpus, cell }: Cells): number[] {
  const wide = Math.max(...cpus) < 100 ? 22 : 30;
  const step = Math.max(1, Math.ceil(wide / cell));
  return cpus
    .map((_, at) => at)
    .filter(
      (at) => at % step === 0 && (cpus.length - at - 0.5) * cell > wide / 3,
    );
}
