// The timeline: a canvas of rows, moved and zoomed by pointer and keyboard.

import { h, visible } from '../../dom';
import { count, seconds } from '../../format';
import { onTheme, theme } from '../../theme';
import type { Part } from '../../view';
import type { Frame } from './paint';
import { AXIS, Painter, ROW, rowCount } from './paint';
import type { Rows, Scene, Window } from './scene';
import { describe, moment, panned, within, zoomed } from './scene';

/** Most CSS pixels of height; more rows scroll. */
const MOST_HEIGHT = 430;
const KEYS =
  'Arrows left and right move, up and down choose a row, plus and minus zoom, Home shows the whole trace, comma and full stop go to the slice before and after. Drag to zoom into a part, Shift and drag to move; the wheel zooms once the timeline has the focus.';

export interface Timeline extends Part {
  /** Goes to a part of the trace, in the row of this thread or CPU. */
  show(rows: Rows, key: number, start: number, length: number): void;
}

interface State {
  rows: Rows;
  window: Window;
  cursor: { row: number; time: number };
  selection: { from: number; to: number } | null;
  frame: number;
}

export function timeline(scene: Scene, summary: string): Timeline {
  const state: State = {
    rows: 'cpus',
    window: { from: 0, to: scene.span },
    cursor: { row: 0, time: scene.span / 2 },
    selection: null,
    frame: 0,
  };
  const canvas = h('canvas', {
    tabIndex: 0,
    role: 'img',
    aria: { describedby: 'timeline-keys' },
  });
  const spacer = h('div');
  const scroller = h(
    'div',
    { class: 'lanes', role: 'region', aria: { label: 'Rows of the timeline' } },
    canvas,
    spacer,
  );
  const seen = h('p', { class: 'muted status' });
  const place = h('p', {
    class: 'place',
    role: 'status',
    aria: { live: 'polite' },
  });
  const painter = new Painter();

  const draw = (): void => {
    cancelAnimationFrame(state.frame);
    state.frame = requestAnimationFrame(() =>
      paint(canvas, scroller, painter, scene, state),
    );
  };
  const layout = (): void => {
    const rows = rowCount(scene, state.rows);
    const whole = AXIS + rows * ROW + 2;
    const height = Math.min(whole, MOST_HEIGHT);
    canvas.style.height = `${height}px`;
    scroller.style.height = `${height + 2}px`;
    spacer.style.height = `${whole - height}px`;
    canvas.setAttribute(
      'aria-label',
      `Timeline of ${state.rows === 'cpus' ? 'CPUs' : 'threads'}. ${summary}`,
    );
    draw();
  };
  const tell = (): void => {
    seen.textContent = `${moment(state.window.from)} to ${moment(state.window.to)}: ${seconds((state.window.to - state.window.from) * 1e-9)} of ${seconds(scene.span * 1e-9)}`;
    place.textContent = rowCount(scene, state.rows)
      ? visible(
          describe(scene, state.rows, state.cursor.row, state.cursor.time),
        )
      : 'Nothing ran.';
  };
  const refresh = (): void => {
    tell();
    draw();
  };
  const handle: Handle = { scene, state, canvas, scroller, refresh, layout };
  const tools = toolbar(handle);
  const forget = [onTheme(draw), listen(handle)];
  const size = new ResizeObserver(layout);
  size.observe(scroller);
  tell();
  const element = h(
    'figure',
    { class: 'chart', data: { chart: 'Timeline' } },
    h(
      'figcaption',
      {},
      h('strong', {}, 'Timeline'),
      ' ',
      h('span', { class: 'muted' }, summary),
    ),
    tools.element,
    seen,
    scroller,
    place,
    key(scene),
    h('p', { class: 'muted', id: 'timeline-keys' }, KEYS),
  );
  return {
    element,
    show(rows, wanted, start, length) {
      tools.choose(rows);
      const keys = rows === 'cpus' ? scene.cpus : scene.threads;
      state.cursor = {
        row: Math.max(0, keys.indexOf(wanted)),
        time: start + length / 2,
      };
      const around = Math.max(length * 6, 2_000);
      state.window = within(
        {
          from: start + length / 2 - around / 2,
          to: start + length / 2 + around / 2,
        },
        scene.span,
      );
      reveal(handle);
      refresh();
      canvas.focus();
    },
    dispose() {
      cancelAnimationFrame(state.frame);
      forget.forEach((stop) => stop());
      size.disconnect();
    },
  };
}

interface Handle {
  scene: Scene;
  state: State;
  canvas: HTMLCanvasElement;
  scroller: HTMLElement;
  refresh(): void;
  layout(): void;
}

const gutterOf = (width: number): number => (width < 500 ? 84 : 150);

function paint(
  canvas: HTMLCanvasElement,
  scroller: HTMLElement,
  painter: Painter,
  scene: Scene,
  state: State,
): void {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const context = canvas.getContext('2d');
  if (!context || width === 0 || height === 0) return;
  const began = performance.now();
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const frame: Frame = {
    scene,
    rows: state.rows,
    window: state.window,
    width,
    height,
    scrolled: scroller.scrollTop,
    gutter: gutterOf(width),
    cursor: state.cursor,
    selection: state.selection,
    theme: theme(),
  };
  painter.paint(context, frame, ratio);
  // How long a frame took is part of what the page must reach: benchmarks read it here.
  canvas.dataset['frameMs'] = (performance.now() - began).toFixed(2);
  canvas.dataset['frames'] = String(Number(canvas.dataset['frames'] ?? 0) + 1);
}

function toolbar(handle: Handle): {
  element: HTMLElement;
  choose(rows: Rows): void;
} {
  const { scene, state } = handle;
  const select = h(
    'select',
    {},
    h('option', { value: 'cpus' }, 'CPUs'),
    h('option', { value: 'threads' }, 'threads'),
  );
  const choose = (rows: Rows): void => {
    if (!scene.slices) return;
    select.value = rows;
    if (state.rows === rows) return;
    state.rows = rows;
    state.cursor.row = 0;
    handle.scroller.scrollTop = 0;
    handle.layout();
    handle.refresh();
  };
  select.addEventListener('change', () => choose(select.value as Rows));
  const button = (name: string, act: () => void): HTMLElement =>
    h(
      'button',
      {
        type: 'button',
        onclick: () => {
          act();
          handle.refresh();
        },
      },
      name,
    );
  const zoom = (factor: number): void => {
    const middle = (state.window.from + state.window.to) / 2;
    state.window = zoomed(state.window, factor, middle, scene.span);
  };
  const element = h(
    'div',
    { class: 'tools', role: 'group', aria: { label: 'Timeline' } },
    scene.slices ? h('label', {}, 'Rows ', select) : null,
    button('Zoom in', () => zoom(0.5)),
    button('Zoom out', () => zoom(2)),
    button(
      'Earlier',
      () => (state.window = panned(state.window, -0.5, scene.span)),
    ),
    button(
      'Later',
      () => (state.window = panned(state.window, 0.5, scene.span)),
    ),
    button('Whole trace', () => (state.window = { from: 0, to: scene.span })),
  );
  return { element, choose };
}

/** Scrolls so that the cursor's row is seen. */
function reveal({ state, scroller }: Handle): void {
  const top = state.cursor.row * ROW;
  const room = scroller.clientHeight - AXIS - ROW;
  if (top < scroller.scrollTop) scroller.scrollTop = top;
  else if (top > scroller.scrollTop + room) scroller.scrollTop = top - room;
}

function listen(handle: Handle): () => void {
  const { canvas, scroller, refresh } = handle;
  const onKey = (event: KeyboardEvent): void => {
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      !press(handle, event.key)
    )
      return;
    event.preventDefault();
    reveal(handle);
    refresh();
  };
  const onWheel = (event: WheelEvent): void => {
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    wheel(handle, event);
    refresh();
  };
  canvas.addEventListener('keydown', onKey);
  canvas.addEventListener('wheel', onWheel, { passive: false });
  scroller.addEventListener('scroll', refresh);
  const stop = listenToPointer(handle);
  return () => {
    canvas.removeEventListener('keydown', onKey);
    canvas.removeEventListener('wheel', onWheel);
    scroller.removeEventListener('scroll', refresh);
    stop();
  };
}

function press(handle: Handle, key: string): boolean {
  const { scene, state } = handle;
  const { window, cursor } = state;
  const last = rowCount(scene, state.rows) - 1;
  const inView = cursor.time >= window.from && cursor.time <= window.to;
  const about = inView ? cursor.time : (window.from + window.to) / 2;
  const pan = (share: number): void => {
    state.window = panned(window, share, scene.span);
    cursor.time = about + (state.window.from - window.from);
  };
  const acts: Record<string, () => void> = {
    ArrowLeft: () => pan(-0.2),
    ArrowRight: () => pan(0.2),
    PageUp: () => pan(-1),
    PageDown: () => pan(1),
    ArrowUp: () => (cursor.row = Math.max(0, cursor.row - 1)),
    ArrowDown: () => (cursor.row = Math.min(last, cursor.row + 1)),
    '+': () => (state.window = zoomed(window, 0.5, about, scene.span)),
    '=': () => (state.window = zoomed(window, 0.5, about, scene.span)),
    '-': () => (state.window = zoomed(window, 2, about, scene.span)),
    Home: () => (state.window = { from: 0, to: scene.span }),
    ',': () => step(handle, -1),
    '.': () => step(handle, 1),
  };
  const act = acts[key];
  if (!act || last < 0) return false;
  act();
  return true;
}

/** The cursor goes to the middle of the slice before or after. */
function step({ scene, state }: Handle, by: 1 | -1): void {
  const lanes = scene.lanes(state.rows);
  if (!lanes) return;
  const { row, time } = state.cursor;
  const [first, end] = [lanes.first[row]!, lanes.first[row + 1]!];
  let at = first;
  let high = end;
  // The first slice whose middle is later than the cursor.
  while (at < high) {
    const middle = (at + high) >>> 1;
    if (lanes.start[middle]! + lanes.length[middle]! / 2 > time + 0.5)
      high = middle;
    else at = middle + 1;
  }
  if (by < 0) {
    at -= 1;
    if (
      at >= first &&
      Math.abs(lanes.start[at]! + lanes.length[at]! / 2 - time) <= 0.5
    )
      at -= 1;
  }
  if (at < first || at >= end) return;
  state.cursor.time = lanes.start[at]! + lanes.length[at]! / 2;
  const { from, to } = state.window;
  if (state.cursor.time < from || state.cursor.time > to) {
    state.window = within(
      {
        from: state.cursor.time - (to - from) / 2,
        to: state.cursor.time + (to - from) / 2,
      },
      scene.span,
    );
  }
}

function wheel({ scene, state, canvas }: Handle, event: WheelEvent): void {
  const size = event.deltaMode === 1 ? 20 : 1;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    const by = (event.deltaX || event.deltaY) * size;
    state.window = panned(state.window, by / canvas.clientWidth, scene.span);
    return;
  }
  const factor = Math.min(
    4,
    Math.max(0.25, Math.exp(event.deltaY * size * 0.002)),
  );
  state.window = zoomed(
    state.window,
    factor,
    timeAt(state, canvas, event.clientX),
    scene.span,
  );
}

function timeAt(state: State, canvas: HTMLCanvasElement, x: number): number {
  const box = canvas.getBoundingClientRect();
  const gutter = gutterOf(canvas.clientWidth);
  const share =
    (x - box.left - gutter) / Math.max(1, canvas.clientWidth - gutter);
  return (
    state.window.from +
    Math.min(1, Math.max(0, share)) * (state.window.to - state.window.from)
  );
}

/** Drag: zooms into what is marked; with Shift, and by touch, it moves. */
function listenToPointer(handle: Handle): () => void {
  const { scene, state, canvas, scroller, refresh } = handle;
  let held: { time: number; x: number; moves: boolean; window: Window } | null =
    null;
  const onMove = (event: PointerEvent): void => {
    const time = timeAt(state, canvas, event.clientX);
    const row = Math.floor(
      (event.clientY -
        canvas.getBoundingClientRect().top -
        AXIS +
        scroller.scrollTop) /
        ROW,
    );
    if (held?.moves) {
      const share =
        (held.x - event.clientX) /
        Math.max(1, canvas.clientWidth - gutterOf(canvas.clientWidth));
      state.window = panned(held.window, share, scene.span);
    } else if (held && Math.abs(event.clientX - held.x) > 3) {
      state.selection = {
        from: Math.min(held.time, time),
        to: Math.max(held.time, time),
      };
    }
    state.cursor = {
      row: Math.min(rowCount(scene, state.rows) - 1, Math.max(0, row)),
      time,
    };
    refresh();
  };
  const onDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    held = {
      time: timeAt(state, canvas, event.clientX),
      x: event.clientX,
      moves: event.shiftKey || event.pointerType === 'touch',
      window: state.window,
    };
  };
  const onUp = (): void => {
    const { selection } = state;
    held = null;
    state.selection = null;
    if (selection && selection.to > selection.from)
      state.window = zoomed(selection, 1, selection.from, scene.span);
    refresh();
  };
  canvas.addEventListener('pointermove', onMove);
  canvas.addEventListener('pointerdown', onDown);
  canvas.addEventListener('pointerup', onUp);
  canvas.addEventListener('pointercancel', onUp);
  return () => {
    canvas.removeEventListener('pointermove', onMove);
    canvas.removeEventListener('pointerdown', onDown);
    canvas.removeEventListener('pointerup', onUp);
    canvas.removeEventListener('pointercancel', onUp);
  };
}

/** What the marks mean. */
function key(scene: Scene): HTMLElement {
  if (!scene.slices) {
    return h(
      'ul',
      { class: 'key' },
      h('li', {}, 'Solid: share of time with traced threads.'),
      h('li', {}, 'Hatched above: with others.'),
      h(
        'li',
        {},
        'The record keeps shares of equal spans only: there were too many slices, or the source saw none.',
      ),
    );
  }
  return h(
    'ul',
    { class: 'key' },
    h(
      'li',
      {},
      `${count(scene.slices.count, 'slice')}; of many in one pixel: height is the share of time, colour who had most of it.`,
    ),
    h(
      'li',
      {},
      'CPU rows: colours and names are threads; a hatched band marks SMT sharing that an idle core could have spared.',
    ),
    h(
      'li',
      {},
      'Thread rows: colours and names are CPUs; thin hatching is waiting in a run queue; a short tick is a move within the core, a long one with a bar to another core.',
    ),
  );
}
