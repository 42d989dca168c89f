// The parts of records shown as their fields that have a table or a drawing of their own.

import { chart } from '../../chart';
import { h } from '../../dom';
import { items, text, texts } from '../../fields';
import { change, percent, quantity, span } from '../../format';
import { knownEnds, mapNumber, positive } from '../../numbers';
import type * as Records from '../../records';
import { numberColumns, tableElement } from '../../table';
import type { Part } from '../../view';
import { ratioPlan } from '../diff/plan';
import { isUnknown, rankPlacements } from './headline';

/** The ranking of a prediction, drawn and as a table. */
export function predictionParts(
  record: Records.PlacementPrediction,
): (Part | HTMLElement)[] {
  const { better, metric, unit } = record;
  const placements = rankPlacements(record);
  const rows = placements
    .filter(({ ratio }) => positive(ratio))
    .map(({ label, ratio, low, high }) => ({
      name: text(label),
      ratio: ratio!,
      ...knownEnds(low, high),
      verdict: change(ratio),
    }));
  const cost = (value: number | null | undefined): string | null =>
    mapNumber(value, (v) => quantity(better === 'higher' ? 1 / v : v, unit));
  const table = tableElement({
    caption: 'The best first; intervals of 90 %',
    isStacked: true,
    columns: [
      'Placement',
      ...numberColumns('Change', 'Interval', `Predicted ${text(metric)}`),
      ...numberColumns('True', 'Off by'),
      'CPUs',
    ],
    rows: placements.map((one) => [
      text(one.label),
      change(one.ratio),
      span(one.low, one.high, change),
      cost(one.cost),
      cost(one.truth),
      mapNumber(one.error, (error) => percent(Math.abs(error))),
      text(one.cpus),
    ]),
  });
  const axis = '← better      predicted cost      worse →';
  const plan = ratioPlan(
    rows,
    'Predicted change',
    axis,
    'Against os-default, with 90 % intervals.',
  );
  return rows.length > 0 ? [chart(plan), table] : [table];
}

const IN_BOTH =
  /^(?:The )?(.+?)(?: is| are|:) (.+) in A(?:,| and) (.+) in B\.$/;
const USABLE = /^A may use (\d+) (.+), B (\d+)\.$/;

/** The differences of two machines; what is unknown of one comes last. */
export function topologyDiffParts(record: Records.TopologyDiff): HTMLElement[] {
  const all = items(record.differences);
  const sorted = [
    ...all.filter((one) => !isUnknown(one)),
    ...all.filter(isUnknown),
  ];
  const [a, b] = texts(record.between);
  const table = tableElement({
    caption: `A is ${a ?? '?'}, B is ${b ?? '?'}`,
    isStacked: true,
    columns: ['Difference', 'A', 'B'],
    rows: sorted.map(({ sentence }) => {
      const said = text(sentence);
      const [, what, inA, inB] = IN_BOTH.exec(said) ?? ['', said];
      const [, many, units, few] = USABLE.exec(said) ?? [];
      return units ? [`usable ${units}`, many, few] : [what, inA, inB];
    }),
  });
  return [table, ...texts(record.not_compared).map((why) => h('p', why))];
}
