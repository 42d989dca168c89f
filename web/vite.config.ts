// Builds one file, dist/page.html, without references to other files. Its
// policy permits only the script and the style that it contains.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Plugin } from 'vite';
import { defineConfig } from 'vite';

/** The largest page without data, bytes. */
const MAX_BYTES = 500_000;

const PACKAGE = /^.*\/node_modules\/(@[^/]+\/[^/]+|[^/]+)/;

/** Reads the licence of a package: its copyright line, and the other text. */
function readLicence(folder: string): [copyright: string, text: string] {
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  if (!file) throw new Error(`${folder} comes without a licence`);
  const text = readFileSync(path.join(folder, file), 'utf8').trim();
  const line = /^.*copyright.*$/im.exec(text)?.[0] ?? '';
  return [line.trim(), text.replace(line, '').trim()];
}

/** Joins the notices of the packages of these modules; equal licences are printed once. */
function joinNotices(modules: readonly string[]): string {
  const texts = new Map<string, string[]>();
  const folders = modules.map((one) => PACKAGE.exec(one)).filter(Boolean);
  const named = new Map(folders.map((found) => [found![1]!, found![0]]));
  for (const [name, folder] of [...named].sort()) {
    const [copyright, text] = readLicence(folder);
    texts.set(text, [...(texts.get(text) ?? []), `${name}: ${copyright}`]);
  }
  const all = [...texts].map(
    ([text, names]) => `${names.join('\n')}\n\n${text}`,
  );
  return `This page holds parts of these packages.\n\n${all.join('\n\n')}`;
}

const hash = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** The policy of a page with this script and style; the local site needs `connect-src 'self'`. */
const policy = (script: string, style: string): string =>
  [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    'img-src data: blob:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');

/** Replaces references to the script and the style by their contents. */
function singleFile(): Plugin {
  return {
    name: 'single-file',
    enforce: 'post',
    generateBundle(_options, bundle) {
      const parts = Object.values(bundle);
      const page = parts.find((part) => part.fileName === 'index.html');
      const scripts = parts.flatMap((part) =>
        part.type === 'chunk' ? [part.code] : [],
      );
      const styles = parts.flatMap((part) =>
        part.type === 'asset' && part.fileName.endsWith('.css')
          ? [String(part.source)]
          : [],
      );
      if (
        page?.type !== 'asset' ||
        scripts.length !== 1 ||
        styles.length !== 1
      ) {
        throw new Error(
          `expected a page, a script and a style, found ${Object.keys(bundle).join(', ')}`,
        );
      }
      // A script must not contain its end tag, or the start of its double escape.
      const script = scripts[0]!.replace(/<(?=\/script|script|!--)/gi, '\\x3c');
      const style = styles[0]!.replace(/<(?=\/style)/gi, '\\3c ');
      // Two hyphens could end the HTML comment around the notices.
      const notice = joinNotices(
        parts
          .flatMap((part) => (part.type === 'chunk' ? part.moduleIds : []))
          .filter((id) => !findReplacement(id)),
      ).replaceAll('--', '- -');
      const html = String(page.source)
        .replace(/<script type="module"[^>]*><\/script>/, '')
        .replace(
          /<link rel="stylesheet"[^>]*>/,
          () => `<style>${style}</style>`,
        )
        .replace(
          '<meta charset="utf-8">',
          () =>
            `<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="${policy(script, style)}">`,
        )
        .replace(
          '</body>',
          () =>
            `<script type="module">${script}</script>\n<!--\n${notice}\n-->\n</body>`,
        );
      const bytes = Buffer.byteLength(html);
      if (bytes > MAX_BYTES) {
        throw new Error(
          `the page has ${bytes} bytes, ${MAX_BYTES} are allowed`,
        );
      }
      for (const part of parts) delete bundle[part.fileName];
      this.emitFile({ type: 'asset', fileName: 'page.html', source: html });
    },
  };
}

/** Replacements for parts of Plot, and of packages that it uses, that no chart of the page needs. */
const UNUSED: Readonly<Record<string, string>> = {
  // Paths on a globe, which only marks of maps draw.
  'd3-geo/dist/d3-geo.mjs':
    'export const geoCentroid = no, geoGraticule10 = no, geoPath = no;',
  // Plot's warnings are for its callers; readers of the page cannot act on them.
  'warnings.js': 'export const warn = no, consumeWarnings = () => 0;',
  // Lines are straight, or steps.
  'curve.js': `import { curveLinear, curveStepAfter } from 'd3';
    export const curveAuto = (context) => curveLinear(context);
    export const maybeCurve = (curve) =>
      curve === 'step-after' ? curveStepAfter : curveLinear;
    export const maybeCurveAuto = maybeCurve;`,
  'projection.js': `export const applyPosition = no, createProjection = no,
    getGeometryChannels = no, hasProjection = () => false, project = no,
    projectionAspectRatio = no, xyProjection = no;`,
  'facet.js': `export const createFacets = no, facetExclude = no,
    facetFilter = no, facetGroups = no, facetTranslator = no,
    maybeFacetAnchor = no, recreateFacets = no;`,
  'scales/diverging.js': `export const createScaleDiverging = no,
    createScaleDivergingLog = no, createScaleDivergingPow = no,
    createScaleDivergingSqrt = no, createScaleDivergingSymlog = no;`,
  'legends.js':
    'export const createLegends = () => [], exposeLegends = no, legend = no;',
  'marker.js':
    'export const markers = no, applyMarkers = no, applyGroupedMarkers = no;',
  'marks/tip.js': 'export const Tip = no, tip = no;',
  'interactions/pointer.js': `export const anchorX = no, anchorY = no,
    pointer = no, pointerX = no, pointerY = no;`,
  'scales/ordinal.js': `export const ordinalImplicit = Symbol(),
    createScaleBand = no, createScaleOrdinal = no, createScalePoint = no;`,
  'scales/schemes.js': `export const isCategoricalScheme = () => false,
    isDivergingScheme = () => false, maybeBooleanRange = no, ordinalRange = no,
    ordinalScheme = no, quantitativeScheme = () => (share) => no(share);`,
};

const findReplacement = (id: string): string | undefined =>
  UNUSED[id.split(/\/(?:plot\/src|node_modules)\//).at(-1)!];

/** Names of colours, which charts do not use: theirs are of the theme, or computed. */
const COLOUR_NAMES = /,aliceblue,[a-z,]+|\baliceblue: 0x[\s\w:,]+(?=\n\})/;

/** Curves that are made by calls: without a mark, a bundler keeps those that nobody uses. */
const CURVES = /= (?=\(function custom|curveRadial\()/g;
/** Scales that are not linear, logarithmic, or of times; sorted domains; frames around axes. */
const UNUSED_CALLS =
  /case "(?:quanti[lz]e|sqrt|pow|symlog|threshold)":\s+return .+;|const reducer = maybeReduce.+|axes\.push\(frame\(.+/g;

const withoutUnused: Plugin = {
  name: 'without-unused',
  transform: (code, id) =>
    /plot\/src\/(options|scales|channel|plot)\.js|d3-color|d3-shape/.test(id)
      ? {
          code: code
            .replace(COLOUR_NAMES, '')
            .replace(UNUSED_CALLS, ';')
            .replace(CURVES, '= /* @__PURE__ */ '),
          map: null,
        }
      : null,
  load: (id) => {
    const text = findReplacement(id);
    return text ? `/* @__NO_SIDE_EFFECTS__ */ function no() {}\n${text}` : null;
  },
};

export default defineConfig({
  base: './',
  plugins: [withoutUnused, singleFile()],
  build: {
    outDir: 'dist',
    emptyOutDir: false,
    target: 'es2022',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    chunkSizeWarningLimit: 2000,
    rollupOptions: { output: { codeSplitting: false } },
  },
});
