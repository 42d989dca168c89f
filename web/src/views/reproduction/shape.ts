// Claims of field reports in words.

import { filterMap, tally } from '../../lists';
import type {
  ClaimRecord,
  ExperimentRecord,
  Reproduction,
} from '../../records';

/** Verdicts with a mark, so that they are distinguishable without colour. */
export const VERDICTS: Readonly<
  Record<string, { mark: string; word: string; meaning: string }>
> = {
  reproduced: {
    mark: '✓',
    word: 'reproduced',
    meaning: 'as reported',
  },
  contradicted: {
    mark: '✗',
    word: 'contradicted',
    meaning: 'not as reported',
  },
  given: {
    mark: '○',
    word: 'input',
    meaning: 'taken from the report, tests nothing',
  },
  not_here: {
    mark: '–',
    word: 'not here',
    meaning: 'the machine cannot show it',
  },
};

/** The columns of a claim. */
export function claimRow(claim: ClaimRecord): string[] {
  const verdict = VERDICTS[claim.verdict ?? ''];
  return [
    claim.claim ?? '',
    verdict ? `${verdict.mark}\u00a0${verdict.word}` : (claim.verdict ?? '–'),
    claim.reported ?? '–',
    claim.measured ?? '–',
    claim.why ?? '',
  ];
}

/** "✓ 3 reproduced, ○ 1 input", the claims of an experiment. */
export const describeVerdicts = ({ claims }: ExperimentRecord): string =>
  tally(
    filterMap(claims ?? [], ({ verdict }) => VERDICTS[verdict ?? ''] ?? null),
  )
    .map(([{ mark, word }, many]) => `${mark} ${many} ${word}`)
    .join(', ');

const VERDICT_ORDER = ['contradicted', 'reproduced', 'not_here', 'given'];

/** Every claim with its experiment and report: contradicted ones first, untested ones last. */
export function claimRows(record: Reproduction): string[][] {
  const all = (record.reports ?? []).flatMap((report) =>
    (report.experiments ?? []).flatMap((experiment) =>
      (experiment.claims ?? []).map((claim) => ({ report, experiment, claim })),
    ),
  );
  const rank = ({ claim }: { claim: ClaimRecord }): number =>
    VERDICT_ORDER.indexOf(claim.verdict ?? '');
  return all
    .sort((a, b) => rank(a) - rank(b))
    .map(({ report, experiment, claim }) => [
      ...claimRow(claim),
      experiment.name ?? '',
      // The heading has the only one.
      record.reports!.length > 1 ? (report.name ?? '') : '',
    ]);
}
