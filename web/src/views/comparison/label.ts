// A comparison as its page shows it: arms named by whole command lines have letters, and commands to
// copy have no internal options.

import { filterMap } from '../../lists';
import { splitVerdict } from '../../method';
import type { Comparison, Finding, Maybe } from '../../records';

/** Of longer names a first screen has no room for more than one each. */
const MAX_NAME = 32;
const MAX_LETTERS = 26;
/** Options by which `pinwise fleet` runs a comparison. */
const INTERNAL = / --format json --quiet(?= )/;

/** An arm's letter and command line: what all arms have in common, what differs, and the common end. */
export interface Letter {
  letter: string;
  name: string;
  parts: readonly [start: string, own: string, end: string];
}

/** The letters of arms with long names; none if the names are short. */
export function findLetters({
  arms,
  joint,
  companion_effects: companions,
}: Comparison): Letter[] {
  const names = filterMap(arms ?? [], ({ name }) => name ?? null);
  const isShort = names.every((name) => name.length <= MAX_NAME);
  if (isShort || joint || companions?.length || names.length > MAX_LETTERS)
    return [];
  const all = names.map((name) => name.split(' '));
  const least = Math.min(...all.map((words) => words.length));
  const count = (word: (words: string[], at: number) => Maybe<string>) => {
    let at = 0;
    while (at < least && new Set(all.map((w) => word(w, at))).size === 1)
      at += 1;
    return at;
  };
  const start = count((words, at) => words[at]);
  const end = count((words, at) => words.at(-1 - at));
  return names.map((name, at) => {
    const words = all[at]!;
    const last = Math.max(start, words.length - end);
    return {
      letter: String.fromCharCode(65 + at),
      name,
      parts: [
        words.slice(0, start).join(' '),
        words.slice(start, last).join(' '),
        words.slice(last).join(' '),
      ],
    };
  });
}

/** The record as its page shows it. */
export function prepareComparison(
  record: Comparison,
  letters: readonly Letter[],
): Comparison {
  const again = record.again?.replace(INTERNAL, '') ?? null;
  return useLetters({ ...record, again }, letters);
}

function useLetters(
  record: Comparison,
  letters: readonly Letter[],
): Comparison {
  if (letters.length === 0) return record;
  // A name may be a part of another.
  const longest = [...letters].sort((a, b) => b.name.length - a.name.length);
  const short = (text: Maybe<string> | undefined): string | null =>
    longest.reduce(
      (all, { name, letter }) => all.replaceAll(name, letter),
      text ?? '',
    ) || null;
  const { verdict } = record;
  return {
    ...record,
    baseline: short(record.baseline),
    best: short(record.best),
    arms: (record.arms ?? []).map((arm) => ({
      ...arm,
      name: short(arm.name),
      invalid: short(arm.invalid),
    })),
    contrasts: (record.contrasts ?? []).map((one) => ({
      ...one,
      arm: short(one.arm),
      baseline: short(one.baseline),
      sentence: short(one.sentence),
    })),
    findings: (record.findings ?? []).map((one) => ({
      ...one,
      sentence: short(one.sentence),
    })),
    verdict: verdict
      ? {
          ...verdict,
          sentence: short(verdict.sentence),
          steadiness: short(verdict.steadiness),
          beside: short(verdict.beside),
          headline: verdict.headline
            ? {
                ...verdict.headline,
                of: short(verdict.headline.of),
              }
            : null,
        }
      : null,
  };
}

/** Runs that failed: what they took may mean nothing, so the verdict says it. */
export const isOfExits = ({ check }: Finding): boolean =>
  check === 'exit_statuses';

/** Why an arm is not recommended of which every run failed. */
export const FAILED = 'failed';

/** The answer of a verdict, its other sentences, and the error output that it quotes. */
export function splitHead({
  verdict,
}: Comparison): [answer: string, more: string, error: string] {
  const [sentence = '', ...error] = (verdict?.sentence ?? '').split('\n');
  if (error.length > 0) return [sentence, '', error.join('\n')];
  // What is undecided belongs to the answer.
  return verdict?.kind === 'undecided'
    ? [sentence, '', '']
    : [...splitVerdict(sentence), ''];
}

/** Is the headline's arm undecided? */
export const isOpen = ({ contrasts, verdict }: Comparison): boolean =>
  (contrasts ?? []).some(
    (one) =>
      one.verdict === 'undecided' &&
      one.effect?.text === verdict?.headline?.change,
  );

/** Undecided arms whose sentences are shown. */
const MAX_OPEN = 3;

/** How long an answer takes, of undecided arms; the advice of a joint plan says whether more helps. */
export const listOpenSentences = ({ contrasts, joint }: Comparison): string[] =>
  filterMap(joint ? [] : (contrasts ?? []), (one) =>
    one.verdict === 'undecided' && one.more_time_s
      ? (one.sentence ?? null)
      : null,
  ).slice(0, MAX_OPEN);
