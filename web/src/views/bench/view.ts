// A bench: its summary, how kernels scale, and what SMT yields.

import './style.css';

import { type ChartPlan, chart } from '../../chart';
import { h } from '../../dom';
import {
  count,
  digits,
  fixed,
  percent,
  seconds,
  span,
  withSpan,
} from '../../format';
import { type Look, COLOURS, diagonal, seriesLook } from '../../plot';
import type { Bench, BenchKernel } from '../../records';
import { wholeTicks } from '../../scales';
import { adviceLine, findingsPart, runFacts } from '../../method';
import type { AnyRecord } from '../../source';
import { tableElement, numberColumns } from '../../table';
import { type Page, type Part, type View, stack } from '../../view';
import { facts, section, recordLink } from '../../words';
import {
  cellRows,
  countThreads,
  describeBaseline,
  questionText,
  rankPlacements,
  scalingSummary,
  smtYields,
  speedSeries,
  withGaps,
  hasScalingChart,
} from './shape';
import { mapNumber } from '../../numbers';

/** Draws a `pinwise.bench/1`. */
export function benchView(record: AnyRecord, page: Page): View {
  const bench = record as Bench;
  const kernels = (bench.kernels ?? []).filter(
    (kernel) => typeof kernel.kernel === 'string',
  );
  const scaling = kernels.filter(hasScalingChart);
  const conclusions = bench.conclusions ?? [];
  const smt = yieldPlan({ ...bench, kernels });
  return stack('article', '', [
    h(
      'p.verdict',
      conclusions[0] ??
        (bench.stopped
          ? 'No conclusion was drawn.'
          : `No conclusion: the bench runs, or was cut off, after ${kernels.length} of ${bench.planned ?? '?'} comparisons.`),
    ),
    adviceLine(bench.advice),
    smt && chart(smt),
    ...scalingParts(scaling),
    conclusions.length > 1 &&
      h(
        'details',
        h('summary', 'Further conclusions'),
        h('ul', ...conclusions.slice(1).map((c) => h('li', c))),
      ),
    bench.smt?.sentence &&
      bench.smt.sentence !== conclusions[0] &&
      h('p', h('strong', 'SMT: '), bench.smt.sentence),
    scoreTable(bench),
    kernels.length > 0 &&
      section('Kernels', ...kernels.map((kernel) => kernelPart(kernel, page))),
    findingsPart(bench.findings),
    section(
      'How it was measured',
      facts({
        Suite: bench.suite ?? 'kernels by name',
        Comparisons: `${kernels.length} of ${bench.planned ?? kernels.length} planned, each in random blocks`,
        'Time allowed': mapNumber(bench.budget_s, seconds),
        'Same within': mapNumber(
          bench.min_effect,
          (minEffect) => `±${percent(minEffect)}`,
        ),
        Intervals: mapNumber(
          kernels[0]?.confidence,
          (confidence) =>
            `${percent(confidence, 0)} for all cells of a comparison together`,
        ),
        ...runFacts(bench),
      }),
    ),
  ]);
}

const IDEAL = 'On the dashed line every thread would add a full share.';

/** The placements of a kernel and its curve; of several, first one chart of all and then their
 * curves, folded. */
function scalingParts(kernels: readonly BenchKernel[]): (Part | HTMLElement)[] {
  if (kernels.length === 0) return [];
  const [first] = kernels;
  const places = first && kernels.length === 1 && placementPlan(first);
  // Two numbers of threads make no curve.
  if (places && countThreads(first).length < 3) return [chart(places)];
  const grid = stack(
    'div',
    'chart-grid',
    kernels.map((kernel): Part =>
      chart({
        ...scalingPlan(kernel),
        // The headline of a single kernel has its summary.
        ...(kernels.length === 1 && { caption: IDEAL }),
      }),
    ),
  );
  if (kernels.length === 1) return places ? [chart(places), grid] : [grid];
  const folded = h(
    'details',
    h('summary', 'The curve of each kernel'),
    h('p.muted', IDEAL),
    grid.element,
  );
  return [
    chart(speedPlan(kernels)),
    { element: folded, dispose: grid.dispose },
  ];
}

/** The placements of the number of threads at which they differ most; null if there are not two. */
function placementPlan(kernel: BenchKernel): ChartPlan | null {
  const [threads, all] = rankPlacements(kernel);
  if (all.length < 2) return null;
  const times = (value: number): string => `×${fixed(value, 2)}`;
  return {
    name: `Placements of ${count(threads, 'thread')}`,
    summary: `Work of ${kernel.kernel}, as a multiple of that of ${describeBaseline(kernel)}; ${percent(kernel.confidence ?? 0.95, 0)} intervals that hold together.`,
    panel: {
      height: 28 * all.length,
      x: {
        title: '← less work      more work →',
        label: (x) => `×${digits(x, 3)}`,
      },
      y: {
        title: 'Placement',
        names: all.map(({ placement }) => placement),
        words: all.map(({ value }) => times(value)),
      },
      series: [
        {
          interval: 'x',
          points: all.map(({ placement, value, low, high }, y) => ({
            x: value,
            y,
            low,
            high,
            colour: y === 0 ? COLOURS.better : COLOURS.neutral,
            tooltip: `${placement}\n${withSpan(value, low, high, times)}`,
          })),
        },
      ],
    },
  };
}

/** Every kernel's speed-up with the most threads of each placement. */
function speedPlan(kernels: readonly BenchKernel[]): ChartPlan {
  const ends = kernels.map((kernel) =>
    speedSeries(kernel).map(({ family, points }) => {
      const end = points.at(-1)!;
      return { name: `${end.threads} @ ${family}`, end };
    }),
  );
  const names = [...new Set(ends.flat().map(({ name }) => name))];
  const find = (row: number, name: string) =>
    ends[row]!.find((one) => one.name === name)?.end;
  const times = (value: number): string => `×${fixed(value, 2)}`;
  return {
    name: 'Speed-up of every kernel',
    summary: `With the most threads of each placement, against ${describeBaseline(kernels[0])}.`,
    panel: {
      height: 20 * kernels.length,
      x: { title: 'speed-up', hasZero: true, label: (x) => `×${x}` },
      y: { title: 'Kernel', names: kernels.map((k) => k.kernel ?? '') },
      rules: [{ x: 1 }],
      series: names.map((name, at) => ({
        name,
        ...seriesLook(at),
        interval: 'x' as const,
        points: kernels.flatMap(({ kernel }, y) => {
          const end = find(y, name);
          if (!end) return [];
          const { value, low, high } = end;
          const tooltip = `${kernel}\n${name}: ${times(value)}`;
          return [{ x: value, y, low, high, tooltip }];
        }),
      })),
    },
    table: {
      caption: 'Speed-up of every kernel',
      columns: ['Kernel', ...numberColumns(...names)],
      rows: kernels.map(({ kernel }, row) => [
        kernel,
        ...names.map((name) => mapNumber(find(row, name)?.value, times)),
      ]),
    },
  };
}

function scalingPlan(kernel: BenchKernel): ChartPlan {
  const all = speedSeries(kernel);
  const most = Math.max(...all.flatMap((c) => c.points.map((p) => p.threads)));
  return {
    name: `Scaling of ${kernel.kernel}`,
    summary: scalingSummary(kernel),
    panel: {
      height: 240,
      x: { title: 'threads', ends: [0, most * 1.04], ticks: wholeTicks },
      y: { title: 'speed-up', hasZero: true, label: (y) => `×${y}` },
      series: [
        { name: 'ideal', ...diagonal(0, most) },
        ...all.map((c, at) => ({
          name: c.family,
          ...seriesLook(at),
          line: 'straight' as const,
          interval: 'y' as const,
          thickness: 1.5,
          points: withGaps(c.points).map((p) => ({
            x: p.threads,
            y: p.value,
            low: p.low,
            high: p.high,
            tooltip: `${c.family}\n${count(p.threads, 'thread')}: ×${fixed(p.value ?? 0, 2)}`,
          })),
        })),
      ],
    },
  };
}

function yieldPlan(record: Bench): ChartPlan | null {
  const rows = smtYields(record);
  if (rows.length === 0) return null;
  return {
    name: 'SMT yield',
    summary: `What the other CPUs of a core add: ${rows
      .slice(0, 4)
      .map((r) => `${r.kernel} ${percent(r.value, 0)}`)
      .join(', ')}${rows.length > 4 ? ' …' : '.'} Right of the line it adds.`,
    panel: {
      height: 28 * rows.length,
      x: {
        title: 'throughput added by SMT siblings',
        hasZero: true,
        label: (x) => percent(x, 0),
      },
      y: {
        title: 'Kernel',
        names: rows.map((r) => r.kernel),
        words: rows.map((r) => {
          const { word } = yieldLook(r);
          return word;
        }),
      },
      rules: [{ x: 0 }],
      series: [
        {
          interval: 'x',
          points: rows.map((r, y) => ({
            ...yieldLook(r).look,
            x: r.value,
            y,
            low: r.low,
            high: r.high,
            tooltip: `${r.kernel}\n${percent(r.value)}`,
          })),
        },
      ],
    },
    table: yieldTable(rows),
  };
}

/** How a yield looks, and the word for it. */
function yieldLook(row: ReturnType<typeof smtYields>[number]): {
  word: string;
  look: Look;
} {
  if (row.low !== null && row.low > 0)
    return { word: 'adds', look: { colour: COLOURS.better } };
  if (row.high !== null && row.high < 0)
    return { word: 'costs', look: { colour: COLOURS.worse, shape: 'square' } };
  return { word: 'undecided', look: { isHollow: true } };
}

function yieldTable(
  rows: ReturnType<typeof smtYields>,
): NonNullable<ChartPlan['table']> {
  return {
    caption: 'SMT yield',
    columns: ['Kernel', ...numberColumns('Adds', 'Interval')],
    rows: rows.map((r) => [
      r.kernel,
      percent(r.value),
      span(r.low, r.high, percent),
    ]),
  };
}

function scoreTable(record: Bench): HTMLElement | null {
  const rows = (record.scores ?? []).filter((s) => typeof s.score === 'number');
  if (rows.length === 0) return null;
  return section(
    'Scores',
    tableElement({
      caption: 'Geometric means of speed-ups over the kernels of a group',
      columns: [
        'Group',
        'Cell',
        { name: 'Score', isNumber: true },
        'Over',
        'Question',
        'Kernels',
      ],
      rows: rows.map((s) => [
        s.group,
        s.cell,
        `×${fixed(s.score!, 2)}`,
        s.reference,
        questionText(s.question),
        (s.kernels ?? []).join(', '),
      ]),
    }),
  );
}

function kernelPart(kernel: BenchKernel, page: Page): HTMLElement {
  const rows = tableElement({
    caption: `${kernel.kernel}: ${questionText(kernel.question)}${kernel.cache_fit ? `; ${kernel.cache_fit}` : ''}`,
    columns: [
      'Cell',
      'CPUs',
      ...numberColumns(
        'Time',
        `${kernel.operation ?? 'operations'} per second`,
        'Bandwidth',
        'Speed-up',
        'Efficiency',
      ),
    ],
    rows: cellRows(kernel),
  });
  const link =
    kernel.comparison && page.source.kind === 'site'
      ? h('p', recordLink(kernel.comparison, 'Its comparison, with every run'))
      : null;
  return h(
    'details',
    h(
      'summary',
      `${kernel.kernel} (${questionText(kernel.question)}), ${kernel.blocks ?? 0} blocks`,
    ),
    rows,
    link,
  );
}
