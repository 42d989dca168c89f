// What the timeline shows now, and the steps that change it.

import type { Shown } from './address';
import type { ColourBy } from './colours';
import { rowCount } from './frame';
import { firstAfter } from './lanes';
import type { Scene, Window } from './scene';
import { panWindow, threadsNamed, within, zoomWindow } from './scene';

export interface State extends Shown {
  cursor: { row: number; time: number };
  /** The start of a selection by keyboard. */
  anchor: number | null;
}

/** A timeline as its parts see it. */
export interface Handle {
  scene: Scene;
  state: State;
  canvas: HTMLCanvasElement;
  scroller: HTMLElement;
  /** Height of a row now. */
  row(): number;
  /** Draws again, updates the text for screen readers, and keeps the state in the address. */
  refresh(): void;
  /** Draws again after the pointer moved; the address stays. */
  point(): void;
  /** Shows the new selection, or that there is none. */
  select(): void;
  /** Lays the rows out again: others are shown, or their height changed. */
  layout(): void;
  /** Sets the controls to the state. */
  sync(): void;
}

/** What colours show: the choice, else what rows do not show already. */
export const colourOf = (state: Pick<State, 'rows' | 'colourBy'>): ColourBy =>
  state.colourBy ?? (state.rows === 'cpus' ? 'thread' : 'cpu');

/** Indices of the highlighted threads: the followed one, and those found; null if all are shown alike. */
export function markedOf(
  scene: Scene,
  { thread, find }: Pick<Shown, 'thread' | 'find'>,
): ReadonlySet<number> | null {
  const followed = thread === null ? undefined : scene.placeOf.get(thread);
  if (followed === undefined && find.trim() === '') return null;
  const marked = new Set(threadsNamed(scene, find));
  if (followed !== undefined) marked.add(followed);
  return marked;
}

/** Scrolls so that the cursor's row is seen. */
export function reveal({ state, scroller, row }: Handle, axis: number): void {
  const top = state.cursor.row * row();
  const room = scroller.clientHeight - axis - row();
  if (top < scroller.scrollTop) scroller.scrollTop = top;
  else if (top > scroller.scrollTop + room) scroller.scrollTop = top - room;
}

/** Moves the window so that the cursor's time is seen. */
function seek({ scene, state }: Handle): void {
  const { from, to } = state.window;
  const { time } = state.cursor;
  if (time >= from && time <= to) return;
  const half = (to - from) / 2;
  state.window = within({ from: time - half, to: time + half }, scene.span);
}

/** Index of the thread below the cursor; null if there is none. */
function threadAt({ scene, state }: Handle): number | null {
  const { row, time } = state.cursor;
  if (!scene.slices) return null;
  if (state.rows === 'threads') return scene.threads[row] ?? null;
  const lanes = scene.lanes('cpus')!;
  const at = firstAfter(lanes, row, time);
  return at < lanes.first[row + 1]! && lanes.start[at]! <= time
    ? lanes.colour[at]!
    : null;
}

/** Follows a thread: it is highlighted, and its path over the CPUs is drawn; null follows none. */
function follow(handle: Handle, place: number | null): void {
  const number = place === null ? null : handle.scene.slices!.threads[place]!;
  handle.state.thread = number;
  handle.sync();
}

/** Moves the cursor to the first slice of a thread that ends after the window begins, else to its last. */
export function goToThread(handle: Handle, place: number): void {
  const { scene, state } = handle;
  const lanes = scene.lanes('threads');
  const row = scene.threads.indexOf(place);
  if (!lanes || row < 0) return;
  const last = lanes.first[row + 1]! - 1;
  const at = Math.min(last, firstAfter(lanes, row, state.window.from));
  if (at < lanes.first[row]!) return;
  state.cursor = {
    row: state.rows === 'threads' ? row : scene.cpus.indexOf(lanes.colour[at]!),
    time: Math.max(
      lanes.start[at]! + lanes.length[at]! / 2,
      Math.min(state.window.from, lanes.start[at]! + lanes.length[at]!),
    ),
  };
  seek(handle);
}

/** The next of the threads found, after the followed one. */
export function nextFound(handle: Handle): void {
  const { scene, state } = handle;
  const found = threadsNamed(scene, state.find);
  if (found.length === 0) return;
  const now = state.thread === null ? -1 : scene.placeOf.get(state.thread);
  const next = found[(found.indexOf(now ?? -1) + 1) % found.length]!;
  follow(handle, next);
  goToThread(handle, next);
}

/** Zooms to what is selected. */
export function zoomToSelection({ scene, state }: Handle): void {
  const { selection } = state;
  if (selection)
    state.window = zoomWindow(selection, 1, selection.from, scene.span);
}

/** A selection from one time to another, in either order; none if they are the same. */
export function selectionOf(a: number, b: number): Window | null {
  return a === b ? null : { from: Math.min(a, b), to: Math.max(a, b) };
}

/** Handles a key; false if it does nothing. */
export function press(handle: Handle, key: string, isShift: boolean): boolean {
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
    ArrowLeft: () => (isShift ? extend(handle, -1) : pan(-0.2)),
    ArrowRight: () => (isShift ? extend(handle, 1) : pan(0.2)),
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
    ',': () => step(handle, -1),
    '.': () => step(handle, 1),
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
  const place = threadAt(handle);
  if (place === null) return;
  const number = handle.scene.slices!.threads[place]!;
  follow(handle, handle.state.thread === number ? null : place);
}

/** Clears the selection; if there is none, what is highlighted. */
function clearSelectionOrHighlight(handle: Handle): void {
  const { state } = handle;
  if (state.selection) {
    state.selection = null;
    state.anchor = null;
    handle.select();
    return;
  }
  state.find = '';
  follow(handle, null);
}

/** Steps of a selection by keyboard in what is seen. */
const STEPS = 50;

function extend(handle: Handle, by: 1 | -1): void {
  const { scene, state } = handle;
  const { from, to } = state.window;
  if (state.anchor === null || !state.selection)
    state.anchor = state.cursor.time;
  const time = state.cursor.time + (by * (to - from)) / STEPS;
  state.cursor.time = Math.min(scene.span, Math.max(0, time));
  state.selection = selectionOf(state.anchor, state.cursor.time);
  seek(handle);
  handle.select();
}

/** The cursor goes to the middle of the slice before or after. */
function step(handle: Handle, by: 1 | -1): void {
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
  seek(handle);
}
