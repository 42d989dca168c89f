// The cells of a large latency matrix on a canvas: a million of them are too
// many for an element each.

import { rgbAt } from '../../colour-scale';
import type { Theme } from '../../theme';
import { type Cells, MARGIN, numbered } from './cells';

/** Colours that cells take. */
const STEPS = 256;

export function canvasCells(cells: Cells, colours: Theme): HTMLCanvasElement {
  const { cpus, cell, side } = cells;
  const canvas = document.createElement('canvas');
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(side * ratio);
  canvas.height = Math.round(side * ratio);
  canvas.style.width = `${side}px`;
  const brush = canvas.getContext('2d');
  if (!brush) return canvas;
  brush.setTransform(ratio, 0, 0, ratio, 0, 0);
  brush.imageSmoothingEnabled = false;
  const long = cell * cpus.length;
  brush.drawImage(pixels(cells, colours), MARGIN, MARGIN, long, long);
  numbers(brush, cells, colours);
  outlines(brush, cells);
  return canvas;
}

/** One pixel for each pair; pairs without a time are left transparent. */
function pixels(cells: Cells, colours: Theme): HTMLCanvasElement {
  const many = cells.cpus.length;
  const picture = document.createElement('canvas');
  picture.width = many;
  picture.height = many;
  const brush = picture.getContext('2d');
  if (!brush) return picture;
  const image = brush.createImageData(many, many);
  const steps = Array.from({ length: STEPS }, (_, at) =>
    rgbAt(colours.scale, at / (STEPS - 1)),
  );
  for (let row = 0; row < many; row += 1) {
    for (let column = 0; column < many; column += 1) {
      const ns = cells.time(row, column);
      if (ns === null) continue;
      const step = steps[Math.round(cells.share(ns) * (STEPS - 1))]!;
      image.data.set([...step, 255], 4 * (row * many + column));
    }
  }
  brush.putImageData(image, 0, 0);
  return picture;
}

/** As many CPUs' numbers as have room. */
function numbers(
  brush: CanvasRenderingContext2D,
  cells: Cells,
  colours: Theme,
): void {
  const { fontFamily } = getComputedStyle(document.body);
  brush.font = `12px ${fontFamily}`;
  brush.textBaseline = 'middle';
  brush.fillStyle = colours.muted;
  for (const at of numbered(cells)) {
    const middle = MARGIN + (at + 0.5) * cells.cell;
    const name = `${cells.cpus[at]}`;
    brush.textAlign = 'right';
    brush.fillText(name, MARGIN - 4, middle);
    brush.textAlign = 'center';
    brush.fillText(name, middle, MARGIN - 10);
  }
}

function outlines(brush: CanvasRenderingContext2D, cells: Cells): void {
  // A light line below a dark one is seen on every colour of the scale.
  for (const [width, colour] of [
    [3.5, '#ffffff'],
    [1.75, '#000000'],
  ] as const) {
    brush.lineWidth = width;
    brush.strokeStyle = colour;
    for (const { from, to, isReported } of cells.groups) {
      const inset = isReported ? 3.5 : 1;
      brush.setLineDash(isReported ? [6, 5] : []);
      const start = MARGIN + from * cells.cell + inset;
      const side = (to - from + 1) * cells.cell - 2 * inset;
      if (side > 1) brush.strokeRect(start, start, side, side);
    }
  }
}
