// The verdict of a line of the history.

import type { Entry } from '../../source';

/** Signs of verdicts, beside their words. */
const VERDICT_SIGNS: Readonly<Record<string, string>> = {
  best: '★',
  same: '=',
  does_not_matter: '=',
  leave_alone: '✓',
  pass: '✓',
  fail: '✗',
  broken: '‼',
  timed: '·',
  no_alarm: '✓',
  false_alarm: '✗',
  undecided: '?',
};

/** The sign of a record's verdict; empty of records without one. */
export const signOf = ({ complete, outcome }: Entry): string =>
  complete ? (VERDICT_SIGNS[outcome ?? ''] ?? '') : '◌';

/** A record's verdict in words. */
export const verdictWords = ({ complete, verdict }: Entry): string =>
  complete ? verdict : 'unfinished: running, or cut off';

/** A record's verdict behind its sign. */
export const formatVerdict = (entry: Entry): string =>
  `${signOf(entry)} ${verdictWords(entry)}`.trim();
