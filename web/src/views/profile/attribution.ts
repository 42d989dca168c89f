// Attributions: the parts of a difference and their sources.

import { h } from '../../dom';
import { items, list, number, text } from '../../fields';
import { percent } from '../../format';
import type { AttributionRecord, FleetAttribution } from '../../records';
import { type Table, numberColumns, tableElement } from '../../table';
import { section } from '../../words';
import { signedTime } from './shape';

type Attribution = AttributionRecord & Pick<FleetAttribution, 'step'>;

/** Samples show where time was spent, not what the memory did. */
const PART_NAMES: Readonly<Record<string, string>> = {
  memory: 'code that reads memory',
};

/** Parts with a smaller share only have their names in the caption. */
const MIN_SHARE = 0.001;

/** The parts of a difference, the unexplained one last. */
export function attributionTable(found: Attribution): Table {
  const all = items(found.parts);
  const isSmall = ({ share }: (typeof all)[number]): boolean =>
    Math.abs(number(share?.value) ?? 1) < MIN_SHARE;
  const small = all.filter(isSmall).map(({ name }) => text(name));
  return {
    caption:
      (found.of === 'wall'
        ? 'Elapsed per unit of work'
        : 'CPU time per unit of work') +
      (small.length > 0 ? `; below 0.1 %: ${small.join(', ')}` : ''),
    columns: [
      'Part',
      ...numberColumns('Change', '95 % interval', 'Share of the difference'),
      'Why',
    ],
    rows: all
      .filter((part) => !isSmall(part))
      .map((part) => {
        const time = part.delta_s;
        const share = number(part.share?.value);
        return [
          PART_NAMES[text(part.part)] ?? text(part.name),
          time ? signedTime(time.value) : 'not known',
          time ? `${signedTime(time.low)} to ${signedTime(time.high)}` : null,
          share === null ? null : percent(share),
          text(part.detail),
        ];
      }),
  };
}

/** A section of the page for the first difference; that of others, often alike, is folded. */
export const attributionSections = (
  all: readonly Attribution[] | null | undefined,
): HTMLElement[] =>
  list(all).map((found, at) => {
    const sentence = text(found.sentence);
    const table = tableElement(attributionTable(found));
    return section(
      [
        `Sources of the difference in ${found.of === 'wall' ? 'elapsed' : 'CPU'} time`,
        text(found.step),
      ]
        .filter(Boolean)
        .join(' of '),
      ...(at > 0 && text(found.step) === text(list(all)[at - 1]!.step)
        ? [h('details', h('summary', sentence), table)]
        : [h('p', sentence), table]),
    );
  });
