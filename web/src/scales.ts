// Chooses the values to label on axes: round values, ratios as changes, and values of logarithmic
// axes that contain no power of ten.

const PERCENT_STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
] as const;
const FACTORS: readonly (readonly number[])[] = [
  [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100],
  [1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1e3, 1e4],
];

/** At most `most` ratios to label between `low` and `high`. */
export function ratioTicks(low: number, high: number, most: number): number[] {
  const within = (ratio: number): boolean =>
    ratio >= low * (1 - 1e-9) && ratio <= high * (1 + 1e-9);
  if (high <= 3) {
    for (const step of PERCENT_STEPS) {
      const first = Math.ceil((low - 1) / step - 1e-9);
      const last = Math.floor((high - 1) / step + 1e-9);
      if (last - first + 1 > most) continue;
      const ticks = Array.from(
        { length: last - first + 1 },
        (_, at) => 1 + (first + at) * step,
      ).filter((r) => r > 0.05);
      if (ticks.length > 0) return ticks;
    }
  }
  const lists = FACTORS.map((list) => list.filter(within));
  return (
    lists.find((list) => list.length <= most && list.length > 0) ??
    [1].filter(within)
  );
}

/** From here on a factor is read more easily than per cent. */
export const isFactor = (ratio: number): boolean => ratio >= 3;

/** "×3", "÷4". */
export const factorLabel = (ratio: number): string => {
  const [sign, factor] = ratio < 1 ? ['÷', 1 / ratio] : ['×', ratio];
  return `${sign}${Number(factor.toPrecision(3))}`;
};

/** "+5 %", "−0.5 %"; from threefold on "×3", "÷4". */
export function ratioLabel(ratio: number): string {
  if (isFactor(ratio) || isFactor(1 / ratio)) return factorLabel(ratio);
  const percent = Number(((ratio - 1) * 100).toFixed(2));
  if (percent === 0) return '0 %';
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent)} %`;
}

/** The range of ratios to draw: all of `ratios` and 1, with a margin, and never a mere point. */
export function ratioRange(
  ratios: readonly number[],
  least: number,
): [number, number] {
  const known = ratios.filter((r) => Number.isFinite(r) && r > 0);
  const low = Math.min(1 / (1 + least), ...known);
  const high = Math.max(1 + least, ...known);
  const margin = (high / low) ** 0.06;
  return [low / margin, high * margin];
}

/** At most `most + 1` round values at even distances. */
export function evenTicks(low: number, high: number, most: number): number[] {
  const raw = (high - low) / Math.max(1, most);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10]
    .map((digit) => digit * power)
    .find((one) => one >= raw * (1 - 1e-9))!;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, at) =>
    Number(((first + at) * step).toPrecision(12)),
  );
}

/** Whole numbers only: there is no half a thread. */
export const wholeTicks = (low: number, high: number, most: number): number[] =>
  evenTicks(low, high, Math.min(most, high - low)).filter(Number.isInteger);

/** Values to label on a logarithmic axis: 1, 2, 5 of each decade, or decades. */
export function decadeTicks(low: number, high: number, most: number): number[] {
  for (const digits of [[1, 2, 5], [1]]) {
    const ticks: number[] = [];
    for (
      let power = Math.floor(Math.log10(low));
      power <= Math.ceil(Math.log10(high));
      power += 1
    ) {
      for (const digit of digits) {
        const value = Number(`${digit}e${power}`);
        if (value >= low && value <= high) ticks.push(value);
      }
    }
    if (ticks.length <= most && ticks.length > 0) return ticks;
    if (digits.length === 1 && ticks.length > 0)
      return ticks.filter((_, at) => at % Math.ceil(ticks.length / most) === 0);
  }
  return [Number(Math.sqrt(low * high).toPrecision(2))];
}
