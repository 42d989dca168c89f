// The fleets of a store, the newest first.

import { h } from '../../dom';
import { count, formatMoments } from '../../format';
import type { Entry, Source } from '../../source';
import { type NamedCommand, commandList } from '../../headline';
import { splitVerdict } from '../../method';
import { tableElement } from '../../table';
import { recordLink, section, shellWords } from '../../words';
import { REPORT_SCHEMA, fleetTag } from '../fleet-report/at-hand';
import { formatAddress } from '../history/shape';

const PLAN_SCHEMA = 'pinwise.fleet/1';
const NODE_SCHEMA = 'pinwise.fleet-node/1';
/** Maximum number of listed fleets; the history has the others. */
const MAX_FLEETS = 20;

/** A fleet's lines of the history: the plan and the result. */
export interface KnownFleet {
  id: string;
  plan: Entry | null;
  report: Entry | null;
  /** Number of nodes with a record. */
  recorded: number;
}

export interface Fleets {
  /** Newest first. */
  known: KnownFleet[];
  /** Number of other fleets. */
  more: number;
}

/** Joins plans and reports of the same fleet, newest first. */
export function joinPlansAndReports(
  plans: readonly Entry[],
  reports: readonly Entry[],
): KnownFleet[] {
  const fleets = new Map<string, KnownFleet>(
    plans.map((plan) => [
      plan.id,
      { id: plan.id, plan, report: null, recorded: 0 },
    ]),
  );
  for (const report of reports) {
    const id = report.id.replace(/\.report$/, '');
    const plan = fleets.get(id)?.plan ?? null;
    fleets.set(id, { id, plan, report, recorded: 0 });
  }
  return [...fleets.values()].sort((a, b) =>
    timeOf(b).localeCompare(timeOf(a)),
  );
}

/** When a fleet was submitted, or if that is unknown, reported. */
const timeOf = ({ plan, report }: KnownFleet): string =>
  plan?.time ?? report?.time ?? '';

/** Lists the fleets of a store and counts their nodes' records; no node is fetched. */
export async function listFleets(source: Source): Promise<Fleets> {
  const [plans, reports] = await Promise.all([
    source.list({ schema: PLAN_SCHEMA, limit: MAX_FLEETS }),
    source.list({ schema: REPORT_SCHEMA, limit: MAX_FLEETS }),
  ]);
  const fleets = joinPlansAndReports(plans.records, reports.records);
  return {
    known: await Promise.all(
      fleets.map(async (fleet) => ({
        ...fleet,
        recorded: (
          await source.list({
            schema: NODE_SCHEMA,
            tag: fleetTag(fleet.id),
            limit: 1,
          })
        ).total,
      })),
    ),
    more: Math.max(plans.total, reports.total) - MAX_FLEETS,
  };
}

/** The number of nodes in "12 nodes requested via slurm". */
const requestedNodes = ({ plan }: KnownFleet): string | undefined =>
  /^[\d,]+(?= nodes? )/.exec(plan?.verdict ?? '')?.[0];

/** "2 of 12", of which the first have a record; null if only the report is here. */
export function recordedNodes(fleet: KnownFleet): string | null {
  if (!fleet.plan && fleet.recorded === 0) return null;
  const requested = requestedNodes(fleet);
  const recorded = fleet.recorded.toLocaleString('en-US');
  return requested ? `${recorded} of ${requested}` : recorded;
}

/** The newest result, and how many fleets have none. */
export function fleetsSentence(known: readonly KnownFleet[]): string {
  const judged = known.find(({ report }) => report !== null)?.report;
  const open = known.filter(({ report }) => report === null);
  const result =
    judged &&
    `${judged.id.replace(/\.report$/, '')}: ${splitVerdict(judged.verdict)[0].replace(/\.$/, '')}`;
  const rest =
    open.length > 0 &&
    `${open.length === 1 ? open[0]!.id : count(open.length, 'fleet')} not compared yet`;
  return `${[result, rest].filter(Boolean).join('; ')}.`;
}

/** Compares the newest fleet without a result, or shows the state of its nodes if none has a
 * record. */
function nextCommand(known: readonly KnownFleet[]): NamedCommand[] {
  const open = known.filter(({ report }) => report === null);
  const ready = open.find(({ recorded }) => recorded > 0);
  const fleet = ready ?? open[0];
  if (!fleet) return [];
  const id = shellWords([fleet.id]);
  return ready
    ? [[`Compare the nodes of ${fleet.id}`, `pinwise fleet report ${id}`]]
    : [[`Show the state of ${fleet.id}`, `pinwise fleet status ${id}`]];
}

/** The newest result, and a list of all fleets; null if there are none. */
export function fleetsPart(fleets: Fleets, source: Source): HTMLElement | null {
  const { known } = fleets;
  if (known.length === 0) return null;
  return h(
    'div',
    h('p.verdict', fleetsSentence(known)),
    commandList(nextCommand(known)),
    section(
      'Fleets',
      fleetTable(known, source),
      fleets.more > 0 &&
        h(
          'p.muted',
          h(
            'a',
            { href: formatAddress({ schema: PLAN_SCHEMA }) },
            `${count(fleets.more, 'more fleet')}`,
          ),
        ),
    ),
  );
}

const fleetTable = (
  known: readonly KnownFleet[],
  source: Source,
): HTMLElement => {
  const moment = formatMoments(known.map(timeOf));
  return tableElement({
    caption: 'Newest first',
    columns: [
      'Fleet',
      'Submitted, UTC',
      'Nodes with records',
      'Result',
      'Records',
    ],
    rows: known.map((fleet) => {
      const { id, plan, report } = fleet;
      return [
        plan ? recordLink(plan.id, id) : id,
        moment(timeOf(fleet)),
        recordedNodes(fleet),
        report
          ? recordLink(report.id, splitVerdict(report.verdict)[0] || 'Report')
          : 'not compared yet',
        source.kind === 'site'
          ? h(
              'a',
              {
                href: formatAddress({ tag: `fleet:${id}` }),
                aria: { label: `Records of ${id}` },
              },
              'All',
            )
          : null,
      ];
    }),
  });
};
