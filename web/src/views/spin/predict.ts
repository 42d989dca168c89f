// Predictions: how long known algorithms spin, over the number of CPUs, and
// what moving to another chip changes.

import './style.css';

import { selectElement } from '../../controls';
import { h } from '../../dom';
import { change, fixed, seconds, wholeNumber } from '../../format';
import { chartSlot } from '../../keep';
import { adviceLine } from '../../method';
import type { ProcessorRecord, SpinPredictRecord, Maybe } from '../../records';
import type { Cell, SortableTable } from '../../sortable';
import { sortableTable, figureCell } from '../../sortable';
import type { AnyRecord } from '../../source';
import type { Page, View } from '../../view';
import { facts, section, type Facts } from '../../words';
import { numberColumns } from '../../table';
import { type Chips, curvePlan, ladderPlan, mapPlan } from './charts';
import type { Predicted } from './shape';
import {
  sortAlgorithms,
  longestFirst,
  cpuCounts,
  chooseFirst,
  dropUnnamed,
  processorSentence,
  shortName,
  pauseRemark,
} from './shape';

/** The number of curves drawn at first. */
const FIRST_CURVES = 5;

/** The number of algorithms in the chart at first, on a phone too; the table has all. */
const FIRST_ROWS = [10, 5] as const;

/** Draws a `pinwise.spin-predict/1`. */
export function spinPredictView(record: AnyRecord, _page: Page): View {
  const predicted = dropUnnamed(record as SpinPredictRecord);
  const counts = cpuCounts(predicted);
  const [total, gap, map, ladder] = [
    chartSlot('Total spin'),
    chartSlot('Blind gap'),
    chartSlot('Cliffs'),
    chartSlot('Every algorithm, drawn'),
  ];
  const table = sortableTable(predictionTable(predicted, counts.at(-1) ?? 0));
  const drawCurves = (chosen: readonly string[], chips: Chips): void => {
    total.show(curvePlan(predicted, chosen, 'total', chips));
    gap.show(curvePlan(predicted, chosen, 'gap', chips));
  };
  const first = chooseFirst(predicted, FIRST_CURVES);
  drawCurves(first, { from: true, to: true });
  map.show(mapPlan(predicted));
  let shownCpus = counts.at(-1) ?? 0;
  const [wideRows, narrowRows] = FIRST_ROWS;
  const isWide = matchMedia('(min-width: 40rem)').matches;
  const firstRows = isWide ? wideRows : narrowRows;
  let most: number = firstRows;
  const drawCount = (cpus: number): void => {
    shownCpus = cpus;
    ladder.show(ladderPlan(predicted, cpus, most));
    table.show(predictionTable(predicted, cpus));
  };
  drawCount(shownCpus);
  const showAll = h(
    'button.more',
    {
      hidden: longestFirst(predicted, shownCpus).length <= firstRows,
      onclick: () => {
        most = Infinity;
        showAll.hidden = true;
        drawCount(shownCpus);
      },
    },
    'Show all that spin',
  );
  const element = h(
    'article',
    h('p.verdict', predicted.answer?.sentence ?? ''),
    adviceLine(predicted.answer?.advice),
    counts.length > 1 && algorithmChoice(predicted, first, drawCurves),
    total.element,
    gap.element,
    map.element,
    counts.length > 1 && countChoice(counts, drawCount),
    ladder.element,
    showAll,
    section('Every algorithm', table.element),
    h(
      'details',
      h('summary', 'Where the figures are from'),
      ...[predicted.from, predicted.processor].map((one) =>
        h('p', processorSentence(one)),
      ),
      facts({
        ...provenance('', predicted.processor),
        ...provenance('From: ', predicted.from),
      }),
    ),
  );
  return {
    element,
    dispose: () => [total, gap, map, ladder].forEach((part) => part.dispose()),
  };
}

/** Check boxes for algorithms and chips. */
function algorithmChoice(
  record: Predicted,
  first: readonly string[],
  draw: (chosen: readonly string[], chips: Chips) => void,
): HTMLElement {
  const names = sortAlgorithms(record).filter((a) =>
    record.predictions.some(
      (p) => p.algorithm === a && (p.total_ms ?? p.blind_gap_ms ?? 0) > 0,
    ),
  );
  const boxes = names.map((name) =>
    h('input', {
      type: 'checkbox',
      value: name,
      checked: first.includes(name),
    }),
  );
  const chosen = (): string[] =>
    boxes.filter((box) => box.checked).map((box) => box.value);
  const status = h(
    'span.muted',
    { role: 'status' },
    `${first.length} of ${names.length} shown`,
  );
  const redraw = (): void => {
    status.textContent = `${chosen().length} of ${names.length} shown`;
    draw(chosen(), { from: from.checked, to: to.checked });
  };
  const [from, to] = [
    h('input', { type: 'checkbox', checked: true }),
    h('input', { type: 'checkbox', checked: true }),
  ];
  [...boxes, from, to].forEach((box) => box.addEventListener('change', redraw));
  return h(
    'details.choice',
    h('summary', 'Choose algorithms: ', status),
    record.from
      ? h(
          'fieldset',
          h('legend', 'Chips'),
          h('label', from, ' ', shortName(record.from) ?? 'from'),
          h('label', to, ' ', shortName(record.processor) ?? 'to'),
        )
      : null,
    h(
      'fieldset',
      h('legend', 'Algorithms that are drawn'),
      ...boxes.map((box, at) => h('label', box, ' ', names[at]!)),
    ),
  );
}

function countChoice(
  counts: readonly number[],
  draw: (cpus: number) => void,
): HTMLElement {
  const select = selectElement(
    counts.map((n) => [String(n), String(n)]),
    (value) => draw(Number(value)),
    { name: 'cpus', value: String(counts.at(-1)) },
  );
  select.id = 'cpu-count';
  return h(
    'p',
    h(
      'label',
      { htmlFor: 'cpu-count' },
      'Every algorithm with this many CPUs: ',
    ),
    select,
  );
}

function predictionTable(record: Predicted, cpus: number): SortableTable {
  const isMove = record.moves.length > 0;
  const before = new Map(
    record.moves.filter((m) => m.cpus === cpus).map((m) => [m.algorithm, m]),
  );
  const time = (value: Maybe<number>): Cell =>
    figureCell(value, (ms) => seconds(ms / 1e3));
  const whole = (value: Maybe<number>): Cell => figureCell(value, wholeNumber);
  const predictions = record.predictions
    .filter((p) => p.cpus === cpus)
    .sort((a, b) => (b.total_ms ?? -1) - (a.total_ms ?? -1));
  return {
    caption:
      'Spins: before parking. Blind gap: longest time between two checks of the lock. Wasted: CPU time if all CPUs but one spin to the end',
    columns: [
      'Algorithm',
      ...numberColumns('Spins', 'Blind gap', 'Wasted'),
      ...(isMove
        ? [
            ...numberColumns(
              `On ${shortName(record.from) ?? 'the first'}`,
              'Change',
            ),
          ]
        : []),
      'Name',
      ...numberColumns('PAUSEs'),
      'Depends on PAUSE',
      'After spinning',
      'Settings',
    ],
    rows: predictions.map((p) => {
      const move = before.get(p.algorithm);
      return [
        { text: p.algorithm },
        time(p.total_ms),
        time(p.blind_gap_ms),
        time(p.wasted_cpu_ms),
        ...(isMove
          ? [
              time(move?.from_ms),
              figureCell(move?.ratio, (ratio) =>
                ratio >= 3 ? `×${fixed(ratio, 1)}` : change(ratio),
              ),
            ]
          : []),
        { text: [p.name, p.versions].filter(Boolean).join(', ') },
        whole(p.total_pauses),
        { text: pauseRemark(p) || 'yes' },
        { text: p.then ?? '' },
        {
          text: (p.tunables ?? [])
            .map((t) => `${t.name ?? ''}=${t.usual ?? '?'}`)
            .join(' '),
        },
      ];
    }),
  };
}

function provenance(
  prefix: string,
  processor: ProcessorRecord | null | undefined,
): Facts {
  if (!processor) return {};
  return {
    [`${prefix}PAUSE`]: processor.pause_from,
    [`${prefix}clock`]:
      processor.ghz_from ??
      (processor.ghz ? `${fixed(processor.ghz, 2)} GHz` : null),
  };
}
