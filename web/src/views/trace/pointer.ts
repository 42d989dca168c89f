// The pointer on the timeline: a drag selects, with Shift or by touch it moves;
// a click follows a thread; the wheel zooms; a tooltip says what is below.

import { fill, h } from '../../dom';
import { describe, stretchWords } from './describe';
import { AXIS, rowCount } from './frame';
import { type Window, panWindow, zoomWindow } from './scene';
import { type Handle, press, reveal, selectionOf, toggleFollow } from './state';

/** Width of the rows' names. */
export const gutterOf = (width: number): number => (width < 500 ? 84 : 150);

/** Less is a click. */
const MIN_DRAG = 3;

/** Keys, wheel and pointer of the canvas; returns what stops them. */
export function listen(handle: Handle, tip: HTMLElement): () => void {
  const { canvas, scroller } = handle;
  const stop = new AbortController();
  const { signal } = stop;
  canvas.addEventListener(
    'keydown',
    (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (!press(handle, event.key, event.shiftKey)) return;
      event.preventDefault();
      tip.hidden = true;
      reveal(handle, AXIS);
      handle.refresh();
    },
    { signal },
  );
  canvas.addEventListener(
    'wheel',
    (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      wheel(handle, event);
      handle.refresh();
    },
    { passive: false, signal },
  );
  scroller.addEventListener('scroll', () => handle.point(), { signal });
  listenToPointer(handle, tip, signal);
  return () => stop.abort();
}

function wheel({ scene, state, canvas }: Handle, event: WheelEvent): void {
  const size = event.deltaMode === 1 ? 20 : 1;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    const by = (event.deltaX || event.deltaY) * size;
    state.window = panWindow(state.window, by / canvas.clientWidth, scene.span);
    return;
  }
  const factor = Math.min(
    4,
    Math.max(0.25, Math.exp(event.deltaY * size * 0.002)),
  );
  state.window = zoomWindow(
    state.window,
    factor,
    timeAt(state.window, canvas, event.clientX),
    scene.span,
  );
}

/** The time at a place of the rows, given from the window's left edge. */
function timeAt(
  window: Window,
  canvas: HTMLCanvasElement,
  clientX: number,
): number {
  const gutter = gutterOf(canvas.clientWidth);
  const room = Math.max(1, canvas.clientWidth - gutter);
  const x = clientX - canvas.getBoundingClientRect().left - gutter;
  return timeOf(window, x / room);
}

/** The time at a share of the window, which it does not leave. */
export function timeOf({ from, to }: Window, share: number): number {
  return from + Math.min(1, Math.max(0, share)) * (to - from);
}

/** The row at a height below the axis, scrolled by this much; the nearest if there is none. */
export function rowAt(
  y: number,
  scrolled: number,
  row: number,
  rows: number,
): number {
  const at = Math.floor((y - AXIS + scrolled) / row);
  return Math.min(rows - 1, Math.max(0, at));
}

function listenToPointer(
  handle: Handle,
  tip: HTMLElement,
  signal: AbortSignal,
): void {
  const { scene, state, canvas, scroller } = handle;
  let held: {
    time: number;
    x: number;
    moves: boolean;
    window: Window;
    isDragged: boolean;
  } | null = null;
  const drag = (event: PointerEvent): void => {
    if (!held) return;
    held.isDragged ||= Math.abs(event.clientX - held.x) > MIN_DRAG;
    if (!held.isDragged) return;
    if (held.moves) {
      const room = canvas.clientWidth - gutterOf(canvas.clientWidth);
      const share = (held.x - event.clientX) / Math.max(1, room);
      state.window = panWindow(held.window, share, scene.span);
      return;
    }
    const time = timeAt(state.window, canvas, event.clientX);
    state.selection = selectionOf(held.time, time);
  };
  const onMove = (event: PointerEvent): void => {
    drag(event);
    const rows = rowCount(scene, state.rows);
    const y = event.clientY - canvas.getBoundingClientRect().top;
    state.cursor = {
      row: rowAt(y, scroller.scrollTop, handle.row(), rows),
      time: timeAt(state.window, canvas, event.clientX),
    };
    // A window that moves is kept, and seen in the strip above.
    if (held?.moves && held.isDragged) handle.refresh();
    else handle.point();
    if (rows > 0) showTip(handle, tip, event);
  };
  const onDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    held = {
      time: timeAt(state.window, canvas, event.clientX),
      x: event.clientX,
      moves: event.shiftKey || event.pointerType === 'touch',
      window: state.window,
      isDragged: false,
    };
  };
  const onUp = (event: PointerEvent): void => {
    if (!held) return;
    const { isDragged, moves } = held;
    held = null;
    if (!isDragged && event.type === 'pointerup') toggleFollow(handle);
    if (isDragged && !moves) handle.select();
    handle.refresh();
  };
  canvas.addEventListener('pointermove', onMove, { signal });
  canvas.addEventListener('pointerdown', onDown, { signal });
  canvas.addEventListener('pointerup', onUp, { signal });
  canvas.addEventListener('pointercancel', onUp, { signal });
  canvas.addEventListener('pointerleave', () => (tip.hidden = true), {
    signal,
  });
}

/** Beside the pointer, so that it hides nothing of what it describes. */
const OFFSET = 14;

/** The tooltip says what the place of the cursor shows; the line below says it to screen readers. */
function showTip(
  { scene, state, canvas }: Handle,
  tip: HTMLElement,
  event: PointerEvent,
): void {
  const { rows, cursor, window } = state;
  const pixel =
    (window.to - window.from) /
    Math.max(1, canvas.clientWidth - gutterOf(canvas.clientWidth));
  const stretch = stretchWords(scene, rows, cursor.row, {
    from: cursor.time,
    to: cursor.time + pixel,
  });
  fill(
    tip,
    h('p', describe(scene, rows, cursor.row, cursor.time)),
    stretch ? h('p', stretch) : null,
  );
  tip.hidden = false;
  const frame = tip.offsetParent?.getBoundingClientRect();
  if (!frame) return;
  const right = event.clientX - frame.left + OFFSET;
  const below = event.clientY - frame.top + OFFSET;
  const fits = right + tip.offsetWidth <= frame.width;
  const left = event.clientX - frame.left - OFFSET - tip.offsetWidth;
  tip.style.left = `${fits ? right : Math.max(0, left)}px`;
  const isLow = event.clientY + OFFSET + tip.offsetHeight > innerHeight;
  const above = event.clientY - frame.top - OFFSET - tip.offsetHeight;
  tip.style.top = `${isLow ? above : below}px`;
}
