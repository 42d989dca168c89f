// The modules of the page form no cycles, types included.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const FOLDER = import.meta.dirname;

/** The modules of the page that each module imports. */
type Imports = ReadonlyMap<string, readonly string[]>;

function readImports(): Imports {
  const names = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => name.replaceAll(path.sep, '/').slice(0, -3));
  return new Map(
    names.map((name) => {
      const text = readFileSync(path.join(FOLDER, `${name}.ts`), 'utf8');
      const named = [...text.matchAll(/\b(?:from|import) '(\.[^']*)'/g)];
      const own = named.map(([, one]) =>
        path.posix.join(path.posix.dirname(name), one!),
      );
      return [
        name,
        own
          .flatMap((one) => [one, `${one}/index`])
          .filter((one) => names.includes(one)),
      ];
    }),
  );
}

/** A cycle of modules that import each other; null if there is none. */
function findCycle(imports: Imports): string[] | null {
  const done = new Set<string>();
  const follow = (way: readonly string[]): string[] | null => {
    const last = way.at(-1)!;
    const before = way.indexOf(last);
    if (before < way.length - 1) return way.slice(before);
    if (done.has(last)) return null;
    for (const next of imports.get(last) ?? []) {
      const cycle = follow([...way, next]);
      if (cycle) return cycle;
    }
    done.add(last);
    return null;
  };
  for (const name of imports.keys()) {
    const cycle = follow([name]);
    if (cycle) return cycle;
  }
  return null;
}

test('a cycle is found', () => {
  const imports = new Map([
    ['a', ['b']],
    ['b', ['c', 'd']],
    ['c', []],
    ['d', ['b']],
  ]);
  expect(findCycle(imports)).toEqual(['b', 'd', 'b']);
});

test('modules form no cycles', () => {
  const imports = readImports();
  expect(imports.get('main')).toContain('source');
  expect(imports.get('main')).toContain('views/index');
  expect(findCycle(imports)).toBeNull();
});
