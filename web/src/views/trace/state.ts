// The state of the timeline, and the actions that change it.

import type { AddressState } from './address';
import type { ColourBy } from './colours';
import { rowCount } from './frame';
import { firstEndingAfter } from './lanes';
import type { Scene, Window } from './scene';
import { panWindow, findThreads, clampWindow, zoomWindow } from './scene';

export interface State extends AddressState {
  cursor: { row: number; time: number };
  /** The start of a selection by keyboard. */
  anchor: number | null;
}

/** The timeline as its parts use it. */
export interface Handle {
  scene: Scene;
  state: State;
  canvas: HTMLCanvasElement;
  scroller: HTMLElement;
  /** Height of a row now. */
  row(): number;
  /** Draws again, updates the text for screen readers, and stores the state in the address. */
  refresh(): void;
  /** Draws again after the pointer moved, which does not change the address. */
  point(): void;
  /** Shows the selection's totals, or removes them. */
  select(): void;
  /** Lays out rows again after other rows were chosen or their height changed. */
  layout(): void;
  /** Sets the controls to the state. */
  sync(): void;
}

/** The colouring: the reader's choice, else the one that rows do not show anyway. */
export const chosenColouring = (
  state: Pick<State, 'rows' | 'colourBy'>,
): ColourBy => state.colourBy ?? (state.rows === 'cpus' ? 'thread' : 'cpu');

/** Indices of the highlighted threads: the followed one and those found; null if none is
 * highlighted. */
export function findMarked(
  scene: Scene,
  { thread, find }: Pick<AddressState, 'thread' | 'find'>,
): ReadonlySet<number> | null {
  const followed = thread === null ? undefined : scene.placeOf.get(thread);
  if (followed === undefined && find.trim() === '') return null;
  const marked = new Set(findThreads(scene, find));
  if (followed !== undefined) marked.add(followed);
  return marked;
}

/** Scrolls so that the cursor's row is visible. */
export function scrollToCursor(
  { state, scroller, row }: Handle,
  axis: number,
): void {
  const top = state.cursor.row * row();
  const room = scroller.clientHeight - axis - row();
  if (top < scroller.scrollTop) scroller.scrollTop = top;
  else if (top > scroller.scrollTop + room) scroller.scrollTop = top - room;
}

/** Moves the window so that the cursor's time is visible. */
function moveWindowToCursor({ scene, state }: Handle): void {
  const { from, to } = state.window;
  const { time } = state.cursor;
  if (time >= from && time <= to) return;
  const half = (to - from) / 2;
  state.window = clampWindow(
    { from: time - half, to: time + half },
    scene.span,
  );
}

/** Index of the thread below the cursor; null if there is none. */
function threadAtCursor({ scene, state }: Handle): number | null {
  const { row, time } = state.cursor;
  if (!scene.slices) return null;
  if (state.rows === 'threads') return scene.threads[row] ?? null;
  const lanes = scene.lanes('cpus')!;
  const at = firstEndingAfter(lanes, row, time);
  return at < lanes.first[row + 1]! && lanes.start[at]! <= time
    ? lanes.colour[at]!
    : null;
}

/** Follows a thread: it is highlighted, and its path over the CPUs is drawn; null follows none. */
function followThread(handle: Handle, place: number | null): void {
  const number = place === null ? null : handle.scene.slices!.threads[place]!;
  handle.state.thread = number;
  handle.sync();
}

/** Moves the cursor to the first slice of a thread that ends after the window begins, else to its
 * last. */
export function goToThread(handle: Handle, place: number): void {
  const { scene, state } = handle;
  const lanes = scene.lanes('threads');
  const row = scene.threads.indexOf(place);
  if (!lanes || row < 0) return;
  const last = lanes.first[row + 1]! - 1;
  const at = Math.min(last, firstEndingAfter(lanes, row, state.window.from));
  if (at < lanes.first[row]!) return;
  state.cursor = {
    row: state.rows === 'threads' ? row : scene.cpus.indexOf(lanes.colour[at]!),
    time: Math.max(
      lanes.start[at]! + lanes.length[at]! / 2,
      Math.min(state.window.from, lanes.start[at]! + lanes.length[at]!),
    ),
  };
  moveWindowToCursor(handle);
}

/** Follows the next of the found threads after the followed one. */
export function followNextFound(handle: Handle): void {
  const { scene, state } = handle;
  const found = findThreads(scene, state.find);
  if (found.length === 0) return;
  const now = state.thread === null ? -1 : scene.placeOf.get(state.thread);
  const next = found[(found.indexOf(now ?? -1) + 1) % found.length]!;
  followThread(handle, next);
  goToThread(handle, next);
}

/** Zooms to the selection. */
export function zoomToSelection({ scene, state }: Handle): void {
  const { selection } = state;
  if (selection)
    state.window = zoomWindow(selection, 1, selection.from, scene.span);
}

/** A selection from one time to another, in either order; none if they are the same. */
export function makeSelection(a: number, b: number): Window | null {
  return a === b ? null : { from: Math.min(a, b), to: Math.max(a, b) };
}

/** Handles a key; false if the key has no action. */
export function handleKey(
  handle: Handle,
  key: string,
  isShift: boolean,
): boolean {
  const { scene, state } = handle;
  const { window, cursor } = state;
  const last = rowCount(scene, state.rows) - 1;
  const inView = cursor.time >= window.from && cursor.time <= window.to;
  const about = inView ? cursor.time : (window.from + window.to) / 2;
  const pan = (share: number): void => {
    state.window = panWindow(window, share, scene.span);
    cursor.time = about + (state.window.from - window.from);
  };
  const acts: Record<string, () => void> = {
    ArrowLeft: () => (isShift ? extendSelection(handle, -1) : pan(-0.2)),
    ArrowRight: () => (isShift ? extendSelection(handle, 1) : pan(0.2)),
    a: () => pan(-0.2),
    d: () => pan(0.2),
    w: () => (state.window = zoomWindow(window, 0.5, about, scene.span)),
    s: () => (state.window = zoomWindow(window, 2, about, scene.span)),
    PageUp: () => pan(-1),
    PageDown: () => pan(1),
    ArrowUp: () => (cursor.row = Math.max(0, cursor.row - 1)),
    ArrowDown: () => (cursor.row = Math.min(last, cursor.row + 1)),
    '+': () => (state.window = zoomWindow(window, 0.5, about, scene.span)),
    '=': () => (state.window = zoomWindow(window, 0.5, about, scene.span)),
    '-': () => (state.window = zoomWindow(window, 2, about, scene.span)),
    Home: () => (state.window = { from: 0, to: scene.span }),
    ',': () => moveToSlice(handle, -1),
    '.': () => moveToSlice(handle, 1),
    z: () => zoomToSelection(handle),
    Enter: () => toggleFollow(handle),
    Escape: () => clearSelectionOrHighlight(handle),
  };
  const act = acts[key];
  if (!act || last < 0) return false;
  act();
  return true;
}

/** Follows the thread below the cursor, or stops following it. */
export function toggleFollow(handle: Handle): void {
  const place = threadAtCursor(handle);
  if (place === null) return;
  const number = handle.scene.slices!.threads[place]!;
  followThread(handle, handle.state.thread === number ? null : place);
}

/** Clears the selection; without one, clears what is highlighted. */
function clearSelectionOrHighlight(handle: Handle): void {
  const { state } = handle;
  if (state.selection) {
    state.selection = null;
    state.anchor = null;
    handle.select();
    return;
  }
  state.find = '';
  followThread(handle, null);
}

/** A key extends the selection by the window divided by this. */
const EXTEND_STEPS = 50;

function extendSelection(handle: Handle, by: 1 | -1): void {
  const { scene, state } = handle;
  const { from, to } = state.window;
  if (state.anchor === null || !state.selection)
    state.anchor = state.cursor.time;
  const time = state.cursor.time + (by * (to - from)) / EXTEND_STEPS;
  state.cursor.time = Math.min(scene.span, Math.max(0, time));
  state.selection = makeSelection(state.anchor, state.cursor.time);
  moveWindowToCursor(handle);
  handle.select();
}

/** Moves the cursor to the middle of the slice before or after it. */
function moveToSlice(handle: Handle, by: 1 | -1): void {
  const { scene, state } = handle;
  const lanes = scene.lanes(state.rows);
  if (!lanes) return;
  const { row, time } = state.cursor;
  const middle = (at: number): number =>
    lanes.start[at]! + lanes.length[at]! / 2;
  const [first, end] = [lanes.first[row]!, lanes.first[row + 1]!];
  let at = first;
  let high = end;
  // The first slice whose middle is later than the cursor.
  while (at < high) {
    const between = (at + high) >>> 1;
    if (middle(between) > time + 0.5) high = between;
    else at = between + 1;
  }
  if (by < 0) {
    at -= 1;
    if (at >= first && Math.abs(middle(at) - time) <= 0.5) at -= 1;
  }
  if (at < first || at >= end) return;
  state.cursor.time = middle(at);
  moveWindowToCursor(handle);
}
