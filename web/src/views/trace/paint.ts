// One frame of the timeline, on a canvas.

import { seconds } from '../../format';
import { type Arrow, arrowsOf } from './arrows';
import { Palette } from './colours';
import { type Frame, AXIS, rowsSeen, scaleOf } from './frame';
import { fitText, names } from './labels';
import { Raster } from './raster';
import { RowPainter } from './rows';
import { rowName, ticks } from './scene';

/** Keeps what is costly to make from frame to frame. */
export class Painter {
  private readonly rows = new RowPainter();
  private raster: Raster | null = null;
  private painted: readonly unknown[] = [];

  paint(context: CanvasRenderingContext2D, frame: Frame, ratio: number): void {
    const width = Math.max(1, Math.round((frame.width - frame.gutter) * ratio));
    const height = Math.max(1, Math.round((frame.height - AXIS) * ratio));
    if (this.raster?.width !== width || this.raster.height !== height)
      this.raster = new Raster(width, height);
    const { scene, rows, colourBy, theme, marked } = frame;
    const palette = new Palette(scene, rows, colourBy, theme, marked);
    context.setTransform(1, 0, 0, 1, 0, 0);
    // A pointer that moves changes the cursor only: the rows stay unchanged.
    const painted = [
      this.raster,
      rows,
      frame.window.from,
      frame.window.to,
      frame.scrolled,
      frame.row,
      theme.isDark,
      colourBy,
      marked,
      scene.llcOf,
    ];
    if (painted.some((value, at) => value !== this.painted[at]))
      this.rows.paint(this.raster, frame, palette, ratio);
    this.painted = painted;
    context.fillStyle = theme.background;
    context.fillRect(0, 0, frame.width * ratio, frame.height * ratio);
    this.raster.put(
      context,
      Math.round(frame.gutter * ratio),
      Math.round(AXIS * ratio),
    );
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    names(context, frame, palette);
    axis(context, frame);
    labels(context, frame);
    clip(context, frame, () => arrows(context, frame));
    marks(context, frame);
  }
}

/** Draws within the rows only. */
function clip(
  context: CanvasRenderingContext2D,
  frame: Frame,
  draw: () => void,
): void {
  context.save();
  context.beginPath();
  const { gutter, width, height } = frame;
  context.rect(gutter, AXIS, width - gutter, height - AXIS);
  context.clip();
  draw();
  context.restore();
}

function axis(context: CanvasRenderingContext2D, frame: Frame): void {
  const { window, theme, gutter, width } = frame;
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  const scale = scaleOf(frame);
  const steps = ticks(
    window.from,
    window.to,
    Math.max(2, (width - gutter) / 110),
  );
  // The step decides the digits: two ticks never read the same.
  const digits = Math.min(
    12,
    Math.max(
      3,
      1 +
        Math.ceil(
          Math.log10(
            window.to / Math.max(1, (steps[1] ?? window.to) - (steps[0] ?? 0)),
          ),
        ),
    ),
  );
  for (const time of steps) {
    const x = gutter + (time - window.from) * scale;
    context.fillStyle = theme.line;
    context.fillRect(x, AXIS - 5, 1, frame.height - AXIS + 5);
    context.fillStyle = theme.muted;
    if (x + 60 < width)
      context.fillText(seconds(time * 1e-9, digits), x + 3, AXIS / 2);
  }
}

function labels(context: CanvasRenderingContext2D, frame: Frame): void {
  const { theme, gutter } = frame;
  const isNarrow = gutter < 100;
  context.save();
  context.beginPath();
  context.rect(0, AXIS, gutter, frame.height - AXIS);
  context.clip();
  for (const row of rowsSeen(frame)) {
    const y = AXIS + (row + 0.5) * frame.row - frame.scrolled;
    const isMarked =
      frame.rows === 'threads' && frame.marked?.has(frame.scene.threads[row]!);
    context.fillStyle =
      frame.cursor?.row === row || isMarked ? theme.text : theme.muted;
    context.font = `${isMarked ? 'bold ' : ''}12px system-ui, sans-serif`;
    const name = rowName(frame.scene, frame.rows, row);
    // A CPU's number says more than the beginning of its core's name.
    const text =
      frame.rows === 'cpus' && isNarrow ? name.split(' · ')[0]! : name;
    context.fillText(fitText(context, text, gutter - 8), 4, y);
  }
  context.restore();
}

/** The cursor and what is being selected. */
function marks(context: CanvasRenderingContext2D, frame: Frame): void {
  const { window, gutter, theme, cursor, selection } = frame;
  const scale = scaleOf(frame);
  if (selection) {
    const x0 = gutter + (selection.from - window.from) * scale;
    context.globalAlpha = 0.25;
    context.fillStyle = theme.text;
    context.fillRect(
      x0,
      AXIS,
      (selection.to - selection.from) * scale,
      frame.height - AXIS,
    );
    context.globalAlpha = 1;
  }
  if (!cursor) return;
  const x = gutter + (cursor.time - window.from) * scale;
  const y = AXIS + cursor.row * frame.row - frame.scrolled;
  context.strokeStyle = theme.text;
  context.lineWidth = 1;
  context.strokeRect(
    gutter + 0.5,
    y + 0.5,
    frame.width - gutter - 1,
    frame.row - 1,
  );
  if (x >= gutter && x <= frame.width) {
    context.fillStyle = theme.text;
    context.fillRect(x, AXIS - 4, 1, frame.height - AXIS + 4);
  }
}

/** The way of the chosen thread: migrations in full lines, wake-ups dashed from a dot. */
function arrows(context: CanvasRenderingContext2D, frame: Frame): void {
  const { scene, window, theme, thread } = frame;
  if (thread === null || frame.rows !== 'cpus') return;
  const { rowOf } = scene;
  const scale = scaleOf(frame);
  const place = ({ cpu, time }: Arrow['from']): [number, number] => [
    frame.gutter + (time - window.from) * scale,
    AXIS + ((rowOf.get(cpu) ?? -1) + 0.55) * frame.row - frame.scrolled,
  ];
  const drawn = new Set<string>();
  for (const arrow of arrowsOf(scene, thread, window) ?? []) {
    const [[x0, y0], [x1, y1]] = [place(arrow.from), place(arrow.to)];
    // What falls on an arrow that is drawn already changes nothing.
    const where = [x0, y0, x1, y1].map((at) => Math.round(at / 2)).join();
    if (drawn.has(where)) continue;
    drawn.add(where);
    const isWakeup = arrow.kind === 'wakeup';
    const colour = isWakeup ? theme.worse : theme.text;
    // A line in the background's colour below it is seen on any slice.
    stroke(context, x0, y0, x1, y1, theme.background, 3, []);
    stroke(context, x0, y0, x1, y1, colour, 1.5, isWakeup ? [4, 3] : []);
    head(context, x0, y0, x1, y1, colour);
    if (isWakeup) dot(context, x0, y0, colour);
  }
}

function stroke(
  context: CanvasRenderingContext2D,
  x0: number,
  y0: number,
  x1: number,
  y1: number,
  colour: string,
  width: number,
  dash: number[],
): void {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
  context.setLineDash([]);
}

function head(
  context: CanvasRenderingContext2D,
  x0: number,
  y0: number,
  x1: number,
  y1: number,
  colour: string,
): void {
  const angle = Math.atan2(y1 - y0, x1 - x0);
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x1, y1);
  for (const turn of [-0.45, 0.45])
    context.lineTo(
      x1 - 7 * Math.cos(angle + turn),
      y1 - 7 * Math.sin(angle + turn),
    );
  context.fill();
}

function dot(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  colour: string,
): void {
  context.fillStyle = colour;
  context.beginPath();
  context.arc(x, y, 2.5, 0, 2 * Math.PI);
  context.fill();
}
