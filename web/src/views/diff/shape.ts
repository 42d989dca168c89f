// Two records side by side: which figures can be drawn as ratios, and in words.

import { change, quantity } from '../../format';
import { positive } from '../../numbers';
import type { DiffRecord, FigureChange } from '../../records';

export const VERDICTS: Readonly<Record<string, string>> = {
  lower: 'lower',
  higher: 'higher',
  same: 'the same',
  cannot_tell: 'inconclusive',
};

/** "cpu:0 over os-default". */
const title = ({ name, over }: FigureChange): string =>
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
  return (record.figures ?? []).flatMap((figure) =>
    positive(figure.ratio)
      ? [
          {
            name: title(figure),
            ratio: figure.ratio,
            low:
              positive(figure.low) && positive(figure.high) ? figure.low : null,
            high:
              positive(figure.low) && positive(figure.high)
                ? figure.high
                : null,
            verdict: figure.verdict ?? 'cannot_tell',
          },
        ]
      : [],
  );
}

/** "12.3 ms (12.1 ms to 12.6 ms)". */
export function figureText(
  value: number | null | undefined,
  low: number | null | undefined,
  high: number | null | undefined,
  unit: string,
): string | null {
  if (value === null || value === undefined) return null;
  const known =
    low !== null && low !== undefined && high !== null && high !== undefined;
  return known
    ? `${quantity(value, unit)} (${quantity(low, unit)} to ${quantity(high, unit)})`
    : quantity(value, unit);
}

/** A change with its interval: "−5.0 % (−7.0 % to −3.0 %)". */
export function changeText(
  figure: Pick<FigureChange, 'ratio' | 'low' | 'high'>,
): string | null {
  if (!positive(figure.ratio)) return null;
  const { low, high } = figure;
  return positive(low) && positive(high)
    ? `${change(figure.ratio)} (${change(low)} to ${change(high)})`
    : change(figure.ratio);
}

/** The rows of the table of figures. */
export function figureRows(record: DiffRecord): (string | null)[][] {
  return (record.figures ?? []).map((f) => [
    title(f),
    figureText(f.a, f.a_low, f.a_high, f.unit ?? ''),
    figureText(f.b, f.b_low, f.b_high, f.unit ?? ''),
    changeText(f),
    VERDICTS[f.verdict ?? ''] ?? f.verdict ?? null,
  ]);
}

/** What the plot shows, in a sentence. */
export function ratioSummary(rows: readonly RatioRow[]): string {
  const count = (verdict: string): number =>
    rows.filter((row) => row.verdict === verdict).length;
  const shown = [
    [count('lower'), 'lower'],
    [count('higher'), 'higher'],
    [count('same'), 'the same'],
    [count('cannot_tell'), 'inconclusive'],
  ] as const;
  const parts = shown
    .filter(([number]) => number > 0)
    .map(([number, word]) => `${number} ${word}`);
  return `B over A, of ${rows.length} figures: ${parts.join(', ')}.`;
}
