// The data from which the cells of the latency matrix are drawn, by Plot or on a canvas.

import { scalePosition } from '../../colour-scale';
import type { Machine, Measured } from './record';
import { type Order, reportedGroups, findRuns } from './shape';

/** What the reader chose to see of the matrix, and points at. */
export interface MatrixState {
  order: Order;
  places: number[];
  level: string;
  row: number;
  column: number;
  /** The CPU that is pointed at in the drawing. */
  linked: number | null;
  isLog: boolean;
}

/** The cells of the matrix. */
export interface Cells {
  /** CPUs in the order of rows and columns. */
  cpus: readonly number[];
  /** Nanoseconds between the CPUs of a row and a column; null if unknown. */
  time(row: number, column: number): number | null;
  /** Position of a time on the scale, 0 to 1. */
  share(ns: number): number;
  groups: readonly Group[];
  /** Side lengths of the picture and of a cell, pixels. */
  side: number;
  cell: number;
}

/** A run of neighbouring CPUs that form a group, as measured or as reported. */
export interface Group {
  from: number;
  to: number;
  isReported: boolean;
}

/** Room for the CPUs' numbers, left and above, pixels. */
export const MARGIN = 32;
/** The cells of a matrix that is at most `room` pixels wide. */
export function layOutCells(
  room: number,
  machine: Machine,
  measured: Measured,
  shown: MatrixState,
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
    groups: outlinedGroups(machine, measured, shown.level, cpus),
    side,
    cell: (side - MARGIN - 1) / Math.max(1, places.length),
  };
}

function outlinedGroups(
  machine: Machine,
  measured: Measured,
  level: string,
  cpus: number[],
): Group[] {
  if (level === '') return [];
  const runs = (groups: number[][], isReported: boolean): Group[] =>
    findRuns(groups, cpus).map(([from, to]) => ({ from, to, isReported }));
  const found = measured.levels.find((one) => one.kind === level)?.groups ?? [];
  const reported = reportedGroups(machine, level).filter(
    (group) => group.length > 1,
  );
  return [...runs(found, false), ...runs(reported, true)];
}

/** Places of CPUs whose number has room: those of neighbours and the edge do not overlap it. */
export function numberedPlaces({ cpus, cell }: Cells): number[] {
  const wide = Math.max(...cpus) < 100 ? 22 : 30;
  const step = Math.max(1, Math.ceil(wide / cell));
  return cpus
    .map((_, at) => at)
    .filter(
      (at) => at % step === 0 && (cpus.length - at - 0.5) * cell > wide / 3,
    );
}
