// The latency matrix: cells by Plot, on a canvas if there are too many, and above either what is
// pointed at.

import { svg } from '../../dom';
import type { Theme } from '../../theme';
import { type Cells, type Shown, MARGIN } from './cells';
import { canvasCells } from './matrix-canvas';
import { plotCells } from './matrix-plot';

/** More CPUs have too many pairs for an element each. */
const MAX_PLOT_CPUS = 64;

/** Draws the cells. */
export const picture = (cells: Cells, colours: Theme): Element =>
  cells.cpus.length <= MAX_PLOT_CPUS
    ? plotCells(cells)
    : canvasCells(cells, colours);

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
