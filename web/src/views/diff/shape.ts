// Two records side by side: which figures can be drawn as ratios, and in words.

import { change, count, quantity, wholeNumber, withSpan } from '../../format';
import { filterMap } from '../../lists';
import { mapNumber, positive, knownEnds, ratioError } from '../../numbers';
import type { DiffRecord, FigureChange, Maybe } from '../../records';
import { factorLabel, isFactor } from '../../scales';

export const VERDICTS: Readonly<Record<string, string>> = {
  lower: 'lower',
  higher: 'higher',
  better: 'better',
  worse: 'worse',
  same: 'the same',
  own: 'program or machine',
  cannot_tell: 'inconclusive',
};

/** A ratio to the baseline below which an arm beats it: the default smallest effect. */
const BEATS = 0.99;

/** Benchmarks in a sentence. */
const MAX_NAMED = 3;

export interface RatioRow {
  name: string;
  ratio: number;
  low: number | null;
  high: number | null;
  verdict: string;
  /** The figures of A and B. */
  sides?: string;
  /** Beside the row, if not its verdict: all, and what a phone has room for. */
  words?: readonly [long: string, short: string];
}

/** The baseline of the figures that are ratios to one; empty without such, or with several. */
export function findBaseline(record: DiffRecord): string {
  const all = filterMap(record.figures ?? [], ({ over }) => over ?? null);
  return new Set(all).size === 1 ? all[0]! : '';
}

/** A figure's name: without the baseline that all share, whose own figure is no ratio. */
function nameFigure(
  { name = '–', over }: FigureChange,
  baseline: string,
): string {
  if (baseline) return name === baseline ? `${name} itself` : `${name}`;
  return over ? `${name} against ${over}` : `${name}`;
}

/** A figure's value; a count is whole. */
const sideText = (value: Maybe<number>, unit: Maybe<string>): string =>
  !unit && Number.isInteger(value)
    ? wholeNumber(value)
    : quantity(value, unit ?? '');

const isOfGates = ({ a }: DiffRecord): boolean =>
  Boolean(a?.schema?.startsWith('pinwise.gate/'));

/** Did a figure change for certain? */
const isChanged = ({ verdict }: RatioRow): boolean =>
  /^(lower|higher|better|worse)$/.test(verdict);

/** Is it known that less is better? It is of the times of arms. */
const isOfTimes = (record: DiffRecord): boolean =>
  findOwn(record)?.unit === 's';

/** The figure of the baseline itself, in which no ratio separates the program from the machine. */
function findOwn(record: DiffRecord): FigureChange | undefined {
  const baseline = findBaseline(record);
  return record.figures?.find(({ name }) => baseline && name === baseline);
}

/** The verdict of a figure: "better" and "worse" where that is known. */
function verdictOf(figure: FigureChange, record: DiffRecord): string {
  const verdict = figure.verdict ?? 'cannot_tell';
  if (figure === findOwn(record)) return 'own';
  if (!isOfTimes(record)) return verdict;
  return { lower: 'better', higher: 'worse' }[verdict as string] ?? verdict;
}

/** The interval of a figure's ratio; of the baseline itself from those of both sides. */
function boundsOf(figure: FigureChange, record: DiffRecord) {
  const { a_low, a_high, b_low, b_high, ratio } = figure;
  if (figure !== findOwn(record)) return knownEnds(figure.low, figure.high);
  const half = ratioError(
    { low: a_low, high: a_high },
    { low: b_low, high: b_high },
  );
  return knownEnds(ratio! * Math.exp(-half), ratio! * Math.exp(half));
}

/** Figures with a ratio, those that changed first. */
export function ratioRows(record: DiffRecord): RatioRow[] {
  // A ratio of two changes in per cent means nothing.
  if (isOfGates(record)) return [];
  const baseline = findBaseline(record);
  return filterMap(record.figures ?? [], (figure): RatioRow | null => {
    const { ratio, a, b, unit, over } = figure;
    const verdict = verdictOf(figure, record);
    const sides = [a, b]
      .map((value) => (over ? change(value) : sideText(value, unit)))
      .join(' → ');
    return positive(ratio)
      ? {
          name: nameFigure(figure, baseline),
          ratio,
          ...boundsOf(figure, record),
          verdict,
          sides,
          words: [
            `${sides}   ${ratioText(ratio)}   ${nameVerdict(verdict)}`,
            ratioText(ratio),
          ],
        }
      : null;
  }).sort((a, b) => Number(isChanged(b)) - Number(isChanged(a)));
}

const nameVerdict = (verdict: string): string => VERDICTS[verdict] ?? verdict;

const ratioText = (ratio: number): string =>
  isFactor(ratio) ? factorLabel(ratio) : change(ratio);

/** A change with its interval: "−5.0 % (−7.0 % to −3.0 %)"; from threefold on "×3". */
export function changeText(
  figure: Pick<FigureChange, 'ratio' | 'low' | 'high'>,
): string | null {
  const { ratio, low, high } = figure;
  return positive(ratio) ? withSpan(ratio, low, high, ratioText) : null;
}

/** What changed, of several figures the one that changed most, and what to do about it. */
export function toSentences(
  record: DiffRecord,
): [verdict: string, advice: string] {
  if (isOfGates(record)) return compareGates(record);
  const all = ratioRows(record);
  const known = all.filter(
    ({ low, verdict }) => low !== null && verdict !== 'own',
  );
  const changed = known.filter(isChanged);
  const size = ({ ratio }: RatioRow): number => Math.abs(Math.log(ratio));
  const candidates = [changed, known, all].find((rows) => rows.length > 0);
  const most = candidates?.sort((a, b) => size(b) - size(a))[0];
  if (!most) return [record.sentence ?? '', ''];
  const baseline = findBaseline(record);
  const against = baseline && ` against ${baseline}`;
  // No ratio shows what all arms have in common.
  const own = all.find(({ verdict }) => verdict === 'own');
  const itself = own
    ? `; ${own.name} ${ratioText(own.ratio)} (${own.sides}), by program or machine.`
    : '.';
  const its = `${most.name} ${changeText(most)}${itself}`;
  if (changed.length > 0)
    return [
      baseline
        ? describeArms(record, changed) + itself
        : `B differs from A in ${changed.length} of ${count(known.length, 'figure')}${changed.length > 1 ? ', most' : ''}: ${its}`,
      baseline && record.a?.title !== record.b?.title
        ? 'Confirm it on one machine at one time: `pinwise compare --command OLD --command NEW`.'
        : 'Measure both again to confirm it.',
    ];
  if (known.length === 0 && ratioText(most.ratio).startsWith('±'))
    return ['B shows the same as A.', 'Change nothing.'];
  if (known.length === 0)
    return [
      `No verdict: single records do not show what is chance. Largest difference${against}: ${its}`,
      'Measure both again, and see how much equal records differ.',
    ];
  return known.every(({ verdict }) => verdict === 'same')
    ? [
        `B is the same as A${against}; largest difference: ${its}`,
        'Change nothing.',
      ]
    : [
        `No difference between A and B is shown${against}; the largest: ${its}`,
        'Measure both again with more runs to narrow the intervals.',
      ];
}

/** Arms whose ratio to the baseline changed: first those that began or ceased to beat it. */
function describeArms(record: DiffRecord, changed: RatioRow[]): string {
  const isTime = isOfTimes(record);
  const arms = changed.map((row) => {
    const { name, over, a, b } = record.figures!.find(
      (figure) => figure.over && figure.name === row.name,
    )!;
    const sides = `${change(a)} → ${change(b)}`;
    const [did, does] = [a, b].map((ratio) => isTime && ratio! < BEATS);
    return did === does
      ? `${name} against ${over} ${sides}`
      : `${name} ${does ? 'now' : 'no longer'} beats ${over} (${sides})`;
  });
  const isFirst = (text: string): number => Number(text.endsWith(')'));
  const more = arms.length > MAX_NAMED ? ' …' : '';
  return (
    arms
      .sort((a, b) => isFirst(b) - isFirst(a))
      .slice(0, MAX_NAMED)
      .join('; ') + more
  );
}

/** A gate's figure, a change in per cent. */
const signed = (percent: number): string => change(1 + percent / 100);

/** Two gates beside each other: each compared two builds of its own. */
function compareGates({ figures }: DiffRecord): [string, string] {
  const all = (figures ?? []).map(
    ({ name, a, b }) =>
      `${name} ${mapNumber(a, signed) ?? 'none'}, then ${mapNumber(b, signed) ?? 'none'}`,
  );
  const more = all.length > MAX_NAMED ? ' …' : '.';
  return [
    `Each gate compares its own two builds: ${all.slice(0, MAX_NAMED).join('; ')}${more}`,
    `Follow a benchmark from commit to commit: \`pinwise record history --trend ${figures?.[0]?.name ?? 'NAME'}\`.`,
  ];
}

/** The rows of the table of figures. */
export function figureRows(record: DiffRecord): (string | null)[][] {
  const baseline = findBaseline(record);
  const isSigned = isOfGates(record);
  const own = findOwn(record);
  const text = (f: FigureChange, base: Maybe<number>) => (value: number) =>
    isSigned
      ? signed(value)
      : f.over && base
        ? `${change(value)} (≈ ${sideText(value * base, own?.unit)})`
        : sideText(value, f.unit);
  return (record.figures ?? []).map((f) => [
    nameFigure(f, baseline),
    withSpan(f.a, f.a_low, f.a_high, text(f, own?.a)),
    withSpan(f.b, f.b_low, f.b_high, text(f, own?.b)),
    isSigned ? null : changeText(f),
    typeof f.b !== 'number'
      ? 'only in A'
      : typeof f.a !== 'number'
        ? 'only in B'
        : isSigned
          ? null
          : nameVerdict(verdictOf(f, record)),
  ]);
}

/** What the plot shows, in a sentence. */
export function ratioSummary(rows: readonly RatioRow[]): string {
  const parts = filterMap(Object.entries(VERDICTS), ([verdict, word]) => {
    const some = rows.filter((row) => row.verdict === verdict).length;
    return some > 0 ? `${some} ${word}` : null;
  });
  return `Of ${count(rows.length, 'figure')}: ${parts.join(', ')}.`;
}
