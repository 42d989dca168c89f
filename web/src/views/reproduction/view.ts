// Field reports: claims and results.

import { h } from '../../dom';
import { seconds } from '../../format';
import { adviceLine } from '../../method';
import { mapNumber } from '../../numbers';
import type { ReportRecord, Reproduction } from '../../records';
import type { AnyRecord } from '../../source';
import { tableElement } from '../../table';
import { type Page, type View, stack } from '../../view';
import { facts, section } from '../../words';
import { claimRows, untestedClaims } from './shape';

/** Draws a `pinwise.reproduction/1`. */
export function reproductionView(record: AnyRecord, _page: Page): View {
  const reproduction = record as Reproduction;
  return stack('article', '', [
    h('p.verdict', reproduction.sentence ?? ''),
    adviceLine(reproduction.advice),
    reproduction.interrupted &&
      h('p', 'Interrupted: what was finished is shown.'),
    ...(reproduction.reports ?? []).map((report) =>
      reportPart(report, Boolean(reproduction.simulated)),
    ),
    section(
      'How it was done',
      facts({
        Where: reproduction.simulated
          ? "on the reports' machines, simulated"
          : 'on this machine',
        Host: reproduction.host,
        Seed: mapNumber(reproduction.seed, String),
        Took:
          typeof reproduction.elapsed_s === 'number' &&
          reproduction.elapsed_s > 0 &&
          seconds(reproduction.elapsed_s),
        pinwise: reproduction.pinwise_version,
      }),
    ),
  ]);
}

function reportPart(report: ReportRecord, isSimulated: boolean): HTMLElement {
  const experiments = report.experiments ?? [];
  const rows = claimRows(experiments);
  return section(
    report.name ?? '',
    rows.length > 0 &&
      tableElement({
        caption: `Claims of the report${report.topic ? ` that ${report.topic}` : ''} (${report.machine ?? ''}), and what ${isSimulated ? 'the simulation gives' : 'was measured here'}; consistent: it gives no exact figure`,
        columns: [
          'Claim',
          'Reported',
          isSimulated ? 'Simulated' : 'Measured',
          'Tolerance or condition',
          'Result',
        ],
        rows,
      }),
    foldedList('Not tested, and why', untestedClaims(experiments)),
    foldedList('Assumed, not in the report', report.assumed ?? []),
  );
}

const foldedList = (
  what: string,
  all: readonly string[],
): HTMLElement | false =>
  all.length > 0 &&
  h(
    'details',
    h('summary', `${what}: ${all.length}`),
    h('ul', ...all.map((one) => h('li', one))),
  );
