// Claims of field reports in words.

import type { ClaimRecord, ExperimentRecord, Maybe } from '../../records';
import type { TableCell } from '../../table';

/** Verdicts with a mark, so that they are distinguishable without colour. */
const VERDICTS: Readonly<Record<string, string>> = {
  reproduced: '✓\u00a0reproduced',
  contradicted: '✗\u00a0not reproduced',
};

/** Was a claim tested? */
const isTested = ({ verdict }: ClaimRecord): boolean =>
  verdict !== 'given' && verdict !== 'not_here';

/** The claims that were tested: of each experiment its question, then a row for each claim. */
export const claimRows = (
  experiments: readonly ExperimentRecord[],
): TableCell[][] =>
  experiments.flatMap(({ name, question, claims }) => {
    const tested = (claims ?? []).filter(isTested);
    return tested.length > 0
      ? [
          [`${name ?? ''}: ${question ?? ''}`, '', '', '', ''],
          ...tested.map((claim) => [
            `– ${claim.claim ?? ''}`,
            keepShort(claim.reported),
            keepShort(claim.measured),
            // A condition is its own measure.
            claim.tolerance ?? claim.why,
            VERDICTS[claim.verdict ?? ''] ?? claim.verdict,
          ]),
        ]
      : [];
  });

/** A short text stays on one line. */
const keepShort = (text: Maybe<string>): Maybe<string> =>
  text && text.length < 14 ? text.replaceAll(' ', '\u00a0') : text;

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
