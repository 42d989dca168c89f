// Numbers and times in words, as pinwise's text output has them.

const PREFIXES: readonly [number, string][] = [
  [1, 's'],
  [1e-3, 'ms'],
  [1e-6, 'µs'],
  [1e-9, 'ns'],
];

/** Below a million all digits can still be read. */
const LETTERS: readonly [number, string][] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
];

/** Significant digits without exponents below 1e21. */
export function digits(value: number, places = 3): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  const decimals = Math.min(20, Math.max(0, places - 1 - magnitude));
  return value.toFixed(decimals);
}

/** Seconds with a fitting unit: "12.3 ms". */
export function seconds(value: number | null | undefined, places = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  if (value === 0) return '0 s';
  const size = Math.abs(value);
  const [factor, unit] = PREFIXES.find(([f]) => size >= f * 0.9995) ?? PREFIXES[3]!;
  return `${digits(value / factor, places)} ${unit}`;
}

/** A quantity of any unit; seconds get a fitting prefix. */
export function quantity(value: number | null | undefined, unit: string, places = 4): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  if (unit === 's') return seconds(value, places);
  if (unit === 'ns') return seconds(value * 1e-9, places);
  if (unit === 'bytes' || unit === 'B') return bytes(value);
  return unit ? `${scaled(value, places)} ${unit}` : digits(value, places);
}

/** "5.82G", as text output has it; a rate of a billion has too many digits to be read. */
function scaled(value: number, places: number): string {
  const [factor, letter] = LETTERS.find(([least]) => Math.abs(value) >= least * 0.9995) ?? [1, ''];
  return `${digits(value / factor, places)}${letter}`;
}

/** Bytes in binary units: "1.5 MiB". */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const step = Math.max(0, Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, Math.abs(value))) / 10)));
  return `${digits(value / 1024 ** step, 3)} ${units[step]}`;
}

/** A share as per cent: 0.123 is "12.3 %". */
export function percent(share: number | null | undefined, places = 1): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return '–';
  return `${(share * 100).toFixed(places)} %`;
}

/** A ratio as a change: 0.95 is "−5.0 %". */
export function change(ratio: number | null | undefined, places = 1): string {
  if (ratio === null || ratio === undefined || !Number.isFinite(ratio)) return '–';
  const value = (ratio - 1) * 100;
  const text = Math.abs(value).toFixed(places);
  return `${value < 0 && Number(text) !== 0 ? '−' : '+'}${text} %`;
}

/** RFC 3339 as it stands, to the minute, in UTC: "2026-11-22 19:17". */
export function minute(time: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/.exec(time);
  return match ? `${match[1]} ${match[2]}` : time;
}

/** A number of things: "1,234". */
export function wholeNumber(number: number | null | undefined): string {
  return number?.toLocaleString('en-US') ?? '–';
}

/** "1 run", "2 runs"; "– runs" where the number is missing. */
export function count(number: number | null | undefined, one: string, many = `${one}s`): string {
  if (number === null || number === undefined) return `– ${many}`;
  return `${number.toLocaleString('en-US')} ${number === 1 ? one : many}`;
}
