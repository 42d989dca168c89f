// The colours of canvases and those of drawings are the same.

import { readFileSync } from 'node:fs';
import { beforeAll, expect, test, vi } from 'vitest';

const style = readFileSync(new URL('style.css', import.meta.url), 'utf8');

/** Rules whose selector and conditions hold a text, with their variables. */
function variables(of: RegExp): Record<string, string>[] {
  return [...style.matchAll(/([^{}]+)\{([^{}]*--series-1[^{}]*)\}/g)]
    .filter(([, selector]) => of.test(selector!))
    .map(([, , body]) =>
      Object.fromEntries(
        [...body!.matchAll(/(--[\w-]+):\s*([^;]+);/g)].map((m) => [m[1], m[2]]),
      ),
    );
}

let themes: typeof import('./theme');
beforeAll(async () => {
  vi.stubGlobal('matchMedia', () => ({ addEventListener: () => undefined }));
  themes = await import('./theme');
});

test('light and dark have the same colours on canvases and in drawings', () => {
  const light = variables(/^\s*:root\s*$/);
  const dark = variables(/^\s*:root\[data-theme='dark'\]\s*$/);
  expect([light.length, dark.length]).toEqual([1, 1]);
  for (const [theme, all] of [
    [themes.LIGHT, light],
    [themes.DARK, dark],
  ] as const) {
    for (const rule of all) {
      theme.series.forEach((colour, at) =>
        expect(rule[`--series-${at + 1}`]).toBe(colour),
      );
      for (const name of [
        'text',
        'muted',
        'better',
        'worse',
        'neutral',
      ] as const)
        expect(rule[`--${name}`]).toBe(theme[name]);
    }
  }
});
