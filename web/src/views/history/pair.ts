// Two records of a list: which is the older, and why they cannot be compared.

import { h } from '../../dom';
import type { Entry, Listing, Source } from '../../source';
import { withCode } from '../../words';
import { nameKind } from './shape';

/** Why two records cannot be compared; empty if they can. */
export function explainIncomparable(a: Entry, b: Entry): string {
  const [kind, other] = [nameKind(a.schema), nameKind(b.schema)];
  if (kind !== other) return `is a ${other}, the chosen one a ${kind}`;
  if (a.figures.length === 0 || b.figures.length === 0) return '';
  const names = new Set(a.figures.map((figure) => figure.name));
  return b.figures.some((figure) => names.has(figure.name))
    ? ''
    : 'has no figure in common with the chosen one';
}

/** Why the two records of a report are not compared in it. */
export function explainPair(a: Entry, b: Entry): string {
  const [kind, other] = [nameKind(a.schema), nameKind(b.schema)];
  if (kind !== other) return `one is a ${kind}, the other a ${other}`;
  const why = `\`pinwise record diff ${a.id} ${b.id}\` says why`;
  return a.subject === b.subject
    ? why
    : `they measure different commands or figures; ${why}`;
}

/** Two chosen records of a list that is newest first, the older first. */
export function sortByTime(
  a: Entry,
  b: Entry,
  newestFirst: readonly Entry[],
): [Entry, Entry] {
  const place = ({ id }: Entry): number =>
    newestFirst.findIndex((entry) => entry.id === id);
  const isOlder = a.time === b.time ? place(a) > place(b) : a.time < b.time;
  return isOlder ? [a, b] : [b, a];
}

/** Says of a report of two records why it does not compare them; null if it does. */
export function pairNote(
  source: Source,
  { records: [now, old], total }: Listing,
): HTMLElement | null {
  const isPair = source.kind === 'file' && total === 2 && now && old;
  const isCompared =
    isPair &&
    (source.canDiff(old.id, now.id) || source.canDiff(now.id, old.id));
  return isPair && !isCompared
    ? h('p', ...withCode(`These are not compared: ${explainPair(old, now)}.`))
    : null;
}
