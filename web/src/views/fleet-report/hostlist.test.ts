// Lists of nodes for schedulers: Slurm reads what was written.

import { describe, expect, test } from 'vitest';

import { commaList, hostNames, slurmList } from './hostlist';

/** Expands a list as Slurm does: "n[1-2,04],a". */
function expanded(list: string): string[] {
  const pieces = list.match(/[^,[]*(\[[^\]]*\])?/g)!.filter(Boolean);
  return pieces.flatMap((piece) => {
    const bracket = piece.indexOf('[');
    if (bracket < 0) return [piece];
    const prefix = piece.slice(0, bracket);
    return piece
      .slice(bracket + 1, -1)
      .split(',')
      .flatMap((run) => {
        const [from, to = from] = run.split('-') as [string, string?];
        return Array.from(
          { length: Number(to) - Number(from) + 1 },
          (_, at) => prefix + `${Number(from) + at}`.padStart(from.length, '0'),
        );
      });
  });
}

describe('a list of nodes', () => {
  test.each([
    [['n1', 'n2', 'n3'], 'n[1-3]'],
    [['n08', 'n09', 'n10', 'n12'], 'n[08-10,12]'],
    [['n8', 'n9', 'n10'], 'n[8-10]'],
    [['n1', 'n01', 'n001'], 'n[1,01,001]'],
    [['b7', 'a', 'n5'], 'a,b7,n5'],
    [['r1n1', 'r1n2', 'r2n1'], 'r1n[1-2],r2n1'],
    [['n2', 'n2', 'n1'], 'n[1-2]'],
    [['login', '10.0.0.1', '10.0.0.2'], '10.0.0.[1-2],login'],
    [[], ''],
  ])('%j is %s', (names, list) => {
    expect(slurmList(names)).toBe(list);
    expect(expanded(list).sort()).toEqual([...new Set(names)].sort());
  });

  test('any names are unchanged after expansion', () => {
    let seed = 3;
    const below = (most: number): number => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      return seed % most;
    };
    for (let time = 0; time < 200; time += 1) {
      const names = Array.from(
        { length: below(40) },
        () =>
          ['n', 'node-', 'r1.'][below(3)]! +
          `${below(120)}`.padStart(below(4), '0'),
      );
      expect(expanded(slurmList(names)).sort()).toEqual(
        [...new Set(names)].sort(),
      );
    }
  });

  test('names with shell syntax are left out', () => {
    const names = [
      'n1',
      '$(reboot)',
      'n2;id',
      '-rf',
      'a b',
      '',
      'n3,n4',
      'n[1-9]',
      '</script>',
      'n\u202e5',
    ];
    expect(hostNames(names)).toEqual(['n1']);
    expect(commaList(names)).toBe('n1');
    expect(slurmList(names)).toBe('n1');
  });
});
