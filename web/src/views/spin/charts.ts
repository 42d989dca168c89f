// The drawings of spin predictions.

import type { ChartPlan } from '../../chart';
import { axis, tooltip } from '../../chart';
import { visible } from '../../dom';
import { count, seconds } from '../../format';
import { look, marker } from '../../intervals';
import { nameWidth, rowAxis, ticksThatFit } from '../../rows';
import { decadeTicks } from '../../scales';
import type { Theme } from '../../theme';
import type { Curve, Figure, Predicted } from './shape';
import { algorithms, cliffMarks, cpuCounts, curves, FIGURES } from './shape';

const ms = (value: number): string => seconds(value / 1e3);

/** A logarithmic axis; positions are natural logs of values. */
function logAxis(
  colours: Theme,
  low: number,
  high: number,
  most: number,
  label: (value: number) => string,
  more: Record<string, unknown> = {},
): Record<string, unknown> {
  const ticks = decadeTicks(low, high, most).map(Math.log);
  return axis(colours, {
    type: 'value',
    min: Math.log(low),
    max: Math.log(high),
    axisTick: { customValues: ticks },
    axisLabel: {
      color: colours.muted,
      customValues: ticks,
      formatter: (x: number) => label(Math.exp(x)),
    },
    ...more,
  });
}

/** Which chips' curves are drawn: the one moved from, the one moved to. */
export interface Chips {
  from: boolean;
  to: boolean;
}

const BOTH: Chips = { from: true, to: true };

/** A figure of the chosen algorithms over the number of CPUs; null where there is nothing to draw. */
export function curvePlan(
  record: Predicted,
  chosen: readonly string[],
  figure: Figure,
  chips: Chips = BOTH,
): ChartPlan | null {
  const counts = cpuCounts(record);
  const drawn = curves(record, chosen, figure).filter((c) =>
    c.isFrom ? chips.from : chips.to,
  );
  if (counts.length < 2 || drawn.length === 0) return null;
  const values = drawn.flatMap((c) => c.points.map((p) => p[1]));
  const [low, high] = [Math.min(...values) / 1.3, Math.max(...values) * 1.3];
  const name = (c: Curve): string =>
    visible(c.algorithm) +
    (record.from
      ? c.isFrom
        ? ` · ${record.from.name ?? 'from'}`
        : ` · ${record.processor?.name ?? 'to'}`
      : '');
  return {
    name: `${FIGURES[figure]} over the number of CPUs`,
    summary: curveSummary(drawn, figure),
    height: 340,
    option: (colours) => ({
      tooltip: tooltip(colours, {
        trigger: 'item',
        formatter: (p: { seriesIndex: number; dataIndex: number }) => {
          const c = drawn[p.seriesIndex];
          const at = c?.points[p.dataIndex];
          return c && at
            ? `${name(c)}\n${count(at[0], 'CPU')}: ${ms(at[1])}`
            : '';
        },
      }),
      legend: {
        type: 'scroll',
        top: 0,
        left: 0,
        right: 0,
        textStyle: { color: colours.text, width: 220, overflow: 'truncate' },
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
      xAxis: logAxis(
        colours,
        counts[0]!,
        counts.at(-1)!,
        ticksThatFit(50),
        (x) => String(Math.round(x)),
        {
          name: 'CPUs',
          nameLocation: 'middle',
          nameGap: 26,
        },
      ),
      yAxis: logAxis(colours, low, high, 9, ms),
      series: drawn.map((c) => {
        const at = chosen.indexOf(c.algorithm);
        const { colour, dash } = look(at, colours);
        return {
          type: 'line',
          name: name(c),
          step: 'end',
          ...marker(c.isFrom ? 'emptyCircle' : 'circle', colour, colours),
          showSymbol: c.points.length < 20,
          symbolSize: 6,
          lineStyle: {
            color: colour,
            type: c.isFrom ? [2, 4] : dash,
            width: c.isFrom ? 1.5 : 2.5,
          },
          data: c.points.map(([cpus, value]) => [
            Math.log(cpus),
            Math.log(value),
          ]),
        };
      }),
    }),
    table: {
      caption: `${FIGURES[figure]} of the chosen algorithms`,
      columns: [
        { name: 'Algorithm' },
        ...counts
          .filter(isShown(counts))
          .map((n) => ({ name: count(n, 'CPU'), isNumber: true })),
      ],
      rows: drawn.map((c) => {
        const of = new Map(c.points);
        return [
          name(c),
          ...counts.filter(isShown(counts)).map((n) => {
            const value = of.get(n);
            return value === undefined ? null : ms(value);
          }),
        ];
      }),
    },
  };
}

/** Of many counts, powers of two and the last. */
const isShown =
  (counts: readonly number[]) =>
  (n: number): boolean =>
    counts.length <= 10 ||
    Number.isInteger(Math.log2(n)) ||
    n === counts.at(-1);

function curveSummary(drawn: readonly Curve[], figure: Figure): string {
  const here = drawn.filter((c) => !c.isFrom);
  const ends = (here.length > 0 ? here : drawn).map((c) => {
    const [cpus, value] = c.points.at(-1)!;
    return `${c.algorithm} ${ms(value)} with ${count(cpus, 'CPU')}`;
  });
  return `${figure === 'total' ? 'How long an algorithm spins before it gives up' : 'How late it may notice that the lock is free'}: ${ends.slice(0, 4).join('; ')}${ends.length > 4 ? ' …' : '.'}`;
}

/** The spin of every algorithm with every number of CPUs, cliffs marked; null with one number. */
export function mapPlan(record: Predicted): ChartPlan | null {
  const counts = cpuCounts(record);
  const known = algorithms(record).filter((a) =>
    record.predictions.some((p) => p.algorithm === a && (p.total_ms ?? 0) > 0),
  );
  if (counts.length < 2 || known.length === 0) return null;
  const [rows, columns] = [
    new Map(known.map((a, at) => [a, at])),
    new Map(counts.map((n, at) => [n, at])),
  ];
  const cells = record.predictions.flatMap((p) =>
    rows.has(p.algorithm) && (p.total_ms ?? 0) > 0
      ? [
          [
            columns.get(p.cpus)!,
            rows.get(p.algorithm)!,
            Math.log10(p.total_ms!),
          ],
        ]
      : [],
  );
  const marks = cliffMarks(record);
  const told = [...marks].map(
    ([name, at]) => `${name} from ${at.map((m) => m.cpus).join(', ')}`,
  );
  return {
    name: 'Cliffs',
    summary: `Total spin of each algorithm with each number of CPUs; a bar marks a number from which it spins at least a quarter longer at once: ${told.length > 0 ? `${told.slice(0, 5).join('; ')}${told.length > 5 ? ' …' : '.'}` : 'there is none.'} Blank: it does not spin.`,
    height: 100 + 17 * known.length,
    option: (colours) => mapOption(colours, known, counts, cells, marks),
    table: {
      caption:
        'Cliffs: numbers of CPUs from which an algorithm spins longer at once',
      columns: [
        { name: 'Algorithm' },
        { name: 'From CPUs' },
        { name: 'Times as long' },
      ],
      rows: [...marks].map(([name, at]) => [
        name,
        at.map((m) => m.cpus).join(', '),
        at.map((m) => m.ratio.toFixed(1)).join(', '),
      ]),
    },
  };
}

function mapOption(
  colours: Theme,
  known: readonly string[],
  counts: readonly number[],
  cells: number[][],
  marks: ReturnType<typeof cliffMarks>,
): Record<string, unknown> {
  const logs = cells.map((c) => c[2]!);
  const bars = [...marks].flatMap(([name, at]) =>
    at.map((m) => [counts.indexOf(m.shownAt), known.indexOf(name)] as const),
  );
  return {
    tooltip: tooltip(colours, {
      trigger: 'item',
      formatter: (p: { value: number[] }) =>
        `${visible(known[p.value[1]!] ?? '')}\n${count(counts[p.value[0]!] ?? 0, 'CPU')}: ${ms(10 ** p.value[2]!)}`,
    }),
    grid: {
      left: 8,
      right: 12,
      top: 8,
      bottom: 76,
      outerBoundsMode: 'same',
      outerBoundsContain: 'axisLabel',
    },
    xAxis: axis(colours, {
      type: 'category',
      data: counts.map(String),
      name: 'CPUs',
      nameLocation: 'middle',
      nameGap: 26,
      splitLine: { show: false },
    }),
    yAxis: axis(colours, {
      type: 'category',
      inverse: true,
      data: known.map((name) => visible(name)),
      axisTick: { show: false },
      axisLabel: {
        color: colours.text,
        interval: 0,
        fontSize: 11,
        width: nameWidth(),
        overflow: 'truncate',
      },
    }),
    visualMap: {
      type: 'continuous',
      dimension: 2,
      seriesIndex: 0,
      min: Math.min(...logs),
      max: Math.max(...logs),
      calculable: false,
      orient: 'horizontal',
      left: 'center',
      bottom: 0,
      itemHeight: 160,
      itemWidth: 12,
      inRange: { color: [...colours.scale] },
      text: [ms(10 ** Math.max(...logs)), ms(10 ** Math.min(...logs))],
      textStyle: { color: colours.text },
    },
    series: [
      { type: 'heatmap', data: cells },
      {
        type: 'custom',
        silent: true,
        tooltip: { show: false },
        z: 5,
        data: bars,
        renderItem: (
          params: { dataIndex: number },
          api: { coord(p: number[]): number[]; size(p: number[]): number[] },
        ) => {
          const [x, y] = bars[params.dataIndex]!;
          const [cx, cy] = api.coord([x, y]) as [number, number];
          const [w, h] = api.size([1, 1]) as [number, number];
          return {
            type: 'rect',
            shape: { x: cx - w / 2 - 1.5, y: cy - h / 2, width: 3, height: h },
            style: { fill: '#ffffff', stroke: '#000000', lineWidth: 1 },
          };
        },
      },
    ],
  };
}

/** Blind gap and total spin of every algorithm with one number of CPUs. */
export function ladderPlan(record: Predicted, cpus: number): ChartPlan | null {
  const of = new Map(
    record.predictions
      .filter((p) => p.cpus === cpus)
      .map((p) => [p.algorithm, p]),
  );
  const names = algorithms(record).filter(
    (a) => (of.get(a)?.total_ms ?? 0) > 0,
  );
  if (names.length === 0) return null;
  const rows = names.map((a) => of.get(a)!);
  const before = new Map(
    record.moves.filter((m) => m.cpus === cpus).map((m) => [m.algorithm, m]),
  );
  const pairs = (
    value: (at: number) => number | null | undefined,
  ): [number, number][] =>
    rows.flatMap((_, at): [number, number][] => {
      const v = value(at);
      return v && v > 0 ? [[Math.log(v), at]] : [];
    });
  const total = pairs((at) => rows[at]!.total_ms);
  const gap = pairs((at) => rows[at]!.blind_gap_ms);
  const from = pairs((at) => before.get(names[at]!)?.from_ms);
  const all = [...total, ...gap, ...from].map(([x]) => Math.exp(x));
  const series = (
    now: Theme,
    name: string,
    symbol: string,
    colour: string,
    data: [number, number][],
    size = 9,
  ): Record<string, unknown> => ({
    type: 'scatter',
    name,
    ...marker(symbol, colour, now),
    symbolSize: size,
    data,
    z: 4,
  });
  return {
    name: `Every algorithm with ${count(cpus, 'CPU')}`,
    summary: `${names[0]} spins longest, ${ms(rows[0]!.total_ms!)}.`,
    height: 70 + 20 * names.length,
    option: (colours) => ({
      tooltip: tooltip(colours, {
        trigger: 'item',
        formatter: (p: { seriesName: string; value: number[] }) =>
          `${visible(names[p.value[1]!] ?? '')}\n${p.seriesName}: ${ms(Math.exp(p.value[0]!))}`,
      }),
      legend: {
        top: 0,
        left: 0,
        itemWidth: 12,
        textStyle: { color: colours.text },
        inactiveColor: colours.line,
      },
      grid: {
        left: 8,
        right: 16,
        top: 34,
        bottom: 8,
        outerBoundsMode: 'same',
        outerBoundsContain: 'axisLabel',
      },
      xAxis: logAxis(
        colours,
        Math.min(...all) / 1.5,
        Math.max(...all) * 1.5,
        ticksThatFit(60),
        ms,
      ),
      yAxis: rowAxis(colours, names),
      series: [
        series(colours, 'blind gap', 'emptyTriangle', colours.series[1]!, gap),
        series(
          colours,
          record.from
            ? `total spin, ${record.processor?.name ?? 'now'}`
            : 'total spin',
          'circle',
          colours.series[0]!,
          total,
        ),
        ...(from.length > 0
          ? [
              series(
                colours,
                `total spin, ${record.from?.name ?? 'before'}`,
                'emptyCircle',
                colours.neutral,
                from,
              ),
            ]
          : []),
      ],
    }),
  };
}
