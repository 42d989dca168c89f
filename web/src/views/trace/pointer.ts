// The pointer on the timeline: a drag selects, with Shift or by touch it moves;
// a click follows a thread; the wheel zooms; a tooltip describes what is below.

import { fill, h } from '../../dom';
import { describePlace, describeStretch } from './describe';
import { AXIS_HEIGHT, rowCount } from './frame';
import { type Window, panWindow, zoomWindow } from './scene';
import {
  type Handle,
  handleKey,
  scrollToCursor,
  makeSelection,
  toggleFollow,
} from './state';

/** Width of the rows' names, CSS pixels. */
export const gutterOf = (width: number): number => (width < 500 ? 84 : 150);

/** A pointer that moves less than this has clicked, pixels. */
const MIN_DRAG = 3;

/** Handles keys, wheel and pointer of the canvas until the returned function is called. */
export function listenToInput(handle: Handle, tip: HTMLElement): () => void {
  const { canvas, scroller } = handle;
  const stop = new AbortController();
  const { signal } = stop;
  canvas.addEventListener(
    'keydown',
    (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (!handleKey(handle, event.key, event.shiftKey)) return;
      event.preventDefault();
      tip.hidden = true;
      scrollToCursor(handle, AXIS_HEIGHT);
      handle.refresh();
    },
    { signal },
  );
  canvas.addEventListener(
    'wheel',
    (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      handleWheel(handle, event);
      handle.refresh();
    },
    { passive: false, signal },
  );
  scroller.addEventListener('scroll', () => handle.point(), { signal });
  listenToPointer(handle, tip, signal);
  return () => stop.abort();
}

function handleWheel(
  { scene, state, canvas }: Handle,
  event: WheelEvent,
): void {
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

/** The time at a horizontal position of the page. */
function timeAt(
  window: Window,
  canvas: HTMLCanvasElement,
  clientX: number,
): number {
  const gutter = gutterOf(canvas.clientWidth);
  const room = Math.max(1, canvas.clientWidth - gutter);
  const x = clientX - canvas.getBoundingClientRect().left - gutter;
  return timeAtShare(window, x / room);
}

/** The time at a share of the window, clamped to the window. */
export function timeAtShare({ from, to }: Window, share: number): number {
  return from + Math.min(1, Math.max(0, share)) * (to - from);
}

/** The row at a height `y` of the canvas, with rows scrolled by `scrolled`; the nearest one
 * outside. */
export function rowAt(
  y: number,
  scrolled: number,
  row: number,
  rows: number,
): number {
  const at = Math.floor((y - AXIS_HEIGHT + scrolled) / row);
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
    state.selection = makeSelection(held.time, time);
  };
  const onMove = (event: PointerEvent): void => {
    drag(event);
    const rows = rowCount(scene, state.rows);
    const y = event.clientY - canvas.getBoundingClientRect().top;
    state.cursor = {
      row: rowAt(y, scroller.scrollTop, handle.row(), rows),
      time: timeAt(state.window, canvas, event.clientX),
    };
    // A moved window also changes the address and the strip above.
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

/** Distance of the tooltip from the pointer, so that it does not hide what it describes, pixels. */
const TIP_OFFSET = 14;

/** Shows the tooltip of the cursor's place; for screen readers, the line below the rows says the
 * same. */
function showTip(
  { scene, state, canvas }: Handle,
  tip: HTMLElement,
  event: PointerEvent,
): void {
  const { rows, cursor, window } = state;
  const pixel =
    (window.to - window.from) /
    Math.max(1, canvas.clientWidth - gutterOf(canvas.clientWidth));
  const stretch = describeStretch(scene, rows, cursor.row, {
    from: cursor.time,
    to: cursor.time + pixel,
  });
  fill(
    tip,
    h('p', describePlace(scene, rows, cursor.row, cursor.time)),
    stretch ? h('p', stretch) : null,
  );
  tip.hidden = false;
  const frame = tip.offsetParent?.getBoundingClientRect();
  if (!frame) return;
  const right = event.clientX - frame.left + TIP_OFFSET;
  const below = event.clientY - frame.top + TIP_OFFSET;
  const fits = right + tip.offsetWidth <= frame.width;
  const left = event.clientX - frame.left - TIP_OFFSET - tip.offsetWidth;
  tip.style.left = `${fits ? right : Math.max(0, left)}px`;
  const isLow = event.clientY + TIP_OFFSET + tip.offsetHeight > innerHeight;
  const above = event.clientY - frame.top - TIP_OFFSET - tip.offsetHeight;
  tip.style.top = `${isLow ? above : below}px`;
}
