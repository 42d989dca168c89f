// Field reports: claims and results.

import { h } from '../../dom';
import { count, seconds } from '../../format';
import { type NamedCommand, commandList } from '../../headline';
import type { ReportRecord, Reproduction } from '../../records';
import { sortableTable } from '../../sortable';
import type { AnyRecord } from '../../source';
import { type Page, type View, stack } from '../../view';
import { facts, section, shellWords } from '../../words';
import { claimRows, describeVerdicts, VERDICTS } from './shape';
import { mapNumber } from '../../numbers';

/** Draws a `pinwise.reproduction/1`. */
export function reproductionView(record: AnyRecord, _page: Page): View {
  const reproduction = record as Reproduction;
  const rows = claimRows(reproduction);
  return stack('article', '', [
    h('p.verdict', reproduction.sentence ?? ''),
    commandList([nextStep(reproduction)]),
    reproduction.interrupted &&
      h('p', 'Interrupted: what was finished is shown.'),
    h(
      'p.muted',
      Object.values(VERDICTS)
        .filter(({ word }) => rows.some(([, said]) => said?.endsWith(word)))
        .map((v) => `${v.mark} ${v.word}: ${v.meaning}`)
        .join('; '),
    ),
    ...(reproduction.reports ?? []).map(reportPart),
    claimsPart(reproduction, rows),
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

/** The same reports, on this machine or simulated: whichever this was not. */
function nextStep({ reports, simulated }: Reproduction): NamedCommand {
  const [first, ...others] = (reports ?? []).map(({ name }) => name ?? '');
  const which = first && others.length === 0 ? shellWords([first]) : '--all';
  return simulated
    ? ['Run it on a real machine', `pinwise reproduce ${which}`]
    : ['Simulate its machine', `pinwise reproduce ${which} --simulated`];
}

/** All claims in one table: words narrow it to a report, an experiment or a verdict. It is open if
 * a claim was contradicted. */
function claimsPart(
  record: Reproduction,
  rows: readonly string[][],
): HTMLElement {
  const table = sortableTable({
    caption: record.simulated
      ? 'What was reported, and what the simulation gives'
      : 'What was reported, and what was measured here',
    columns: [
      'Claim',
      'Verdict',
      'Reported',
      record.simulated ? 'Simulated' : 'Measured',
      'Why',
      'Experiment',
      'Report',
    ],
    rows: rows.map((row) => row.map((text) => ({ text }))),
  });
  return section(
    'Claims',
    h(
      'details',
      { open: Boolean(record.counts?.contradicted) },
      h('summary', `Each of ${count(rows.length, 'claim')}`),
      table.element,
    ),
  );
}

function reportPart(report: ReportRecord): HTMLElement {
  const assumed = report.assumed ?? [];
  return section(
    report.name ?? '',
    h('p.muted', report.machine ?? ''),
    h(
      'ul',
      ...(report.experiments ?? []).map((e) =>
        h(
          'li',
          `${e.name ?? ''}: ${e.question ?? ''} (${describeVerdicts(e)})`,
        ),
      ),
    ),
    assumed.length > 0 &&
      h(
        'details',
        h('summary', `Assumed, not in the report: ${assumed.length}`),
        h('ul', ...assumed.map((a) => h('li', a))),
      ),
  );
}
