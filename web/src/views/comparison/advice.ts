// The arms by what a reader should do with them: use, avoid, or measure on.

import { groupBy } from '../../lists';
import type { Comparison } from '../../records';
import { isWithheld, readHead } from './shape';
import type { ArmLine } from './shape';

/** The best arm if it is not recommended: the others are no better. */
const AHEAD = 'Ahead, but not recommended';

/** Arms with the same advice: use, avoid, or measure on. */
export interface AdviceGroup {
  word: string;
  standing: 'use' | 'avoid' | 'open' | 'equal';
  arms: ArmLine[];
}

/** Groups the arms by advice, each once, according to their standings in the record. */
export function adviceGroups(
  record: Comparison,
  lines: readonly ArmLine[],
): AdviceGroup[] {
  if (!readHead(record).isEnded) return [];
  const better = record.metric?.better_word ?? 'better';
  const used = usedArm(record);
  const groupOf = (line: ArmLine): [string, AdviceGroup['standing']] => {
    if (line.name === used)
      return isWithheld(record) ? [AHEAD, 'open'] : ['Use', 'use'];
    switch (line.standing) {
      case 'baseline':
        return ['Baseline', 'equal'];
      case 'faster':
        return [`Also ${better}`, 'use'];
      case 'same':
        return ['Same', 'equal'];
      case 'slower':
        return ['Avoid', 'avoid'];
      case 'invalid':
        return ['Failed', 'avoid'];
      case 'eliminated':
        return ['Screened out', 'open'];
      default:
        return ['Undecided', 'open'];
    }
  };
  const beside = (name: string | null | undefined): string =>
    JSON.stringify(
      record.arms?.find((arm) => arm.name === name)?.setting?.beside ?? [],
    );
  // What a companion costs an arm is no reason to avoid the arm.
  const choices = lines.filter(
    ({ name, contrast }) =>
      name === used || !contrast || beside(name) === beside(contrast.baseline),
  );
  const groups = [...groupBy(choices, (line) => groupOf(line)[0])].map(
    ([word, arms]): AdviceGroup => ({
      word,
      standing: groupOf(arms[0])[1],
      arms,
    }),
  );
  const order = [
    'Use',
    AHEAD,
    `Also ${better}`,
    'Baseline',
    'Same',
    'Undecided',
    'Avoid',
    'Failed',
    'Screened out',
  ];
  const place = (word: string): number => order.indexOf(word);
  return groups.sort((a, b) => place(a.word) - place(b.word));
}

/** The arm that the verdict recommends: the best, or the baseline if nothing is better. */
const usedArm = (record: Comparison): string | null =>
  record.best ??
  (record.verdict?.kind === 'leave_alone' ? (record.baseline ?? null) : null);
