// The figures that withhold a verdict, as rows below the arm whose verdict it is.

import { list } from '../../fields';
import { change, span } from '../../format';
import { filterMap } from '../../lists';
import { finite } from '../../numbers';
import type { ContrastRecord, EffectRecord, Maybe } from '../../records';
import { factorLabel, isFactor } from '../../scales';

/** The fields of an arm's row that are changed here. */
interface Row {
  name: string;
  standing: string;
  word: string;
  isBest: boolean;
  ratio: number;
  low: number | null;
  high: number | null;
  change: string;
  interval: string;
}

/** Names of judges, to follow "by". */
const JUDGES: Readonly<Record<string, string>> = {
  mean: 'the mean',
  p90: 'the 90th percentile',
  typical: 'the typical run',
};

/** An effect as ratios; nulls if it lacks an end, or has none above 0. */
export function effectRatios(
  effect: Maybe<EffectRecord>,
): { ratio: number; low: number | null; high: number | null } | null {
  const of = (percent: number): number => 1 + percent / 100;
  if (!finite(effect?.value) || effect.value <= -100) return null;
  const isKnown =
    finite(effect.low) && finite(effect.high) && effect.low > -100;
  return {
    ratio: of(effect.value),
    low: isKnown ? of(effect.low!) : null,
    high: isKnown ? of(effect.high!) : null,
  };
}

/** An effect in words; as a factor instead of hundreds of per cent. */
export function effectWords(effect: Maybe<EffectRecord>): {
  change: string;
  interval: string;
} {
  const ratios = effectRatios(effect);
  if (!ratios || !isFactor(ratios.ratio))
    return { change: effect?.text ?? '', interval: effect?.interval ?? '' };
  return {
    change: factorLabel(ratios.ratio),
    interval: span(ratios.low, ratios.high, factorLabel) ?? '',
  };
}

/** Rows below an undecided arm with the figures that withhold its verdict; none for other arms. */
export function disagreeingRows<Line extends Row>(
  line: Line,
  contrast: Maybe<ContrastRecord>,
  isRate: boolean,
): Line[] {
  if (!contrast || line.standing !== 'undecided') return [];
  const row = (what: string): Line => ({
    ...line,
    name: `${line.name} ${what}`,
    isBest: false,
    word: '',
    low: null,
    high: null,
    interval: '',
  });
  // The parts are costs relative to the baseline; for a rate the figure is the inverse.
  const halves = filterMap(splitFigures(contrast), ([what, cost]) => {
    if (!finite(cost) || cost <= 0) return null;
    const ratio = isRate ? 1 / cost : cost;
    return { ...row(what), ratio, change: change(ratio) };
  });
  if (halves.length > 0 || !contrast.depends_on_tail) return halves;
  return filterMap(list(contrast.others), ({ judge, effect }) => {
    const ratios = effectRatios(effect);
    if (!ratios) return null;
    const of = row(`by ${JUDGES[judge ?? ''] ?? judge ?? '?'}`);
    return { ...of, ...ratios, ...effectWords(effect) };
  });
}

function splitFigures(contrast: ContrastRecord): [string, Maybe<number>][] {
  const { by_order, by_time, load_levels } = contrast;
  if (contrast.depends_on_order)
    return [
      ['after the same arm', by_order?.first],
      ['after another', by_order?.second],
    ];
  if (contrast.depends_on_time)
    return [
      ['at first', by_time?.first],
      ['at the end', by_time?.second],
    ];
  if (contrast.depends_on_load)
    return [
      ['under light load', load_levels?.light?.ratio],
      ['under heavy load', load_levels?.heavy?.ratio],
    ];
  return [];
}
