// Two records compared: changes of the machine and of the figures.

import { type ChartPlan, chart } from '../../chart';
import { h } from '../../dom';
import { COLOURS, type Look, ratioAxis, seriesColour } from '../../plot';
import type { DiffRecord } from '../../records';
import { ratioRange } from '../../scales';
import type { AnyRecord } from '../../source';
import { type Table, tableElement, numberColumns } from '../../table';
import { adviceLine } from '../../method';
import { type Page, type View, stack } from '../../view';
import { findingList, recordLink } from '../../words';
import {
  type RatioRow,
  VERDICTS,
  changeText,
  figureRows,
  findBaseline,
  ratioRows,
  ratioSummary,
  toSentences,
} from './shape';

/** Draws a `pinwise.diff/1`. */
export function diffView(record: AnyRecord, page: Page): View {
  const diff = record as DiffRecord;
  const rows = ratioRows(diff);
  const [verdict, advice] = toSentences(diff);
  const changes = diff.machine_changes ?? [];
  const differing = changes.map(
    ({ what, a, b }) =>
      `${what} ${a ?? 'unknown'} in A, ${b ?? 'unknown'} in B`,
  );
  const baseline = findBaseline(diff);
  const table = figureTable(diff);
  const caveats = [
    ...(diff.caveats ?? []),
    changes.length === 0 &&
      diff.a?.machine &&
      `Same machine: ${diff.a.machine}.`,
  ].filter((caveat) => typeof caveat === 'string');
  return stack('article', '', [
    sideLine('A', diff.a, page),
    sideLine('B', diff.b, page),
    h('p.verdict', verdict),
    changes.length > 0 &&
      findingList([
        {
          severity: 'warning',
          sentence: `The machine differs: ${differing.join('; ')}.`,
        },
      ]),
    adviceLine(advice),
    rows.length > 0
      ? chart({
          ...ratioPlan(
            rows,
            baseline
              ? `Change from A to B, against ${baseline}`
              : 'Change from A to B',
            {
              axis: rows.some(({ verdict }) => /better|worse/.test(verdict))
                ? '← better in B      worse in B →'
                : '← lower in B      higher in B →',
              title: 'Figure',
              summary: ratioSummary(rows),
            },
          ),
          caption: rows.some(({ low }) => low !== null)
            ? '95 % intervals; a hollow dot is inconclusive.'
            : '',
          table,
        })
      : tableElement(table),
    caveats.length > 0 &&
      h(
        'details',
        h('summary', 'How far to trust it'),
        h('ul', ...caveats.map((caveat) => h('li', caveat))),
      ),
  ]);
}

/** Which record a side is. */
function sideLine(
  name: string,
  side: DiffRecord['a'],
  { source }: Page,
): HTMLElement | null {
  if (!side?.id) return null;
  const { id, title, host } = side;
  return h(
    'p.muted',
    `${name}: `,
    source.has(id) ? recordLink(id, id) : id,
    ...[title, host].map((part) => part && ` · ${part}`),
  );
}

const figureTable = (diff: DiffRecord): Table => ({
  caption: 'Figures of both, with 95 % intervals where they are known',
  columns: ['Figure', ...numberColumns('A', 'B', 'Change'), 'Verdict'],
  rows: figureRows(diff),
});

const LOOKS: Readonly<Record<string, Look>> = {
  lower: { shape: 'triangle', turn: -90, colour: seriesColour(0) },
  higher: { shape: 'triangle', turn: 90, colour: seriesColour(0) },
  better: { shape: 'triangle', turn: -90, colour: COLOURS.better },
  worse: { shape: 'triangle', turn: 90, colour: COLOURS.worse },
  same: { shape: 'square' },
};

/** Ratios with their intervals, a row each. */
export function ratioPlan(
  rows: readonly RatioRow[],
  name: string,
  { axis, title, summary }: { axis: string; title: string; summary: string },
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
        title,
        names: rows.map((r) => r.name),
        words: rows.map((r) => r.words ?? r.verdict),
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
