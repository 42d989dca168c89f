// The rows of the ratio plot: each arm over what it was compared with.

import { filterMap } from '../../lists';
import { positive } from '../../numbers';
import type { Comparison, Maybe } from '../../records';
import { buildDisagreeingRows, describeEffect, toRatios } from './disagreement';
import { readVerdict } from './shape';
import type { ArmLine } from './shape';

export interface RatioLine extends Pick<
  ArmLine,
  'name' | 'standing' | 'word' | 'isBest' | 'colour' | 'against'
> {
  /** The arm's figure over the baseline's. */
  ratio: number;
  low: number | null;
  high: number | null;
  change: string;
  interval: string;
}

/** Arms that were compared with the baseline, best first; below one whose verdict is withheld
 * the figures that disagree. */
export function ratioLines(
  lines: readonly ArmLine[],
  isRate: boolean,
): RatioLine[] {
  return filterMap(
    lines,
    ({ name, standing, word, isBest, colour, contrast, against }) => {
      const ratios = toRatios(contrast?.effect);
      if (!ratios) return null;
      const of = { name, standing, word, isBest, colour, against };
      const line = { ...of, ...ratios, ...describeEffect(contrast?.effect) };
      return { line, contrast };
    },
  )
    .sort(({ line: a }, { line: b }) =>
      isRate ? b.ratio - a.ratio : a.ratio - b.ratio,
    )
    .flatMap(({ line, contrast }) => [
      line,
      ...buildDisagreeingRows(line, contrast, isRate),
    ]);
}

/** The figure of an arm: its change, or its interval while the change decides nothing. */
export const figureText = ({
  standing,
  change,
  interval,
}: Pick<RatioLine, 'standing' | 'change' | 'interval'>): string =>
  (standing === 'undecided' && interval) || change;

/** What the arms beside a companion are compared with. */
export const ALONE = 'the same arm alone';

/** What companions change for each arm, which the verdict says first, before the other rows. */
export function withCompanions(
  { companion_effects, metric, baseline }: Comparison,
  rows: readonly RatioLine[],
  lines: readonly ArmLine[],
): RatioLine[] {
  const words: Partial<Record<string, Maybe<string>>> = {
    faster: metric?.better_word,
    slower: metric?.worse_word,
  };
  const beside = filterMap(
    companion_effects ?? [],
    ({ arm, companion, effect, verdict }): RatioLine | null => {
      const ratios = toRatios(effect);
      const name = `${arm} beside ${companion}`;
      const line = lines.find((one) => one.name === name);
      const standing = readVerdict(verdict);
      return ratios
        ? {
            name,
            standing,
            word: words[standing] ?? standing,
            isBest: false,
            colour: line?.colour ?? null,
            against: ALONE,
            ...ratios,
            ...describeEffect(effect),
          }
        : null;
    },
  );
  const isSaid = ({ name, against }: RatioLine): boolean =>
    beside.some((one) => one.name === name) &&
    name.startsWith(`${against ?? baseline} beside `);
  return [...beside, ...rows.filter((row) => !isSaid(row))];
}

/** A reader who divides medians sees a change that differs by more than this. */
const MEDIANS_DIFFER = 0.002;

/** Do the medians of an arm and its baseline say another change than the blocks? */
export function isOtherThanMedians(lines: readonly ArmLine[]): boolean {
  const medianOf = new Map(lines.map(({ name, median }) => [name, median]));
  return lines.some(({ median, contrast }) => {
    const base = medianOf.get(contrast?.baseline ?? '');
    const ratio = toRatios(contrast?.effect)?.ratio;
    return (
      positive(median) &&
      positive(base) &&
      positive(ratio) &&
      Math.abs(median / base - ratio) > MEDIANS_DIFFER
    );
  });
}

/** The ratio plot in a sentence. */
export function ratioSummary(rows: readonly RatioLine[], what: string): string {
  const arms = rows.filter((row) => row.word !== '');
  const effectText = arms
    .slice(0, 3)
    .map((r) => `${r.name} ${figureText(r)} (${r.word})`);
  const more = arms.length > 3 ? ` and ${arms.length - 3} more` : '';
  return `${what}: ${effectText.join(', ')}${more}.`;
}
