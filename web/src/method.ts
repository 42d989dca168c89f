// Parts that experiments of any kind share: findings, advice, facts about the run.

import { h } from './dom';
import { number, text, texts } from './fields';
import { seconds } from './format';
import { commandList } from './headline';
import type { Finding, HostRecord, Maybe, Stopped } from './records';
import { type Facts, findingList, hostFacts, section, withCode } from './words';

/** The findings; null if there are none. */
export const findingsPart = (
  findings: Maybe<readonly Finding[]>,
  title = 'Findings',
): HTMLElement | null =>
  findings?.length ? section(title, findingList(findings)) : null;

/** The findings after the first, which is the headline. */
export const furtherFindings = (
  findings: Maybe<readonly Finding[]>,
): HTMLElement | null => findingsPart(findings?.slice(1), 'Further findings');

/** Splits a verdict into its first sentence, which answers, and the others. */
export function splitVerdict(verdict: string): [first: string, more: string] {
  const end = /[.!?] (?=\S)/.exec(verdict)?.index ?? verdict.length;
  return [verdict.slice(0, end + 1), verdict.slice(end + 2)];
}

/** Advice that ends with a command: its words, and the command, as a terminal shows it. */
export const splitAdvice = (
  advice: string,
): readonly [words: string, command: string] | null => {
  const found =
    /^(.+): `?((?:pinwise|echo|taskset) (?:(?![.;] ).)+?)`?\.?$/.exec(advice);
  return found && [found[1]!, found[2]!];
};

/** Advice, below a verdict; a command at its end can be copied. */
export function adviceLine(advice: Maybe<string>): HTMLElement | null {
  if (!advice) return null;
  const found = splitAdvice(advice);
  if (found) {
    const [words, command] = found;
    // Of several sentences only the last is about the command.
    const [, others = '', label = words] =
      /^(.*[.!?]) ([^.]+)$/.exec(words) ?? [];
    return h('div', adviceLine(others), commandList([[label, command]]));
  }
  return h(
    'p.advice-line',
    h('span', { aria: { hidden: 'true' } }, '→ '),
    ...withCode(advice),
  );
}

/** Why an experiment ended; older records have only a word for it. */
export const endFact = (
  record: Maybe<{ ended?: Maybe<string>; stopped?: Stopped | null }>,
): Facts => ({
  Ended: text(record?.ended) || text(record?.stopped) || 'not yet, or cut off',
});

/** The limits of an experiment: a number of something, and a time. */
export const limitFact = (
  most: Maybe<number>,
  what: string,
  budget_s: Maybe<number>,
): Facts => ({
  Limits: [
    number(most) === null ? '' : `${most} ${what}`,
    number(budget_s) === null ? '' : seconds(budget_s),
  ]
    .filter(Boolean)
    .join(', '),
});

/** Its seed, its duration, its machine, and the version of pinwise. */
export function runFacts(record: {
  seed?: Maybe<number>;
  stopped?: Maybe<Stopped>;
  elapsed_s?: Maybe<number>;
  host?: Maybe<HostRecord>;
  pinwise_version?: Maybe<string>;
  tags?: Maybe<string[]>;
}): Facts {
  const { seed, host } = record;
  return {
    Seed: number(seed) === null ? null : String(seed),
    Took:
      record.stopped === null || number(record.elapsed_s) === null
        ? null
        : `${seconds(record.elapsed_s)}${host?.simulated ? ' of simulated time' : ''}`,
    ...hostFacts(host),
    pinwise: record.pinwise_version,
    Tags: texts(record.tags).join(', '),
  };
}
