// Claims of field reports in words.

import type { ClaimRecord, Reproduction } from '../../records';

/** Verdicts with a mark, so that they are distinguishable without colour. */
export const VERDICTS: Readonly<
  Record<string, { mark: string; word: string; meaning: string }>
> = {
  reproduced: {
    mark: '✓',
    word: 'reproduced',
    meaning: 'came out as reported',
  },
  contradicted: {
    mark: '✗',
    word: 'contradicted',
    meaning: 'came out otherwise',
  },
  given: {
    mark: '○',
    word: 'given',
    meaning: 'taken from the report, nothing predicts it',
  },
  not_here: {
    mark: '–',
    word: 'not here',
    meaning: 'this machine cannot show it',
  },
};

/** The columns of a claim. */
export function claimRow(claim: ClaimRecord): string[] {
  const verdict = VERDICTS[claim.verdict ?? ''];
  return [
    claim.claim ?? '',
    claim.reported ?? '–',
    claim.measured ?? '–',
    verdict ? `${verdict.mark}\u00a0${verdict.word}` : (claim.verdict ?? '–'),
    claim.why ?? '',
  ];
}

/** Every claim with its experiment and report. */
export function claimRows(record: Reproduction): string[][] {
  return (record.reports ?? []).flatMap((report) =>
    (report.experiments ?? []).flatMap((e) =>
      (e.claims ?? []).map((claim) => [
        ...claimRow(claim),
        e.name ?? '',
        report.name ?? '',
      ]),
    ),
  );
}

/** "75 of 75 claims that were tried came out as reported; 43 given, 0 not here." */
export function sentence(record: Reproduction): string {
  const counts = record.counts ?? {};
  const [good, bad] = [counts['reproduced'] ?? 0, counts['contradicted'] ?? 0];
  return `${good} of ${good + bad} claims that were tried came out as reported; ${counts['given'] ?? 0} given, ${counts['not_here'] ?? 0} not here.`;
}
