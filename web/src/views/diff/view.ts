// Two records compared: changes of the machine and of the figures.

import { type ChartPlan, chart } from '../../chart';
import { h } from '../../dom';
import { minute, quantity } from '../../format';
import { commandList } from '../../headline';
import { COLOURS, type Look, ratioAxis, seriesColour } from '../../plot';
import type { DiffRecord } from '../../records';
import { ratioRange } from '../../scales';
import type { AnyRecord } from '../../source';
import { type Table, tableElement, numberColumns } from '../../table';
import { adviceLine } from '../../method';
import { type Page, type View, stack } from '../../view';
import { findingList, recordLink } from '../../words';
import {
  type ArmRow,
  type RatioRow,
  VERDICTS,
  armRows,
  armTable,
  changeText,
  figureRows,
  ratioRows,
  ratioSummary,
} from './shape';

/** Draws a `pinwise.diff/1`. */
export function diffView(record: AnyRecord, page: Page): View {
  const diff = record as DiffRecord;
  const changes = diff.machine_changes ?? [];
  const differing = changes.map(
    ({ what, a, b }) =>
      `${what} ${a ?? 'unknown'} in A, ${b ?? 'unknown'} in B`,
  );
  const arms = armRows(diff);
  const rows = arms.length > 0 ? [] : ratioRows(diff);
  const table = figureTable(diff);
  const own = arms.find(({ isBaseline }) => isBaseline)?.figure.sentence;
  const caveats = [
    ...(diff.caveats ?? []),
    changes.length === 0 &&
      diff.a?.machine &&
      `Same machine: ${diff.a.machine}.`,
  ].filter((caveat) => typeof caveat === 'string');
  return stack('article', '', [
    h('p.verdict', diff.sentence),
    commandList(
      (diff.commands ?? []).map(({ what, line }) => [
        (what ?? '').replace(/^./, (letter) => letter.toUpperCase()),
        line ?? '',
      ]),
    ),
    adviceLine(diff.advice),
    changes.length > 0 &&
      findingList([
        {
          severity: 'warning',
          sentence: `The machine differs: ${differing.join('; ')}.`,
        },
      ]),
    arms.length > 0
      ? chart(armPlan(diff, arms))
      : rows.length > 0
        ? chart({
            ...ratioPlan(rows, 'Change from A to B', {
              axis: '← lower in B      higher in B →',
              title: 'Figure',
              summary: ratioSummary(rows),
            }),
            caption: rows.some(({ low }) => low !== null)
              ? '95 % intervals; hollow where less than 1 % is possible.'
              : '',
            table,
          })
        : tableElement(table),
    own && h('p.muted', own),
    sideLine('A', diff.a, page),
    sideLine('B', diff.b, page),
    caveats.length > 0 &&
      h(
        'details',
        h('summary', 'How far to trust it'),
        h('ul', ...caveats.map((caveat) => h('li', caveat))),
      ),
  ]);
}

/** Every arm in A and in B, in the figure's own unit. */
function armPlan(diff: DiffRecord, arms: readonly ArmRow[]): ChartPlan {
  const { metric } = diff;
  const unit = metric?.unit ?? '';
  const baseline = arms.find(({ isBaseline }) => isBaseline)?.name ?? '';
  const [timeA, timeB] = [diff.a, diff.b].map((side) =>
    minute(side?.time ?? ''),
  );
  const better = metric?.better === 'higher' ? 'better →' : '← better';
  return {
    name: metric?.label ?? 'Figures',
    summary: `Medians with 95 % intervals; changes are against ${baseline}.`,
    panel: {
      height: 44 * arms.length,
      x: {
        title: `${better}      ${metric?.label ?? ''}`,
        label: (value, places) => quantity(value, unit, places),
      },
      y: {
        title: 'Arm',
        names: arms.map(({ name }) => name),
        words: arms.map(({ words }) => words),
      },
      series: ['A', 'B'].map((side, at) => ({
        name: `${side}: ${timeA === timeB ? (at ? diff.b : diff.a)?.id : at ? timeB : timeA}`,
        interval: 'x' as const,
        size: 5,
        colour: at ? COLOURS.text : COLOURS.muted,
        isHollow: at === 0,
        points: arms.flatMap(({ name, sides, isBetter, meaning }, y) => {
          const { value, low, high } = sides[at]?.estimate ?? {};
          return typeof value === 'number'
            ? {
                x: value,
                y: y + (at - 0.5) * 0.4,
                low: low ?? null,
                high: high ?? null,
                ...(at && isBetter !== null
                  ? { colour: isBetter ? COLOURS.better : COLOURS.worse }
                  : {}),
                tooltip: `${name} in ${side}\n${quantity(value, unit)}\n${meaning}`,
              }
            : [];
        }),
      })),
    },
    table: {
      caption: 'Arms in both records, with 95 % intervals',
      columns: [
        'Arm',
        ...numberColumns(
          'A',
          'B',
          `Against ${baseline} in A`,
          'in B',
          'Change from A to B',
        ),
        'Meaning',
      ],
      rows: armTable(diff, arms),
    },
  };
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
