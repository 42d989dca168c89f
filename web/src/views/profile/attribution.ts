// Attributions: the parts of a difference and their sources.

import { h } from '../../dom';
import { items, list, number, text } from '../../fields';
import { percent } from '../../format';
import type { AttributionRecord, FleetAttribution } from '../../records';
import { type Table, tableElement } from '../../table';
import { section } from '../../words';
import { signedTime } from './shape';

type Attribution = AttributionRecord & Pick<FleetAttribution, 'step'>;

/** The parts of a difference, the unexplained one last. */
export function attributionTable(found: Attribution): Table {
  return {
    caption:
      found.of === 'wall'
        ? 'Elapsed per unit of work'
        : 'CPU time per unit of work',
    columns: [
      'Part',
      ...['Change', 'Interval', 'Share'].map((name) => ({
        name,
        isNumber: true,
      })),
      'Why',
    ],
    rows: items(found.parts).map((part) => {
      const time = part.delta_s;
      const share = number(part.share?.value);
      return [
        text(part.name),
        time ? signedTime(time.value) : 'not known',
        time ? `${signedTime(time.low)} to ${signedTime(time.high)}` : null,
        share === null ? null : percent(share),
        text(part.detail),
      ];
    }),
  };
}

/** Sections of a page, one for each difference. */
export const attributionSections = (
  all: readonly Attribution[] | null | undefined,
): HTMLElement[] =>
  list(all).map((found) =>
    section(
      [
        `Sources of the difference in ${found.of === 'wall' ? 'elapsed' : 'CPU'} time`,
        text(found.step),
      ]
        .filter(Boolean)
        .join(' of '),
      h('p', text(found.sentence)),
      tableElement(attributionTable(found)),
    ),
  );
