// The cells of a small latency matrix as marks of Plot, with their figures.

import type { PlotOptions } from '@observablehq/plot';
import { axisX, axisY, plot, rect, text } from '@observablehq/plot';

import { colourAt } from '../../colour-scale';
import { finishSvg } from '../../draw';
import { fixed } from '../../format';
import { COLOURS } from '../../plot';
import { LIGHT } from '../../theme';
import { type Cells, type Group, MARGIN, numberedPlaces } from './cells';
import { filterMap } from '../../lists';

/** Cells narrower than this show no figures, pixels. */
const MIN_CELL_WITH_FIGURE = 26;

interface Cell {
  row: number;
  column: number;
  ns: number;
}

export function plotCells(cells: Cells): SVGElement {
  const { cpus, side } = cells;
  const known = cpus.flatMap((_, row) =>
    filterMap(cpus, (_, column): Cell | null => {
      const ns = cells.time(row, column);
      return ns === null ? null : { row, column, ns };
    }),
  );
  const axis = {
    ticks: numberedPlaces(cells),
    text: (at: number) => String(cpus[at]),
    tickSize: 0,
    tickPadding: 4,
    color: COLOURS.muted,
    label: null,
  };
  // Each number is in the middle of its row or column.
  const half = cells.cell / 2;
  return finishSvg(
    plot({
      width: side,
      height: side,
      margin: 1,
      marginLeft: MARGIN,
      marginTop: MARGIN,
      x: { domain: [0, cpus.length] },
      y: { domain: [cpus.length, 0] },
      marks: [
        axisX({ ...axis, anchor: 'top', dx: half }),
        axisY({ ...axis, dy: half }),
        rect(known, {
          x1: 'column',
          x2: (c: Cell) => c.column + 1,
          y1: 'row',
          y2: (c: Cell) => c.row + 1,
          fill: (c: Cell) => colourAt(LIGHT.scale, cells.share(c.ns)),
          shapeRendering: 'crispEdges',
        }),
        cells.cell >= MIN_CELL_WITH_FIGURE
          ? text(known, {
              x: (c: Cell) => c.column + 0.5,
              y: (c: Cell) => c.row + 0.5,
              text: (c: Cell) => formatCellFigure(c.ns),
              // The scale's upper half is light, its lower half dark.
              fill: (c: Cell) =>
                cells.share(c.ns) > 0.45 ? '#000000' : '#ffffff',
            })
          : null,
        ...outlineMarks(cells.groups),
      ],
    } as PlotOptions),
  );
}

/** Three digits at most. */
function formatCellFigure(ns: number): string {
  if (ns >= 10_000) return `${Math.round(ns / 1000)}k`;
  return fixed(ns, ns >= 10 ? 0 : 1);
}

/** A dark line on a wider light one is visible on every colour of the scale. */
const outlineMarks = (groups: readonly Group[]): ReturnType<typeof rect>[] =>
  [[3.5, '#ffffff'] as const, [1.75, '#000000'] as const].flatMap(
    ([strokeWidth, stroke]) =>
      [false, true].map((isReported) =>
        rect(
          groups.filter((group) => group.isReported === isReported),
          {
            x1: 'from',
            x2: (g: Group) => g.to + 1,
            y1: 'from',
            y2: (g: Group) => g.to + 1,
            inset: isReported ? 3.5 : 1,
            fill: 'none',
            stroke,
            strokeWidth,
            strokeDasharray: isReported ? '6 5' : '',
          },
        ),
      ),
  );
