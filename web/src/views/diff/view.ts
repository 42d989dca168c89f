// Two records compared: what changed, of the machine and of the figures.

import type { ChartPlan } from '../../chart';
import { axis, chart, tooltip } from '../../chart';
import { h, visible } from '../../dom';
import { minute } from '../../format';
import { intervalSeries, marker } from '../../intervals';
import type { DiffRecord } from '../../records';
import { rowAxis, ticksThatFit } from '../../rows';
import { ratioLabel, ratioRange, ratioTicks } from '../../scales';
import type { AnyRecord } from '../../source';
import type { TableCell } from '../../table';
import { tableElement } from '../../table';
import type { Theme } from '../../theme';
import type { Page, Part, View } from '../../view';
import { stack } from '../../view';
import { section } from '../../words';
import type { RatioRow } from './shape';
import {
  changeText,
  figureRows,
  ratioRows,
  ratioSummary,
  VERDICTS,
} from './shape';

/** Draws a `pinwise.diff/1`. */
export function diffView(record: AnyRecord, _page: Page): View {
  const diff = record as DiffRecord;
  const rows = ratioRows(diff);
  const plot: Part | null = rows.length > 0 ? chart(plan(rows)) : null;
  const caveats = diff.caveats ?? [];
  return stack('article', '', [
    h('p', { class: 'verdict' }, visible(diff.sentence ?? '')),
    caveats.length > 0
      ? h(
          'ul',
          { class: 'caveats' },
          ...caveats.map((c) => h('li', {}, visible(c))),
        )
      : null,
    sides(diff),
    machineChanges(diff),
    plot,
    section('Figures', figureTable(diff)),
  ]);
}

function sides(diff: DiffRecord): HTMLElement {
  const link = (side: DiffRecord['a']): TableCell =>
    side?.id
      ? h('a', { href: `#/record/${encodeURIComponent(side.id)}` }, side.id)
      : null;
  const both = (
    name: string,
    of: (side: DiffRecord['a']) => TableCell,
  ): TableCell[] => [name, of(diff.a), of(diff.b)];
  return tableElement({
    caption: 'What is compared',
    columns: [{ name: 'Side' }, { name: 'A' }, { name: 'B' }],
    rows: [
      both('Record', link),
      both('About', (s) => s?.title),
      both('Time', (s) => (s?.time ? `${minute(s.time)} UTC` : null)),
      both('Host', (s) => s?.host),
      both('Machine', (s) => s?.machine),
    ],
  });
}

function machineChanges(diff: DiffRecord): HTMLElement {
  const changes = diff.machine_changes ?? [];
  if (changes.length === 0)
    return section(
      'Machine',
      h('p', {}, 'The machine is reported to be the same.'),
    );
  return section(
    'Machine',
    tableElement({
      caption: `The machine changed in ${changes.length === 1 ? 'one thing' : `${changes.length} things`}`,
      columns: [{ name: 'What' }, { name: 'A' }, { name: 'B' }],
      rows: changes.map((c) => [c.what, c.a, c.b]),
    }),
  );
}

function figureTable(diff: DiffRecord): HTMLElement {
  const rows = figureRows(diff);
  if (rows.length === 0)
    return h('p', { class: 'muted' }, 'The two have no figure in common.');
  return tableElement({
    caption: 'Figures of both, with 95 % intervals where they are known',
    columns: [
      { name: 'Figure' },
      { name: 'A', isNumber: true },
      { name: 'B', isNumber: true },
      { name: 'B over A', isNumber: true },
      { name: 'Verdict' },
    ],
    rows,
  });
}

const SHAPES: Readonly<Record<string, [symbol: string, turned: number]>> = {
  lower: ['triangle', 90],
  higher: ['triangle', -90],
  same: ['rect', 0],
};

function plan(rows: readonly RatioRow[]): ChartPlan {
  const [low, high] = ratioRange(
    rows.flatMap((r) => [r.ratio, r.low ?? r.ratio, r.high ?? r.ratio]),
    0.02,
  );
  return {
    name: 'B over A',
    summary: ratioSummary(rows),
    height: 70 + 28 * rows.length,
    option: (colours) => {
      const ticks = ratioTicks(low, high, ticksThatFit()).map(Math.log);
      const colour = (row: RatioRow): string =>
        row.verdict === 'lower' || row.verdict === 'higher'
          ? colours.series[0]!
          : colours.neutral;
      return {
        tooltip: tooltip(colours, {
          trigger: 'item',
          formatter: (p: { dataIndex: number }) => rowWords(rows[p.dataIndex]),
        }),
        xAxis: axis(colours, {
          type: 'value',
          min: Math.log(low),
          max: Math.log(high),
          axisTick: { customValues: ticks },
          axisLabel: {
            color: colours.muted,
            customValues: ticks,
            formatter: (x: number) => ratioLabel(Math.exp(x)),
          },
        }),
        yAxis: [
          rowAxis(
            colours,
            rows.map((r) => r.name),
          ),
          rowAxis(
            colours,
            rows.map((r) => VERDICTS[r.verdict] ?? r.verdict),
            { position: 'right' },
          ),
        ],
        series: [
          intervalSeries(intervals(rows, colour), 'x'),
          points(rows, colour, colours),
        ],
      };
    },
    table: {
      caption: 'B over A',
      columns: [
        { name: 'Figure' },
        { name: 'Change', isNumber: true },
        { name: 'Verdict' },
      ],
      rows: rows.map((r) => [
        r.name,
        changeText(r),
        VERDICTS[r.verdict] ?? r.verdict,
      ]),
    },
  };
}

function intervals(
  rows: readonly RatioRow[],
  colour: (row: RatioRow) => string,
): Parameters<typeof intervalSeries>[0] {
  return rows.flatMap((r, at) =>
    r.low !== null && r.high !== null
      ? [
          {
            at,
            low: Math.log(r.low),
            high: Math.log(r.high),
            colour: colour(r),
          },
        ]
      : [],
  );
}

function points(
  rows: readonly RatioRow[],
  colour: (row: RatioRow) => string,
  colours: Theme,
): Record<string, unknown> {
  return {
    type: 'scatter',
    z: 4,
    data: rows.map((r, at) => {
      const [symbol, turned] = SHAPES[r.verdict] ?? ['emptyCircle', 0];
      return {
        value: [Math.log(r.ratio), at],
        ...marker(symbol, colour(r), colours),
        symbolRotate: turned,
        symbolSize: 11,
      };
    }),
    markLine: {
      silent: true,
      symbol: 'none',
      label: { show: false },
      lineStyle: { color: colours.muted, type: 'solid' },
      data: [{ xAxis: 0 }],
    },
  };
}

function rowWords(row: RatioRow | undefined): string {
  return row
    ? `${visible(row.name)}\n${changeText(row) ?? ''}: ${VERDICTS[row.verdict] ?? row.verdict}`
    : '';
}
