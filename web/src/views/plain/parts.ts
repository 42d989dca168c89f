// Records shown as their fields whose answer has a drawing or a table of its own.

import { chart } from '../../chart';
import { h } from '../../dom';
import { items, text, texts } from '../../fields';
import { change, count, quantity } from '../../format';
import { knownEnds, mapNumber, positive } from '../../numbers';
import type * as Records from '../../records';
import { numberColumns, tableElement } from '../../table';
import type { Part } from '../../view';
import { ratioPlan } from '../diff/view';
import {
  describeDifference,
  formatWays,
  isUnknown,
  rankPlacements,
} from './headline';

/** The ranking of predicted placements, with their changes and costs. */
export function predictionPart(record: Records.PlacementPrediction): Part {
  const { better, unit } = record;
  const cost = (v: number): string =>
    `  ${quantity(better === 'higher' ? 1 / v : v, unit)}`;
  const rows = rankPlacements(record)
    .filter(({ ratio }) => positive(ratio))
    .map((one) => ({
      name: text(one.label),
      ratio: one.ratio!,
      ...knownEnds(one.low, one.high),
      verdict: '',
      words: [
        `${change(one.ratio)}${mapNumber(one.cost, cost) ?? ''}`,
        change(one.ratio),
      ] as const,
    }));
  return chart(
    ratioPlan(rows, 'Predicted change', {
      axis: '← better      worse →',
      title: 'Placement',
      summary: 'Against os-default, with 90 % intervals.',
    }),
  );
}

/** The differences of two machines; what is unknown of one is folded. */
export function topologyDiffParts(record: Records.TopologyDiff): HTMLElement[] {
  const all = items(record.differences);
  const [a, b] = texts(record.between);
  const list = (of: readonly Records.Difference[]): HTMLElement =>
    h('ul', ...of.map((one) => h('li', describeDifference(one))));
  const unknown = all.filter(isUnknown);
  return [
    h('p.muted', `A is ${a ?? '?'}, B is ${b ?? '?'}.`),
    list(all.filter((one) => !isUnknown(one))),
    h(
      'details',
      { hidden: unknown.length === 0 },
      h('summary', `${unknown.length} unknown in one`),
      list(unknown),
    ),
    ...texts(record.not_compared).map((why) => h('p', why)),
  ];
}

/** The even placements of one number of threads; of several, folded in a table. */
export function placementPart({
  threads,
}: Records.PlacementsRecord): HTMLElement {
  const all = items(threads);
  return all.length === 1
    ? shapeTable(all[0]!)
    : tableElement({
        caption: 'Ways to place threads',
        columns: ['Threads', ...numberColumns('Ways'), 'Evenly spread'],
        rows: all.map((one) => [
          count(one.threads, 'thread'),
          formatWays(one.placements),
          h(
            'details',
            h('summary', String(items(one.shapes).length)),
            shapeTable(one),
          ),
        ]),
      });
}

const shapeTable = ({
  threads,
  shapes,
}: Records.ThreadPlacements): HTMLElement =>
  tableElement({
    caption: `Even placements of ${count(threads, 'thread')}, fewest units first`,
    columns: [
      'As --place takes it',
      'CPUs',
      ...numberColumns('Cores', 'LLCs', 'NUMA nodes', 'Packages'),
    ],
    rows: items(shapes).map((shape) => [
      shape.name,
      shape.cpus,
      shape.cores,
      shape.llcs,
      shape.numa_nodes,
      shape.packages,
    ]),
  });
