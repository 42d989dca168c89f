// Saving a chart: its drawing as SVG or PNG, its figures as CSV.

import { h, svg, visible } from './dom';
import { swatch } from './draw';
import { type Measure, type Panel, type Series, isRows } from './plot';
import { partName } from './words';
import { filterMap } from './lists';

/** The parts of a chart that are saved. */
export interface Saved {
  name: string;
  summary: string;
  panels: readonly Panel[];
  /** The drawings as the page has them, below each other. */
  svgs: readonly SVGElement[];
  measure: Measure;
}

/** Pixels of a PNG per pixel of the page. */
const SCALE = 2;
export const HEADING_HEIGHT = 30;
const KEY_HEIGHT = 22;
/** Approximate maximum width of a letter above a drawing, pixels. */
const WIDEST_LETTER = 7;
const HEADER = ['x axis', 'x', 'y axis', 'y', 'series', 'low', 'high', 'value'];

/** A menu of kinds to save as. */
export function saveMenu(
  what: string,
  kinds: readonly (readonly [kind: string, act: () => void])[],
): HTMLElement {
  return h(
    'details.save',
    h('summary', 'Save'),
    ...kinds.map(([kind, act]) =>
      h(
        'button',
        {
          type: 'button',
          aria: { label: `Save as ${kind}: ${what}` },
          onclick: act,
        },
        kind,
      ),
    ),
  );
}

/** A menu that saves the chart in its present state. */
export function chartMenu(chart: () => Saved): HTMLElement {
  const { name } = chart();
  const csv = (): void =>
    download(
      new Blob([toCsv(chart().panels)], { type: 'text/csv' }),
      fileName(name, 'csv'),
    );
  return saveMenu(name, [
    ...drawingKinds(name, () => toDrawing(chart())),
    ['CSV', csv],
  ]);
}

/** Kinds to save a drawing as. */
export function drawingKinds(
  name: string,
  drawing: () => SVGElement,
): (readonly [kind: string, act: () => void])[] {
  const png = async (): Promise<void> =>
    download(await pngBlob(drawing()), fileName(name, 'png'));
  return [
    ['SVG', () => download(svgBlob(drawing()), fileName(name, 'svg'))],
    ['PNG', () => void png()],
  ];
}

/** "pinwise-every-run.svg". */
export const fileName = (name: string, ending: string): string =>
  `pinwise-${partName(name) || 'chart'}.${ending}`;

/** A drawing with styles from the page's style sheet, and its caption. */
export type Captioned = readonly [
  words: string,
  drawn: SVGElement | HTMLCanvasElement,
];

/** A menu that saves drawings below each other. */
export const picturesMenu = (
  name: string,
  pictures: () => readonly Captioned[],
): HTMLElement =>
  saveMenu(
    name,
    drawingKinds(name, () => joinPictures(name, pictures())),
  );

function joinPictures(
  name: string,
  pictures: readonly Captioned[],
): SVGElement {
  let [width, top] = [0, HEADING_HEIGHT];
  const drawn = pictures.flatMap(([words, one]) => {
    const { width: wide, height } = one.getBoundingClientRect();
    const size = { y: top + KEY_HEIGHT, width: wide, height };
    const copy =
      one instanceof HTMLCanvasElement
        ? svg('image', { ...size, href: one.toDataURL() })
        : (one.cloneNode(true) as SVGElement);
    if (one instanceof SVGElement) {
      copy.setAttribute('y', String(size.y));
      inlineStyles(one, copy, STYLED);
    }
    const text = svg('text', { x: 4, y: top + 14 }, words);
    width = Math.max(width, wide, words.length * WIDEST_LETTER);
    top += KEY_HEIGHT + height + 8;
    return [text, copy];
  });
  const { fontFamily, color } = getComputedStyle(document.body);
  const size = { width: Math.ceil(width) + 8, height: Math.ceil(top) };
  return standaloneSvg({ name, summary: '', size, fontFamily, color }, drawn);
}

/** Has the browser keep a file. */
export function download(blob: Blob, name: string): void {
  const href = URL.createObjectURL(blob);
  h('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/** The points of all series as CSV, without lines that only guide the eye. */
export function toCsv(panels: readonly Panel[]): string {
  const lines = panels.flatMap(({ x, y, series }) =>
    series.flatMap((one) =>
      filterMap(one.points, (p) => {
        if (p.y === null || (one.name === undefined && p.tooltip === undefined))
          return null;
        return [
          x.title,
          x.type === 'utc'
            ? new Date(p.x).toISOString()
            : one.box === 'cell'
              ? (x.label?.(p.x) ?? p.x)
              : p.x,
          y.title,
          isRows(y) ? (y.names[Math.round(p.y)] ?? '') : p.y,
          one.name ?? '',
          p.low ?? '',
          p.high ?? '',
          p.value ?? '',
        ];
      }),
    ),
  );
  return [HEADER, ...lines]
    .map((line) => `${line.map(csvCell).join(',')}\r\n`)
    .join('');
}

/** A cell; a text that a spreadsheet would treat as a formula begins with an apostrophe. */
function csvCell(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const text = visible(value).replace(/^[=+\-@\t]/, "'$&");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Draws a chart as one standalone SVG: heading, legend and panels. */
function toDrawing({
  name,
  summary,
  panels,
  svgs,
  measure,
}: Saved): SVGElement {
  const first = svgs[0]!;
  const width = Number(first.getAttribute('width'));
  const { fontFamily, color } = getComputedStyle(first);
  const keys = drawLegend(
    panels.flatMap((panel) => panel.series),
    width,
    measure,
  );
  let top = HEADING_HEIGHT + keys.height;
  const drawn = svgs.map((one) => {
    const copy = one.cloneNode(true) as SVGElement;
    copy.removeAttribute('aria-hidden');
    copy.setAttribute('y', String(top));
    top += Number(one.getAttribute('height'));
    inlineStyles(one, copy);
    return copy;
  });
  const size = { width, height: top };
  return standaloneSvg({ name, summary, size, fontFamily, color }, [
    ...keys.elements,
    ...drawn,
  ]);
}

/** An SVG that needs no style sheet, with its heading. */
export function standaloneSvg(
  about: {
    name: string;
    summary: string;
    size: { width: number; height: number };
    fontFamily: string;
    color: string;
  },
  drawn: readonly SVGElement[],
): SVGElement {
  const { name, summary, size, fontFamily, color } = about;
  return svg(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      ...size,
      viewBox: `0 0 ${size.width} ${size.height}`,
      'font-family': fontFamily,
      'font-size': 13,
      color,
      fill: color,
    },
    svg('title', {}, name),
    svg('desc', {}, summary),
    svg('rect', {
      ...size,
      fill: getComputedStyle(document.body).backgroundColor,
    }),
    svg('text', { x: 4, y: 20, 'font-weight': 700 }, name),
    ...drawn,
  );
}

/** Draws a legend, in as many lines as it needs. */
function drawLegend(
  all: readonly Series[],
  width: number,
  measure: Measure,
): { elements: SVGElement[]; height: number } {
  const named = new Map(all.map((one) => [one.name, one]));
  named.delete(undefined);
  if (named.size < 2) return { elements: [], height: 0 };
  let [x, y] = [4, HEADING_HEIGHT];
  const elements = [...named.values()].flatMap((one) => {
    const wide = measure(visible(one.name!)) + 52;
    if (x > 4 && x + wide > width) [x, y] = [4, y + KEY_HEIGHT];
    const picture = swatch(one);
    picture.setAttribute('x', String(x));
    picture.setAttribute('y', String(y + 2));
    // Colours can be computed only while the picture is in the page.
    document.body.append(picture);
    inlineStyles(picture, picture);
    picture.remove();
    const text = svg('text', { x: x + 31, y: y + 13 }, one.name!);
    x += wide;
    return [picture, text];
  });
  return { elements, height: y + KEY_HEIGHT - HEADING_HEIGHT };
}

const PAINT = ['fill', 'stroke'];
/** Styles of a drawing's parts by their class. */
const STYLED = [
  ...PAINT,
  'stroke-width',
  'stroke-dasharray',
  'opacity',
  'paint-order',
];

/** Copies the page's style into a drawing: for `styled` all of it, else only variables. */
function inlineStyles(
  from: Element,
  to: Element,
  styled: readonly string[] = [],
): void {
  const style = getComputedStyle(from);
  for (const name of PAINT)
    if (to.getAttribute(name)?.includes('var('))
      to.setAttribute(name, style.getPropertyValue(name));
  for (const name of styled)
    to.setAttribute(name, style.getPropertyValue(name));
  if (from instanceof SVGTextElement) {
    to.setAttribute('font-size', style.fontSize);
    to.setAttribute('font-weight', style.fontWeight);
  } else {
    to.removeAttribute('font-family');
  }
  [...from.children].forEach((child, at) =>
    inlineStyles(child, to.children[at]!, styled),
  );
}

const svgBlob = (drawing: SVGElement): Blob =>
  new Blob([new XMLSerializer().serializeToString(drawing)], {
    type: 'image/svg+xml',
  });

async function pngBlob(drawing: SVGElement): Promise<Blob> {
  const href = URL.createObjectURL(svgBlob(drawing));
  const [width, height] = ['width', 'height'].map(
    (side) => Number(drawing.getAttribute(side)) * SCALE,
  ) as [number, number];
  const image = new Image(width, height);
  image.src = href;
  await image.decode();
  const canvas = h('canvas', { width, height });
  canvas.getContext('2d')!.drawImage(image, 0, 0, width, height);
  URL.revokeObjectURL(href);
  return new Promise((done, failed) =>
    canvas.toBlob((blob) =>
      blob ? done(blob) : failed(new Error('the picture is too large')),
    ),
  );
}
