// The whole trace in one strip: how many CPUs are busy, how many threads are queued,
// and which part the rows below show. A drag, or the keys of the timeline, move that part.

import { h } from '../../dom';
import { percent } from '../../format';
import { type Theme, theme } from '../../theme';
import { Depth, sumWaits } from './depth';
import { formatMoment } from './describe';
import { ColumnSums } from './lanes';
import { gutterOf, timeAtShare } from './pointer';
import { type Scene, clampWindow } from './scene';
import { type Handle, handleKey } from './state';

const HEIGHT = 34;

/** Busy CPUs, as a share of all, and queued threads for each CPU: a value for each pixel column. */
export function computeLoad(
  scene: Scene,
  width: number,
): { busy: Float64Array; queued: Float64Array } {
  const busy = new Float64Array(width);
  const queued = new Float64Array(width);
  const many = Math.max(1, scene.cpus.length);
  const lanes = scene.lanes('cpus');
  if (lanes) {
    const summer = new ColumnSums(width, lanes.colours);
    lanes.keys.forEach((_, row) => {
      const bins = scene.bins('cpus', row, false).at(-1);
      const { share } = bins
        ? summer.sumBins(bins, 0, scene.span, scene.span)
        : summer.sum(lanes, row, 0, scene.span);
      share.forEach((part, x) => (busy[x]! += part / many));
    });
  }
  const spans = lanes ? null : scene.spans;
  for (let x = 0; spans && x < width; x += 1) {
    const at = Math.floor((x / width) * (scene.span / spans.lengthNs));
    for (const { own } of spans.cpus) busy[x]! += (own?.[at] ?? 0) / many;
  }
  if (scene.waits) {
    const depth = new Depth();
    const one = new Map(scene.cpus.map((cpu) => [cpu, 0]));
    sumWaits(depth, scene, one, width, { from: 0, to: scene.span });
    for (let x = 0; x < width; x += 1) queued[x] = depth.at(0, x) / many;
  }
  return { busy, queued };
}

/** The strip; call `draw` after the window changed. */
export function minimap(handle: Handle): {
  element: HTMLElement;
  draw(): void;
} {
  const { scene, state } = handle;
  const canvas = h('canvas.minimap', {
    tabIndex: 0,
    role: 'slider',
    aria: {
      label: 'Visible part of the trace',
      valuemin: '0',
      valuemax: '100',
    },
  });
  let whole: (ReturnType<typeof computeLoad> & { width: number }) | null = null;
  const draw = (): void => {
    const width = canvas.clientWidth;
    const context = canvas.getContext('2d');
    if (!context || width === 0) return;
    const gutter = gutterOf(width);
    const room = Math.max(1, width - gutter);
    if (whole?.width !== room)
      whole = { ...computeLoad(scene, room), width: room };
    const ratio = Math.min(2, devicePixelRatio || 1);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(HEIGHT * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paintStrip(context, handle, whole, gutter, theme());
    const { from, to } = state.window;
    const middle = (from + to) / 2 / scene.span;
    canvas.setAttribute('aria-valuenow', String(Math.round(middle * 100)));
    canvas.setAttribute(
      'aria-valuetext',
      `${formatMoment(from)} to ${formatMoment(to)}, ${percent((to - from) / scene.span)} of the trace`,
    );
  };
  listenForDrags(handle, canvas);
  return { element: canvas, draw };
}

function paintStrip(
  context: CanvasRenderingContext2D,
  { scene, state }: Handle,
  { busy, queued, width }: ReturnType<typeof computeLoad> & { width: number },
  gutter: number,
  colours: Theme,
): void {
  context.fillStyle = colours.background;
  context.fillRect(0, 0, gutter + width, HEIGHT);
  context.fillStyle = colours.muted;
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.fillText('Whole trace', 4, HEIGHT / 2);
  const place = (time: number): number => gutter + (time / scene.span) * width;
  const [x0, x1] = [place(state.window.from), place(state.window.to)];
  const high = HEIGHT - 4;
  for (let x = 0; x < width; x += 1) {
    const isSeen = gutter + x >= x0 - 1 && gutter + x <= x1;
    context.globalAlpha = isSeen ? 1 : 0.45;
    context.fillStyle = colours.series[0]!;
    const used = Math.min(1, busy[x]!) * high;
    context.fillRect(gutter + x, HEIGHT - 2 - used, 1, used);
    context.fillStyle = colours.worse;
    context.fillRect(gutter + x, 2, 1, Math.min(1, queued[x]!) * high * 0.5);
  }
  context.globalAlpha = 1;
  const { selection } = state;
  if (selection) {
    context.globalAlpha = 0.3;
    context.fillStyle = colours.text;
    const left = place(selection.from);
    const wide = Math.max(1, place(selection.to) - left);
    context.fillRect(left, 0, wide, HEIGHT);
    context.globalAlpha = 1;
  }
  context.strokeStyle = colours.text;
  context.lineWidth = 2;
  context.strokeRect(x0, 1, Math.max(3, x1 - x0) - 1, HEIGHT - 2);
}

function listenForDrags(handle: Handle, canvas: HTMLCanvasElement): void {
  const { scene, state } = handle;
  let grip: number | null = null;
  const timeAt = (event: PointerEvent): number => {
    const gutter = gutterOf(canvas.clientWidth);
    const x = event.clientX - canvas.getBoundingClientRect().left - gutter;
    const room = Math.max(1, canvas.clientWidth - gutter);
    return timeAtShare({ from: 0, to: scene.span }, x / room);
  };
  const move = (event: PointerEvent): void => {
    if (grip === null) return;
    const { from, to } = state.window;
    const start = timeAt(event) - grip;
    state.window = clampWindow(
      { from: start, to: start + to - from },
      scene.span,
    );
    handle.refresh();
  };
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    const { from, to } = state.window;
    const time = timeAt(event);
    // Dragging inside the window keeps the offset; a click outside centres it there.
    grip = time >= from && time <= to ? time - from : (to - from) / 2;
    move(event);
  });
  canvas.addEventListener('pointermove', move);
  for (const name of ['pointerup', 'pointercancel'] as const)
    canvas.addEventListener(name, () => (grip = null));
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!handleKey(handle, event.key, false)) return;
    event.preventDefault();
    handle.refresh();
  });
}
