// Paints a frame of the timeline on a canvas.

import { seconds } from '../../format';
import { type Arrow, findArrows } from './arrows';
import { Palette } from './colours';
import { type Frame, AXIS_HEIGHT, visibleRows, pixelsPerNs } from './frame';
import { fitText, drawNames } from './labels';
import { Raster } from './raster';
import { RowPainter } from './rows';
import { rowName, roundTicks } from './scene';

/** Paints frames, and keeps what is costly to build between them. */
export class Painter {
  readonly rows = new RowPainter();
  private raster: Raster | null = null;
  private painted: readonly unknown[] = [];

  paint(context: CanvasRenderingContext2D, frame: Frame, ratio: number): void {
    const width = Math.max(1, Math.round((frame.width - frame.gutter) * ratio));
    const height = Math.max(
      1,
      Math.round((frame.height - AXIS_HEIGHT) * ratio),
    );
    if (this.raster?.width !== width || this.raster.height !== height)
      this.raster = new Raster(width, height);
    const { scene, rows, colourBy, theme, marked } = frame;
    const palette = new Palette(scene, rows, colourBy, theme, marked);
    context.setTransform(1, 0, 0, 1, 0, 0);
    // A moving pointer changes only the cursor: rows are painted again only if one of these
    // changed.
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
      Math.round(AXIS_HEIGHT * ratio),
    );
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawNames(context, frame, palette);
    drawAxis(context, frame);
    drawLabels(context, frame);
    clipToRows(context, frame, () => drawArrows(context, frame));
    drawMarks(context, frame);
  }
}

/** Draws within the rows only. */
function clipToRows(
  context: CanvasRenderingContext2D,
  frame: Frame,
  draw: () => void,
): void {
  context.save();
  context.beginPath();
  const { gutter, width, height } = frame;
  context.rect(gutter, AXIS_HEIGHT, width - gutter, height - AXIS_HEIGHT);
  context.clip();
  draw();
  context.restore();
}

function drawAxis(context: CanvasRenderingContext2D, frame: Frame): void {
  const { window, theme, gutter, width } = frame;
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  const scale = pixelsPerNs(frame);
  const steps = roundTicks(
    window.from,
    window.to,
    Math.max(2, (width - gutter) / 110),
  );
  // As many digits as the step needs, so that no two ticks have the same label.
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
  const end = seconds(window.to * 1e-9, digits);
  const room = width - 3 - context.measureText(end).width;
  for (const time of steps) {
    const x = gutter + (time - window.from) * scale;
    context.fillStyle = theme.line;
    context.fillRect(x, AXIS_HEIGHT - 5, 1, frame.height - AXIS_HEIGHT + 5);
    context.fillStyle = theme.muted;
    const label = seconds(time * 1e-9, digits);
    if (x + 12 + context.measureText(label).width < room)
      context.fillText(label, x + 3, AXIS_HEIGHT / 2);
  }
  context.fillStyle = theme.muted;
  context.fillText(end, room, AXIS_HEIGHT / 2);
}

function drawLabels(context: CanvasRenderingContext2D, frame: Frame): void {
  const { theme, gutter } = frame;
  const isNarrow = gutter < 100;
  context.save();
  context.beginPath();
  context.rect(0, AXIS_HEIGHT, gutter, frame.height - AXIS_HEIGHT);
  context.clip();
  for (const row of visibleRows(frame)) {
    const y = AXIS_HEIGHT + (row + 0.5) * frame.row - frame.scrolled;
    const isMarked =
      frame.rows === 'threads' && frame.marked?.has(frame.scene.threads[row]!);
    context.fillStyle =
      frame.cursor?.row === row || isMarked ? theme.text : theme.muted;
    context.font = `${isMarked ? 'bold ' : ''}12px system-ui, sans-serif`;
    const name = rowName(frame.scene, frame.rows, row);
    // Where both do not fit, the CPU's number matters more than its core.
    const text =
      frame.rows === 'cpus' && isNarrow ? name.split(' · ')[0]! : name;
    context.fillText(fitText(context, text, gutter - 8), 4, y);
  }
  context.restore();
}

/** Draws the selection and the cursor. */
function drawMarks(context: CanvasRenderingContext2D, frame: Frame): void {
  const { window, gutter, theme, cursor, selection } = frame;
  const scale = pixelsPerNs(frame);
  if (selection) {
    const x0 = gutter + (selection.from - window.from) * scale;
    context.globalAlpha = 0.25;
    context.fillStyle = theme.text;
    context.fillRect(
      x0,
      AXIS_HEIGHT,
      (selection.to - selection.from) * scale,
      frame.height - AXIS_HEIGHT,
    );
    context.globalAlpha = 1;
  }
  if (!cursor) return;
  const x = gutter + (cursor.time - window.from) * scale;
  const y = AXIS_HEIGHT + cursor.row * frame.row - frame.scrolled;
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
    context.fillRect(x, AXIS_HEIGHT - 4, 1, frame.height - AXIS_HEIGHT + 4);
  }
}

/** Draws the path of the followed thread: migrations in full lines, wake-ups in dashed ones from a
 * dot. */
function drawArrows(context: CanvasRenderingContext2D, frame: Frame): void {
  const { scene, window, theme, thread } = frame;
  if (thread === null || frame.rows !== 'cpus') return;
  const { rowOf } = scene;
  const scale = pixelsPerNs(frame);
  const place = ({ cpu, time }: Arrow['from']): [number, number] => [
    frame.gutter + (time - window.from) * scale,
    AXIS_HEIGHT + ((rowOf.get(cpu) ?? -1) + 0.55) * frame.row - frame.scrolled,
  ];
  const drawn = new Set<string>();
  for (const arrow of findArrows(scene, thread, window) ?? []) {
    const [[x0, y0], [x1, y1]] = [place(arrow.from), place(arrow.to)];
    // An arrow on top of a drawn one changes nothing.
    const where = [x0, y0, x1, y1].map((at) => Math.round(at / 2)).join();
    if (drawn.has(where)) continue;
    drawn.add(where);
    const isWakeup = arrow.kind === 'wakeup';
    const colour = isWakeup ? theme.worse : theme.text;
    // A wider line in the background colour below makes it visible on any slice.
    strokeLine(context, x0, y0, x1, y1, theme.background, 3, []);
    strokeLine(context, x0, y0, x1, y1, colour, 1.5, isWakeup ? [4, 3] : []);
    drawHead(context, x0, y0, x1, y1, colour);
    if (isWakeup) drawDot(context, x0, y0, colour);
  }
}

function strokeLine(
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

function drawHead(
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

function drawDot(
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
