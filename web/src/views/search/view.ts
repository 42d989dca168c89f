// A search: what is best and what is nearly as good with less, how well the
// model predicted it, and every candidate.

import { h } from '../../dom';
import { count, percent } from '../../format';
import {
  commandList,
  copyBlock,
  headline,
  recordCommands,
} from '../../headline';
import { joinParts, growingView, rebuiltOnChange, chartPart } from '../../keep';
import type { SearchRecord } from '../../records';
import { type SortableTable, sortableTable } from '../../sortable';
import {
  adviceLine,
  endFact,
  findingsPart,
  limitFact,
  runFacts,
  splitVerdict,
} from '../../method';
import type { AnyRecord } from '../../source';
import type { Page, View } from '../../view';
import { facts, section, shellWords } from '../../words';
import {
  accuracyPlan,
  candidatePlan,
  effectPlan,
  progressPlan,
} from './charts';
import { CANDIDATE_COLUMNS, candidateRows, resumeCommand } from './shape';
import { filterMap } from '../../lists';
import { mapNumber } from '../../numbers';

const candidateTable = (now: SearchRecord): SortableTable => ({
  caption:
    'Every candidate: ★ the best, ☆ the least resource that is nearly as good',
  columns: CANDIDATE_COLUMNS,
  rows: candidateRows(now),
});

/** Draws a `pinwise.search/1`; one that grew is drawn in place. */
export function searchView(record: AnyRecord, _page: Page): View {
  const candidates = sortableTable(candidateTable(record as SearchRecord));
  const all = joinParts<SearchRecord>('article', [
    rebuiltOnChange(topPart),
    rebuiltOnChange(commandPart, ({ verdict, stopped }) => [verdict, stopped]),
    chartPart('Candidates', candidatePlan),
    rebuiltOnChange(notesPart),
    {
      element: section('Every candidate', candidates.element),
      show: (now) => candidates.show(candidateTable(now)),
    },
    chartPart('Progress', progressPlan),
    chartPart('The model', effectPlan),
    chartPart('Predicted against measured', accuracyPlan),
    rebuiltOnChange((now) => [findingsPart(now.findings)]),
    rebuiltOnChange((now) => [methodPart(now)]),
  ]);
  return growingView(record, all, (next) => next as SearchRecord);
}

const hasEnded = ({ stopped }: SearchRecord): boolean =>
  stopped !== null && stopped !== undefined;

function topPart(record: SearchRecord): (Node | null)[] {
  const { verdict } = record;
  return [
    h('p.verdict', splitVerdict(verdict?.sentence ?? '')[0]),
    headline(verdict?.headline),
    // Commands that apply the best arm are the advice.
    adviceLine(
      hasEnded(record) && !verdict?.commands?.length ? verdict?.advice : '',
    ),
  ];
}

/** The next step: to use the best arm, or to go on. */
const commandPart = (record: SearchRecord): (Node | null)[] => [
  copyBlock(recordCommands(record.verdict?.commands, null)),
  commandList(resumeCommand(record)),
];

/** What a reader may look up after the candidates. */
function notesPart(record: SearchRecord): (Node | null)[] {
  const { verdict, least } = record;
  const [, more] = splitVerdict(verdict?.sentence ?? '');
  const commands = copyBlock(recordCommands(least?.commands, null));
  return [
    more ? h('p', more) : null,
    ...(verdict?.beside ?? []).map((more) => h('p', more)),
    least?.sentence
      ? h(
          'p',
          h('strong', 'Least resource: '),
          least.sentence,
          least.basis ? ` (${least.basis})` : null,
        )
      : null,
    commands && verdict?.commands?.length
      ? h('details', h('summary', 'Run it with the least resource'), commands)
      : commands,
    hasEnded(record) && verdict?.condition
      ? h('p.muted', verdict.condition)
      : null,
  ];
}

/** What the model of placements was worth. */
const MODEL_WORDS: Readonly<Record<string, string>> = {
  fits: 'fits',
  misfits: 'explains part of what placements cost',
  useless: 'predicts nothing here',
};

function methodPart(record: SearchRecord): HTMLElement {
  const { plan, model } = record;
  const share = (value: number | null | undefined): string | null =>
    mapNumber(value, percent);
  const space = filterMap(record.space ?? [], (s) =>
    s.threads && s.shapes && s.placements
      ? `${count(s.threads, 'thread')}: ${count(s.shapes, 'shape')} of ${count(Number(s.placements), 'placement')}`
      : null,
  );
  return section(
    'How it was searched',
    facts({
      Command: shellWords(record.command ?? []),
      Figure:
        record.metric?.better === 'higher'
          ? `${record.metric.name}; costs are its inverse`
          : (record.metric?.name ?? null),
      Space: space.join('; '),
      'Better by less than': share(plan?.within)
        ? `${share(plan?.within)} need not be found`
        : null,
      'Allowed probability of a better arm': share(plan?.error),
      'Least resource': share(plan?.least_within)
        ? `may be ${share(plan?.least_within)} worse than the best`
        : null,
      Runs: mapNumber(
        record.runs_used,
        (runsUsed) =>
          `${runsUsed} to search, ${record.runs?.length ?? 0} in all`,
      ),
      ...limitFact(plan?.max_runs, 'runs', plan?.budget_s),
      Model: model?.judgement
        ? `${MODEL_WORDS[model.judgement] ?? model.judgement}${typeof model.prediction_error === 'number' ? `; first runs missed their predictions by ${percent(model.prediction_error)} (median)` : ''}`
        : null,
      Noise: share(model?.noise_sd)
        ? `${share(model?.noise_sd)} from run to run`
        : null,
      ...endFact(record),
      ...runFacts(record),
    }),
    commandList(recordCommands([], record.again)),
  );
}
