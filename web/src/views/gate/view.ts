// A gate: the verdict first, then every benchmark, what needs attention on top.

import './style.css';

import type { ChartPlan } from '../../chart';
import { h, visible } from '../../dom';
import { list, texts } from '../../fields';
import { change, count, percent, quantity, seconds } from '../../format';
import type { Growing } from '../../keep';
import {
  chartSlot,
  joinParts,
  growingView,
  rebuiltOnChange,
  chartPart,
} from '../../keep';
import {
  adviceLine,
  endFact,
  findingsPart,
  limitFact,
  runFacts,
} from '../../method';
import { type Look, COLOURS, ratioAxis } from '../../plot';
import type { GateRecord } from '../../records';
import { ratioRange } from '../../scales';
import type { AnyRecord } from '../../source';
import { type SortableTable, sortableTable } from '../../sortable';
import { numberColumns } from '../../table';
import type { Page, Part, View } from '../../view';
import { commandLine, facts, section, shellWords } from '../../words';
import { TIME_AXIS } from '../comparison/over-time';
import type { GateLine } from './shape';
import {
  benchmarkRows,
  nameBuild,
  describeBuild,
  toGateLines,
  toHeadline,
  isByCpu,
  isRate,
  limitText,
  toPairDots,
  countPairs,
  splitPassed,
  summariseOutcomes,
  unitOf,
} from './shape';
import { filterMap } from '../../lists';
import { mapNumber } from '../../numbers';

/** With more rows than this, rows are drawn less high. */
const MANY_ROWS = 30;
/** Pairs in the table of a chart. */
const MAX_TABLE_PAIRS = 500;

/** A gate as it is now, and its benchmarks. */
interface GateState {
  record: GateRecord;
  lines: readonly GateLine[];
  shown: readonly GateLine[];
  folded: readonly GateLine[];
}

function toGateState(any: AnyRecord): GateState {
  const record = any as GateRecord;
  const lines = toGateLines(record);
  const [shown, folded] = splitPassed(lines);
  return { record, lines, shown, folded };
}

/** Draws a `pinwise.gate/1`; a record that grew is drawn in place. */
export function gateView(record: AnyRecord, page: Page): View {
  const details = benchmarkList();
  const parts = joinParts<GateState>('article.gate', [
    rebuiltOnChange((now) => topPart(now.record)),
    chartPart('Changes', (now) =>
      changePlan(now.record, now.shown, details.open),
    ),
    foldedChart('Changes of those that passed', details.open),
    benchmarkTable(record as GateRecord),
    details,
    rebuiltOnChange(({ record }) => [findingsPart(record.findings)]),
    rebuiltOnChange((now) => [methodPart(now.record)]),
  ]);
  const endSentence = ({ record: now }: GateState): string | null =>
    now.stopped ? toHeadline(now).sentence : null;
  return growingView(record, parts, toGateState, endSentence, page);
}

function topPart(record: GateRecord): (Node | null)[] {
  const { word, decision, sentence, advice } = toHeadline(record);
  return [
    h(
      'p.verdict',
      word ? h('strong', { class: `decision ${decision}` }, word) : null,
      word ? ' ' : null,
      // The word in front says it already.
      word ? sentence.replace(/^Undecided: /, '') : sentence,
    ),
    adviceLine(advice),
  ];
}

/** How a point looks: its shape repeats what its position and word say. */
const MARK_LOOKS: Readonly<Record<GateLine['mark'], Look>> = {
  worse: { shape: 'triangle', turn: 90, colour: COLOURS.worse },
  better: { shape: 'triangle', turn: -90, colour: COLOURS.better },
  passed: { shape: 'square' },
  open: { isHollow: true },
};

/** Every benchmark's change; null without benchmarks. */
function changePlan(
  record: GateRecord,
  lines: readonly GateLine[],
  pick: (name: string) => void,
): ChartPlan | null {
  if (lines.length === 0) return null;
  const base = nameBuild(record.base, 'base');
  const ends = ratioRange(
    lines.flatMap((l) =>
      [l.ratio, l.low, l.high, l.limit].filter((r) => r !== null),
    ),
    0.01,
  );
  const limits = new Set(lines.map(limitText));
  const shared = limits.size === 1 ? [...limits][0] : '';
  const caption = `${shared ? `The dashed line is the smallest effect, ${shared}.` : 'The dashed line in a row is its smallest effect.'}${lines.some(isRate) ? ' Rates are drawn as their inverse, so that right is always worse.' : ''}`;
  return {
    name: `Change against ${base}`,
    summary: `${summariseOutcomes(lines)} ${caption}`,
    caption,
    panel: {
      height: (lines.length > MANY_ROWS ? 22 : 30) * lines.length,
      x: ratioAxis('← better      change      worse →', ends),
      y: {
        title: 'Benchmark',
        names: lines.map((l) => l.name),
        words: lines.map((l) => [
          [
            l.change,
            l.word,
            !shared && l.limit && `(smallest effect ${limitText(l)})`,
          ]
            .filter(Boolean)
            .join('  '),
          l.word,
        ]),
      },
      rules: [{ x: 1, label: base }],
      series: [
        {
          line: 'straight',
          dash: '4 4',
          size: 0,
          colour: COLOURS.text,
          points: lines.flatMap(({ limit }, y) =>
            limit === null
              ? []
              : [y - 0.42, y + 0.42, null].map((end) => ({
                  x: limit,
                  y: end,
                })),
          ),
        },
        // A row without an estimate has nothing to draw, and words all the same.
        ...[true, false].map((isDrawn) => ({
          ...(isDrawn ? ({ interval: 'x', size: 6 } as const) : { size: 0 }),
          points: filterMap(lines, (l, y) =>
            (l.ratio !== null) === isDrawn
              ? {
                  ...MARK_LOOKS[l.mark],
                  x: l.ratio ?? 1,
                  y,
                  low: l.low,
                  high: l.high,
                  tooltip: tooltip(l),
                  pick: () => pick(l.name),
                }
              : null,
          ),
        })),
      ],
    },
  };
}

function tooltip(line: GateLine): string {
  const { name, change: text, interval, word, limit } = line;
  return [
    name,
    text + (interval ? ` (${interval})` : ''),
    word + (limit ? `; smallest effect ${limitText(line)}` : ''),
  ]
    .filter(Boolean)
    .join('\n');
}

/** The table of all benchmarks, sortable by any column. */
function benchmarkTable(record: GateRecord): Growing<GateState> {
  const toTable = (lines: readonly GateLine[]): SortableTable => ({
    caption:
      'Medians of both builds. Intervals hold for all benchmarks and looks together; the limit (≤ or ≥) of one that passed holds for it alone',
    columns: [
      'Benchmark',
      ...numberColumns('Change'),
      'Verdict',
      ...numberColumns('Interval'),
      { name: nameBuild(record.base, 'Base'), isNumber: true },
      { name: nameBuild(record.head, 'Head'), isNumber: true },
      ...numberColumns('Smallest effect', 'Pairs'),
    ],
    rows: benchmarkRows(lines),
  });
  const table = sortableTable(toTable([]));
  return {
    element: section('Benchmarks', table.element),
    show: ({ lines }) => table.show(toTable(lines)),
  };
}

/** A chart under a line that opens it. */
function foldedChart(
  title: string,
  pick: (name: string) => void,
): Growing<GateState> {
  const name = h('summary');
  const chart = chartPart<GateState>(title, ({ record, folded }) =>
    changePlan(record, folded, pick),
  );
  const element = h('details', name, chart.element);
  return {
    ...chart,
    element,
    show(now) {
      element.hidden = now.folded.length === 0;
      name.textContent = countPassed(now.folded);
      chart.show(now);
    },
  };
}

const nameOf = ({ name }: GateLine): string => name;

const countPassed = (lines: readonly GateLine[]): string =>
  `${count(lines.length, 'benchmark')} passed`;

/** The folded part of a benchmark. */
interface FoldedBenchmark extends Part {
  show(record: GateRecord, line: GateLine): void;
}

/** Each benchmark folded: its sentence, its command, its pairs. */
function benchmarkList(): Growing<GateState> & { open(name: string): void } {
  const [open, passed] = [h('div'), h('div')];
  const title = h('summary');
  const fold = h('details', title, passed);
  const element = section('Each benchmark', open, fold);
  const parts = new Map<string, FoldedBenchmark>();
  let order = '';
  return {
    element,
    show({ record, lines, shown, folded }) {
      element.hidden = lines.length === 0;
      for (const line of lines) {
        const part = parts.get(line.name) ?? foldedBenchmark(line.name);
        parts.set(line.name, part);
        part.show(record, line);
      }
      const next = JSON.stringify(
        [shown, folded].map((all) => all.map(nameOf)),
      );
      if (next !== order) {
        const elements = (all: readonly GateLine[]): Element[] =>
          all.map((line) => parts.get(nameOf(line))!.element);
        open.replaceChildren(...elements(shown));
        passed.replaceChildren(...elements(folded));
      }
      order = next;
      fold.hidden = folded.length === 0;
      title.textContent = countPassed(folded);
    },
    open(name) {
      const details = parts.get(name)?.element as HTMLDetailsElement;
      fold.open ||= fold.contains(details);
      details.open = true;
      details.querySelector('summary')?.focus();
    },
    dispose: () => parts.forEach((part) => part.dispose()),
  };
}

function foldedBenchmark(name: string): FoldedBenchmark {
  const heading = h('summary');
  const words = rebuiltOnChange<GateLine>(
    ({ benchmark: { sentence, command } }) => [
      h('p', sentence),
      Boolean(command?.length) &&
        commandLine(shellWords(texts(command)), `the command of ${name}`),
    ],
  );
  const pairs = chartSlot(`Pairs of ${name}`);
  const element = h('details', heading, words.element, pairs.element);
  let draw = (): void => undefined;
  // A suite may have hundreds: only what is opened is drawn.
  element.addEventListener('toggle', () => draw());
  return {
    element,
    show(record, line) {
      heading.textContent = visible(`${name}: ${line.word}`);
      draw = () => {
        if (!element.open) return;
        words.show(line);
        pairs.show(pairPlan(record, line));
      };
      draw();
    },
    dispose: () => pairs.dispose(),
  };
}

/** Every pair over time; null without any. */
function pairPlan(record: GateRecord, line: GateLine): ChartPlan | null {
  const dots = toPairDots(line);
  if (dots.length === 0) return null;
  const base = nameBuild(record.base, 'base');
  const unit = unitOf(line.benchmark);
  const figure = (value: number): string => quantity(value, unit);
  return {
    name: `Pairs of ${line.name}`,
    summary: `${count(dots.length, 'pair')} in time order, ${isByCpu(line.benchmark) ? 'CPU time of ' : ''}the head against ${base} in each; up is worse.`,
    panel: {
      height: 160,
      x: TIME_AXIS,
      y: ratioAxis(
        'change in a pair',
        ratioRange(
          dots.map((d) => d.ratio),
          0.02,
        ),
      ),
      rules: [
        { y: 1 },
        ...(line.limit
          ? [{ y: line.limit, label: 'smallest effect', dash: '4 3' }]
          : []),
      ],
      series: [false, true].map((isHeadFirst) => ({
        name: isHeadFirst ? 'head ran first' : 'base ran first',
        isHollow: isHeadFirst,
        points: dots
          .filter((d) => d.isHeadFirst === isHeadFirst)
          .map((d) => ({
            x: d.at,
            y: d.ratio,
            tooltip: `${seconds(d.at)}: ${change(d.ratio)}\n${figure(d.base)}, then ${figure(d.head)}`,
          })),
      })),
    },
    table: {
      caption: `Pairs of ${line.name}, the first ${MAX_TABLE_PAIRS}`,
      columns: numberColumns('At', 'Base', 'Head', 'Change'),
      rows: dots
        .slice(0, MAX_TABLE_PAIRS)
        .map((d) => [
          seconds(d.at),
          figure(d.base),
          figure(d.head),
          change(d.ratio),
        ]),
    },
  };
}

function methodPart(record: GateRecord): HTMLElement {
  const { plan } = record;
  return section(
    'How it was measured',
    facts({
      Head: describeBuild(record.head),
      Base: describeBuild(record.base),
      Suite:
        record.suite &&
        `${record.suite}, ${count(list(record.benchmarks).length, 'benchmark')}`,
      Design: `${count(countPairs(record), 'pair')}: a run of each build, one right after the other, in random order`,
      'Error rate': mapNumber(
        plan?.alpha,
        (alpha) => `at most ${percent(alpha)} over the suite (α)`,
      ),
      ...limitFact(plan?.max_pairs, 'pairs a benchmark', plan?.budget_s),
      'Open-ended': plan?.open_ended && 'on until all is decided',
      ...endFact(record),
      Command: shellWords(texts(record.argv)),
      ...runFacts(record),
    }),
  );
}
