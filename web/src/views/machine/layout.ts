// The layout of the drawing's boxes: units within each other, in columns that fit the page and give
// boxes a wanted aspect ratio.

import type { Unit } from './shape';

export interface Box {
  unit: Unit;
  x: number;
  y: number;
  width: number;
  height: number;
  /** The longest name that fits; "" if none does. */
  label: string;
  children: Box[];
}

export interface Sizes {
  /** A CPU's box. */
  width: number;
  height: number;
  /** Is there room for a figure below the CPU's number? */
  hasFigure: boolean;
}

/** The drawing's font size: smaller letters cannot be read. */
export const FONT_PX = 12;

/** The more CPUs, the smaller their boxes. */
export function chooseSizes(cpus: number): Sizes {
  if (cpus <= 64) return { width: 44, height: 36, hasFigure: true };
  if (cpus <= 256) return { width: 36, height: 32, hasFigure: true };
  if (cpus <= 1000) return { width: 28, height: 17, hasFigure: false };
  return { width: 35, height: 17, hasFigure: false };
}

const GAP = 4;
const LABEL_HEIGHT = 16;
/** The wanted ratio of width to height of a unit's children. */
const ASPECTS: Readonly<Record<Unit['kind'], number>> = {
  package: 2.2,
  node: 2,
  llc: 1.8,
  cluster: 1.4,
  core: 4,
  cpu: 1,
};

/** Lays out units beside and below each other in at most `width`. */
export function layOut(
  units: readonly Unit[],
  width: number,
  sizes: Sizes,
): { boxes: Box[]; width: number; height: number } {
  const boxes = units.map((unit) => layOutBox(unit, width, sizes));
  const size = arrange(boxes, 0, 0, width, 3, 8);
  return { boxes, ...size };
}

function layOutBox(unit: Unit, most: number, sizes: Sizes): Box {
  if (unit.kind === 'cpu')
    return {
      unit,
      x: 0,
      y: 0,
      width: sizes.width,
      height: sizes.height,
      label: unit.names[0] ?? '',
      children: [],
    };
  const isCore = unit.kind === 'core';
  const padding = isCore ? 3 : 6;
  const head = isCore && !sizes.hasFigure ? 0 : LABEL_HEIGHT;
  const children = unit.children.map((child) =>
    layOutBox(child, most - 2 * padding, sizes),
  );
  const inner = arrange(
    children,
    padding,
    padding + head,
    most - 2 * padding,
    ASPECTS[unit.kind],
    GAP,
  );
  const width = inner.width + 2 * padding;
  const label =
    head === 0
      ? ''
      : (unit.names.find((name) => estimateWidth(name) <= width - 6) ?? '');
  return {
    unit,
    x: 0,
    y: 0,
    width,
    height: inner.height + 2 * padding + head,
    label,
    children,
  };
}

/** The width of a label, pixels. */
const estimateWidth = (text: string): number => text.length * 6.7;

/** Puts boxes into columns below and right of a corner; returns the size of all. */
function arrange(
  boxes: Box[],
  left: number,
  top: number,
  most: number,
  shape: number,
  gap: number,
): { width: number; height: number } {
  const wide = Math.max(0, ...boxes.map((b) => b.width));
  const high = Math.max(1, ...boxes.map((b) => b.height));
  const columns = chooseColumns(
    boxes.length,
    wide + gap,
    high + gap,
    most + gap,
    shape,
  );
  let y = top;
  let right = left;
  for (let at = 0; at < boxes.length; at += columns) {
    const row = boxes.slice(at, at + columns);
    row.forEach((b, column) => {
      b.x = left + column * (wide + gap);
      b.y = y;
      right = Math.max(right, b.x + b.width);
    });
    y += Math.max(...row.map((b) => b.height)) + gap;
  }
  return { width: right - left, height: Math.max(0, y - gap - top) };
}

/** The number of columns whose aspect ratio is nearest to the wanted one; full last rows are
 * preferred. */
export function chooseColumns(
  number: number,
  width: number,
  height: number,
  most: number,
  shape: number,
): number {
  let best = 1;
  let least = Infinity;
  for (
    let columns = 1;
    columns <= number && (columns === 1 || columns * width <= most);
    columns += 1
  ) {
    const rows = Math.ceil(number / columns);
    const misses = Math.abs(
      Math.log((columns * width) / (rows * height) / shape),
    );
    const cost = misses + (number % columns === 0 ? 0 : 0.8);
    if (cost < least) [best, least] = [columns, cost];
  }
  return best;
}
