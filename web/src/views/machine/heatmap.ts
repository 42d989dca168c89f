// The latency matrix in the page: a cell for each pair of CPUs, groups as
// reported outlined with dashes, as measured with full lines. A cursor that
// the keyboard moves describes each pair in words.

import { selectElement } from '../../controls';
import { fill, h } from '../../dom';
import { fixed, quantity } from '../../format';
import { type Table, tableElement } from '../../table';
import { onPrint } from '../../print';
import { onTheme, theme } from '../../theme';
import { type Captioned, picturesMenu } from '../../save';
import type { Part } from '../../view';
import { scaleLegend } from './legend';
import { type Cells, type MatrixState, layOutCells, MARGIN } from './cells';
import { drawOverlay, drawCells } from './matrix';
import type { Machine, Measured } from './record';
import { type Order, orderPlaces, reportedGroups } from './shape';
import { mapNumber } from '../../numbers';

const MAX_TABLE_CPUS = 24;

/** The least and the greatest latency, each with the CPUs between which it was measured. */
interface LatencyRange {
  low: number;
  lowPair: string;
  high: number;
  highPair: string;
}

/** The range of the matrix; null if nothing is known. */
function findRange(measured: Measured): LatencyRange | null {
  let found: LatencyRange | null = null;
  measured.latency.forEach((row, i) =>
    row.forEach((ns, j) => {
      const a = measured.cpus[i];
      const b = measured.cpus[j];
      if (ns === null || ns <= 0 || a === undefined || b === undefined) return;
      const pair = `CPUs ${a} and ${b}`;
      found ??= { low: ns, lowPair: pair, high: ns, highPair: pair };
      if (ns < found.low) Object.assign(found, { low: ns, lowPair: pair });
      if (ns > found.high) Object.assign(found, { high: ns, highPair: pair });
    }),
  );
  return found;
}

/** The heat map, which can mark the row and column of a CPU that is pointed at elsewhere. */
export interface Heatmap extends Part {
  mark(cpu: number | null): void;
}

/** The heat map; null if there is no latency. `onPoint` gets the pair below the pointer. */
export function heatmap(
  machine: Machine,
  onPoint: (cpus: readonly number[]) => void,
): Heatmap | null {
  const measured = machine.measured;
  const ends = measured && findRange(measured);
  if (!measured || !ends) return null;
  const shown: MatrixState = {
    order: 'measured',
    places: orderPlaces(machine, 'measured'),
    level: chooseLevel(machine),
    row: 0,
    column: Math.min(1, measured.cpus.length - 1),
    linked: null,
    isLog: true,
  };
  const matrix = h('div.matrix', { tabIndex: 0, role: 'img' });
  const frame = h('div.matrix-frame', matrix);
  const legend = h('div');
  const status = h('p.status-line', { aria: { live: 'polite' } });
  const [low, high] = [ends.low, ends.high].map((end) => quantity(end, 'ns'));
  const summary = `One-way time of a cache line between ${measured.cpus.length} CPUs: ${low === high ? low : `from ${low} (${ends.lowPair}) to ${high} (${ends.highPair})`}.`;
  matrix.setAttribute(
    'aria-label',
    `Latency between CPUs. ${summary} Arrow keys go from pair to pair.`,
  );
  let cells: Cells | null = null;
  const redrawOverlay = (): void => {
    matrix.querySelector('.overlay')?.remove();
    if (cells) matrix.append(drawOverlay(cells, shown));
  };
  const draw = (): void => {
    const room = frame.clientWidth;
    if (room === 0) return;
    const colours = theme();
    cells = layOutCells(room, machine, measured, shown, ends);
    matrix.style.width = `${cells.side}px`;
    matrix.replaceChildren(drawCells(cells, colours));
    redrawOverlay();
    fill(legend, scaleLegend(colours, low!, high!));
  };
  const pointAt = (row: number, column: number): void => {
    const last = shown.places.length - 1;
    shown.row = Math.min(last, Math.max(0, row));
    shown.column = Math.min(last, Math.max(0, column));
    shown.linked = null;
    fill(status, describePair(measured, shown));
    onPoint(
      [shown.row, shown.column].map((at) => measured.cpus[shown.places[at]!]!),
    );
    redrawOverlay();
  };
  matrix.addEventListener('pointerleave', () => onPoint([]));
  matrix.addEventListener('blur', () => onPoint([]));
  listenForPointing(matrix, shown, pointAt);
  const size = new ResizeObserver(draw);
  size.observe(frame);
  const stops = [onTheme(draw), onPrint(draw)];
  const element = h(
    'figure.chart',
    { data: { chart: 'Latency between CPUs' } },
    h(
      'figcaption',
      h('strong', 'Latency between CPUs'),
      ' ',
      h('span.muted', summary),
    ),
    matrixControls(machine, shown, draw),
    legend,
    frame,
    status,
    outlineWords(),
    matrixTable(measured),
    picturesMenu('Latency between CPUs', () => [
      ...[...legend.querySelectorAll<SVGElement>('svg')].map(
        (ramp): Captioned => [`From ${low} to ${high}:`, ramp],
      ),
      [summary, matrix.firstElementChild as SVGElement | HTMLCanvasElement],
    ]),
  );
  return {
    element,
    mark: (cpu) => {
      if (shown.linked === cpu) return;
      shown.linked = cpu;
      redrawOverlay();
    },
    dispose: () => {
      stops.forEach((stop) => stop());
      size.disconnect();
    },
  };
}

const outlineWords = (): HTMLElement =>
  h(
    'p.muted',
    'Full lines: groups as measured. Dashed lines: groups as reported.',
  );

function chooseLevel(machine: Machine): string {
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

function matrixControls(
  machine: Machine,
  shown: MatrixState,
  draw: () => void,
): HTMLElement {
  const order = selectElement(
    [
      ['measured', 'as measured'],
      ['reported', 'as reported'],
      ['number', 'by number'],
    ],
    (value) => {
      shown.order = value as Order;
      shown.places = orderPlaces(machine, shown.order);
      draw();
    },
    { name: 'order', value: shown.order },
  );
  const level = selectElement(
    [
      ['smt', 'cores'],
      ['llc', 'last-level caches'],
      ['package', 'packages'],
      ['', 'none'],
    ],
    (value) => {
      shown.level = value;
      draw();
    },
    { name: 'outline', value: shown.level },
  );
  const scale = selectElement(
    [
      ['log', 'logarithmic'],
      ['linear', 'linear'],
    ],
    (value) => {
      shown.isLog = value === 'log';
      draw();
    },
    { name: 'scale', value: 'log' },
  );
  return h(
    'div.controls',
    h('label', 'CPUs in order ', order),
    h('label', 'Outline ', level),
    h('label', 'Scale ', scale),
  );
}

function listenForPointing(
  matrix: HTMLElement,
  shown: MatrixState,
  pointAt: (row: number, column: number) => void,
): void {
  const steps: Readonly<Record<string, readonly [number, number]>> = {
    ArrowRight: [0, 1],
    ArrowLeft: [0, -1],
    ArrowDown: [1, 0],
    ArrowUp: [-1, 0],
  };
  matrix.addEventListener('keydown', (event) => {
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    pointAt(shown.row + step[0], shown.column + step[1]);
  });
  matrix.addEventListener('pointermove', (event) => {
    const place = matrix.getBoundingClientRect();
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
      pointAt(row, column);
  });
}

function describePair(measured: Measured, shown: MatrixState): string {
  const [i, j] = [shown.places[shown.row]!, shown.places[shown.column]!];
  const [a, b] = [measured.cpus[i], measured.cpus[j]];
  if (i === j) return `CPU ${a}: itself`;
  const ns = measured.latency[i]?.[j] ?? null;
  if (ns === null) return `CPUs ${a} and ${b}: neither measured nor inferred`;
  return `CPUs ${a} and ${b}: ${quantity(ns, 'ns')}, ${measured.isMeasured[i]?.[j] ? 'measured' : 'inferred from other pairs of their groups'}`;
}

function matrixTable(measured: Measured): HTMLElement | null {
  if (measured.cpus.length > MAX_TABLE_CPUS) return null;
  const table: Table = {
    caption: 'One-way times between CPUs, ns',
    columns: [
      'CPU',
      ...measured.cpus.map((cpu) => ({ name: `${cpu}`, isNumber: true })),
    ],
    rows: measured.cpus.map((cpu, i) => [
      `${cpu}`,
      ...measured.cpus.map((_, j) => {
        const ns = measured.latency[i]?.[j];
        return mapNumber(ns, (ns) => fixed(ns, 1));
      }),
    ]),
  };
  return h('details.figures', h('summary', 'The figures'), tableElement(table));
}
