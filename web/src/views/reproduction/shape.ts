// Claims of field reports in words.

import { count } from '../../format';
import { groupBy } from '../../lists';
import type { ClaimRecord, ExperimentRecord, Maybe } from '../../records';
import type { TableCell } from '../../table';

/** Verdicts with a mark, so that they are distinguishable without colour. */
const VERDICTS: Readonly<Record<string, string>> = {
  reproduced: '✓\u00a0reproduced',
  consistent: '≈\u00a0consistent',
  contradicted: '✗\u00a0not reproduced',
};

/** Was a claim tested? */
const isTested = ({ verdict }: ClaimRecord): boolean =>
  verdict !== 'given' && verdict !== 'not_here';

/** The claims that were tested: of each experiment its question, then a row for each claim; those
 * that differ in a number alone share one. */
export const claimRows = (
  experiments: readonly ExperimentRecord[],
): TableCell[][] =>
  experiments.flatMap(({ name, question, claims }) => {
    const tested = (claims ?? []).filter(isTested);
    return tested.length > 0
      ? [
          [`${name ?? ''}: ${question ?? ''}`, '', '', '', ''],
          ...[...groupBy(tested, toPattern).values()].map((alike) => {
            const [first, last] = [alike[0]!, alike.at(-1)!];
            return [
              `– ${alike.length > 1 ? `${joinNumbers(first, last)} (${count(alike.length, 'claim')})` : (first.claim ?? '')}`,
              keepShort(first.reported),
              keepShort(measuredRange(alike)),
              // A condition is its own measure.
              first.tolerance ?? first.why,
              VERDICTS[first.verdict ?? ''] ?? first.verdict,
            ];
          }),
        ]
      : [];
  });

const NUMBER = /\d+/;

/** What claims of one row have in common; a condition is a row of its own. */
const toPattern = (claim: ClaimRecord): string => {
  const { reported, tolerance, verdict } = claim;
  const words = tolerance ? claim.claim?.replace(NUMBER, '#') : claim.claim;
  return JSON.stringify([words, reported, tolerance, verdict]);
};

/** "a sender every 3 to 9 ms", of "a sender every 3 ms" and "… 9 ms". */
const joinNumbers = (first: ClaimRecord, last: ClaimRecord): string =>
  (first.claim ?? '').replace(
    NUMBER,
    (from) => `${from} to ${NUMBER.exec(last.claim ?? '')?.[0]}`,
  );

function measuredRange(claims: readonly ClaimRecord[]): Maybe<string> {
  const sorted = [...claims].sort(
    (a, b) => (a.measured_value ?? 0) - (b.measured_value ?? 0),
  );
  const [low, high] = [sorted[0]!.measured, sorted.at(-1)!.measured];
  return low === high ? low : `${low} to ${high}`;
}

/** A short text stays on one line. */
const keepShort = (text: Maybe<string>): Maybe<string> =>
  text && text.length < 18 ? text.replaceAll(' ', '\u00a0') : text;

/** The claims that were not tested, and why, in a sentence each. */
export const untestedClaims = (
  experiments: readonly ExperimentRecord[],
): string[] =>
  experiments
    .flatMap(({ claims }) => claims ?? [])
    .filter((claim) => !isTested(claim))
    .map(
      ({ claim, reported, why }) =>
        `${claim ?? ''}: ${reported ?? '–'} (${why ?? ''})`,
    );
