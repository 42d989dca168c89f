// The latency matrix as a picture: a cell for each pair of CPUs, groups as
// reported outlined with dashes, as measured with full lines. A cursor that
// the keyboard moves tells of each pair in words.

import { fill, h } from '../../dom';
import { quantity } from '../../format';
import { rgbAt, shareOf } from '../../colour-scale';
import type { Table } from '../../table';
import { tableElement } from '../../table';
import type { Theme } from '../../theme';
import { onTheme, theme } from '../../theme';
import type { Part } from '../../view';
import { scaleLegend } from './legend';
import type { Machine, Measured } from './record';
import type { Order } from './shape';
import { orderOf, reportedGroups, runsOf } from './shape';

const MOST_IN_TABLE = 24;
/** Colours that cells take. */
const STEPS = 256;

/** Least and greatest latency of the matrix. */
export function range(measured: Measured): {
  low: number;
  high: number;
  a: number;
  b: number;
  c: number;
  d: number;
} | null {
  let found: {
    low: number;
    high: number;
    a: number;
    b: number;
    c: number;
    d: number;
  } | null = null;
  measured.latency.forEach((row, i) =>
    row.forEach((ns, j) => {
      const a = measured.cpus[i];
      const b = measured.cpus[j];
      if (ns === null || ns <= 0 || a === undefined || b === undefined) return;
      found ??= { low: ns, high: ns, a, b, c: a, d: b };
      if (ns < found.low) Object.assign(found, { low: ns, a, b });
      if (ns > found.high) Object.assign(found, { high: ns, c: a, d: b });
    }),
  );
  return found;
}

interface Shown {
  order: Order;
  places: number[];
  level: string;
  row: number;
  column: number;
  /** The cells, drawn once for an order: a million of them take a while. */
  picture: HTMLCanvasElement | null;
}

/** The heat map; null where there is no latency. */
export function heatmap(machine: Machine): Part | null {
  const measured = machine.measured;
  const ends = measured && range(measured);
  if (!measured || !ends) return null;
  const shown: Shown = {
    order: 'measured',
    places: orderOf(machine, 'measured'),
    level: firstLevel(machine),
    row: 0,
    column: Math.min(1, measured.cpus.length - 1),
    picture: null,
  };
  const canvas = h('canvas', { class: 'matrix', tabIndex: 0, role: 'img' });
  const frame = h('div', { class: 'matrix-frame' }, canvas);
  const legend = h('div');
  const told = h('p', { class: 'told', aria: { live: 'polite' } });
  const summary = `One-way time of a cache line between ${measured.cpus.length} CPUs: from ${quantity(ends.low, 'ns')} (CPUs ${ends.a} and ${ends.b}) to ${quantity(ends.high, 'ns')} (CPUs ${ends.c} and ${ends.d}).`;
  canvas.setAttribute(
    'aria-label',
    `Latency between CPUs. ${summary} Arrow keys go from pair to pair.`,
  );
  const draw = (): void => {
    const colours = theme();
    paint(canvas, frame.clientWidth, machine, measured, shown, ends, colours);
    fill(
      legend,
      scaleLegend(colours, quantity(ends.low, 'ns'), quantity(ends.high, 'ns')),
    );
  };
  const point = (row: number, column: number): void => {
    const last = shown.places.length - 1;
    shown.row = Math.min(last, Math.max(0, row));
    shown.column = Math.min(last, Math.max(0, column));
    told.textContent = pairWords(measured, shown);
    draw();
  };
  listen(canvas, shown, point);
  const size = new ResizeObserver(draw);
  size.observe(frame);
  const stop = onTheme(draw);
  const element = h(
    'figure',
    { class: 'chart', data: { chart: 'Latency between CPUs' } },
    h(
      'figcaption',
      {},
      h('strong', {}, 'Latency between CPUs'),
      ' ',
      h('span', { class: 'muted' }, summary),
    ),
    controls(machine, shown, draw),
    legend,
    frame,
    told,
    outlineWords(),
    matrixTable(measured),
  );
  return {
    element,
    dispose: () => {
      stop();
      size.disconnect();
    },
  };
}

const outlineWords = (): HTMLElement =>
  h(
    'p',
    { class: 'muted' },
    'Full lines: groups as measured. Dashed lines: groups as reported.',
  );

function firstLevel(machine: Machine): string {
  const groups = (level: string): number =>
    reportedGroups(machine, level).length;
  const contradicted = machine.contradictions.find((c) =>
    ['smt', 'llc', 'package'].includes(c.level),
  );
  return (
    contradicted?.level ??
    (groups('llc') > 1 ? 'llc' : groups('package') > 1 ? 'package' : 'llc')
  );
}

function controls(
  machine: Machine,
  shown: Shown,
  draw: () => void,
): HTMLElement {
  const option = (value: string, name: string, now: string): HTMLElement =>
    h('option', { value, selected: value === now }, name);
  const order = h(
    'select',
    {},
    option('measured', 'as measured', shown.order),
    option('reported', 'as reported', shown.order),
    option('number', 'by number', shown.order),
  );
  const level = h(
    'select',
    {},
    option('smt', 'cores', shown.level),
    option('llc', 'last-level caches', shown.level),
    option('package', 'packages', shown.level),
    option('', 'none', shown.level),
  );
  order.addEventListener('change', () => {
    shown.order = order.value as Order;
    shown.places = orderOf(machine, shown.order);
    shown.picture = null;
    draw();
  });
  level.addEventListener('change', () => {
    shown.level = level.value;
    draw();
  });
  return h(
    'div',
    { class: 'controls' },
    h('label', {}, 'CPUs in order ', order),
    h('label', {}, 'Outline ', level),
  );
}

function listen(
  canvas: HTMLCanvasElement,
  shown: Shown,
  point: (row: number, column: number) => void,
): void {
  const steps: Readonly<Record<string, readonly [number, number]>> = {
    ArrowRight: [0, 1],
    ArrowLeft: [0, -1],
    ArrowDown: [1, 0],
    ArrowUp: [-1, 0],
  };
  canvas.addEventListener('keydown', (event) => {
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    point(shown.row + step[0], shown.column + step[1]);
  });
  canvas.addEventListener('pointermove', (event) => {
    const place = canvas.getBoundingClientRect();
    const cells = shown.places.length;
    const at = (offset: number, whole: number): number =>
      Math.floor(((offset - MARGIN) / (whole - MARGIN)) * cells);
    const [column, row] = [
      at(event.clientX - place.left, place.width),
      at(event.clientY - place.top, place.height),
    ];
    if (
      row >= 0 &&
      column >= 0 &&
      (row !== shown.row || column !== shown.column)
    )
      point(row, column);
  });
}

function pairWords(measured: Measured, shown: Shown): string {
  const [i, j] = [shown.places[shown.row]!, shown.places[shown.column]!];
  const [a, b] = [measured.cpus[i], measured.cpus[j]];
  if (i === j) return `CPU ${a}: itself`;
  const ns = measured.latency[i]?.[j] ?? null;
  if (ns === null) return `CPUs ${a} and ${b}: neither measured nor inferred`;
  return `CPUs ${a} and ${b}: ${quantity(ns, 'ns')}, ${measured.isMeasured[i]?.[j] ? 'measured' : 'taken from the leaders of their groups'}`;
}

/** Room for the CPUs' numbers, left and above. */
const MARGIN = 30;

function paint(
  canvas: HTMLCanvasElement,
  room: number,
  machine: Machine,
  measured: Measured,
  shown: Shown,
  ends: { low: number; high: number },
  colours: Theme,
): void {
  const cells = shown.places.length;
  const side = Math.max(
    120,
    Math.min(room, MARGIN + Math.max(220, Math.min(760, cells * 28))),
  );
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(side * ratio);
  canvas.height = Math.round(side * ratio);
  canvas.style.width = `${side}px`;
  canvas.style.height = `${side}px`;
  const brush = canvas.getContext('2d');
  if (!brush || cells === 0) return;
  brush.setTransform(ratio, 0, 0, ratio, 0, 0);
  const cell = (side - MARGIN - 1) / cells;
  brush.imageSmoothingEnabled = false;
  // Light and dark have the same scale, so the picture holds for both.
  shown.picture ??= pixels(measured, shown.places, ends, colours);
  brush.drawImage(shown.picture, MARGIN, MARGIN, cell * cells, cell * cells);
  numbers(brush, measured, shown.places, cell, colours);
  if (cell >= 26) figures(brush, measured, shown.places, cell, ends, colours);
  outlines(brush, machine, measured, shown, cell, colours);
  brush.strokeStyle = colours.text;
  brush.lineWidth = 2;
  brush.setLineDash([]);
  brush.strokeRect(
    MARGIN + shown.column * cell,
    MARGIN + shown.row * cell,
    Math.max(cell, 3),
    Math.max(cell, 3),
  );
}

/** One pixel for each pair; pairs without a time are left transparent. */
function pixels(
  measured: Measured,
  places: readonly number[],
  ends: { low: number; high: number },
  colours: Theme,
): HTMLCanvasElement {
  const picture = document.createElement('canvas');
  picture.width = places.length;
  picture.height = places.length;
  const brush = picture.getContext('2d');
  if (!brush) return picture;
  const image = brush.createImageData(places.length, places.length);
  const steps = Array.from({ length: STEPS }, (_, at) =>
    rgbAt(colours.scale, at / (STEPS - 1)),
  );
  places.forEach((i, row) => {
    const times = measured.latency[i];
    places.forEach((j, column) => {
      const ns = times?.[j];
      if (typeof ns !== 'number' || ns <= 0) return;
      const step =
        steps[Math.round(shareOf(ns, ends.low, ends.high) * (STEPS - 1))]!;
      const at = 4 * (row * places.length + column);
      [
        image.data[at],
        image.data[at + 1],
        image.data[at + 2],
        image.data[at + 3],
      ] = [step[0], step[1], step[2], 255];
    });
  });
  brush.putImageData(image, 0, 0);
  return picture;
}

/** As many CPUs' numbers as have room. */
function numbers(
  brush: CanvasRenderingContext2D,
  measured: Measured,
  places: readonly number[],
  cell: number,
  colours: Theme,
): void {
  const step = Math.max(1, Math.ceil(22 / cell));
  brush.fillStyle = colours.muted;
  brush.font = '11px sans-serif';
  brush.textBaseline = 'middle';
  for (let at = 0; at < places.length; at += step) {
    const middle = MARGIN + (at + 0.5) * cell;
    const name = `${measured.cpus[places[at]!]}`;
    brush.textAlign = 'right';
    brush.fillText(name, MARGIN - 4, middle);
    brush.textAlign = 'center';
    brush.fillText(name, middle, MARGIN - 9);
  }
}

function figures(
  brush: CanvasRenderingContext2D,
  measured: Measured,
  places: readonly number[],
  cell: number,
  ends: { low: number; high: number },
  colours: Theme,
): void {
  brush.textAlign = 'center';
  brush.textBaseline = 'middle';
  brush.font = '10px sans-serif';
  places.forEach((i, row) =>
    places.forEach((j, column) => {
      const ns = measured.latency[i]?.[j];
      if (typeof ns !== 'number') return;
      // The scale's upper half is light, its lower half dark.
      brush.fillStyle =
        shareOf(ns, ends.low, ends.high) > 0.45 ? '#000000' : '#ffffff';
      const text =
        ns >= 10_000
          ? `${Math.round(ns / 1000)}k`
          : ns >= 100
            ? `${Math.round(ns)}`
            : ns.toFixed(ns >= 10 ? 0 : 1);
      brush.fillText(
        text,
        MARGIN + (column + 0.5) * cell,
        MARGIN + (row + 0.5) * cell,
      );
    }),
  );
  brush.fillStyle = colours.text;
}

function outlines(
  brush: CanvasRenderingContext2D,
  machine: Machine,
  measured: Measured,
  shown: Shown,
  cell: number,
  colours: Theme,
): void {
  if (shown.level === '') return;
  const cpus = shown.places.map((place) => measured.cpus[place]!);
  const found =
    measured.levels.find((level) => level.kind === shown.level)?.groups ?? [];
  const reported = reportedGroups(machine, shown.level).filter(
    (group) => group.length > 1,
  );
  const drawRuns = (
    groups: number[][],
    dash: number[],
    inset: number,
    colour: string,
  ): void => {
    brush.setLineDash(dash);
    brush.strokeStyle = colour;
    for (const [from, to] of runsOf(groups, cpus)) {
      const start = MARGIN + from * cell + inset;
      const side = (to - from + 1) * cell - 2 * inset;
      if (side > 1) brush.strokeRect(start, start, side, side);
    }
  };
  // A light line below a dark one is seen on every colour of the scale.
  for (const [width, colour] of [
    [3.5, '#ffffff'],
    [1.75, '#000000'],
  ] as const) {
    brush.lineWidth = width;
    drawRuns(found, [], 1, colour);
    drawRuns(reported, [6, 5], 3.5, colour);
  }
  brush.setLineDash([]);
  brush.strokeStyle = colours.text;
}

function matrixTable(measured: Measured): HTMLElement | null {
  if (measured.cpus.length > MOST_IN_TABLE) return null;
  const table: Table = {
    caption: 'One-way times between CPUs, ns',
    columns: [
      { name: 'CPU' },
      ...measured.cpus.map((cpu) => ({ name: `${cpu}`, isNumber: true })),
    ],
    rows: measured.cpus.map((cpu, i) => [
      `${cpu}`,
      ...measured.cpus.map((_, j) => {
        const ns = measured.latency[i]?.[j];
        return typeof ns === 'number' ? ns.toFixed(1) : null;
      }),
    ]),
  };
  return h(
    'details',
    { class: 'figures' },
    h('summary', {}, 'The figures'),
    tableElement(table),
  );
}
