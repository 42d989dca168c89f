// The cells of a large latency matrix on a canvas: a million of them are too
// many for an element each.

import { rgbAt } from '../../colour-scale';
import type { Theme } from '../../theme';
import { type Cells, MARGIN, numberedPlaces } from './cells';

/** The number of colours of cells. */
const COLOUR_STEPS = 256;

export function paintCells(cells: Cells, colours: Theme): HTMLCanvasElement {
  const { cpus, cell, side } = cells;
  const canvas = document.createElement('canvas');
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(side * ratio);
  canvas.height = Math.round(side * ratio);
  canvas.style.width = `${side}px`;
  const context = canvas.getContext('2d');
  if (!context) return canvas;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.imageSmoothingEnabled = false;
  const long = cell * cpus.length;
  context.drawImage(paintPixels(cells, colours), MARGIN, MARGIN, long, long);
  paintNumbers(context, cells, colours);
  paintOutlines(context, cells);
  return canvas;
}

/** One pixel for each pair; pairs without a time are left transparent. */
function paintPixels(cells: Cells, colours: Theme): HTMLCanvasElement {
  const many = cells.cpus.length;
  const picture = document.createElement('canvas');
  picture.width = many;
  picture.height = many;
  const context = picture.getContext('2d');
  if (!context) return picture;
  const image = context.createImageData(many, many);
  const steps = Array.from({ length: COLOUR_STEPS }, (_, at) =>
    rgbAt(colours.scale, at / (COLOUR_STEPS - 1)),
  );
  for (let row = 0; row < many; row += 1) {
    for (let column = 0; column < many; column += 1) {
      const ns = cells.time(row, column);
      if (ns === null) continue;
      const step = steps[Math.round(cells.share(ns) * (COLOUR_STEPS - 1))]!;
      image.data.set([...step, 255], 4 * (row * many + column));
    }
  }
  context.putImageData(image, 0, 0);
  return picture;
}

/** Writes the CPUs' numbers that have room. */
function paintNumbers(
  context: CanvasRenderingContext2D,
  cells: Cells,
  colours: Theme,
): void {
  const { fontFamily } = getComputedStyle(document.body);
  context.font = `12px ${fontFamily}`;
  context.textBaseline = 'middle';
  context.fillStyle = colours.muted;
  for (const at of numberedPlaces(cells)) {
    const middle = MARGIN + (at + 0.5) * cells.cell;
    const name = `${cells.cpus[at]}`;
    context.textAlign = 'right';
    context.fillText(name, MARGIN - 4, middle);
    context.textAlign = 'center';
    context.fillText(name, middle, MARGIN - 10);
  }
}

function paintOutlines(context: CanvasRenderingContext2D, cells: Cells): void {
  // A dark line on a wider light one is visible on every colour of the scale.
  for (const [width, colour] of [
    [3.5, '#ffffff'],
    [1.75, '#000000'],
  ] as const) {
    context.lineWidth = width;
    context.strokeStyle = colour;
    for (const { from, to, isReported } of cells.groups) {
      const inset = isReported ? 3.5 : 1;
      context.setLineDash(isReported ? [6, 5] : []);
      const start = MARGIN + from * cells.cell + inset;
      const side = (to - from + 1) * cells.cell - 2 * inset;
      if (side > 1) context.strokeRect(start, start, side, side);
    }
  }
}
