// A flame graph on a canvas: callers above, their callees below, as wide as their time. A click
// or Enter goes into a call. Inverted, functions are above and their callers below.

import { fill, h, svg, visible } from '../../dom';
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
import { layOutBoxes, fileName, KIND_WORDS, searchFrames } from './shape';

const ROW_HEIGHT = 19;
/** Calls narrower than this are not drawn, CSS pixels. */
const MIN_BOX_WIDTH = 1;

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
  /** Writes zoom, search and inversion into the address. */
  keep(): void;
}

type Invert = (tree: Flame) => Flame;

/** The colour of a kind of call, in the light or dark theme; words distinguish kinds, too. */
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

/** Signs before names, which say the same as the colours. */
const SIGNS: Readonly<Record<string, string>> = {
  up: '+ ',
  down: '− ',
  pause: '‖ ',
  broken: '✂ ',
};

/** The name of the flame graph in addresses. */
const ADDRESS_PART = 'calls';

/** Options of a flame graph. */
interface Options {
  /** Inverts the tree, callers below; absent if inversion makes no sense. */
  invert?: Invert;
  /** The place in the address for zoom, search and inversion. */
  place?: Place | undefined;
}

export function flameGraph(
  tree: Flame,
  name: string,
  summary: string,
  { invert, place }: Options,
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
  const status = h('p.place', { role: 'status', aria: { live: 'polite' } });
  const state: State = { focus: 0, cursor: 0, found: new Set(), boxes: [] };
  let request = 0;
  const draw = (): void => {
    cancelAnimationFrame(request);
    request = requestAnimationFrame(() => paint(handle));
  };
  const refresh = (): void => {
    fill(status, describeCursor(handle));
    handle.keep();
    draw();
  };
  const handle: Handle = { tree, state, canvas, refresh, keep: () => {} };
  const stops = [onTheme(draw), onPrint(() => paint(handle))];
  const size = new ResizeObserver(draw);
  size.observe(box);
  listenForPicking(handle);
  refresh();
  const element = h(
    'figure.chart',
    { data: { chart: name } },
    h('figcaption', h('strong', name), ' ', h('span.muted', summary)),
    tools(handle, invert, place),
    box,
    status,
    colourLegend(tree),
    h(
      'p.muted',
      'Arrows go from call to call, Enter goes into one, Escape or Home back to all.',
    ),
    saveMenu(
      name,
      drawingKinds(name, () => toSvg(handle, name, summary)),
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

function describeCursor({ tree, state }: Handle): string {
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
  const matches = h('span.status', { role: 'status' });
  const runSearch = (): void => {
    const { found, share } = searchFrames(handle.tree, input.value);
    state.found = found;
    matches.textContent = input.value.trim()
      ? `${count(found.size, 'call')}, ${percent(share)} of all time`
      : '';
    refresh();
  };
  input.addEventListener('input', runSearch);
  const back = h(
    'button',
    {
      onclick: () => {
        resetZoom(state);
        refresh();
      },
    },
    'All calls',
  );
  const invertBox = h('input', { type: 'checkbox' });
  const applyInversion = (): void => {
    handle.tree = invertBox.checked && invert ? invert(tree) : tree;
    resetZoom(state);
    state.boxes = [];
    runSearch();
  };
  invertBox.addEventListener('change', applyInversion);
  if (place) {
    const { params } = place;
    input.value = params.get('find') ?? '';
    invertBox.checked = params.has('inverted');
    applyInversion();
    const zoom = Number(params.get('zoom'));
    if (handle.tree.frames[zoom]) state.focus = state.cursor = zoom;
    let kept = params.toString();
    handle.keep = () => {
      const next = new URLSearchParams();
      if (input.value) next.set('find', input.value);
      if (invertBox.checked) next.set('inverted', '');
      if (state.focus > 0) next.set('zoom', String(state.focus));
      // Moving the pointer also comes here, but changes nothing to keep.
      if (next.toString() === kept) return;
      kept = next.toString();
      place.keep(ADDRESS_PART, next);
    };
  }
  const invertLabel = h(
    'label',
    invertBox,
    ' Invert: callers below each function',
  );
  return h('div.tools', input, back, invert ? invertLabel : null, matches);
}

function resetZoom(state: State): void {
  state.focus = 0;
  state.cursor = 0;
}

function colourLegend(tree: Flame): HTMLElement {
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
  return h('p.marks', kinds.map((kind) => names[kind] ?? kind).join('. '), '.');
}

function paint({ tree, state, canvas }: Handle): void {
  const width = canvas.clientWidth;
  const context = canvas.getContext('2d');
  if (!context || width === 0) return;
  const colours = theme();
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  state.boxes = layOutBoxes(tree, state.focus, MIN_BOX_WIDTH / width);
  const rows =
    1 + state.boxes.reduce((most, box) => Math.max(most, box.row), 0);
  canvas.style.height = `${rows * ROW_HEIGHT}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(rows * ROW_HEIGHT * ratio);
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
    box.row * ROW_HEIGHT,
    Math.max(1, box.width * width - 1),
  ];
  const fill = colourOf(frame.kind, colours);
  const isDim = state.found.size > 0 && !state.found.has(box.frame);
  context.globalAlpha = isDim ? 0.35 : 1;
  context.fillStyle = fill;
  context.fillRect(x, y, wide, ROW_HEIGHT - 1);
  context.globalAlpha = 1;
  if (box.frame === state.cursor || state.found.has(box.frame)) {
    context.strokeStyle = colours.text;
    context.lineWidth = box.frame === state.cursor ? 2 : 1;
    context.strokeRect(x + 1, y + 1, Math.max(1, wide - 2), ROW_HEIGHT - 3);
  }
  const text = label(frame, wide);
  if (text === '') return;
  context.fillStyle = isDim ? colours.text : inkOn(fill);
  context.save();
  context.beginPath();
  context.rect(x, y, wide - 3, ROW_HEIGHT);
  context.clip();
  context.fillText(text, x + 4, y + ROW_HEIGHT / 2);
  context.restore();
}

/** The text on a box of this width, CSS pixels. */
function label(frame: Flame['frames'][number], wide: number): string {
  if (wide < 26) return '';
  const text = (SIGNS[frame.kind] ?? '') + visible(frame.name);
  const room = Math.floor((wide - 8) / 6.2);
  return text.length > room ? `${text.slice(0, Math.max(1, room - 1))}…` : text;
}

/** The calls drawn on the canvas as SVG, each with a tooltip. */
function toSvg(
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
    const [x, y] = [box.left * width, HEADING_HEIGHT + box.row * ROW_HEIGHT];
    const text = { x: x + 4, y: y + 13, fill: inkOn(fill), 'font-size': 12 };
    return svg(
      'g',
      {},
      svg('title', {}, `${frame.name}: ${frame.words}`),
      svg('rect', { x, y, width: wide, height: ROW_HEIGHT - 1, fill }),
      svg('text', text, label(frame, wide)),
    );
  });
  const size = { width, height: HEADING_HEIGHT + height };
  const { fontFamily, color } = getComputedStyle(document.body);
  return standaloneSvg({ name, summary, size, fontFamily, color }, calls);
}

function listenForPicking(handle: Handle): void {
  const { canvas, state, refresh } = handle;
  const at = (event: MouseEvent): number | null => {
    const place = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - place.top) / ROW_HEIGHT);
    const share = (event.clientX - place.left) / Math.max(1, place.width);
    const hit = state.boxes.find(
      (box) =>
        box.row === row && share >= box.left && share < box.left + box.width,
    );
    return hit ? hit.frame : null;
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
      !handleKey(handle, event.key)
    )
      return;
    event.preventDefault();
    refresh();
  });
}

function handleKey({ tree, state }: Handle, pressed: string): boolean {
  const frame = tree.frames[state.cursor]!;
  const widest = (children: readonly number[]): number =>
    children.reduce(
      (most, child) =>
        tree.frames[child]!.time > tree.frames[most]!.time ? child : most,
      children[0]!,
    );
  const moveBeside = (by: number): void => {
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
    ArrowLeft: () => moveBeside(-1),
    ArrowRight: () => moveBeside(1),
    Enter: () => (state.focus = state.cursor),
    Escape: () => (state.focus = 0),
    Home: () => resetZoom(state),
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

/** Is a frame the caller itself or called from it, directly or through others? */
function isWithin(tree: Flame, frame: number, caller: number): boolean {
  for (let at = frame; at >= 0; at = tree.frames[at]!.parent)
    if (at === caller) return true;
  return false;
}
