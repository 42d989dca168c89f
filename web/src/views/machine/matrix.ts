// The latency matrix on its canvas: cells, groups, numbers, and marks.

import { rgbAt, shareOf } from '../../colour-scale';
import type { Theme } from '../../theme';
import type { Machine, Measured } from './record';
import type { Order } from './shape';
import { reportedGroups, runsOf } from './shape';

/** Colours that cells take. */
const STEPS = 256;

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
  /** The cells, drawn once for an order: a million of them take a while. */
  picture: HTMLCanvasElement | null;
}

/** Room for the CPUs' numbers, left and above. */
export const MARGIN = 30;

/** Draws the matrix into at most `room` pixels. */
export function paint(
  canvas: HTMLCanvasElement,
  room: number,
  machine: Machine,
  measured: Measured,
  shown: Shown,
  ends: { low: number; high: number },
  colours: Theme,
): void {
  const cells = shown.places.length;
  const side = Math.max(
    120,
    Math.min(room, MARGIN + Math.max(220, Math.min(760, cells * 28))),
  );
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(side * ratio);
  canvas.height = Math.round(side * ratio);
  canvas.style.width = `${side}px`;
  canvas.style.height = `${side}px`;
  const brush = canvas.getContext('2d');
  if (!brush || cells === 0) return;
  brush.setTransform(ratio, 0, 0, ratio, 0, 0);
  const cell = (side - MARGIN - 1) / cells;
  brush.imageSmoothingEnabled = false;
  // Light and dark have the same scale, so the picture holds for both.
  const share = (ns: number): number => shareIn(ns, ends, shown.isLog);
  shown.picture ??= pixels(measured, shown.places, share, colours);
  brush.drawImage(shown.picture, MARGIN, MARGIN, cell * cells, cell * cells);
  numbers(brush, measured, shown, cell, colours);
  if (cell >= 26) figures(brush, measured, shown.places, cell, share, colours);
  outlines(brush, machine, measured, shown, cell, colours);
  linked(brush, measured, shown, cell, colours);
  const size = Math.max(cell, 3);
  const [x, y] = [shown.column, shown.row].map((at) => MARGIN + at * cell);
  ringed(brush, colours, [[x!, y!, size, size]]);
}

/** One pixel for each pair; pairs without a time are left transparent. */
function pixels(
  measured: Measured,
  places: readonly number[],
  share: (ns: number) => number,
  colours: Theme,
): HTMLCanvasElement {
  const picture = document.createElement('canvas');
  picture.width = places.length;
  picture.height = places.length;
  const brush = picture.getContext('2d');
  if (!brush) return picture;
  const image = brush.createImageData(places.length, places.length);
  const steps = Array.from({ length: STEPS }, (_, at) =>
    rgbAt(colours.scale, at / (STEPS - 1)),
  );
  places.forEach((i, row) => {
    const times = measured.latency[i];
    places.forEach((j, column) => {
      const ns = times?.[j];
      if (typeof ns !== 'number' || ns <= 0) return;
      const step = steps[Math.round(share(ns) * (STEPS - 1))]!;
      const at = 4 * (row * places.length + column);
      [
        image.data[at],
        image.data[at + 1],
        image.data[at + 2],
        image.data[at + 3],
      ] = [step[0], step[1], step[2], 255];
    });
  });
  brush.putImageData(image, 0, 0);
  return picture;
}

/** Where a time lies between the ends of the scale, 0 to 1. */
export function shareIn(
  ns: number,
  { low, high }: { low: number; high: number },
  isLog: boolean,
): number {
  if (isLog) return shareOf(ns, low, high);
  return high > low ? (ns - low) / (high - low) : 0.5;
}

/** The row and the column of the CPU that is pointed at in the drawing. */
function linked(
  brush: CanvasRenderingContext2D,
  measured: Measured,
  { linked: cpu, places }: Shown,
  cell: number,
  colours: Theme,
): void {
  const at = places.findIndex((place) => measured.cpus[place] === cpu);
  if (cpu === null || at < 0) return;
  const start = MARGIN + at * cell;
  const thick = Math.max(cell, 3);
  const long = cell * places.length;
  ringed(brush, colours, [
    [MARGIN, start, long, thick],
    [start, MARGIN, thick, long],
  ]);
}

/** Rectangles in a line that is seen on every colour of the scale. */
function ringed(
  brush: CanvasRenderingContext2D,
  colours: Theme,
  rectangles: readonly (readonly [number, number, number, number])[],
): void {
  brush.setLineDash([]);
  for (const [width, colour] of [
    [4.5, colours.background],
    [2, colours.text],
  ] as const) {
    brush.lineWidth = width;
    brush.strokeStyle = colour;
    for (const rectangle of rectangles) brush.strokeRect(...rectangle);
  }
}

/** As many CPUs' numbers as have room; that of the CPU pointed at always. */
function numbers(
  brush: CanvasRenderingContext2D,
  measured: Measured,
  { places, linked: cpu }: Shown,
  cell: number,
  colours: Theme,
): void {
  const room = Math.max(...measured.cpus) < 100 ? 22 : 30;
  const step = Math.max(1, Math.ceil(room / cell));
  brush.textBaseline = 'middle';
  const pointed = places.findIndex((place) => measured.cpus[place] === cpu);
  for (let at = 0; at < places.length; at += 1) {
    const isPointed = at === pointed;
    // What stands beside the pointed one would run into it.
    const isCrowded = pointed >= 0 && Math.abs(at - pointed) * cell < room;
    if (!isPointed && (at % step !== 0 || (isCrowded && step > 1))) continue;
    brush.fillStyle = isPointed ? colours.text : colours.muted;
    brush.font = `${isPointed ? 'bold ' : ''}11px sans-serif`;
    const middle = MARGIN + (at + 0.5) * cell;
    const name = `${measured.cpus[places[at]!]}`;
    brush.textAlign = 'right';
    brush.fillText(name, MARGIN - 4, middle);
    brush.textAlign = 'center';
    brush.fillText(name, middle, MARGIN - 9);
  }
}

function figures(
  brush: CanvasRenderingContext2D,
  measured: Measured,
  places: readonly number[],
  cell: number,
  share: (ns: number) => number,
  colours: Theme,
): void {
  brush.textAlign = 'center';
  brush.textBaseline = 'middle';
  brush.font = '10px sans-serif';
  places.forEach((i, row) =>
    places.forEach((j, column) => {
      const ns = measured.latency[i]?.[j];
      if (typeof ns !== 'number') return;
      // The scale's upper half is light, its lower half dark.
      brush.fillStyle = share(ns) > 0.45 ? '#000000' : '#ffffff';
      const text =
        ns >= 10_000
          ? `${Math.round(ns / 1000)}k`
          : ns >= 100
            ? `${Math.round(ns)}`
            : ns.toFixed(ns >= 10 ? 0 : 1);
      brush.fillText(
        text,
        MARGIN + (column + 0.5) * cell,
        MARGIN + (row + 0.5) * cell,
      );
    }),
  );
  brush.fillStyle = colours.text;
}

function outlines(
  brush: CanvasRenderingContext2D,
  machine: Machine,
  measured: Measured,
  shown: Shown,
  cell: number,
  colours: Theme,
): void {
  if (shown.level === '') return;
  const cpus = shown.places.map((place) => measured.cpus[place]!);
  const found =
    measured.levels.find((level) => level.kind === shown.level)?.groups ?? [];
  const reported = reportedGroups(machine, shown.level).filter(
    (group) => group.length > 1,
  );
  const drawRuns = (
    groups: number[][],
    dash: number[],
    inset: number,
    colour: string,
  ): void => {
    brush.setLineDash(dash);
    brush.strokeStyle = colour;
    for (const [from, to] of runsOf(groups, cpus)) {
      const start = MARGIN + from * cell + inset;
      const side = (to - from + 1) * cell - 2 * inset;
      if (side > 1) brush.strokeRect(start, start, side, side);
    }
  };
  // A light line below a dark one is seen on every colour of the scale.
  for (const [width, colour] of [
    [3.5, '#ffffff'],
    [1.75, '#000000'],
  ] as const) {
    brush.lineWidth = width;
    drawRuns(found, [], 1, colour);
    drawRuns(reported, [6, 5], 3.5, colour);
  }
  brush.setLineDash([]);
  brush.strokeStyle = colours.text;
}
