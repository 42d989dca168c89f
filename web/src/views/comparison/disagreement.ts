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

/** Converts an effect in per cent to ratios; null without a positive ratio, ends null if one is
 * missing. */
export function toRatios(
  effect: Maybe<EffectRecord>,
): { ratio: number; low: number | null; high: number | null } | null {
  const toRatio = (percent: number): number => 1 + percent / 100;
  if (!finite(effect?.value) || effect.value <= -100) return null;
  const isKnown =
    finite(effect.low) && finite(effect.high) && effect.low > -100;
  return {
    ratio: toRatio(effect.value),
    low: isKnown ? toRatio(effect.low!) : null,
    high: isKnown ? toRatio(effect.high!) : null,
  };
}

/** An effect in words; as a factor instead of hundreds of per cent. */
export function describeEffect(effect: Maybe<EffectRecord>): {
  change: string;
  interval: string;
} {
  const ratios = toRatios(effect);
  if (!ratios || !isFactor(ratios.ratio))
    return { change: effect?.text ?? '', interval: effect?.interval ?? '' };
  return {
    change: factorLabel(ratios.ratio),
    interval: span(ratios.low, ratios.high, factorLabel) ?? '',
  };
}

/** Rows below an undecided arm with the figures that withhold its verdict; none for other arms. */
export function buildDisagreeingRows<Line extends Row>(
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
  const halves = filterMap(listSplitCosts(contrast), ([what, cost]) => {
    if (!finite(cost) || cost <= 0) return null;
    const ratio = isRate ? 1 / cost : cost;
    return { ...row(what), ratio, change: change(ratio) };
  });
  if (halves.length > 0 || !contrast.depends_on_tail) return halves;
  return filterMap(list(contrast.others), ({ judge, effect }) => {
    const ratios = toRatios(effect);
    if (!ratios) return null;
    const labelled = row(`by ${JUDGES[judge ?? ''] ?? judge ?? '?'}`);
    return { ...labelled, ...ratios, ...describeEffect(effect) };
  });
}

function listSplitCosts(contrast: ContrastRecord): [string, Maybe<number>][] {
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
