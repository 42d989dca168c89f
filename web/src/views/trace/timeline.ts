// The timeline: a canvas of rows with its controls and texts.

import { fill, h, visible } from '../../dom';
import { seconds } from '../../format';
import { onPrint } from '../../print';
import { sortableTable } from '../../sortable';
import { onTheme, theme } from '../../theme';
import type { Part, Place } from '../../view';
import { fromParams, toParams } from './address';
import { findArrows } from './arrows';
import { describePlace, formatMoment } from './describe';
import { AXIS_HEIGHT, rowCount } from './frame';
import { KEYS_HELP, legend, marksKey } from './key';
import { minimap } from './minimap';
import { listenToInput } from './pointer';
import type { Rows } from './lanes';
import { type Scene, clampWindow } from './scene';
import { resizer, Stage } from './stage';
import { type Handle, type State, goToThread, scrollToCursor } from './state';
import { type Work, workInPieces } from './steps';
import { type Toolbar, selectionTools, toolbar } from './toolbar';
import { totalsTable } from './totals';

/** The address changes when nothing has moved for this long, ms: browsers limit how often it may. */
const ADDRESS_DELAY = 300;
/** Work for other rows and colours starts this long after the first frame, ms. */
const PREPARE_DELAY = 150;

export interface Timeline extends Part {
  /** Shows a part of the trace, with the cursor in the row of this thread or CPU. */
  show(rows: Rows, key: number, start: number, length: number): void;
  /** Sets the last-level cache of each CPU, which is known later. */
  setCaches(llcOf: ReadonlyMap<number, number>): void;
}

/** The timeline of a scene; its state is stored in the address of `place`. */
export function timeline(
  scene: Scene,
  summary: string,
  place: Place | undefined,
): Timeline {
  const state: State = {
    ...fromParams(place?.params ?? new URLSearchParams(), scene.span),
    cursor: { row: 0, time: scene.span / 2 },
    anchor: null,
  };
  if (!scene.slices) state.rows = 'cpus';
  const parts = createElements();
  const { canvas, scroller, tip } = parts;
  const address = addressKeeper(place, state, scene.span);
  let tools: Toolbar | null = null;
  let isAsked = false;
  const stage = new Stage(canvas, scroller, parts.spacer, scene, state, () =>
    handle.sync(),
  );
  const handle: Handle = {
    scene,
    state,
    canvas,
    scroller,
    row: () => stage.height,
    refresh: () => {
      handle.point();
      map.draw();
      address.follow();
    },
    point: () => {
      fill(parts.seen, describeWindow(scene, state));
      // A place that nobody asked for is no answer.
      const { row, time } = state.cursor;
      isAsked ||= row !== 0 || time !== scene.span / 2;
      fill(parts.status, isAsked && describeCursor(scene, state));
      stage.draw();
    },
    select: () => fill(parts.selected, selectionSection(handle)),
    layout: () => {
      stage.layout(summary);
      map.draw();
    },
    sync: () => {
      tools?.sync();
      fill(parts.colours, legend(scene, state, theme(), stage.hasHues));
    },
  };
  const map = minimap(handle);
  tools = toolbar(handle, address.link);
  const grip = resizer(stage, handle);
  canvas.addEventListener('focus', () => {
    isAsked = true;
    handle.point();
  });
  canvas.addEventListener('keydown', (event) => {
    if (event.key !== '/') return;
    event.preventDefault();
    tools?.focusSearch();
  });
  const onWindow = (): void => handle.layout();
  addEventListener('resize', onWindow);
  const stops = [
    onTheme(() => {
      handle.sync();
      handle.layout();
    }),
    onPrint(() => {
      handle.sync();
      handle.layout();
      stage.paint();
    }),
    listenToInput(handle, tip),
    () => removeEventListener('resize', onWindow),
  ];
  const size = new ResizeObserver(() => handle.layout());
  size.observe(scroller);
  let preparation: Work | null = null;
  const timer = setTimeout(() => {
    preparation = workInPieces(scene.prepareOthers());
  }, PREPARE_DELAY);
  handle.sync();
  handle.select();
  restoreCursor(handle);
  handle.point();
  const element = h(
    'figure.chart.timeline',
    { data: { chart: 'Timeline' } },
    tools.element,
    parts.colours,
    map.element,
    scroller,
    grip,
    tip,
    parts.seen,
    tools.found,
    parts.status,
    parts.selected,
    h(
      'details',
      h('summary', 'What marks and keys do'),
      h('p.muted', summary),
      marksKey(scene),
      h('p.muted', { id: 'timeline-keys' }, KEYS_HELP),
    ),
  );
  return {
    element,
    show(rows, key, start, length) {
      tools?.chooseRows(rows);
      goTo(handle, key, start, length);
      handle.refresh();
      canvas.focus();
    },
    setCaches(llcOf) {
      scene.llcOf = llcOf;
      handle.sync();
      stage.draw();
    },
    dispose() {
      address.stop();
      clearTimeout(timer);
      preparation?.stop();
      stage.dispose();
      stops.forEach((stop) => stop());
      size.disconnect();
    },
  };
}

/** The elements that the timeline changes. */
function createElements() {
  const canvas = h('canvas', {
    tabIndex: 0,
    role: 'img',
    aria: { describedby: 'timeline-keys' },
  });
  const spacer = h('div');
  return {
    canvas,
    spacer,
    scroller: h(
      'div.lanes',
      { role: 'region', aria: { label: 'Rows of the timeline' } },
      canvas,
      spacer,
    ),
    seen: h('p.muted.status'),
    status: h('p.place', { role: 'status', aria: { live: 'polite' } }),
    tip: h('div.tip', { hidden: true, aria: { hidden: 'true' } }),
    colours: h('div.colours'),
    selected: h('div.selected'),
  };
}

/** Stores the state in the address when nothing has moved for a while. */
function addressKeeper(
  place: Place | undefined,
  state: State,
  span: number,
): { follow(): void; link: (() => string) | null; stop(): void } {
  const params = (): URLSearchParams => toParams(state, span);
  let timer: ReturnType<typeof setTimeout> | undefined;
  return {
    follow: () => {
      clearTimeout(timer);
      timer = setTimeout(
        () => place?.keep('timeline', params()),
        ADDRESS_DELAY,
      );
    },
    link: place ? () => place.address('timeline', params()) : null,
    stop: () => clearTimeout(timer),
  };
}

/** Describes the visible part of the trace; the axis describes the whole one. */
function describeWindow(scene: Scene, state: State): string {
  const { from, to } = state.window;
  const part =
    to - from >= scene.span
      ? ''
      : `${formatMoment(from)} to ${formatMoment(to)}: ${seconds((to - from) * 1e-9)} of ${seconds(scene.span * 1e-9)}`;
  return [part, adviseZoom(scene, state)].filter(Boolean).join('; ');
}

/** Describes the cursor's place. */
function describeCursor(scene: Scene, { rows, cursor }: State): string {
  return rowCount(scene, rows) > 0
    ? visible(describePlace(scene, rows, cursor.row, cursor.time))
    : 'Nothing ran.';
}

/** Puts the cursor into the row of a thread or CPU, and the window around a time. */
function goTo(
  handle: Handle,
  key: number,
  start: number,
  length: number,
): void {
  const { scene, state } = handle;
  const keys = state.rows === 'cpus' ? scene.cpus : scene.threads;
  const time = start + length / 2;
  state.cursor = { row: Math.max(0, keys.indexOf(key)), time };
  const around = Math.max(length * 6, 2_000);
  const from = time - around / 2;
  state.window = clampWindow({ from, to: from + around }, scene.span);
  scrollToCursor(handle, AXIS_HEIGHT);
}

/** Puts the cursor on the thread that the address follows; the window stays. */
function restoreCursor(handle: Handle): void {
  const { scene, state } = handle;
  const place = state.thread === null ? null : scene.placeOf.get(state.thread);
  if (place === undefined) state.thread = null;
  else if (place !== null) {
    const { window } = state;
    goToThread(handle, place);
    state.window = window;
  }
}

/** Advises to zoom in if there are too many arrows to draw; else empty. */
function adviseZoom(scene: Scene, state: State): string {
  const { thread, rows, window } = state;
  const place = thread === null ? undefined : scene.placeOf.get(thread);
  if (place === undefined || rows !== 'cpus') return '';
  return findArrows(scene, place, window) === null
    ? 'zoom in for the arrows of the followed thread'
    : '';
}

/** The totals of the selection with its buttons; null without a selection. */
function selectionSection(handle: Handle): HTMLElement | null {
  const { scene, state } = handle;
  if (!state.selection) return null;
  return h(
    'section',
    { aria: { label: 'Selection' } },
    h('h3', 'Selection'),
    selectionTools(handle),
    sortableTable(totalsTable(scene, state.selection)).element,
  );
}
