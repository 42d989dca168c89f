// The fleets of a store, the newest first.

import { h } from '../../dom';
import { count, formatMoments } from '../../format';
import type { Entry, Source } from '../../source';
import { commandList } from '../../headline';
import { splitVerdict } from '../../method';
import { tableElement } from '../../table';
import { recordLink, section, shellWords } from '../../words';
import { REPORT_SCHEMA } from '../fleet-report/at-hand';
import { formatAddress } from '../history/shape';

const PLAN_SCHEMA = 'pinwise.fleet/1';
/** Maximum number of listed fleets; the history has the others. */
const MAX_FLEETS = 20;

/** A fleet's lines of the history: the plan and the result. */
export interface KnownFleet {
  id: string;
  plan: Entry | null;
  report: Entry | null;
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
    plans.map((plan) => [plan.id, { id: plan.id, plan, report: null }]),
  );
  for (const report of reports) {
    const id = report.id.replace(/\.report$/, '');
    fleets.set(id, { id, plan: fleets.get(id)?.plan ?? null, report });
  }
  return [...fleets.values()].sort((a, b) =>
    timeOf(b).localeCompare(timeOf(a)),
  );
}

/** When a fleet was submitted, or if that is unknown, reported. */
const timeOf = ({ plan, report }: KnownFleet): string =>
  plan?.time ?? report?.time ?? '';

/** Lists the fleets of a store by two requests, whatever number of nodes they have. */
export async function listFleets(source: Source): Promise<Fleets> {
  const [plans, reports] = await Promise.all([
    source.list({ schema: PLAN_SCHEMA, limit: MAX_FLEETS }),
    source.list({ schema: REPORT_SCHEMA, limit: MAX_FLEETS }),
  ]);
  return {
    known: joinPlansAndReports(plans.records, reports.records),
    more: Math.max(plans.total, reports.total) - MAX_FLEETS,
  };
}

/** The newest fleet's result, and a list of all fleets; null if there are none. */
export function fleetsPart(fleets: Fleets, source: Source): HTMLElement | null {
  const newest = fleets.known[0];
  if (!newest) return null;
  const judged = fleets.known.find(({ report }) => report !== null);
  return h(
    'div',
    newest.report ? null : h('p.verdict', `${newest.id} is not compared yet.`),
    newest.report
      ? null
      : commandList([
          [
            'Compare its nodes, once they are done',
            `pinwise fleet report ${shellWords([newest.id])}`,
          ],
        ]),
    judged?.report &&
      h(
        judged === newest ? 'p.verdict' : 'p',
        `${judged === newest ? '' : 'The newest result: '}${judged.id}: ${splitVerdict(judged.report.verdict)[0]} `,
        recordLink(judged.report.id, 'Its report'),
      ),
    section(
      'Fleets',
      fleetTable(fleets.known, source),
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
    columns: ['Fleet', 'Submitted, UTC', 'Nodes', 'Result', 'Records'],
    rows: known.map(({ id, plan, report }) => [
      plan ? recordLink(plan.id, id) : id,
      moment(timeOf({ id, plan, report })),
      plan?.verdict,
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
    ]),
  });
};
