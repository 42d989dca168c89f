// A question's figure over time: a series for each host, the machine's changes
// as lines, each point a way to its record.

import type { ChartPlan } from '../../chart';
import { axis, chart } from '../../chart';
import { h, visible } from '../../dom';
import { count, minute, quantity } from '../../format';
import type { Entry, Listing } from '../../source';
import type { Theme } from '../../theme';
import type { Page, Part } from '../../view';
import { SYMBOLS, whiskers } from '../machine/charts';
import type { Change, OverTime, Point } from './shape';
import { overTime } from './shape';

/** Records asked for at most: the newest of them. */
export const MOST_POINTS = 2000;
/** Changes written beside their lines; all stand in the list. */
const MOST_LABELS = 6;

/** The plot of a subject's records with a select of its figures. */
export function overTimePart(
  subject: string,
  listing: Listing,
  page: Page,
): Part {
  let wanted: string | null = null;
  const first = overTime(listing.records, null);
  const points = first.hosts.flatMap((host) => host.points).length;
  if (points === 0)
    return {
      element: h(
        'p',
        { class: 'muted' },
        'No record of this question has a figure.',
      ),
      dispose: () => undefined,
    };
  const changes = h('ul', { class: 'changes' });
  const plan = (): ChartPlan => {
    const data = overTime(listing.records, wanted);
    changes.replaceChildren(
      ...data.changes.map((change) =>
        h(
          'li',
          {},
          visible(
            `${minute(new Date(change.time).toISOString())}, ${change.host}: ${change.words}`,
          ),
        ),
      ),
    );
    return planOf(
      subject,
      wanted ?? data.figures[0]!,
      data,
      listing.total,
      page,
    );
  };
  const select = h(
    'select',
    {},
    ...first.figures.map((name) => h('option', { value: name }, visible(name))),
  );
  const drawn = chart(plan());
  select.addEventListener('change', () => {
    wanted = select.value;
    drawn.redraw(plan());
  });
  const heading =
    changes.childElementCount > 0 ? h('p', {}, 'The machine changed:') : null;
  const element = h(
    'div',
    {},
    first.figures.length > 1
      ? h('div', { class: 'controls' }, h('label', {}, 'Figure ', select))
      : null,
    drawn.element,
    heading,
    changes,
  );
  return { element, dispose: drawn.dispose };
}

function summaryOf(data: OverTime, total: number): string {
  const points = data.hosts.flatMap((host) => host.points);
  const values = points.map((point) => point.figure.value);
  const unit = points[0]!.figure.unit;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const cut =
    total > MOST_POINTS
      ? ` The newest ${MOST_POINTS} of ${total} records.`
      : '';
  return `${count(points.length, 'record')} of ${count(data.hosts.length, 'host')}, from ${quantity(low, unit)} to ${quantity(high, unit)}; ${count(data.changes.length, 'change')} of the machine.${cut}`;
}

function planOf(
  subject: string,
  figure: string,
  data: OverTime,
  total: number,
  page: Page,
): ChartPlan {
  const all = data.hosts.flatMap((host) => host.points);
  const unit = all[0]!.figure.unit;
  return {
    name: visible(`${figure} over time`),
    summary: visible(`${summaryOf(data, total)} Question: ${subject}.`),
    height: 320,
    option: (colours) => ({
      grid: {
        left: 8,
        right: 16,
        top: 40,
        bottom: 8,
        outerBoundsMode: 'same',
        outerBoundsContain: 'axisLabel',
      },
      legend: {
        top: 0,
        type: 'plain',
        textStyle: { color: colours.text },
        data: data.hosts.map((host) => visible(host.host)),
      },
      xAxis: axis(colours, { type: 'time' }),
      yAxis: axis(colours, {
        type: 'value',
        scale: true,
        axisLabel: {
          color: colours.muted,
          formatter: (value: number) => visible(quantity(value, unit)),
        },
      }),
      series: data.hosts.flatMap((host, at) => [
        whiskers(host.points.map(row), colourOf(colours, at), false),
        pointSeries(host, at, at === 0 ? data.changes : [], colours),
      ]),
    }),
    pick: ({ seriesIndex, dataIndex }) => {
      const point =
        data.hosts[Math.floor((seriesIndex ?? 0) / 2)]?.points[dataIndex];
      if (point) page.go(`#/record/${encodeURIComponent(point.entry.id)}`);
    },
    table: {
      caption: 'Records, newest first',
      columns: [
        { name: 'Time' },
        { name: 'Host' },
        { name: figure, isNumber: true },
        { name: 'From', isNumber: true },
        { name: 'To', isNumber: true },
      ],
      rows: [...all]
        .sort((a, b) => b.time - a.time)
        .map((point) => [
          link(point.entry),
          point.entry.host,
          quantity(point.figure.value, unit),
          quantity(point.figure.low, unit),
          quantity(point.figure.high, unit),
        ]),
    },
  };
}

const link = (entry: Entry): HTMLElement =>
  h(
    'a',
    { href: `#/record/${encodeURIComponent(entry.id)}` },
    minute(entry.time),
  );

const colourOf = (colours: Theme, at: number): string =>
  colours.series[at % colours.series.length]!;

const row = (point: Point): number[] => [
  point.time,
  point.figure.value,
  point.figure.low ?? point.figure.value,
  point.figure.high ?? point.figure.value,
];

function pointSeries(
  host: OverTime['hosts'][number],
  at: number,
  changes: readonly Change[],
  colours: Theme,
): Record<string, unknown> {
  return {
    name: visible(host.host),
    type: 'line',
    symbol: SYMBOLS[at % SYMBOLS.length],
    symbolSize: 9,
    showAllSymbol: true,
    color: colourOf(colours, at),
    lineStyle: { width: 1, opacity: 0.5 },
    data: host.points.map((point) => [point.time, point.figure.value]),
    tooltip: {
      formatter: (point: { dataIndex: number }) =>
        pointWords(host.points[point.dataIndex]!),
    },
    markLine: {
      silent: true,
      symbol: 'none',
      lineStyle: { color: colours.text, type: 'dashed' },
      label: {
        show: changes.length <= MOST_LABELS,
        position: 'insideEndTop',
        color: colours.text,
        formatter: '{b}',
        overflow: 'truncate',
        width: 220,
      },
      data: changes.map((change) => ({
        xAxis: change.time,
        name: visible(change.words).slice(0, 60),
      })),
    },
  };
}

const pointWords = (point: Point): string =>
  visible(
    `${point.entry.host}, ${minute(point.entry.time)}\n${quantity(point.figure.value, point.figure.unit)}${point.figure.low === null || point.figure.high === null ? '' : ` (${quantity(point.figure.low, point.figure.unit)} to ${quantity(point.figure.high, point.figure.unit)})`}`,
  );
