// Draws names in slices that have room for them.

import { inkOn } from '../../colour-scale';
import type { Palette } from './colours';
import { type Frame, AXIS_HEIGHT, visibleRows, pixelsPerNs } from './frame';
import { firstEndingAfter, firstStartingFrom } from './lanes';
import { classifyMove } from './scene';

/** A row with more visible slices has no names: they are too narrow. */
const MAX_NAMED = 400;

/** Lower rows have no room for readable letters, pixels. */
const MIN_NAMED_HEIGHT = 15;

/** Draws names in slices that have room for them, and ticks where a thread came from another CPU. */
export function drawNames(
  context: CanvasRenderingContext2D,
  frame: Frame,
  palette: Palette,
): void {
  const { scene, rows, window, gutter } = frame;
  const lanes = scene.lanes(rows);
  const keys = scene.keys(rows, frame.colourBy === 'cause')?.keys;
  if (!lanes || !keys) return;
  const scale = pixelsPerNs(frame);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.save();
  context.beginPath();
  context.rect(
    gutter,
    AXIS_HEIGHT,
    frame.width - gutter,
    frame.height - AXIS_HEIGHT,
  );
  context.clip();
  for (const row of visibleRows(frame)) {
    const first = firstEndingAfter(lanes, row, window.from);
    const y = AXIS_HEIGHT + row * frame.row - frame.scrolled;
    const last = firstStartingFrom(lanes, row, window.to);
    if (last - first > MAX_NAMED) continue;
    for (let at = first; at < last; at += 1) {
      const x0 = gutter + Math.max(0, (lanes.start[at]! - window.from) * scale);
      const x1 = Math.min(
        frame.width,
        gutter + (lanes.start[at]! + lanes.length[at]! - window.from) * scale,
      );
      if (rows === 'threads')
        drawMoveTick(
          context,
          frame,
          classifyMove(scene, lanes, row, at),
          x0,
          y,
        );
      const isMarked = palette.isMarked(row, keys[at]!);
      if (x1 - x0 < 22 || frame.row < MIN_NAMED_HEIGHT || !isMarked) continue;
      const key = lanes.colour[at]!;
      const text = fitText(
        context,
        rows === 'cpus' ? scene.threadName(key) : `CPU ${key}`,
        x1 - x0 - 8,
      );
      context.fillStyle = inkOn(palette.css(row, keys[at]!));
      context.fillText(text, x0 + 5, y + frame.row * 0.56);
    }
  }
  context.restore();
}

/** Marks that a thread came from another CPU: a short stroke within a core, a long one with a bar
 * between cores. */
function drawMoveTick(
  context: CanvasRenderingContext2D,
  frame: Frame,
  move: 'smt' | 'core' | null,
  x: number,
  y: number,
): void {
  if (!move) return;
  context.fillStyle = frame.theme.text;
  if (move === 'smt') {
    context.fillRect(x - 0.5, y + 2, 1, 5);
    return;
  }
  context.fillRect(x - 0.5, y, 1.5, frame.row - 1);
  context.fillRect(x - 2.5, y, 5, 2);
}

/** Cuts a text to a width; empty if not even three letters fit. */
export function fitText(
  context: CanvasRenderingContext2D,
  text: string,
  width: number,
): string {
  const whole = measureWidth(context, text);
  if (whole <= width) return text;
  const letters = Math.floor((width / Math.max(1, whole)) * text.length) - 1;
  return letters < 3 ? '' : `${text.slice(0, letters)}…`;
}

const widths = new Map<string, number>();
const MAX_WIDTHS = 20_000;

/** Measures a text once: it takes longer than drawing it, and names recur in every frame. */
function measureWidth(context: CanvasRenderingContext2D, text: string): number {
  const key = `${context.font} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size >= MAX_WIDTHS) widths.clear();
    width = context.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}
