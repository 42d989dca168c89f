// The data of the charts of spin predictions and replays.

import { fixed, quantity } from '../../format';
import { filterMap } from '../../lists';
import { positive } from '../../numbers';
import type {
  AdviceRecord,
  Having,
  Maybe,
  MoveRecord,
  PredictionRecord,
  ProcessorRecord,
  ReplayedAlgorithm,
  ReplayCell,
  SpinPredictRecord,
  SpinReplayRecord,
} from '../../records';

/** Total spin, or the longest time between two checks of the lock. */
export type Figure = 'total' | 'gap';

export const FIGURES: Readonly<Record<Figure, string>> = {
  total: 'Spin before parking',
  gap: 'Longest time between checks',
};

export interface Curve {
  algorithm: string;
  /** Is it for the chip from which a program moves? Else for the new one. */
  isFrom: boolean;
  points: [cpus: number, ms: number][];
}

type Named<T extends MoveRecord | PredictionRecord> = Having<
  T,
  'algorithm' | 'cpus'
>;

/** A record whose predictions all have an algorithm and a number of CPUs. */
export interface Predicted extends SpinPredictRecord {
  predictions: Named<PredictionRecord>[];
  moves: Named<MoveRecord>[];
}

/** The record without predictions that lack their algorithm or number of CPUs. */
export function dropUnnamed(record: SpinPredictRecord): Predicted {
  const isNamed = <T extends MoveRecord | PredictionRecord>(
    one: T,
  ): one is Named<T> =>
    typeof one.algorithm === 'string' && typeof one.cpus === 'number';
  return {
    ...record,
    predictions: (record.predictions ?? []).filter(isNamed),
    moves: (record.moves ?? []).filter(isNamed),
  };
}

/** The first of an algorithm's names, ".NET Framework Monitor"; without one its id. */
export const firstName = ({
  name,
  algorithm,
}: Pick<PredictionRecord, 'name' | 'algorithm'>): string =>
  name?.split(' / ')[0] || (algorithm ?? '');

/** The numbers of CPUs with predictions, ascending. */
export function cpuCounts(record: Predicted): number[] {
  return [...new Set(record.predictions.map((p) => p.cpus))].sort(
    (a, b) => a - b,
  );
}

/** The algorithms, ordered by their longest spin; endless ones first, unknown ones last. */
export function sortAlgorithms(record: Predicted): string[] {
  const longest = new Map<string, number>();
  for (const p of record.predictions) {
    const spin = p.never_parks
      ? Infinity
      : positive(p.total_ms)
        ? p.total_ms
        : -1;
    longest.set(p.algorithm, Math.max(longest.get(p.algorithm) ?? -1, spin));
  }
  return [...longest]
    .sort((a, b) => (a[1] === b[1] ? 0 : b[1] - a[1]))
    .map(([name]) => name);
}

/** The algorithms that spin with a number of CPUs, longest first. */
export const longestFirst = (record: Predicted, cpus: number): string[] =>
  record.predictions
    .filter((p) => p.cpus === cpus && positive(p.total_ms))
    .sort((a, b) => b.total_ms! - a.total_ms!)
    .map((p) => p.algorithm);

/** The algorithms drawn at first: those whose spin jumps with the number of CPUs, then those that
 * spin longest. */
export function chooseFirst(record: Predicted, most: number): string[] {
  const cliffs = findCliffs(record);
  const known = sortAlgorithms(record).filter((a) =>
    record.predictions.some((p) => p.algorithm === a && positive(p.total_ms)),
  );
  const varied = known.filter((a) => cliffs.has(a));
  return [...new Set([...varied, ...known])].slice(0, most);
}

/** Curves of the chosen algorithms over the number of CPUs. */
export function toCurves(
  record: Predicted,
  chosen: readonly string[],
  figure: Figure,
): Curve[] {
  const point = (cpus: number, ms: unknown): [number, number][] =>
    positive(ms) ? [[cpus, ms]] : [];
  const sorted = (points: [number, number][]): [number, number][] =>
    points.sort((a, b) => a[0] - b[0]);
  return chosen.flatMap((algorithm) => {
    const here = record.predictions.filter((p) => p.algorithm === algorithm);
    const moved = record.moves.filter((m) => m.algorithm === algorithm);
    const own = sorted(
      here.flatMap((p) =>
        point(p.cpus, figure === 'total' ? p.total_ms : p.blind_gap_ms),
      ),
    );
    const before = sorted(
      moved.flatMap((m) =>
        point(m.cpus, figure === 'total' ? m.from_ms : m.from_blind_gap_ms),
      ),
    );
    return [
      { algorithm, isFrom: false, points: own },
      { algorithm, isFrom: true, points: before },
    ].filter((curve) => curve.points.length > 0);
  });
}

/** Spin that grows by this factor or more is a cliff. */
const MIN_CLIFF_RATIO = 1.25;

/** A number of CPUs at which an algorithm's spin jumps. */
export interface Cliff {
  /** The number of CPUs from which the spin is longer. */
  cpus: number;
  /** The first predicted number of CPUs with the longer spin. */
  shownAt: number;
  /** Spin divided by that of the prediction before. */
  ratio: number;
}

/** The cliffs of each algorithm; one may lie between two predicted numbers of CPUs. */
export function findCliffs(record: Predicted): Map<string, Cliff[]> {
  const totals = new Map(
    record.predictions.map((p) => [`${p.algorithm} ${p.cpus}`, p.total_ms]),
  );
  const counts = cpuCounts(record);
  const span = (counts.at(-1) ?? 0) - (counts[0] ?? 0);
  const found = new Map<string, Cliff[]>();
  for (const { algorithm, changes_at: changes } of record.cliffs ?? []) {
    if (!algorithm || !changes || changes.length > span / 4) continue;
    const marks = filterMap(counts.slice(1), (shownAt, at) => {
      const cpus = changes.find(
        (change) => change > counts[at]! && change <= shownAt,
      );
      const [before, after] = [
        totals.get(`${algorithm} ${counts[at]}`),
        totals.get(`${algorithm} ${shownAt}`),
      ];
      const isCliff =
        cpus !== undefined &&
        positive(before) &&
        positive(after) &&
        after / before >= MIN_CLIFF_RATIO;
      return isCliff ? { cpus, shownAt, ratio: after / before } : null;
    });
    if (marks.length > 0) found.set(algorithm, marks);
  }
  return found;
}

/** How far the cost of PAUSE changes what an algorithm does; empty if it does as usual. */
export function pauseRemark(p: PredictionRecord): string {
  const words: Readonly<Record<string, string>> = {
    normalised: 'measures PAUSE',
    time: 'goes by the clock',
    load: 'only loads',
    yield: 'only yields',
  };
  if (p.unit && words[p.unit]) return words[p.unit]!;
  if (p.never_parks) return 'endless';
  return (p.longest_pauses ?? 0) > (p.total_pauses ?? 0) ? 'varies' : '';
}

/** The chip's name; "this machine" is where the record was made, not where it is read. */
const chipName = (processor: ProcessorRecord | null | undefined) =>
  processor?.name === 'this machine' ? undefined : processor?.name;

/** The id of its chip, as a user types it, else its name. */
export const shortName = (
  processor: ProcessorRecord | null | undefined,
): string | null | undefined => processor?.chip ?? processor?.name;

/** "Skylake-SP/X: a PAUSE takes 50.1 ns (140.3 cycles at 2.80 GHz)." */
export function processorSentence(
  processor: ProcessorRecord | null | undefined,
): string {
  if (!processor || !positive(processor.pause_ns)) return '';
  const clock = positive(processor.ghz)
    ? ` at ${fixed(processor.ghz, 2)} GHz`
    : '';
  const cycles = positive(processor.pause_cycles)
    ? ` (${fixed(processor.pause_cycles, 1)} cycles${clock})`
    : '';
  return `${chipName(processor) ?? 'The measured machine'}: a PAUSE takes ${quantity(processor.pause_ns, 'ns')}${cycles}.`;
}

/** The runtime and name of a setting; of several with both alike, their versions too. */
export function nameSetting(
  { runtime, setting, versions }: AdviceRecord,
  all: readonly AdviceRecord[],
): string {
  const alike = all.filter(
    (row) => row.runtime === runtime && row.setting === setting,
  );
  const version = alike.length > 1 && versions?.split(',')[0];
  return `${runtime ?? ''}: ${setting ?? ''}${version ? `, ${version}` : ''}`;
}

/** Fewer valid runs than this have no median worth its name, and no quartiles. */
const MIN_RUNS = 5;

export interface ReplayPoint {
  at_ms: number;
  /** Valid runs. */
  runs: number | null;
  /** Too few valid runs for a median? */
  isThin: boolean;
  predicted: number | null;
  measured: number | null;
  low: number | null;
  high: number | null;
  error: number | null;
  cliff: number | null;
  isUnstable: boolean;
}

const isThin = (runs: Maybe<number>): boolean =>
  typeof runs === 'number' && runs < MIN_RUNS;

/** Lateness in µs over delays, or for a hand-off over hold times. */
export function toReplayPoints(
  of: ReplayedAlgorithm,
  experiment: SpinReplayRecord['experiment'],
): ReplayPoint[] {
  const number = (value: unknown): number | null =>
    typeof value === 'number' && Number.isFinite(value) ? value : null;
  const at = (cell: ReplayCell): number | null =>
    number(experiment === 'handoff' ? cell.hold_ms : cell.delay_ms);
  return filterMap(of.cells ?? [], (cell) => {
    const at_ms = at(cell);
    if (at_ms === null) return null;
    return {
      at_ms,
      predicted: number(cell.predicted?.lateness_us),
      measured: number(cell.measured?.lateness_us),
      runs: number(cell.items),
      isThin: isThin(cell.items),
      low: isThin(cell.items) ? null : number(cell.measured?.lateness_low_us),
      high: isThin(cell.items) ? null : number(cell.measured?.lateness_high_us),
      error: number(cell.error_percent),
      cliff: number(cell.cliff_percent),
      isUnstable: cell.unstable === true,
    };
  }).sort((a, b) => a.at_ms - b.at_ms);
}
