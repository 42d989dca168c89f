// The latency matrix: cells by Plot, on a canvas where they are too many, and
// above either what is pointed at.

import { shareIn } from '../../colour-scale';
import { svg } from '../../dom';
import type { Theme } from '../../theme';
import { canvasCells } from './matrix-canvas';
import { plotCells } from './matrix-plot';
import type { Machine, Measured } from './record';
import type { Order } from './shape';
import { reportedGroups, runsOf } from './shape';

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
  /** Where a time lies on the scale, 0 to 1. */
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
/** More CPUs have too many pairs for an element each. */
const MOST_IN_PLOT = 64;

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
    share: (ns) => shareIn(ns, ends, shown.isLog),
    groups: groupsOf(machine, measured, shown.level, cpus),
    side,
    cell: (side - MARGIN - 1) / Math.max(1, places.length),
  };
}

/** Draws the cells. */
export const picture = (cells: Cells, colours: Theme): Element =>
  cells.cpus.length <= MOST_IN_PLOT
    ? plotCells(cells)
    : canvasCells(cells, colours);

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

/** The pair that is pointed at, and the row and column of a CPU that is pointed at elsewhere. */
export function overlay(cells: Cells, shown: Shown): SVGElement {
  const { cpus, cell, side } = cells;
  const thick = Math.max(cell, 3);
  const at = (index: number): number => MARGIN + index * cell;
  // A line of the text's colour within one of the page's is seen on every colour.
  const ringed = (x: number, y: number, width: number, height: number) =>
    ['under', 'over'].map((name) =>
      svg('rect', { x, y, width, height, class: `ring ${name}` }),
    );
  const pointed = shown.linked === null ? -1 : cpus.indexOf(shown.linked);
  const long = cell * cpus.length;
  return svg(
    'svg',
    {
      width: side,
      height: side,
      viewBox: `0 0 ${side} ${side}`,
      class: 'overlay',
      'aria-hidden': 'true',
    },
    ...(pointed < 0
      ? []
      : [
          ...ringed(MARGIN, at(pointed), long, thick),
          ...ringed(at(pointed), MARGIN, thick, long),
          svg(
            'text',
            { x: MARGIN - 4, y: at(pointed + 0.5), 'text-anchor': 'end' },
            shown.linked,
          ),
          svg(
            'text',
            { x: at(pointed + 0.5), y: MARGIN - 10, 'text-anchor': 'middle' },
            shown.linked,
          ),
        ]),
    ...ringed(at(shown.column), at(shown.row), thick, thick),
  );
}
