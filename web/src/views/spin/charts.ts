// The charts of spin predictions.

import type { ChartPlan } from '../../chart';
import { colourAt, ratioPosition } from '../../colour-scale';
import { count, digits, fixed, seconds } from '../../format';
import type { Axis, Panel, Series } from '../../plot';
import { COLOURS, separateMarks, seriesLook, seriesColour } from '../../plot';
import { wholeTicks } from '../../scales';
import { LIGHT } from '../../theme';
import type { Curve, Figure, Predicted } from './shape';
import {
  sortAlgorithms,
  longestFirst,
  findCliffs,
  cpuCounts,
  toCurves,
  FIGURES,
  firstName,
  shortName,
} from './shape';
import { filterMap } from '../../lists';
import { mapNumber } from '../../numbers';
import type { Maybe } from '../../records';

const formatMilliseconds = (value: number): string => seconds(value / 1e3);

const timeAxis = (title: string): Axis => ({
  title,
  type: 'log',
  label: formatMilliseconds,
});

/** The chips whose curves are drawn: of a move, the old and the new one. */
export interface Chips {
  from: boolean;
  to: boolean;
}

const BOTH_CHIPS: Chips = { from: true, to: true };

/** A figure of the chosen algorithms over the number of CPUs; null if there is nothing to draw. */
export function curvePlan(
  record: Predicted,
  chosen: readonly string[],
  figure: Figure,
  chips: Chips = BOTH_CHIPS,
): ChartPlan | null {
  const counts = cpuCounts(record);
  const drawn = toCurves(record, chosen, figure).filter((c) =>
    c.isFrom ? chips.from : chips.to,
  );
  if (counts.length < 2 || drawn.length === 0) return null;
  const name = (c: Curve): string =>
    c.algorithm +
    (record.from
      ? c.isFrom
        ? ` · ${shortName(record.from) ?? 'from'}`
        : ` · ${shortName(record.processor) ?? 'to'}`
      : '');
  return {
    name: `${FIGURES[figure]} over the number of CPUs`,
    summary: summariseCurves(drawn, figure),
    panel: {
      height: 260,
      x: {
        title: 'CPUs',
        type: 'log',
        label: (cpus) => String(Math.round(cpus)),
      },
      y: timeAxis(FIGURES[figure].toLowerCase()),
      series: drawn.map((c): Series => {
        const { colour, dash } = seriesLook(chosen.indexOf(c.algorithm));
        return {
          name: name(c),
          colour,
          line: 'step',
          dash: c.isFrom ? '2 4' : dash,
          width: c.isFrom ? 1.5 : 2.5,
          isHollow: c.isFrom,
          size: c.points.length < 20 ? 3 : 0,
          points: c.points.map(([x, y]) => ({
            x,
            y,
            tooltip: `${name(c)}\n${count(x, 'CPU')}: ${formatMilliseconds(y)}`,
          })),
        };
      }),
    },
    table: {
      caption: `${FIGURES[figure]} of the chosen algorithms`,
      columns: [
        'Algorithm',
        ...counts
          .filter(isTableColumn(counts))
          .map((n) => ({ name: count(n, 'CPU'), isNumber: true })),
      ],
      rows: drawn.map((c) => {
        const of = new Map(c.points);
        return [
          name(c),
          ...counts.filter(isTableColumn(counts)).map((n) => {
            const value = of.get(n);
            return value === undefined ? null : formatMilliseconds(value);
          }),
        ];
      }),
    },
  };
}

/** The counts with a column: all, or of many the powers of two and the last. */
const isTableColumn =
  (counts: readonly number[]) =>
  (n: number): boolean =>
    counts.length <= 10 ||
    Number.isInteger(Math.log2(n)) ||
    n === counts.at(-1);

function summariseCurves(drawn: readonly Curve[], figure: Figure): string {
  const here = drawn.filter((c) => !c.isFrom);
  const ends = (here.length > 0 ? here : drawn).map((c) => {
    const [cpus, value] = c.points.at(-1)!;
    return `${c.algorithm} ${formatMilliseconds(value)} with ${count(cpus, 'CPU')}`;
  });
  return `${figure === 'total' ? 'How long an algorithm spins before it parks' : 'How late it may notice that the lock is free'}: ${ends.slice(0, 4).join('; ')}${ends.length > 4 ? ' …' : '.'}`;
}

/** The spin of every algorithm for every number of CPUs, with marked cliffs; null if there is only
 * one number. */
export function mapPlan(record: Predicted): ChartPlan | null {
  const counts = cpuCounts(record);
  const known = sortAlgorithms(record).filter((a) =>
    record.predictions.some((p) => p.algorithm === a && (p.total_ms ?? 0) > 0),
  );
  if (counts.length < 2 || known.length === 0) return null;
  const marks = findCliffs(record);
  const texts = [...marks].map(
    ([name, at]) => `${name} from ${at.map((m) => m.cpus).join(', ')}`,
  );
  return {
    name: 'Cliffs',
    summary: `Spin of each algorithm with each number of CPUs; a bar marks a number from which it spins at least a quarter longer at once: ${texts.length > 0 ? `${texts.slice(0, 5).join('; ')}${texts.length > 5 ? ' …' : '.'}` : 'none.'} Blank: it does not spin.`,
    panels: () => mapPanels(record, known, counts, marks),
    table: {
      caption:
        'Cliffs: numbers of CPUs from which an algorithm spins longer at once',
      columns: ['Algorithm', 'From CPUs', 'Times as long'],
      rows: [...marks].map(([name, at]) => [
        name,
        at.map((m) => m.cpus).join(', '),
        at.map((m) => fixed(m.ratio, 1)).join(', '),
      ]),
    },
  };
}

/** Colour steps of the scale below the map. */
const SCALE_STEPS = 60;

/** The map, and below it the scale of its colours. */
function mapPanels(
  record: Predicted,
  known: readonly string[],
  counts: readonly number[],
  marks: ReturnType<typeof findCliffs>,
): Panel[] {
  const cells = filterMap(record.predictions, (p) => {
    const y = known.indexOf(p.algorithm);
    const spin = p.total_ms ?? 0;
    return y >= 0 && spin > 0
      ? { x: counts.indexOf(p.cpus), y, spin, cpus: p.cpus }
      : null;
  });
  const spins = cells.map((cell) => cell.spin);
  const [low, high] = [Math.min(...spins), Math.max(...spins)];
  const at = (share: number): number => low * (high / low) ** share;
  const bars = [...marks].flatMap(([name, all]) =>
    all.map((m) => ({
      x: counts.indexOf(m.shownAt) - 0.5,
      y: known.indexOf(name),
    })),
  );
  return [
    {
      height: 18 * known.length,
      x: {
        title: 'CPUs',
        ends: [-0.5, counts.length - 0.5],
        ticks: wholeTicks,
        label: (column) => String(counts[column] ?? ''),
      },
      y: { title: 'Algorithm', names: known },
      series: [
        {
          box: 'cell',
          points: cells.map(({ x, y, spin, cpus }) => ({
            x,
            y,
            colour: colourAt(LIGHT.scale, ratioPosition(spin, low, high)),
            value: spin,
            tooltip: `${known[y]}\n${count(cpus, 'CPU')}: ${formatMilliseconds(spin)}`,
          })),
        },
        ...['#000000', '#ffffff'].map((colour, inner): Series => ({
          box: 'cell',
          colour,
          points: bars.map(({ x, y }) => ({
            x,
            y,
            low: x - (inner ? 0.04 : 0.08),
            high: x + (inner ? 0.04 : 0.08),
          })),
        })),
      ],
    },
    {
      height: 12,
      x: { ...timeAxis('spin before parking'), ends: [low, high] },
      y: { title: '', names: [''] },
      series: [
        {
          box: 'cell',
          points: Array.from({ length: SCALE_STEPS }, (_, step) => ({
            x: at((step + 0.5) / SCALE_STEPS),
            y: 0,
            low: at(step / SCALE_STEPS),
            high: at((step + 1) / SCALE_STEPS),
            colour: colourAt(LIGHT.scale, (step + 0.5) / SCALE_STEPS),
          })),
        },
      ],
    },
  ];
}

/** "16.7 → 246 ms", of a move; on one chip "246 ms". */
function describeSpin(
  { total_ms: total }: Predicted['predictions'][number],
  move: Maybe<Predicted['moves'][number]>,
): readonly [long: string, short: string] {
  const now = mapNumber(total, formatMilliseconds) ?? '–';
  // In the unit of the other.
  const before = mapNumber(move?.from_ms, (from) =>
    total ? digits((parseFloat(now) * from) / total) : null,
  );
  return [before ? `${before} → ${now}` : now, now];
}

/** Blind gap and total spin of every algorithm with one number of CPUs. */
export function ladderPlan(
  record: Predicted,
  cpus: number,
  most = Infinity,
): ChartPlan | null {
  const of = new Map(
    record.predictions
      .filter((p) => p.cpus === cpus)
      .map((p) => [p.algorithm, p]),
  );
  const all = longestFirst(record, cpus);
  if (all.length === 0) return null;
  const names = all.slice(0, most);
  const rows = names.map((a) => of.get(a)!);
  const before = new Map(
    record.moves.filter((m) => m.cpus === cpus).map((m) => [m.algorithm, m]),
  );
  const series = (
    name: string,
    style: Partial<Series>,
    value: (at: number) => number | null | undefined,
  ): Series => ({
    name,
    ...style,
    points: filterMap(names, (algorithm, y) => {
      const x = value(y);
      return x && x > 0
        ? {
            x,
            y,
            tooltip: `${firstName(rows[y]!)} (${algorithm})\n${name}: ${formatMilliseconds(x)}`,
          }
        : null;
    }),
  });
  const drawn = [
    series(
      'blind gap',
      { shape: 'triangle', isHollow: true, colour: seriesColour(1) },
      (at) => rows[at]!.blind_gap_ms,
    ),
    series(
      record.from
        ? `spin on ${shortName(record.processor) ?? 'the new chip'}`
        : 'spin before parking',
      { colour: seriesColour(0) },
      (at) => rows[at]!.total_ms,
    ),
    series(
      `spin on ${shortName(record.from) ?? 'the old chip'}`,
      { isHollow: true, colour: COLOURS.neutral },
      (at) => before.get(names[at]!)?.from_ms,
    ),
  ].filter((one) => one.points.length > 0);
  return {
    name: `Predicted with ${count(cpus, 'CPU')}: ${names.length < of.size ? `the ${names.length} of ${of.size} algorithms that spin longest` : 'every algorithm'}`,
    summary:
      'Calculated, not measured. Blind gap: the longest time between checks.',
    panel: {
      height: 26 * names.length,
      x: timeAxis('time'),
      y: {
        title: 'Algorithm',
        names: rows.map(firstName),
        words: rows.map((row) => describeSpin(row, before.get(row.algorithm))),
      },
      series: separateMarks(drawn),
    },
  };
}
