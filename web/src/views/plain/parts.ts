// Records shown as their fields whose answer has a drawing or a table of its own.

import { chart } from '../../chart';
import { parseCpus } from '../../cpus';
import { h } from '../../dom';
import { items, number, text, texts } from '../../fields';
import {
  change,
  count,
  minute,
  percent,
  quantity,
  seconds,
} from '../../format';
import { knownEnds, mapNumber, positive } from '../../numbers';
import type * as Records from '../../records';
import { type CpuSpace, cpuStrip } from '../../strip';
import { numberColumns, scrollBox, tableElement } from '../../table';
import type { Part } from '../../view';
import { facts } from '../../words';
import { ratioPlan } from '../diff/view';
import { LEVELS, formatWays, rankPlacements } from './headline';
import { withTruth } from './truth';

/** The ranking of predicted placements, beside the truth where a simulated machine knows it. */
export function predictionPart(record: Records.PlacementPrediction): Part {
  const { better, unit } = record;
  const cost = (v: number): string =>
    quantity(better === 'higher' ? 1 / v : v, unit);
  const all = rankPlacements(record).filter(({ ratio }) => positive(ratio));
  const rows = all.map((one) => ({
    name: text(one.label),
    ratio: one.ratio!,
    ...knownEnds(one.low, one.high),
    verdict: '',
    words: [
      `${change(one.ratio)}  ${mapNumber(one.cost, cost) ?? ''}`,
      change(one.ratio),
    ] as const,
  }));
  const plan = ratioPlan(rows, 'Predicted change', {
    axis: '← better      worse →',
    title: 'Placement',
    summary: 'Against os-default, with 90 % intervals.',
  });
  return chart(withTruth(plan, all, cost));
}

/** Maximum number of nodes that are shown; those that are not done come first. */
const MAX_NODES = 500;

/** The nodes of a fleet, and how far each is. */
export function fleetStatusPart({
  nodes,
  steps,
}: Records.FleetStatus): HTMLElement {
  const all = items(nodes);
  const isDone = (node: Records.NodeStatus): number => +(node.state === 'done');
  const shown = [...all].sort((a, b) => isDone(a) - isDone(b));
  return tableElement({
    caption: `${all.length > MAX_NODES ? `The first ${MAX_NODES} of ` : ''}${count(all.length, 'node')}`,
    columns: [
      'Node',
      'State',
      'Steps done',
      'Step',
      'Since, UTC',
      'Job',
      'Why',
    ],
    rows: shown
      .slice(0, MAX_NODES)
      .map((node) => [
        node.node,
        node.state,
        `${node.done ?? '–'} of ${steps ?? '–'}`,
        node.step,
        node.since && minute(node.since),
        node.job,
        node.why,
      ]),
  });
}

/** The differences of two machines, side by side on a phone too; what is unknown of one is folded. */
export function topologyDiffParts(record: Records.TopologyDiff): HTMLElement[] {
  const all = items(record.differences);
  const unknown = all.filter((one) => one.is_unknown);
  const [a, b] = [0, 1].map((side) =>
    [record.hosts?.[side], record.between?.[side] ?? '?']
      .filter(Boolean)
      .join(', '),
  );
  const heads = ['', 'A', 'B'].map((name) => h('th', { scope: 'col' }, name));
  const known = all.filter((one) => !one.is_unknown);
  const table = scrollBox(
    `A: ${a}. B: ${b}.`,
    heads,
    h(
      'tbody',
      ...known.map(({ name, values }) =>
        h(
          'tr',
          h('th', { scope: 'row' }, text(name)),
          ...texts(values).map((value) => h('td', value)),
        ),
      ),
    ),
  );
  table.classList.add('sides');
  return [
    table,
    h(
      'details',
      { hidden: unknown.length === 0 },
      h('summary', `${unknown.length} unknown in one`),
      h('ul', ...unknown.map((one) => h('li', text(one.sentence)))),
    ),
    ...texts(record.not_compared).map((why) => h('p', why)),
  ];
}

/** Rows of even placements that are shown at once; those of more are folded. */
const MAX_SHAPES = 16;

/** The even placements; of many, folded by the number of threads. */
export function placementPart({
  threads,
  allowed,
  layout,
}: Records.PlacementsRecord): HTMLElement {
  const all = items(threads);
  const shapes = all.flatMap((one) => items(one.shapes));
  const used = shapes.flatMap((shape) => parseCpus(shape.cpus));
  const space = {
    allowed: text(allowed) || `0-${used.reduce((a, b) => Math.max(a, b), 0)}`,
    layout,
  };
  return all.length === 1 || shapes.length <= MAX_SHAPES
    ? shapeTable(all, space)
    : tableElement({
        caption: 'Ways to place threads',
        columns: ['Threads', ...numberColumns('Ways'), 'Evenly spread'],
        rows: all.map((one) => [
          count(one.threads, 'thread'),
          formatWays(one.placements),
          h(
            'details',
            h('summary', String(items(one.shapes).length)),
            shapeTable([one], space),
          ),
        ]),
      });
}

/** A row per placement; of a single number of threads, the headline has the number. */
function shapeTable(
  all: readonly Records.ThreadPlacements[],
  space: CpuSpace,
): HTMLElement {
  const only = all.length === 1;
  return tableElement({
    caption:
      'Even placements, fewest units first. Small gaps: cores; large gaps: last-level caches',
    columns: [
      ...(only ? [] : ['Threads']),
      'As --place takes it',
      'Drawn',
      'CPUs',
      ...numberColumns('Cores', 'LLCs', 'NUMA nodes', 'Packages'),
    ],
    rows: all.flatMap(({ threads, shapes }) =>
      items(shapes).map((shape) => [
        ...(only ? [] : [count(threads, 'thread')]),
        shape.name,
        cpuStrip(text(shape.cpus), space),
        shape.cpus,
        shape.cores,
        shape.llcs,
        shape.numa_nodes,
        shape.packages,
      ]),
    ),
  });
}

/** What a kernel's one run did; its settings are folded. */
export const kernelPart = (record: Records.KernelRecord): HTMLElement =>
  facts({
    Threads: record.threads,
    Time: mapNumber(record.seconds, seconds),
    Rate: quantity(record.rate, `${text(record.operation)}/s`),
  });

/** The groups that latencies show, a row for each level, and why. */
export function replayParts({ levels }: Records.ReplayRecord): HTMLElement[] {
  const all = items(levels);
  if (all.length === 0) return [];
  const ns = (value: unknown): string | null =>
    mapNumber(number(value), (one) => quantity(one, 'ns'));
  return [
    tableElement({
      caption: 'Groups of CPUs, and the median latency between two of them',
      columns: [
        'Level',
        ...numberColumns('Within', 'To the nearest other', 'Confidence'),
        'Groups',
      ],
      rows: all.map((level) => {
        const groups = texts(level.groups);
        const name = LEVELS[text(level.kind)] ?? 'group';
        return [
          count(groups.length, name),
          ns(level.inside_ns),
          ns(level.outside_ns),
          percent(level.confidence),
          h(
            'ul.groups',
            ...groups.map((cpus) =>
              h('li', cpuStrip(cpus, { allowed: groups.join(',') }), cpus),
            ),
          ),
        ];
      }),
    }),
    ...all.map(({ evidence }) => h('p.muted', text(evidence))),
  ];
}
