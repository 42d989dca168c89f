// A flame graph on a canvas: callers above, what they called below, as wide as their time. A click
// or Enter goes into a call. Inverted, functions are above and their callers below.

import { h, svg, visible } from '../../dom';
import { count, percent } from '../../format';
import {
  drawingKinds,
  HEADING_HEIGHT,
  saveMenu,
  standaloneSvg,
} from '../../save';
import { type Theme, onTheme, theme } from '../../theme';
import { onPrint } from '../../print';
import type { Part, Place } from '../../view';
import { inkOn } from '../../colour-scale';
import type { Box, Flame } from './shape';
import { boxes, fileName, KIND_WORDS, search } from './shape';

const ROW = 19;
/** Narrower calls are not drawn, CSS pixels. */
const NARROWEST = 1;

interface State {
  focus: number;
  cursor: number;
  found: Set<number>;
  boxes: Box[];
}

interface Handle {
  tree: Flame;
  state: State;
  canvas: HTMLCanvasElement;
  refresh(): void;
  /** Writes what the reader chose into the address. */
  keep(): void;
}

type Invert = (tree: Flame) => Flame;

/** Colours by kind, light and dark; words distinguish them, too. */
function colourOf(kind: string, colours: Theme): string {
  const light: Record<string, string> = {
    user: '#9ccbea',
    kernel: '#d9a7c7',
    pause: '#f0a30a',
    left_out: '#dcdfe4',
    broken: '#f3d9d9',
    all: '#e8eaee',
    flat: '#e4e6e8',
    up: '#ee8336',
    down: '#5799cf',
  };
  const dark: Record<string, string> = {
    user: '#2f6f9f',
    kernel: '#8a4f78',
    pause: '#e69f00',
    left_out: '#4a5058',
    broken: '#6b4444',
    all: '#3a4048',
    flat: '#3a4048',
    up: '#d5702a',
    down: '#3b82bd',
  };
  return (
    (colours.isDark ? dark : light)[kind] ??
    (colours.isDark ? dark : light)['left_out']!
  );
}

/** A sign before the name if colours mean more and less. */
const SIGNS: Readonly<Record<string, string>> = {
  up: '+ ',
  down: '− ',
  pause: '‖ ',
  broken: '✂ ',
};

/** The part of the page that links to a flame graph name. */
const PART = 'calls';

/** What a graph is made with beside its calls. */
interface Options {
  /** Turns the tree around, callers below, if that makes sense. */
  invert?: Invert;
  /** The place in the address for zoom, search and inversion. */
  place?: Place | undefined;
}

export function flameGraph(
  tree: Flame,
  name: string,
  summary: string,
  { invert, place: at }: Options,
): Part {
  const canvas = h('canvas', {
    tabIndex: 0,
    role: 'img',
    aria: { label: `${name}. ${summary}` },
  });
  const box = h(
    'div.flames',
    { role: 'region', aria: { label: `Calls of the ${name.toLowerCase()}` } },
    canvas,
  );
  const place = h('p.place', { role: 'status', aria: { live: 'polite' } });
  const state: State = { focus: 0, cursor: 0, found: new Set(), boxes: [] };
  let request = 0;
  const draw = (): void => {
    cancelAnimationFrame(request);
    request = requestAnimationFrame(() => paint(handle));
  };
  const refresh = (): void => {
    place.textContent = visible(words(handle));
    handle.keep();
    draw();
  };
  const handle: Handle = { tree, state, canvas, refresh, keep: () => {} };
  const stops = [onTheme(draw), onPrint(() => paint(handle))];
  const size = new ResizeObserver(draw);
  size.observe(box);
  listen(handle);
  refresh();
  const element = h(
    'figure.chart',
    { data: { chart: name } },
    h('figcaption', h('strong', name), ' ', h('span.muted', summary)),
    tools(handle, invert, at),
    box,
    place,
    key(tree),
    h(
      'p.muted',
      'Arrows go from call to call, Enter goes into one, Escape or Home back to all.',
    ),
    saveMenu(
      name,
      drawingKinds(name, () => drawingOf(handle, name, summary)),
    ),
  );
  return {
    element,
    dispose() {
      cancelAnimationFrame(request);
      stops.forEach((stop) => stop());
      size.disconnect();
    },
  };
}

function words({ tree, state }: Handle): string {
  const frame = tree.frames[state.cursor]!;
  const where = frame.module ? ` in ${fileName(frame.module)}` : '';
  if (frame.kind === 'all' || state.cursor === 0)
    return `All calls: ${frame.words}.`;
  return `${visible(frame.name)}${visible(where)} (${KIND_WORDS[frame.kind] ?? frame.kind}): ${frame.words}.`;
}

function tools(handle: Handle, invert?: Invert, place?: Place): HTMLElement {
  const { tree, state, refresh } = handle;
  const input = h('input', {
    type: 'search',
    aria: { label: 'Search calls' },
    placeholder: 'Search calls',
  });
  const status = h('span.status', { role: 'status' });
  const look = (): void => {
    const { found, share } = search(handle.tree, input.value);
    state.found = found;
    status.textContent = input.value.trim()
      ? `${count(found.size, 'call')}, ${percent(share)} of all time`
      : '';
    refresh();
  };
  input.addEventListener('input', look);
  const back = h(
    'button',
    {
      onclick: () => {
        toAll(state);
        refresh();
      },
    },
    'All calls',
  );
  const turn = h('input', { type: 'checkbox' });
  const turnAround = (): void => {
    handle.tree = turn.checked && invert ? invert(tree) : tree;
    toAll(state);
    state.boxes = [];
    look();
  };
  turn.addEventListener('change', turnAround);
  if (place) {
    const { params } = place;
    input.value = params.get('find') ?? '';
    turn.checked = params.has('inverted');
    turnAround();
    const zoom = Number(params.get('zoom'));
    if (handle.tree.frames[zoom]) state.focus = state.cursor = zoom;
    let kept = params.toString();
    handle.keep = () => {
      const next = new URLSearchParams();
      if (input.value) next.set('find', input.value);
      if (turn.checked) next.set('inverted', '');
      if (state.focus > 0) next.set('zoom', String(state.focus));
      // A pointer that moves chooses nothing.
      if (next.toString() === kept) return;
      kept = next.toString();
      place.keep(PART, next);
    };
  }
  const turned = h('label', turn, ' Invert: callers below each function');
  return h('div.tools', input, back, invert ? turned : null, status);
}

function toAll(state: State): void {
  state.focus = 0;
  state.cursor = 0;
}

function key(tree: Flame): HTMLElement {
  const kinds = [
    ...new Set(tree.frames.slice(1).map((frame) => frame.kind)),
  ].sort();
  const names: Readonly<Record<string, string>> = {
    user: 'Blue: the program',
    kernel: 'Mauve: the kernel',
    pause: 'Orange, ‖: waiting in a spin hint',
    left_out: 'Grey: left out',
    broken: 'Pale pink, ✂: callers missing (broken stacks)',
    up: 'Vermilion, +: more than before',
    down: 'Blue, −: less than before',
    flat: 'Grey: negligible, or may be chance',
  };
  return h(
    'ul.marks',
    ...kinds.map((kind) => h('li', `${names[kind] ?? kind}.`)),
  );
}

function paint({ tree, state, canvas }: Handle): void {
  const width = canvas.clientWidth;
  const context = canvas.getContext('2d');
  if (!context || width === 0) return;
  const colours = theme();
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  state.boxes = boxes(tree, state.focus, NARROWEST / width);
  const rows =
    1 + state.boxes.reduce((most, box) => Math.max(most, box.row), 0);
  canvas.style.height = `${rows * ROW}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(rows * ROW * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  for (const box of state.boxes)
    paintBox(context, { tree, state, colours, width }, box);
}

function paintBox(
  context: CanvasRenderingContext2D,
  about: { tree: Flame; state: State; colours: Theme; width: number },
  box: Box,
): void {
  const { tree, state, colours, width } = about;
  const frame = tree.frames[box.frame]!;
  const [x, y, wide] = [
    box.left * width,
    box.row * ROW,
    Math.max(1, box.width * width - 1),
  ];
  const fill = colourOf(frame.kind, colours);
  const isDim = state.found.size > 0 && !state.found.has(box.frame);
  context.globalAlpha = isDim ? 0.35 : 1;
  context.fillStyle = fill;
  context.fillRect(x, y, wide, ROW - 1);
  context.globalAlpha = 1;
  if (box.frame === state.cursor || state.found.has(box.frame)) {
    context.strokeStyle = colours.text;
    context.lineWidth = box.frame === state.cursor ? 2 : 1;
    context.strokeRect(x + 1, y + 1, Math.max(1, wide - 2), ROW - 3);
  }
  const text = label(frame, wide);
  if (text === '') return;
  context.fillStyle = isDim ? colours.text : inkOn(fill);
  context.save();
  context.beginPath();
  context.rect(x, y, wide - 3, ROW);
  context.clip();
  context.fillText(text, x + 4, y + ROW / 2);
  context.restore();
}

/** What is written on a box of this width, CSS pixels. */
function label(frame: Flame['frames'][number], wide: number): string {
  if (wide < 26) return '';
  const text = (SIGNS[frame.kind] ?? '') + visible(frame.name);
  const room = Math.floor((wide - 8) / 6.2);
  return text.length > room ? `${text.slice(0, Math.max(1, room - 1))}…` : text;
}

/** The calls as the canvas has them, each with its words for the pointer. */
function drawingOf(
  { tree, state, canvas }: Handle,
  name: string,
  summary: string,
): SVGElement {
  const { clientWidth: width, clientHeight: height } = canvas;
  const colours = theme();
  const calls = state.boxes.map((box) => {
    const frame = tree.frames[box.frame]!;
    const fill = colourOf(frame.kind, colours);
    const wide = Math.max(1, box.width * width - 1);
    const [x, y] = [box.left * width, HEADING_HEIGHT + box.row * ROW];
    const text = { x: x + 4, y: y + 13, fill: inkOn(fill), 'font-size': 12 };
    return svg(
      'g',
      {},
      svg('title', {}, `${frame.name}: ${frame.words}`),
      svg('rect', { x, y, width: wide, height: ROW - 1, fill }),
      svg('text', text, label(frame, wide)),
    );
  });
  const size = { width, height: HEADING_HEIGHT + height };
  const { fontFamily, color } = getComputedStyle(document.body);
  return standaloneSvg({ name, summary, size, fontFamily, color }, calls);
}

function listen(handle: Handle): void {
  const { canvas, state, refresh } = handle;
  const at = (event: MouseEvent): number | null => {
    const place = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - place.top) / ROW);
    const share = (event.clientX - place.left) / Math.max(1, place.width);
    const box = state.boxes.find(
      (status) =>
        status.row === row &&
        share >= status.left &&
        share < status.left + status.width,
    );
    return box ? box.frame : null;
  };
  canvas.addEventListener('pointermove', (event) => {
    const frame = at(event);
    if (frame === null || frame === state.cursor) return;
    state.cursor = frame;
    refresh();
  });
  canvas.addEventListener('click', (event) => {
    const frame = at(event);
    if (frame === null) return;
    state.focus = frame;
    state.cursor = frame;
    refresh();
  });
  canvas.addEventListener('keydown', (event) => {
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      !press(handle, event.key)
    )
      return;
    event.preventDefault();
    refresh();
  });
}

function press({ tree, state }: Handle, pressed: string): boolean {
  const frame = tree.frames[state.cursor]!;
  const widest = (children: readonly number[]): number =>
    children.reduce(
      (most, child) =>
        tree.frames[child]!.time > tree.frames[most]!.time ? child : most,
      children[0]!,
    );
  const beside = (by: number): void => {
    const siblings =
      frame.parent < 0 ? [0] : tree.frames[frame.parent]!.children;
    const next = siblings[siblings.indexOf(state.cursor) + by];
    if (next !== undefined) state.cursor = next;
  };
  const acts: Record<string, () => void> = {
    ArrowUp: () => (state.cursor = Math.max(0, frame.parent)),
    ArrowDown: () => {
      if (frame.children.length > 0) state.cursor = widest(frame.children);
    },
    ArrowLeft: () => beside(-1),
    ArrowRight: () => beside(1),
    Enter: () => (state.focus = state.cursor),
    Escape: () => (state.focus = 0),
    Home: () => toAll(state),
  };
  const act = acts[pressed];
  if (!act) return false;
  act();
  if (
    !isWithin(tree, state.cursor, state.focus) &&
    !isWithin(tree, state.focus, state.cursor)
  )
    state.focus = tree.frames[state.cursor]!.parent;
  return true;
}

/** Is a frame called, over whatever others, from another? */
function isWithin(tree: Flame, frame: number, caller: number): boolean {
  for (let at = frame; at >= 0; at = tree.frames[at]!.parent)
    if (at === caller) return true;
  return false;
}
