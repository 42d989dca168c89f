// Two records side by side: which figures can be drawn as ratios, and in words.

import { change, count, quantity, withSpan } from '../../format';
import { filterMap } from '../../lists';
import { positive, knownEnds } from '../../numbers';
import type { DiffRecord, FigureChange } from '../../records';

export const VERDICTS: Readonly<Record<string, string>> = {
  lower: 'lower',
  higher: 'higher',
  same: 'the same',
  cannot_tell: 'inconclusive',
};

/** "cpu:0 over os-default". */
const figureTitle = ({ name, over }: FigureChange): string =>
  over ? `${name} over ${over}` : (name ?? '–');

export interface RatioRow {
  name: string;
  ratio: number;
  low: number | null;
  high: number | null;
  verdict: string;
}

/** Figures with a ratio, in the record's order. */
export function ratioRows(record: DiffRecord): RatioRow[] {
  return filterMap(record.figures ?? [], (figure) =>
    positive(figure.ratio)
      ? {
          name: figureTitle(figure),
          ratio: figure.ratio,
          ...knownEnds(figure.low, figure.high),
          verdict: figure.verdict ?? 'cannot_tell',
        }
      : null,
  );
}

/** A change with its interval: "−5.0 % (−7.0 % to −3.0 %)". */
export function changeText(
  figure: Pick<FigureChange, 'ratio' | 'low' | 'high'>,
): string | null {
  const { ratio, low, high } = figure;
  return positive(ratio) ? withSpan(ratio, low, high, change) : null;
}

/** What changed; of several figures the one that changed most. */
export function toSentence(record: DiffRecord): string {
  const rows = ratioRows(record).filter(({ low }) => low !== null);
  const changed = rows.filter(({ verdict }) => /^(low|high)er$/.test(verdict));
  const size = ({ ratio }: RatioRow): number => Math.abs(Math.log(ratio));
  const [most] = (changed.length > 0 ? changed : rows).sort(
    (a, b) => size(b) - size(a),
  );
  if (!most) return record.sentence ?? '';
  const known =
    changed.length > 0
      ? `${changed.length} of ${count(rows.length, 'figure')} changed`
      : `Nothing ${rows.every((row) => row.verdict === 'same') ? '' : 'shown to have '}changed`;
  return `${known}; ${most.name} ${changeText(most)}.`;
}

/** The rows of the table of figures. */
export function figureRows(record: DiffRecord): (string | null)[][] {
  return (record.figures ?? []).map((f) => [
    figureTitle(f),
    withSpan(f.a, f.a_low, f.a_high, (v) => quantity(v, f.unit)),
    withSpan(f.b, f.b_low, f.b_high, (v) => quantity(v, f.unit)),
    changeText(f),
    typeof f.b !== 'number'
      ? 'only in A'
      : typeof f.a !== 'number'
        ? 'only in B'
        : (VERDICTS[f.verdict ?? ''] ?? f.verdict ?? null),
  ]);
}

/** What the plot shows, in a sentence. */
export function ratioSummary(rows: readonly RatioRow[]): string {
  const countVerdict = (verdict: string): number =>
    rows.filter((row) => row.verdict === verdict).length;
  const shown = [
    [countVerdict('lower'), 'lower'],
    [countVerdict('higher'), 'higher'],
    [countVerdict('same'), 'the same'],
    [countVerdict('cannot_tell'), 'inconclusive'],
  ] as const;
  const parts = shown
    .filter(([number]) => number > 0)
    .map(([number, word]) => `${number} ${word}`);
  return `Of ${count(rows.length, 'figure')}: ${parts.join(', ')}.`;
}
