// A comparison: the verdict first, then its basis.

import { h } from '../../dom';
import { count, percent } from '../../format';
import {
  type Growing,
  joinParts,
  growingView,
  rebuiltOnChange,
  chartPart,
} from '../../keep';
import { copyBlock, headline, recordCommands } from '../../headline';
import {
  adviceLine,
  endFact,
  findingsPart,
  limitFact,
  runFacts,
} from '../../method';
import type { Comparison } from '../../records';
import type { AnyRecord } from '../../source';
import { type CpuSpace, cpuStrip } from '../../strip';
import {
  type Table,
  numberColumns,
  tableElement,
  transpose,
} from '../../table';
import type { Page, View } from '../../view';
import {
  commandLine,
  facts,
  findingList,
  section,
  shellWords,
  withBreaks,
} from '../../words';
import { adviceList, armPlacePart } from './answer';
import {
  contrastTable,
  dotsPlan,
  hasIntervals,
  metricName,
  ratioPlan,
} from './charts';
import { jointPart, undecidedJointPart } from './joint';
import {
  FAILED,
  type Letter,
  findLetters,
  isOfExits,
  isOpen,
  listOpenSentences,
  prepareComparison,
  splitHead,
} from './label';
import { spreadPlan, timePlan } from './over-time';
import { intervalPlan, progressBar } from './running';
import type { ArmLine } from './shape';
import { armRows, settingText, traceRows } from './rows';
import { armLines, readHead, isLeftOut, isRate } from './shape';
import { mapNumber } from '../../numbers';

/** A comparison and what was computed from it. */
interface ShownComparison {
  record: Comparison;
  letters: Letter[];
  lines: ArmLine[];
  isRunning: boolean;
}

/** Draws a `pinwise.comparison/1`; a record that grew is drawn in place. */
export function comparisonView(record: AnyRecord, page: Page): View {
  let isGrowing = false;
  let last = record;
  const read = (next: AnyRecord): ShownComparison => {
    last = next;
    const letters = findLetters(next as Comparison);
    const now = prepareComparison(next as Comparison, letters);
    const isRunning = isGrowing && !readHead(now).isEnded;
    return { record: now, letters, lines: armLines(now), isRunning };
  };
  const where = armPlacePart(page);
  const time = chartPart<ShownComparison>('Over time', ({ lines }) =>
    timePlan(lines, highlight.chosen()),
  );
  const highlight = armChoice(() => time.show(read(last)));
  // The programs of a joint plan have its placements, which are no arms to choose from.
  const isJoint = Boolean((record as Comparison).joint);
  const answer = joinParts<ShownComparison>('div', [
    rebuiltOnChange(topPart),
    rebuiltOnChange(
      ({ record }) => [copyCommands(record)],
      ({ record: { stopped, verdict, again } }) => [stopped, verdict, again],
    ),
    rebuiltOnChange(({ record }) => [
      isJoint && !isUndecided(record) && jointPart(record),
    ]),
    rebuiltOnChange((now) => [now.isRunning && progressBar(now.record)]),
    chartPart('Narrowing', (now) =>
      now.isRunning ? intervalPlan(now.record) : null,
    ),
    chartPart('Against the baseline', (now) =>
      ratioPlan(now.record, now.lines),
    ),
    rebuiltOnChange((now) => [
      !isJoint && adviceList(now.record, now.lines, where.choose),
    ]),
  ]);
  const all = joinParts<ShownComparison>('article.comparison', [
    isJoint ? answer : joinParts('div.answer', [answer, where]),
    rebuiltOnChange(({ record }) => [
      isJoint && isUndecided(record) && undecidedJointPart(record),
    ]),
    rebuiltOnChange((now) => verdictNotes(now.record, now.lines)),
    chartPart('Every run', (now) => dotsPlan(now.record, now.lines)),
    rebuiltOnChange((now) => [
      hasRuns(now.lines) && armTables(now.record, now.lines),
    ]),
    highlight,
    time,
    chartPart('Spread', (now) => spreadPlan(now.record, now.lines)),
    rebuiltOnChange(({ record, lines }) => [
      // Where nothing ran, the verdict says why.
      findingsPart(
        record.findings?.filter(
          (finding) =>
            !isOfExits(finding) &&
            (finding.check !== 'arm_invalid' || hasRuns(lines)),
        ),
      ),
    ]),
    rebuiltOnChange((now) => [schedulerPart(now.lines)]),
    rebuiltOnChange((now) => [methodPart(now.record, now.lines)]),
  ]);
  const ended = ({ record: now }: ShownComparison): string | null => {
    const { isEnded, sentence } = readHead(now);
    return isEnded ? sentence : null;
  };
  const view = growingView(record, all, read, ended, page);
  return {
    ...view,
    grows(now) {
      if (now === isGrowing) return;
      isGrowing = now;
      view.update(last);
    },
  };
}

/** A choice of the arm whose runs are highlighted over time. */
function armChoice(
  changed: () => void,
): Growing<ShownComparison> & { chosen(): string | null } {
  const select = h('select', { id: 'highlighted', name: 'highlight' });
  const element = h(
    'p.highlight',
    h('label', { htmlFor: 'highlighted' }, 'Over time, highlight the runs of '),
    select,
  );
  let names: readonly string[] = [];
  select.addEventListener('change', changed);
  return {
    element,
    show({ lines }) {
      const next = lines.map((line) => line.name);
      element.hidden = next.length < 2 || !hasRuns(lines);
      if (
        JSON.stringify([...next].sort()) === JSON.stringify([...names].sort())
      )
        return;
      names = [...next];
      select.replaceChildren(
        h('option', { value: '' }, 'all arms alike'),
        ...names.map((name) => h('option', { value: name }, name)),
      );
    },
    chosen: () => select.value || null,
  };
}

function topPart({
  record,
  letters,
  lines,
  isRunning,
}: ShownComparison): (Node | null)[] {
  const said = readHead(record);
  const verdict = record.verdict;
  // The verdict says it of all runs.
  const exits =
    verdict?.not_recommended === FAILED
      ? []
      : (record.findings?.filter(isOfExits) ?? []);
  const [answer, , error] = splitHead(record);
  return [
    h(
      'p.verdict',
      ...withBreaks(
        isRunning ? 'No verdict yet: it comes at the end.' : answer,
      ),
    ),
    error ? h('pre', error) : null,
    ...letters.map(({ letter, parts: [start, own, end] }) =>
      h(
        'p',
        h('strong', `${letter} `),
        h('code', `${start} `, h('strong', own), ` ${end}`),
      ),
    ),
    exits.length > 0 ? findingList(exits) : null,
    // An undecided sentence has the interval already.
    said.sentence.includes(said.figure?.change || '\n') ||
    (isOpen(record) && record.contrasts?.length === 1)
      ? null
      : headline(said.figure, !verdict?.not_recommended && !isOpen(record)),
    adviceLine(
      said.isEnded
        ? verdict?.advice ||
            (hasRuns(lines) || verdict?.commands?.length
              ? null
              : record.findings?.[0]?.advice)
        : null,
    ),
  ];
}

/** The last line of an error, above the others folded. */
const hasRuns = (lines: readonly ArmLine[]): boolean =>
  lines.some((line) => line.dots.length > 0);

/** Is there a placement to use? Otherwise the same experiment again is no next step. */
const hasWinner = ({ verdict }: Comparison): boolean =>
  (verdict?.kind === 'best' || verdict?.kind === 'timed') &&
  verdict.not_recommended !== FAILED;

const isUndecided = ({ verdict }: Comparison): boolean =>
  verdict?.kind === 'undecided';

const copyCommands = (record: Comparison): HTMLElement | null =>
  copyBlock(
    recordCommands(
      record.verdict?.commands,
      hasWinner(record) ? record.again : null,
    ),
  );

function foldedAgain(record: Comparison): HTMLElement | null {
  const { again, verdict } = record;
  // A command that would decide replaces the one of this undecided comparison.
  const isReplaced = isUndecided(record) && Boolean(verdict?.commands?.length);
  return !again || isReplaced || hasWinner(record)
    ? null
    : h(
        'details.again',
        h('summary', 'Do the experiment again'),
        commandLine(again, 'the experiment'),
      );
}

/** Further sentences of the verdict. */
function verdictNotes(
  record: Comparison,
  lines: readonly ArmLine[],
): (Node | null)[] {
  const { verdict } = record;
  const [, more] = splitHead(record);
  return [
    more ? h('p', more) : null,
    ...listOpenSentences(record).map((sentence) => h('p', sentence)),
    verdict?.steadiness ? h('p', verdict.steadiness) : null,
    verdict?.beside ? h('p', verdict.beside) : null,
    readHead(record).isEnded && verdict?.condition && hasRuns(lines)
      ? h('p.muted', verdict.condition)
      : null,
    foldedAgain(record),
  ];
}

function armTables(record: Comparison, lines: readonly ArmLine[]): HTMLElement {
  const unit = record.metric?.unit ?? '';
  const contrasts = contrastTable(lines);
  return section(
    'Arms',
    tableElement({
      caption: `Medians of ${metricWord(record)}${hasIntervals(lines) ? ' with 95 % intervals by order statistics' : ''}; best first${lines.some((line) => isLeftOut(line.standing)) ? ', arms that were left out last' : ''}`,
      columns: [
        'Arm',
        ...numberColumns(
          'Runs',
          'Median',
          '95 % interval',
          'Spread (cv)',
          'Threads running',
          'Threads queued',
          'All blocked',
          'Throttled',
        ),
        'Standing',
      ],
      rows: armRows(lines, unit, record.verdict?.sentence),
    }),
    contrasts.rows.length > 0 &&
      tableElement(isTooWide(contrasts) ? transpose(contrasts) : contrasts),
  );
}

/** Does a table of few rows have more columns than a page is wide? */
const isTooWide = ({ columns, rows }: Table): boolean =>
  columns.length > 9 && rows.length < 5;

const metricWord = (record: Comparison): string =>
  metricName(record) + (isRate(record) ? ' (higher is better)' : '');

function schedulerPart(lines: readonly ArmLine[]): Node | null {
  const rows = traceRows(lines);
  if (rows.length === 0) return null;
  return section(
    'What the scheduler did',
    tableElement({
      caption: 'One traced run of each arm, after the experiment',
      columns: [
        'Arm',
        ...numberColumns(
          'CPU time',
          'Switches',
          'Migrations',
          'Queued',
          'Beside an SMT sibling while a core idled',
        ),
        'In words',
      ],
      rows,
    }),
  );
}

function methodPart(
  record: Comparison,
  lines: readonly ArmLine[],
): HTMLElement {
  const { plan } = record;
  const share = (value: number | null | undefined): string | null =>
    mapNumber(value, (value) => percent(value, value < 0.001 ? 2 : 1));
  return section(
    'How it was measured',
    facts({
      Figure: `${metricWord(record)}${record.metric?.unit ? `, in ${record.metric.unit}` : ''}`,
      Design: `${record.stopped ? count(record.blocks ?? 0, 'block') : 'Blocks'} in random order, every arm once in each`,
      'Warm-up': mapNumber(
        plan?.warmup_blocks,
        (warmupBlocks) => `${count(warmupBlocks, 'block')}, not counted`,
      ),
      'Error rate':
        record.verdict?.guarantee ??
        (share(plan?.alpha)
          ? `at most ${share(plan?.alpha)} over all arms and interim looks (α)`
          : null),
      'Same within': share(plan?.min_effect)
        ? `±${share(plan?.min_effect)} (δ, the smallest effect of interest)`
        : null,
      Precision: share(plan?.precision)
        ? `±${share(plan?.precision)} asked for`
        : null,
      ...limitFact(plan?.max_runs, 'runs an arm', plan?.budget_s),
      'Open-ended': plan?.open_ended && 'on until the answer is known',
      Judged:
        plan?.judge && plan.judge !== 'typical'
          ? plan.judge === 'mean'
            ? 'the mean'
            : `the ${plan.judge.slice(1)}th percentile`
          : 'the typical run',
      'Blocks count':
        plan?.score === 'rank'
          ? 'all alike'
          : plan?.score
            ? 'less where they ran under load'
            : null,
      Screening: plan?.screened_arms
        ? `${plan.screened_arms} arms entered, the finalists ran on fresh blocks`
        : null,
      ...endFact(record),
      ...runFacts(record),
    }),
    placementTable(lines, record.host ?? {}, Boolean(record.joint)),
  );
}

function placementTable(
  lines: readonly ArmLine[],
  space: CpuSpace,
  isJoint: boolean,
): HTMLElement {
  return tableElement({
    caption: 'Where each arm ran',
    columns: [
      'Arm',
      'CPUs',
      'Of those allowed',
      ...numberColumns('Cores', 'LLCs', 'Nodes', 'Packages'),
      'Memory',
      'Setting',
      'Also known as',
      'Command',
    ],
    rows: lines.map(({ name, arm }) => [
      name,
      arm.cpus,
      arm.cpus ? cpuStrip(arm.cpus, space) : null,
      arm.placement?.cores,
      arm.placement?.llcs,
      arm.placement?.numa_nodes,
      arm.placement?.packages,
      arm.placement?.memory
        ? `${arm.placement.memory} ${(arm.placement.memory_nodes ?? []).join(',')}`
        : 'inherited',
      settingText(arm.setting),
      (arm.same_as ?? []).join(', '),
      // The programs of a joint plan have a table of their own.
      isJoint ? null : shellWords(arm.command ?? []),
    ]),
  });
}
