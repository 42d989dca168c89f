// The layout of the drawing's boxes: units within each other, in as many columns as fit the page
// and make boxes of a pleasing shape.

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

/** Letters of the drawing, pixels: smaller ones cannot be read. */
export const FONT = 12;

/** Boxes grow smaller as CPUs become more. */
export function sizesFor(cpus: number): Sizes {
  if (cpus <= 64) return { width: 44, height: 36, hasFigure: true };
  if (cpus <= 256) return { width: 36, height: 32, hasFigure: true };
  if (cpus <= 1000) return { width: 28, height: 17, hasFigure: false };
  return { width: 35, height: 17, hasFigure: false };
}

const GAP = 4;
const LABEL = 16;
/** Width over height that a unit's children should come near to. */
const SHAPE: Readonly<Record<Unit['kind'], number>> = {
  package: 2.2,
  node: 2,
  llc: 1.8,
  cluster: 1.4,
  core: 4,
  cpu: 1,
};

/** The boxes of units beside and below each other in at most `width`. */
export function layout(
  units: readonly Unit[],
  width: number,
  sizes: Sizes,
): { boxes: Box[]; width: number; height: number } {
  const boxes = units.map((unit) => box(unit, width, sizes));
  const size = arrange(boxes, 0, 0, width, 3, 8);
  return { boxes, ...size };
}

function box(unit: Unit, most: number, sizes: Sizes): Box {
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
  const head = isCore && !sizes.hasFigure ? 0 : LABEL;
  const children = unit.children.map((child) =>
    box(child, most - 2 * padding, sizes),
  );
  const inner = arrange(
    children,
    padding,
    padding + head,
    most - 2 * padding,
    SHAPE[unit.kind],
    GAP,
  );
  const width = inner.width + 2 * padding;
  const label =
    head === 0
      ? ''
      : (unit.names.find((name) => textWidth(name) <= width - 6) ?? '');
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

/** A label's width. */
const textWidth = (text: string): number => text.length * 6.7;

/** Puts boxes into columns, from a corner on; returns what they take. */
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
  const columns = columnsFor(
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

/** The number of columns whose shape is nearest to the wanted one; full last rows are preferred. */
export function columnsFor(
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
