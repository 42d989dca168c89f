// Two records compared: changes of the machine and of the figures.

import { type ChartPlan, chart } from '../../chart';
import { h } from '../../dom';
import { minute } from '../../format';
import { type Look, ratioAxis, seriesColour } from '../../plot';
import type { DiffRecord } from '../../records';
import { ratioRange } from '../../scales';
import type { AnyRecord } from '../../source';
import { type TableCell, tableElement, numberColumns } from '../../table';
import { type Page, type Part, type View, stack } from '../../view';
import { section, recordLink } from '../../words';
import {
  type RatioRow,
  VERDICTS,
  changeText,
  figureRows,
  ratioRows,
  ratioSummary,
  toSentence,
} from './shape';

/** Draws a `pinwise.diff/1`. */
export function diffView(record: AnyRecord, _page: Page): View {
  const diff = record as DiffRecord;
  const rows = ratioRows(diff);
  const plot: Part | null =
    rows.length > 0
      ? chart(ratioPlan(rows, 'B over A', 'change from A to B'))
      : null;
  const caveats = diff.caveats ?? [];
  return stack('article', '', [
    h('p.verdict', toSentence(diff)),
    plot,
    caveats.length > 0 && h('ul.caveats', ...caveats.map((c) => h('li', c))),
    sideTable(diff),
    machineChanges(diff),
    section('Figures', figureTable(diff)),
  ]);
}

function sideTable(diff: DiffRecord): HTMLElement {
  const link = (side: DiffRecord['a']): TableCell =>
    side?.id
      ? recordLink(side.id, side.title ? `${side.title} · ${side.id}` : side.id)
      : null;
  const both = (
    name: string,
    of: (side: DiffRecord['a']) => TableCell,
  ): TableCell[] => [name, of(diff.a), of(diff.b)];
  return tableElement({
    caption: 'What is compared',
    isStacked: true,
    columns: ['Side', 'A', 'B'],
    rows: [
      both('Record', link),
      both('Time', (s) => (s?.time ? `${minute(s.time)} UTC` : null)),
      both('Host', (s) => s?.host),
      both('Machine', (s) => s?.machine),
    ],
  });
}

function machineChanges(diff: DiffRecord): HTMLElement {
  const changes = diff.machine_changes ?? [];
  if (changes.length === 0)
    return section('Machine', h('p', 'Both records name the same machine.'));
  return section(
    'Machine',
    tableElement({
      caption: `The machine changed in ${changes.length === 1 ? 'one thing' : `${changes.length} things`}`,
      isStacked: true,
      columns: ['What', 'A', 'B'],
      rows: changes.map((c) => [c.what, c.a, c.b]),
    }),
  );
}

function figureTable(diff: DiffRecord): HTMLElement {
  const rows = figureRows(diff);
  if (rows.length === 0)
    return h('p.muted', 'The two have no figure in common.');
  return tableElement({
    caption: 'Figures of both, with 95 % intervals where they are known',
    isStacked: true,
    columns: ['Figure', ...numberColumns('A', 'B', 'B over A'), 'Verdict'],
    rows,
  });
}

const LOOKS: Readonly<Record<string, Look>> = {
  lower: { shape: 'triangle', turn: -90, colour: seriesColour(0) },
  higher: { shape: 'triangle', turn: 90, colour: seriesColour(0) },
  same: { shape: 'square' },
};

/** Ratios with their intervals, a row each. */
export function ratioPlan(
  rows: readonly RatioRow[],
  name: string,
  axis: string,
  summary = ratioSummary(rows),
): ChartPlan {
  const ends = ratioRange(
    rows.flatMap((r) => [r.ratio, r.low ?? r.ratio, r.high ?? r.ratio]),
    0.02,
  );
  return {
    name,
    summary,
    panel: {
      height: 28 * rows.length,
      x: ratioAxis(axis, ends),
      y: {
        title: 'Figure',
        names: rows.map((r) => r.name),
        words: rows.map((r) => VERDICTS[r.verdict] ?? r.verdict),
      },
      rules: [{ x: 1 }],
      series: [
        {
          interval: 'x',
          size: 5,
          points: rows.map((r, y) => ({
            ...(LOOKS[r.verdict] ?? { isHollow: true }),
            x: r.ratio,
            y,
            low: r.low,
            high: r.high,
            tooltip: `${r.name}\n${changeText(r) ?? ''}: ${VERDICTS[r.verdict] ?? r.verdict}`,
          })),
        },
      ],
    },
  };
}
