// Two records side by side: which figures can be drawn as ratios, and arms with their own figures.

import { change, quantity, withSpan, wholeNumber, count } from '../../format';
import { filterMap } from '../../lists';
import { positive, knownEnds } from '../../numbers';
import type {
  ComparedArm,
  DiffRecord,
  FigureChange,
  Maybe,
} from '../../records';
import { factorLabel, isFactor } from '../../scales';

export const VERDICTS: Readonly<Record<string, string>> = {
  lower: 'lower',
  higher: 'higher',
  same: 'the same',
  cannot_tell: 'inconclusive',
};

export interface RatioRow {
  name: string;
  ratio: number;
  low: number | null;
  high: number | null;
  verdict: string;
  /** Beside the row, if not its verdict: all, and what a phone has room for. */
  words?: readonly [long: string, short: string];
}

/** A figure's value; a count is whole. */
const sideText = (value: Maybe<number>, unit: Maybe<string>): string =>
  !unit && Number.isInteger(value)
    ? wholeNumber(value)
    : quantity(value, unit ?? '');

const isOfGates = ({ a }: DiffRecord): boolean =>
  Boolean(a?.schema?.startsWith('pinwise.gate/'));

/** Did a figure change for certain? */
const isChanged = ({ verdict }: RatioRow): boolean =>
  verdict === 'lower' || verdict === 'higher';

/** Figures with a ratio, those that changed first. */
export function ratioRows(record: DiffRecord): RatioRow[] {
  // A ratio of two changes in per cent means nothing.
  if (isOfGates(record)) return [];
  return filterMap(record.figures ?? [], (figure): RatioRow | null => {
    const { ratio, a, b, unit, low, high, verdict } = figure;
    if (!positive(ratio)) return null;
    const said = verdict ?? 'cannot_tell';
    const sides = [a, b].map((value) => sideText(value, unit)).join(' → ');
    return {
      name: figure.name ?? '–',
      ratio,
      ...knownEnds(low, high),
      verdict: said,
      words: [
        `${sides}   ${ratioText(ratio)}   ${VERDICTS[said] ?? said}`,
        ratioText(ratio),
      ],
    };
  }).sort((a, b) => Number(isChanged(b)) - Number(isChanged(a)));
}

const ratioText = (ratio: number): string =>
  isFactor(ratio) ? factorLabel(ratio) : change(ratio);

/** A change with its interval: "−5.0 % (−7.0 % to −3.0 %)"; from threefold on "×3". */
export function changeText(
  figure: Pick<FigureChange, 'ratio' | 'low' | 'high'>,
): string | null {
  const { ratio, low, high } = figure;
  return positive(ratio) ? withSpan(ratio, low, high, ratioText) : null;
}

/** A gate's figure, a change in per cent. */
const signed = (percent: number): string => change(1 + percent / 100);

/** In which record alone a figure is; empty if it is in both. */
const onlyIn = (a: unknown, b: unknown): string =>
  b == null ? 'only in A' : a == null ? 'only in B' : '';

/** The rows of the table of figures. */
export function figureRows(record: DiffRecord): (string | null)[][] {
  const isSigned = isOfGates(record);
  return (record.figures ?? []).map((f) => {
    const text = (value: number): string =>
      isSigned ? signed(value) : sideText(value, f.unit);
    return [
      f.name ?? '–',
      withSpan(f.a, f.a_low, f.a_high, text),
      withSpan(f.b, f.b_low, f.b_high, text),
      isSigned ? null : changeText(f),
      onlyIn(f.a, f.b) ||
        (isSigned ? null : VERDICTS[f.verdict ?? 'cannot_tell']!),
    ];
  });
}

/** What the plot shows, in a sentence. */
export function ratioSummary(rows: readonly RatioRow[]): string {
  const parts = filterMap(Object.entries(VERDICTS), ([verdict, word]) => {
    const some = rows.filter((row) => row.verdict === verdict).length;
    return some > 0 ? `${some} ${word}` : null;
  });
  return `Of ${count(rows.length, 'figure')}: ${parts.join(', ')}.`;
}

/** An arm of two comparisons, in both. */
export interface ArmRow {
  name: string;
  isBaseline: boolean;
  sides: readonly [a: ComparedArm | null, b: ComparedArm | null];
  /** What the change means: "advantage lost". */
  meaning: string;
  isBetter: boolean | null;
  /** Its figures and changes against the baseline, and what a phone has room for. */
  words: readonly [long: string, short: string];
  figure: FigureChange;
}

const BETTER = /gained|caught_up|further_ahead|far_behind/;

/** The arms of two comparisons, the baseline first; empty for other records. */
export function armRows({ figures, metric }: DiffRecord): ArmRow[] {
  return (figures ?? [])
    .filter(({ arm_a, arm_b }) => arm_a || arm_b)
    .map((figure): ArmRow => {
      const { arm_a, arm_b, shift, verdict, over } = figure;
      const sides = [arm_a ?? null, arm_b ?? null] as const;
      // Its own figures say it all then.
      const isUnmoved = shift === 'baseline_moved';
      const meaning = !over
        ? 'baseline'
        : isUnmoved
          ? `unchanged; ${over} moved`
          : onlyIn(arm_a, arm_b) ||
            (shift?.replaceAll('_', ' ') ??
              VERDICTS[verdict ?? 'cannot_tell']!);
      const [from, to] = sides.map((arm) =>
        quantity(arm?.estimate?.value, metric?.unit ?? ''),
      ) as [string, string];
      // The unit once, if it is the same.
      const unit = / \S+$/.exec(to)?.[0] ?? '';
      const start =
        unit && from.endsWith(unit) ? from.slice(0, -unit.length) : from;
      const values = `${start} → ${to}`;
      const changes =
        over && !isUnmoved
          ? `${sides.map((arm) => arm?.effect?.text || '–').join(' → ')}   `
          : '';
      return {
        name: figure.name ?? '–',
        isBaseline: !over,
        sides,
        meaning,
        isBetter: shift && !isUnmoved ? BETTER.test(shift) : null,
        words: [`${values}   ${changes}${meaning}`, values],
        figure,
      };
    })
    .sort((a, b) => Number(b.isBaseline) - Number(a.isBaseline));
}

/** The rows of the table of arms: figures, and changes against the baseline. */
export const armTable = ({ metric }: DiffRecord, rows: readonly ArmRow[]) =>
  rows.map(({ name, sides, meaning, figure }) => [
    name,
    ...sides.map((arm) =>
      withSpan(
        arm?.estimate?.value,
        arm?.estimate?.low,
        arm?.estimate?.high,
        (value) => quantity(value, metric?.unit ?? ''),
      ),
    ),
    ...sides.map((arm) => {
      const { text, interval } = arm?.effect ?? {};
      return text ? `${text}${interval ? ` (${interval})` : ''}` : null;
    }),
    figure.over ? changeText(figure) : null,
    meaning,
  ]);
