// Words in slices that have room for them.

import { inkOn } from '../../colour-scale';
import type { Palette } from './colours';
import { type Frame, AXIS, rowsSeen, scaleOf } from './frame';
import { firstAfter, firstFrom } from './lanes';
import { moveOf } from './scene';

/** A row with more slices in it has no names: they are too narrow. */
const MAX_NAMED = 400;

/** Lower rows have no room for letters that can be read, pixels. */
const MIN_NAMED_HEIGHT = 15;

/** Names in slices that have room for them; ticks if a thread came from another CPU. */
export function names(
  context: CanvasRenderingContext2D,
  frame: Frame,
  palette: Palette,
): void {
  const { scene, rows, window, gutter } = frame;
  const lanes = scene.lanes(rows);
  const keys = scene.keys(rows, frame.colourBy === 'cause')?.keys;
  if (!lanes || !keys) return;
  const scale = scaleOf(frame);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.save();
  context.beginPath();
  context.rect(gutter, AXIS, frame.width - gutter, frame.height - AXIS);
  context.clip();
  for (const row of rowsSeen(frame)) {
    const first = firstAfter(lanes, row, window.from);
    const y = AXIS + row * frame.row - frame.scrolled;
    const last = firstFrom(lanes, row, window.to);
    if (last - first > MAX_NAMED) continue;
    for (let at = first; at < last; at += 1) {
      const x0 = gutter + Math.max(0, (lanes.start[at]! - window.from) * scale);
      const x1 = Math.min(
        frame.width,
        gutter + (lanes.start[at]! + lanes.length[at]! - window.from) * scale,
      );
      if (rows === 'threads')
        tick(context, frame, moveOf(scene, lanes, row, at), x0, y);
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

/** A thread came from another CPU: a short stroke within the core, a long one with a foot beyond it. */
function tick(
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

/** Text cut to a width; nothing if not even three letters fit. */
export function fitText(
  context: CanvasRenderingContext2D,
  text: string,
  width: number,
): string {
  const whole = widthOf(context, text);
  if (whole <= width) return text;
  const letters = Math.floor((width / Math.max(1, whole)) * text.length) - 1;
  return letters < 3 ? '' : `${text.slice(0, letters)}…`;
}

const widths = new Map<string, number>();
const MAX_WIDTHS = 20_000;

/** Measuring takes longer than drawing: names come again in every frame. */
function widthOf(context: CanvasRenderingContext2D, text: string): number {
  const key = `${context.font} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size >= MAX_WIDTHS) widths.clear();
    width = context.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}
