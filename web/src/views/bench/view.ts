// A bench: its summary, how kernels scale, and what SMT yields.

import './style.css';

import type { ChartPlan } from '../../chart';
import { axis, chart, tooltip } from '../../chart';
import { h, visible } from '../../dom';
import { percent, seconds } from '../../format';
import { intervalSeries, look, marker } from '../../intervals';
import type { Bench, BenchKernel } from '../../records';
import { rowAxis, ticksThatFit } from '../../rows';
import type { AnyRecord } from '../../source';
import { tableElement } from '../../table';
import type { Page, Part, View } from '../../view';
import { stack } from '../../view';
import { facts, findingList, hostFacts, section } from '../../words';
import {
  cellRows,
  courses,
  questionText,
  scales,
  scalingSummary,
  yields,
} from './shape';

/** Draws a `pinwise.bench/1`. */
export function benchView(record: AnyRecord, page: Page): View {
  const bench = record as Bench;
  const kernels = (bench.kernels ?? []).filter(
    (kernel) => typeof kernel.kernel === 'string',
  );
  const conclusions = bench.conclusions ?? [];
  const smt = yieldPlan({ ...bench, kernels });
  return stack('article', '', [
    h(
      'p',
      { class: 'verdict' },
      visible(
        conclusions[0] ??
          (bench.stopped
            ? 'No conclusion was drawn.'
            : `No conclusion: the bench runs, or was cut off, after ${kernels.length} of ${bench.planned ?? '?'} comparisons.`),
      ),
    ),
    conclusions.length > 1
      ? h('ul', {}, ...conclusions.slice(1).map((c) => h('li', {}, visible(c))))
      : null,
    bench.smt?.sentence
      ? h(
          'p',
          {},
          h('strong', {}, 'SMT: '),
          visible(`${bench.smt.sentence} ${bench.smt.advice ?? ''}`),
        )
      : null,
    smt ? chart(smt) : null,
    stack(
      'div',
      'chart-grid',
      kernels.filter(scales).map((kernel): Part => chart(scalingPlan(kernel))),
    ),
    scores(bench),
    section('Kernels', ...kernels.map((kernel) => kernelPart(kernel, page))),
    section(
      'Findings',
      findingList(
        bench.findings ?? [],
        'Nothing that disturbs a measurement was found.',
      ),
    ),
    section(
      'How it was measured',
      facts([
        ['Suite', bench.suite ?? 'kernels by name'],
        [
          'Comparisons',
          `${kernels.length} of ${bench.planned ?? kernels.length} planned, each in random blocks`,
        ],
        [
          'Time allowed',
          typeof bench.budget_s === 'number' ? seconds(bench.budget_s) : null,
        ],
        [
          'Same within',
          typeof bench.min_effect === 'number'
            ? `±${percent(bench.min_effect)}`
            : null,
        ],
        [
          'Intervals',
          typeof kernels[0]?.confidence === 'number'
            ? `${percent(kernels[0].confidence, 0)} for all cells of a comparison together`
            : null,
        ],
        ['Seed', typeof bench.seed === 'number' ? String(bench.seed) : null],
        [
          'Took',
          typeof bench.elapsed_s === 'number' ? seconds(bench.elapsed_s) : null,
        ],
        ...hostFacts(bench.host),
        ['pinwise', bench.pinwise_version],
        ['Tags', (bench.tags ?? []).join(', ')],
      ]),
    ),
  ]);
}

function scalingPlan(kernel: BenchKernel): ChartPlan {
  const all = courses(kernel);
  const most = Math.max(...all.flatMap((c) => c.points.map((p) => p.threads)));
  return {
    name: `Scaling of ${kernel.kernel}`,
    summary: scalingSummary(kernel),
    height: 320,
    option: (colours) => ({
      tooltip: tooltip(colours, {
        trigger: 'item',
        formatter: (p: { seriesName: string; value: number[] }) =>
          `${p.seriesName}\n${p.value[0]} threads: ×${p.value[1]!.toFixed(2)}`,
      }),
      legend: {
        type: 'scroll',
        top: 0,
        left: 0,
        right: 0,
        textStyle: { color: colours.text },
        pageTextStyle: { color: colours.muted },
        pageIconColor: colours.text,
        inactiveColor: colours.line,
      },
      grid: {
        left: 8,
        right: 16,
        top: 40,
        bottom: 26,
        outerBoundsMode: 'same',
        outerBoundsContain: 'axisLabel',
      },
      xAxis: axis(colours, {
        type: 'value',
        min: 0,
        max: most,
        minInterval: 1,
        name: 'threads',
        nameLocation: 'middle',
        nameGap: 26,
      }),
      yAxis: axis(colours, {
        type: 'value',
        min: 0,
        axisLabel: { color: colours.muted, formatter: (y: number) => `×${y}` },
      }),
      series: [
        {
          type: 'line',
          name: 'ideal',
          silent: true,
          symbol: 'none',
          lineStyle: { color: colours.muted, type: 'dashed', width: 1 },
          itemStyle: { color: colours.muted },
          data: [
            [0, 0],
            [most, most],
          ],
        },
        ...all.flatMap((c, at) => {
          const { colour, symbol, dash } = look(at, colours);
          return [
            {
              type: 'line',
              name: visible(c.family),
              ...marker(symbol, colour, colours),
              symbolSize: 8,
              lineStyle: { color: colour, width: 2, type: dash },
              data: c.points.map((p) => [p.threads, p.value]),
            },
            intervalSeries(
              c.points.flatMap((p) =>
                p.low !== null && p.high !== null
                  ? [
                      {
                        at: p.threads,
                        low: p.low,
                        high: p.high,
                        colour,
                        thickness: 1.5,
                      },
                    ]
                  : [],
              ),
              'y',
            ),
          ];
        }),
      ],
    }),
    table: scalingTable(kernel),
  };
}

function scalingTable(kernel: BenchKernel): NonNullable<ChartPlan['table']> {
  return {
    caption: `Speed-up of ${kernel.kernel} over ${kernel.baseline ?? 'its baseline'}`,
    columns: [
      { name: 'Placement' },
      { name: 'Threads', isNumber: true },
      { name: 'Speed-up', isNumber: true },
      { name: 'Interval', isNumber: true },
    ],
    rows: courses(kernel).flatMap((c) =>
      c.points.map((p) => [
        c.family,
        p.threads,
        `×${p.value.toFixed(2)}`,
        p.low !== null && p.high !== null
          ? `×${p.low.toFixed(2)} to ×${p.high.toFixed(2)}`
          : null,
      ]),
    ),
  };
}

function yieldPlan(record: Bench): ChartPlan | null {
  const rows = yields(record);
  if (rows.length === 0) return null;
  const ends = rows.flatMap((r) => [
    r.value,
    r.low ?? r.value,
    r.high ?? r.value,
    0,
  ]);
  return {
    name: 'SMT yield',
    summary: `What the other CPUs of a core add: ${rows
      .slice(0, 4)
      .map((r) => `${r.kernel} ${percent(r.value, 0)}`)
      .join(', ')}${rows.length > 4 ? ' …' : '.'} Right of the line it adds.`,
    height: 56 + 26 * rows.length,
    option: (colours) => {
      const colour = (r: (typeof rows)[number]): string =>
        r.low === null
          ? colours.neutral
          : r.low > 0
            ? colours.better
            : r.high! < 0
              ? colours.worse
              : colours.neutral;
      return {
        tooltip: tooltip(colours, {
          trigger: 'item',
          formatter: (p: { dataIndex: number }) => {
            const r = rows[p.dataIndex];
            return r ? `${visible(r.kernel)}\n${percent(r.value)}` : '';
          },
        }),
        xAxis: axis(colours, {
          type: 'value',
          min: Math.min(...ends) - 0.05,
          max: Math.max(...ends) + 0.05,
          splitNumber: ticksThatFit(90),
          axisLabel: {
            color: colours.muted,
            hideOverlap: true,
            showMinLabel: false,
            showMaxLabel: false,
            formatter: (x: number) => percent(x, 0),
          },
        }),
        yAxis: [
          rowAxis(
            colours,
            rows.map((r) => r.kernel),
          ),
          rowAxis(
            colours,
            rows.map((r) =>
              r.low === null
                ? 'undecided'
                : r.low > 0
                  ? 'adds'
                  : r.high! < 0
                    ? 'costs'
                    : 'undecided',
            ),
            { position: 'right' },
          ),
        ],
        series: [
          intervalSeries(
            rows.flatMap((r, at) =>
              r.low !== null && r.high !== null
                ? [{ at, low: r.low, high: r.high, colour: colour(r) }]
                : [],
            ),
            'x',
          ),
          {
            type: 'scatter',
            symbolSize: 10,
            z: 4,
            data: rows.map((r, at) => ({
              value: [r.value, at],
              ...marker(
                r.low === null || (r.low <= 0 && r.high! >= 0)
                  ? 'emptyCircle'
                  : 'circle',
                colour(r),
                colours,
              ),
            })),
            markLine: {
              silent: true,
              symbol: 'none',
              label: { show: false },
              lineStyle: { color: colours.text, type: 'solid' },
              data: [{ xAxis: 0 }],
            },
          },
        ],
      };
    },
    table: yieldTable(rows),
  };
}

function yieldTable(
  rows: ReturnType<typeof yields>,
): NonNullable<ChartPlan['table']> {
  return {
    caption: 'SMT yield',
    columns: [
      { name: 'Kernel' },
      { name: 'Adds', isNumber: true },
      { name: 'Interval', isNumber: true },
    ],
    rows: rows.map((r) => [
      r.kernel,
      percent(r.value),
      r.low !== null && r.high !== null
        ? `${percent(r.low)} to ${percent(r.high)}`
        : null,
    ]),
  };
}

function scores(record: Bench): HTMLElement | null {
  const rows = (record.scores ?? []).filter((s) => typeof s.score === 'number');
  if (rows.length === 0) return null;
  return section(
    'Scores',
    tableElement({
      caption: 'Geometric means of speed-ups over the kernels of a group',
      columns: [
        { name: 'Group' },
        { name: 'Question' },
        { name: 'Cell' },
        { name: 'Over' },
        { name: 'Score', isNumber: true },
        { name: 'Kernels' },
      ],
      rows: rows.map((s) => [
        s.group,
        questionText(s.question),
        s.cell,
        s.reference,
        `×${s.score!.toFixed(2)}`,
        (s.kernels ?? []).join(', '),
      ]),
    }),
  );
}

function kernelPart(kernel: BenchKernel, page: Page): HTMLElement {
  const rows = tableElement({
    caption: `${kernel.kernel}: ${questionText(kernel.question)}${kernel.cache_fit ? `; ${kernel.cache_fit}` : ''}`,
    columns: [
      { name: 'Cell' },
      { name: 'CPUs' },
      { name: 'Time', isNumber: true },
      {
        name: `${kernel.operation ?? 'operations'} per second`,
        isNumber: true,
      },
      { name: 'Bandwidth', isNumber: true },
      { name: 'Speed-up', isNumber: true },
      { name: 'Efficiency', isNumber: true },
    ],
    rows: cellRows(kernel),
  });
  const link =
    kernel.comparison && page.source.kind === 'site'
      ? h(
          'p',
          {},
          h(
            'a',
            { href: `#/record/${encodeURIComponent(kernel.comparison)}` },
            'Its comparison, with every run',
          ),
        )
      : null;
  return h(
    'details',
    {},
    h(
      'summary',
      {},
      visible(
        `${kernel.kernel} (${questionText(kernel.question)}), ${kernel.blocks ?? 0} blocks`,
      ),
    ),
    rows,
    link,
  );
}
