// The latency matrix: cells by Plot, or on a canvas if there are too many, with marks of what is
// pointed at on top.

import { svg } from '../../dom';
import type { Theme } from '../../theme';
import { type Cells, type MatrixState, MARGIN } from './cells';
import { paintCells } from './matrix-canvas';
import { plotCells } from './matrix-plot';

/** With more CPUs, there are too many pairs for an element each. */
const MAX_PLOT_CPUS = 64;

/** Draws the cells. */
export const drawCells = (cells: Cells, colours: Theme): Element =>
  cells.cpus.length <= MAX_PLOT_CPUS
    ? plotCells(cells)
    : paintCells(cells, colours);

/** Marks the pair that is pointed at, and the row and column of a CPU that is pointed at elsewhere. */
export function drawOverlay(cells: Cells, shown: MatrixState): SVGElement {
  const { cpus, cell, side } = cells;
  const thick = Math.max(cell, 3);
  const at = (index: number): number => MARGIN + index * cell;
  // A line in the text colour on a wider one in the page colour is visible on every colour.
  const drawRings = (x: number, y: number, width: number, height: number) =>
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
          ...drawRings(MARGIN, at(pointed), long, thick),
          ...drawRings(at(pointed), MARGIN, thick, long),
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
    ...drawRings(at(shown.column), at(shown.row), thick, thick),
  );
}
