// Numbers in words. `src/format.rs` has the same functions; both are tested on
// tests/data/formats.json.

import { tally } from './lists';

type Maybe = number | null | undefined;

const NONE = '–';

const isNumber = (value: Maybe): value is number =>
  typeof value === 'number' && Number.isFinite(value);

/** A value with significant digits, three by default: "1.23", "12.3", "1234", "1.23e-5". */
export function digits(value: Maybe, places = 3): string {
  if (!isNumber(value)) return NONE;
  if (value === 0) return '0';
  // The magnitude of the rounded value: 99.96 becomes 100.
  const magnitude = Number(
    Math.abs(value)
      .toExponential(places - 1)
      .split('e')[1],
  );
  if (magnitude < -2 || magnitude >= 15) return exponential(value, places);
  return fixed(value, Math.max(0, places - 1 - magnitude));
}

const exponential = (value: number, places: number): string =>
  value.toExponential(places - 1).replace('e+', 'e');

const TIMES: readonly [number, string][] = [
  [1, 's'],
  [1e3, 'ms'],
  [1e6, 'µs'],
  [1e9, 'ns'],
];

/** A value with that many decimals; a tie goes to the even digit as in Rust, while `toFixed`
 * takes the larger. */
export function fixed(value: Maybe, places: number): string {
  if (!isNumber(value)) return NONE;
  const rounded = value.toFixed(places);
  // Only fractions of a power of two are exactly halfway between two decimals.
  const isTie = Math.abs(value * 2 ** (places + 1)) % 2 === 1;
  if (!isTie || Number(rounded.at(-1)) % 2 === 0) return rounded;
  return value.toFixed(places + 1).slice(0, places === 0 ? -2 : -1);
}

/** Seconds with a fitting unit: "12.3 ms". */
export function seconds(value: Maybe, places = 3): string {
  if (!isNumber(value)) return NONE;
  if (value === 0) return '0 s';
  const [factor, unit] =
    TIMES.find(([f]) => Math.abs(value) * f >= 0.9995) ?? TIMES[3]!;
  return `${digits(value * factor, places)} ${unit}`;
}

/** A short time, in nanoseconds up to four digits: "1793 ns". */
export function nanoseconds(value: Maybe): string {
  if (!isNumber(value)) return NONE;
  return Math.abs(value) < 1e4 ? `${digits(value)} ns` : seconds(value * 1e-9);
}

/** A quantity with its unit; seconds and bytes get a unit prefix, others a letter such as k or M. */
export function quantity(
  value: Maybe,
  unit: string | null = '',
  places = 3,
): string {
  if (!isNumber(value)) return NONE;
  if (unit === 's') return seconds(value, places);
  if (unit === 'ns') return nanoseconds(value);
  if (unit === 'bytes' || unit === 'B') return bytes(value);
  return unit ? `${siPrefix(value, places)} ${unit}` : digits(value, places);
}

/** "27.5 ns to 27.7 ns"; null if an end is missing. */
export const span = (
  low: Maybe,
  high: Maybe,
  text: (value: number) => string,
): string | null =>
  isNumber(low) && isNumber(high) ? `${text(low)} to ${text(high)}` : null;

/** "27.6 ns (27.5 ns to 27.7 ns)", a figure with its interval; null without a figure. */
export function withSpan(
  value: Maybe,
  low: Maybe,
  high: Maybe,
  text: (value: number) => string,
): string | null {
  if (!isNumber(value)) return null;
  const ends = span(low, high, text);
  return ends === null ? text(value) : `${text(value)} (${ends})`;
}

const LETTERS: readonly [number, string][] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

/** "5.82G". */
function siPrefix(value: number, places: number): string {
  const [factor, letter] = LETTERS.find(
    ([least]) => Math.abs(value) >= least * 0.9995,
  ) ?? [1, ''];
  return `${digits(value / factor, places)}${letter}`;
}

/** A ratio; close to 1 with a digit more: "1.81", "1.023". */
export function ratio(value: number): string {
  return Math.abs(value - 1) < 0.05 ? fixed(value, 3) : digits(value);
}

/** Bytes in binary units: "1.50 MiB". */
export function bytes(value: Maybe): string {
  if (!isNumber(value)) return NONE;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const step = Math.max(
    0,
    Math.min(
      units.length - 1,
      Math.floor(Math.log2(Math.max(1, Math.abs(value))) / 10),
    ),
  );
  return `${digits(value / 1024 ** step)} ${units[step]}`;
}

/** A share as per cent: 0.123 is "12.3 %"; axes ask for their own number of decimals. */
export function percent(share: Maybe, places?: number): string {
  if (!isNumber(share)) return NONE;
  const size = Math.abs(share);
  const text =
    places === undefined ? hundredths(size) : fixed(size * 100, places);
  return `${share < 0 && Number(text) !== 0 ? '−' : ''}${text} %`;
}

/** A share with its sign: "+1.3 %"; "±" if it rounds to 0. */
export function signedPercent(share: Maybe): string {
  if (!isNumber(share)) return NONE;
  const text = hundredths(Math.abs(share));
  return `${Number(text) === 0 ? '±' : share < 0 ? '−' : '+'}${text} %`;
}

/** A ratio as a change: 0.95 is "−5.0 %". */
export const change = (ratio: Maybe): string =>
  isNumber(ratio) ? signedPercent(ratio - 1) : NONE;

function hundredths(share: number): string {
  const value = share * 100;
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1e15) return exponential(value, 3);
  return fixed(value, size >= 99.95 ? 0 : size < 0.095 ? 2 : 1);
}

/** RFC 3339 without conversion, to the minute, in UTC: "2026-11-22 19:17". */
export function minute(time: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/.exec(time);
  return match ? `${match[1]} ${match[2]}` : time;
}

/** Writes moments as `minute` does, to the second where others are in the same minute. */
export function formatMoments(
  times: readonly string[],
): (time: string) => string {
  const minutes = tally([...new Set(times)].map(minute));
  const shared = new Set(
    minutes.filter(([, many]) => many > 1).map(([one]) => one),
  );
  return (time) =>
    minute(time) + (shared.has(minute(time)) ? time.slice(16, 19) : '');
}

/** A number of things: "1,234". */
export function wholeNumber(number: number | null | undefined): string {
  return number?.toLocaleString('en-US') ?? '–';
}

/** "1 run", "2 runs"; "– runs" if the number is missing. */
export function count(
  number: number | null | undefined,
  one: string,
  many = `${one}s`,
): string {
  if (number === null || number === undefined) return `– ${many}`;
  return `${number.toLocaleString('en-US')} ${number === 1 ? one : many}`;
}

const SPACE_BEFORE_UNIT =
  /(?<=[≤≥]) (?=\d)|(?<=\d[kMGT]?) (?=(?:%|[µumnp]?s|min|h|[kKMGT]?i?B|[kMG]?Hz|[kMG]?W|J|°C|[a-z]*\/s)(?![\p{L}\d]))/gu;

/** Keeps each number on the line of its unit, or of its sign: "≤ 44.2 %". */
export const joinUnits = (text: string): string =>
  text.replace(SPACE_BEFORE_UNIT, '\u00a0');
