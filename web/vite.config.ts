// Builds one file, dist/page.html: no reference leaves it, and its policy
// allows no script or style but the two that stand in it.
import { createHash } from 'node:crypto';
import type { Plugin } from 'vite';
import { defineConfig } from 'vite';

/** The largest page without data, bytes. */
const MOST_BYTES = 900_000;

const hash = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** What a page of this script and style may do; `connect-src 'self'` is for the local site. */
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

/** Puts script and style into the page, in place of references to them. */
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
      // The end of a script, or its double escape, must not stand in one.
      const script = scripts[0]!.replace(/<(?=\/script|script|!--)/gi, '\\x3c');
      const style = styles[0]!.replace(/<(?=\/style)/gi, '\\3c ');
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
          () => `<script type="module">${script}</script>\n</body>`,
        );
      const bytes = Buffer.byteLength(html);
      if (bytes > MOST_BYTES) {
        throw new Error(
          `the page has ${bytes} bytes, ${MOST_BYTES} are allowed`,
        );
      }
      for (const part of parts) delete bundle[part.fileName];
      this.emitFile({ type: 'asset', fileName: 'page.html', source: html });
    },
  };
}

export default defineConfig({
  base: './',
  plugins: [singleFile()],
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
