// Runs that ended with another status than 0, which --ignore-failure accepts.

import { count } from '../../format';
import { items } from '../../fields';
import { tally } from '../../lists';
import type { Comparison, Finding } from '../../records';

/** Statuses in the sentence. */
const MAX_STATUSES = 3;

/** A warning of such runs, the most frequent statuses first; null without any. */
export function findExits({ arms }: Comparison): Finding | null {
  const runs = items(arms)
    .filter(({ invalid }) => !invalid)
    .flatMap((arm) => items(arm.runs));
  const statuses = tally(runs.flatMap(({ exit }) => exit || []));
  const failed = statuses.reduce((sum, [, times]) => sum + times, 0);
  if (failed === 0) return null;
  const which = statuses.slice(0, MAX_STATUSES).map(([status]) => status);
  const many =
    failed === runs.length
      ? `All ${count(failed, 'run')}`
      : `${failed} of ${count(runs.length, 'run')}`;
  return {
    severity: 'warning',
    sentence: `${many} exited with status ${which.join(' or ')}${statuses.length > MAX_STATUSES ? ' …' : ''}.`,
    advice: 'The command may have failed: run it once and read its output.',
  };
}
