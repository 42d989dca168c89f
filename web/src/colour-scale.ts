// Interpolates the colours of a scale, and chooses readable text colours for them.

type Rgb = readonly [number, number, number];

const parseColour = (colour: string): Rgb => {
  const number = Number.parseInt(colour.slice(1), 16);
  return [(number >> 16) & 255, (number >> 8) & 255, number & 255];
};

/** The red, green and blue at `share` (0 to 1) of a scale of "#rrggbb". */
export function rgbAt(scale: readonly string[], share: number): Rgb {
  const at =
    Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0)) *
    (scale.length - 1);
  const from = Math.min(scale.length - 2, Math.floor(at));
  const low = parseColour(scale[Math.max(0, from)] ?? '#000000');
  const high = parseColour(
    scale[from + 1] ?? scale[scale.length - 1] ?? '#000000',
  );
  const part = at - from;
  const mix = (a: number, b: number): number => Math.round(a + (b - a) * part);
  return [mix(low[0], high[0]), mix(low[1], high[1]), mix(low[2], high[2])];
}

/** The colour at `share` of a scale, as "#rrggbb". */
export function colourAt(scale: readonly string[], share: number): string {
  return `#${rgbAt(scale, share)
    .map((part) => part.toString(16).padStart(2, '0'))
    .join('')}`;
}

/** Black or white, whichever has the greater contrast with a colour (WCAG 2, relative luminance). */
export function inkOn(colour: string): string {
  const [red, green, blue] = parseColour(colour).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05)
    ? '#000000'
    : '#ffffff';
}

/** Position of a value between the ends of a scale of equal ratios; 0.5 if the ends are the
 * same. */
export function ratioPosition(
  value: number,
  low: number,
  high: number,
): number {
  if (low > 0 && high / low > 1.000001)
    return Math.log(value / low) / Math.log(high / low);
  return high > low ? (value - low) / (high - low) : 0.5;
}

/** Position of a value between the ends of the scale, 0 to 1. */
export function scalePosition(
  value: number,
  { low, high }: { low: number; high: number },
  isLog: boolean,
): number {
  if (isLog) return ratioPosition(value, low, high);
  return high > low ? (value - low) / (high - low) : 0.5;
}
