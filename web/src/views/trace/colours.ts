// The colour of a slice: by its thread, CPU, last-level cache, or why it waited.
// There are many more threads than distinguishable colours, so their hue is only
// a first cue; names in slices, the tooltip and the search are the second.

import type { Theme } from '../../theme';
import { CAUSE_KEYS, type Rows } from './lanes';
import { toPixel } from './raster';
import type { Scene } from './scene';

export const COLOURINGS = ['thread', 'cpu', 'llc', 'cause'] as const;
export type ColourBy = (typeof COLOURINGS)[number];

/** The golden ratio's fraction: hues of consecutive numbers are far apart. */
const GOLDEN = 0.618_033_988_75;
/** OKLCH lightness of consecutive numbers, in turn: text on each is readable, and each is visible
 * on the background. */
const LIGHTNESS = {
  light: [0.5, 0.58, 0.66],
  dark: [0.64, 0.73, 0.82],
} as const;
const CHROMA = 0.125;

/** The colour of a number, the same in all traces. */
export function hashedColour(number: number, isDark: boolean): string {
  const shades = LIGHTNESS[isDark ? 'dark' : 'light'];
  const hue = (number * GOLDEN) % 1;
  return oklch(shades[number % shades.length]!, CHROMA, hue * 2 * Math.PI);
}

/** OKLCH as "#rrggbb", cut to sRGB (Ottosson 2020, "A perceptual color space for image
 * processing"). */
function oklch(lightness: number, chroma: number, hue: number): string {
  const a = chroma * Math.cos(hue);
  const b = chroma * Math.sin(hue);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return `#${[
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ]
    .map((linear) => {
      const part = Math.min(1, Math.max(0, linear));
      const curved =
        part <= 0.0031308 ? part * 12.92 : 1.055 * part ** (1 / 2.4) - 0.055;
      return Math.round(curved * 255)
        .toString(16)
        .padStart(2, '0');
    })
    .join('')}`;
}

/** Mixes two colours; `share` is that of the second. */
export function mixColours(from: string, to: string, share: number): string {
  const [a, b] = [from, to].map((colour) =>
    Number.parseInt(colour.slice(1), 16),
  ) as [number, number];
  const part = (shift: number): number => {
    const [low, high] = [(a >> shift) & 255, (b >> shift) & 255];
    return Math.round(low + (high - low) * share) << shift;
  };
  return `#${(part(16) | part(8) | part(0)).toString(16).padStart(6, '0')}`;
}

/** The share of the background in the colour of slices that are not marked. */
const FADE_SHARE = 0.82;

/** Colours of slices: by the lanes' keys, or by rows. */
export class Palette {
  private readonly byRow: boolean;
  private readonly colours: string[] = [];
  private readonly pixels: number[] = [];
  private readonly faded: number[] = [];
  private readonly edges: number[] = [];
  private readonly fadedEdges: number[] = [];

  constructor(
    private readonly scene: Scene,
    private readonly rows: Rows,
    private readonly by: ColourBy,
    private readonly theme: Theme,
    /** Places of highlighted threads; null: all are. */
    private readonly marked: ReadonlySet<number> | null,
  ) {
    this.byRow =
      by === 'thread' ? rows === 'threads' : by !== 'cause' && rows === 'cpus';
  }

  /** Is the slice's thread highlighted? */
  isMarked(row: number, key: number): boolean {
    if (!this.marked) return true;
    return this.marked.has(this.threadOf(row, key));
  }

  css(row: number, key: number): string {
    const at = this.byRow ? row : key;
    return (this.colours[at] ??= this.colourOf(row, key));
  }

  pixel(row: number, key: number): number {
    const at = this.byRow ? row : key;
    return this.isMarked(row, key)
      ? (this.pixels[at] ??= toPixel(this.css(row, key)))
      : (this.faded[at] ??= toPixel(this.fade(this.css(row, key))));
  }

  /** The border of a slice. */
  edge(row: number, key: number): number {
    const at = this.byRow ? row : key;
    const colour = (): string =>
      mixColours(this.css(row, key), this.theme.text, 0.45);
    return this.isMarked(row, key)
      ? (this.edges[at] ??= toPixel(colour()))
      : (this.fadedEdges[at] ??= toPixel(this.fade(colour())));
  }

  private fade(colour: string): string {
    return mixColours(colour, this.theme.background, FADE_SHARE);
  }

  private threadOf(row: number, key: number): number {
    if (this.rows === 'threads') return this.scene.threads[row]!;
    return this.by === 'cause' ? Math.floor(key / CAUSE_KEYS) : key;
  }

  private colourOf(row: number, key: number): string {
    const { scene, theme } = this;
    if (this.by === 'cause') return causeColour(theme, (key % CAUSE_KEYS) - 1);
    if (this.by === 'thread') {
      const thread = this.threadOf(row, key);
      return hashedColour(scene.slices?.threads[thread] ?? 0, theme.isDark);
    }
    const cpu = this.rows === 'cpus' ? scene.cpus[row]! : key;
    if (this.by === 'cpu') return hashedColour(cpu, theme.isDark);
    const llc = scene.llcOf.get(cpu);
    return llc === undefined
      ? theme.neutral
      : theme.series[llc % theme.series.length]!;
  }
}

/** The colour of a cause by its index; −1, for slices without a recorded wait, has a muted one. */
export function causeColour(theme: Theme, cause: number): string {
  return cause < 0
    ? mixColours(theme.neutral, theme.background, 0.55)
    : theme.series[cause % theme.series.length]!;
}
