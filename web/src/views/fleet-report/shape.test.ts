// The data of a fleet report's drawings and tables.

import { describe, expect, test } from 'vitest';

import { colourStrength, isWorse, outlierGlyph, toHeat } from './heat';
import { readReport, type Outlier } from './record';
import {
  pText,
  outlierNodes,
  countFigures,
  groupName,
  groupRange,
  missingWords,
  openGroups,
  outlierRow,
  filterOutliers,
  place,
  ratioRange,
  stripEnds,
  groupStrips,
  splitStrips,
  stripWords,
  chooseTicks,
} from './shape';

const outlier = (
  node: string,
  figure: string,
  more: Record<string, unknown> = {},
): Record<string, unknown> => ({
  node,
  group: 0,
  kind: 'figure',
  figure,
  unit: 'ns',
  value: 180,
  typical: 90,
  ratio: 2,
  z: 23,
  adjusted_p: 1e-7,
  setting: null,
  typical_setting: null,
  record: `f.${node}`,
  sentence: `${node}: ${figure}`,
  ...more,
});

const report = (more: Record<string, unknown> = {}) =>
  readReport({
    schema: 'pinwise.fleet-report/1',
    id: 'f.report',
    fleet: 'f',
    asked: 10,
    nodes: 8,
    complete: 7,
    groups: [
      {
        name: 'EPYC',
        nodes: 8,
        identity: { bios: '2', cpu: 'EPYC' },
        figures: [
          {
            step: 'wiring',
            name: 'latency',
            unit: 'ns',
            nodes: 8,
            median: 90,
            spread: 0.03,
            p5: 85.5,
            p95: 94.5,
            least: 80,
            greatest: 180,
          },
        ],
      },
    ],
    outliers: [
      outlier('n1', 'wiring · latency'),
      outlier('n1', 'smt', {
        value: null,
        typical: null,
        ratio: null,
        adjusted_p: null,
        setting: 'off',
        typical_setting: 'on',
      }),
      outlier('n2', 'wiring · latency', { group: 1 }),
    ],
    ...more,
  });

const link = (id: string): string | undefined =>
  id === 'f.n1' ? `#/${id}` : undefined;

describe('a report of a fleet', () => {
  test('says what is missing', () => {
    expect(missingWords(report())).toBe(
      '2 of the 10 requested nodes have no record; 1 of 8 nodes lacks steps.',
    );
    expect(missingWords(report({ asked: 8, complete: 8 }))).toBe('');
    expect(missingWords(report({ asked: null, nodes: null }))).toBe('');
  });

  test('has one row for each anomaly, with words of settings', () => {
    const rows = report().outliers.map((one) =>
      outlierRow(one, report(), link).map((cell) => cell.text),
    );
    expect(rows[0]).toEqual([
      'n1',
      'wiring · latency',
      '180 ns',
      '90.0 ns',
      '+100 %',
      '< 0.0001',
    ]);
    expect(rows[1]!.slice(2, 6)).toEqual(['off', 'on', '–', '–']);
    expect(outlierRow(report().outliers[0]!, report(), link)[0]!.href).toBe(
      '#/f.n1',
    );
    expect(
      outlierRow(report().outliers[2]!, report(), link)[0]!.href,
    ).toBeUndefined();
  });

  test('puts the anomalies of a node together, in the order of the record', () => {
    const nodes = outlierNodes(report().outliers);
    expect(nodes.map((node) => [node.node, node.outliers.length])).toEqual([
      ['n1', 2],
      ['n2', 1],
    ]);
    expect([0, 1, null].map((at) => groupName(report().groups, at))).toEqual([
      'Group 1: EPYC',
      'Group 2',
      '–',
    ]);
    expect([...openGroups(report(), 2)]).toEqual([0]);
  });

  test('is narrowed by group and figure', () => {
    const nodes = (found: readonly Outlier[]): string[] =>
      found.map((one) => one.node);
    const { outliers } = report();
    expect(nodes(filterOutliers(outliers, { group: 1, figure: null }))).toEqual(
      ['n2'],
    );
    expect(
      nodes(filterOutliers(outliers, { group: null, figure: 'smt' })),
    ).toEqual(['n1']);
    expect(
      filterOutliers(outliers, { group: null, figure: null }),
    ).toHaveLength(3);
    expect(countFigures(outliers)).toEqual([
      ['wiring · latency', 2],
      ['smt', 1],
    ]);
  });

  test('leaves out anomalies without a node or figure', () => {
    const read = report({
      groups: [{ figures: [null, {}] }],
      outliers: [7, {}, { node: 'n1', figure: 'smt' }],
      common: {},
    });
    expect(read.groups[0]).toMatchObject({ identity: [], figures: [{}] });
    expect(read.outliers).toHaveLength(1);
    expect(read.common).toEqual([]);
  });
});

describe('a strip', () => {
  const figure = report().groups[0]!.figures[0]!;

  test('places equal ratios equally far from 1, and marks those beyond its ends', () => {
    const range = ratioRange([0.5, 2]);
    const [half, one, double] = [0.5, 1, 2].map(
      (ratio) => place(ratio, range).at,
    ) as [number, number, number];
    expect(one - half).toBeCloseTo(double - one);
    expect(place(0.5, range).beyond).toBe(0);
    expect(place(30, ratioRange([30])).beyond).toBe(1);
    expect(place(0.01, ratioRange([0.01])).beyond).toBe(-1);
    expect(place(30, ratioRange([30])).at).toBeLessThanOrEqual(99);
  });

  test('has a width, and ignores invalid ratios', () => {
    const [low, high] = ratioRange([null, 1, 0, -3, NaN]);
    expect(low).toBeLessThan(1 / 1.05);
    expect(high).toBeGreaterThan(1.05);
    expect(
      groupRange(report().groups[0]!, report().outliers)[1],
    ).toBeGreaterThan(2);
  });

  test('has an axis of round ratios with room between', () => {
    for (const range of [
      ratioRange([]),
      ratioRange([0.5, 2]),
      ratioRange([0.1, 9]),
      ratioRange([1.9]),
    ]) {
      const all = chooseTicks(range);
      expect(all).toContain(1);
      const places = all.map((tick) => place(tick, range).at);
      for (let at = 1; at < places.length; at += 1)
        expect(places[at]! - places[at - 1]!).toBeGreaterThanOrEqual(13);
    }
  });

  test('is described in words, and not drawn without a positive median', () => {
    expect(stripWords(figure, 3)).toBe(
      'median 90.0 ns, ordinary nodes within about 3.0 % of it, 5th to 95th percentile 85.5 ns to 94.5 ns, least 80.0 ns, greatest 180 ns; 3 outliers',
    );
    expect(stripEnds(figure)!.box![1]).toBeCloseTo(1.05);
    expect(stripEnds({ ...figure, median: 0 })).toBeNull();
    expect(stripEnds({ ...figure, least: -1 })!.reach).toBeNull();
    expect(stripEnds({ ...figure, p5: null })!.box).toBeNull();
    expect(
      stripWords({ ...figure, spread: null, p5: null, least: null }, 1),
    ).toBe('median 90.0 ns; 1 outlier');
  });

  test('exists for outliers outside the figures as well, not for settings', () => {
    const outliers = [
      outlier('n1', 'wiring · latency'),
      outlier('n1', 'wiring · noise', { unit: '', typical: 0.1 }),
      outlier('n1', 'smt', { setting: 'off' }),
    ];
    const strips = groupStrips(
      report().groups[0]!,
      report({ outliers }).outliers,
    );
    expect(
      strips.map((strip) => [
        strip.figure.label,
        strip.figure.median,
        strip.outliers.length,
      ]),
    ).toEqual([
      ['wiring · latency', 90, 1],
      ['wiring · noise', 0.1, 1],
    ]);
  });

  test('folds strips without outliers, unless all are', () => {
    const quiet = { outliers: [] };
    const named = { outliers: report().outliers };
    expect(splitStrips([quiet, named])).toEqual([[named], [quiet]]);
    expect(splitStrips([quiet])).toEqual([[quiet], []]);
  });

  test('has chances in words', () => {
    expect([pText(null), pText(0), pText(0.00009), pText(0.0123)]).toEqual([
      '–',
      '< 0.0001',
      '< 0.0001',
      '0.012',
    ]);
  });
});

describe('the map of a report', () => {
  const common = {
    group: 0,
    figures: ['wiring · latency'],
    nodes: ['n2'],
    setting: 'smt',
    value: 'off',
  };
  const outliers = [
    outlier('n1', 'wiring · latency'),
    outlier('n1', 'other', { ratio: 0.5, z: -30 }),
    outlier('n2', 'smt', { ratio: null, z: null, setting: 'off' }),
  ];

  test('has causes first, a column for each figure, and empty cells without outlier', () => {
    const made = report({ outliers, common: [common] });
    const heat = toHeat(made, made.outliers);
    expect(heat.columns).toEqual(['wiring · latency', 'smt', 'other']);
    expect(
      heat.parts.map(({ cause, rows }) => [
        cause?.setting,
        rows.map((row) => [
          row.node,
          row.cells.map((cell) => cell && outlierGlyph(cell)).join(' '),
        ]),
      ]),
    ).toEqual([
      ['smt', [['n2', ' ≠ ']]],
      [undefined, [['n1', '▲  ▼']]],
    ]);
    expect(made.outliers.map(colourStrength)).toEqual([1, -1, null]);
  });

  test('colours a lower rate and a longer time as worse', () => {
    const [rate, time] = report({
      outliers: [
        outlier('n1', 'bandwidth', { z: -9, unit: 'GB/s' }),
        outlier('n1', 'latency', { z: -9, unit: 'ns' }),
      ],
      common: [],
    }).outliers;
    expect([rate!, time!].map(isWorse)).toEqual([true, false]);
  });

  test('draws as many columns as fit, and counts the others', () => {
    const many = Array.from({ length: 40 }, (_, at) =>
      outlier('n1', `figure ${at}`),
    );
    const made = report({ outliers: many, common: [] });
    const heat = toHeat(made, made.outliers);
    expect([heat.columns.length, heat.more]).toEqual([30, 10]);
    expect(heat.parts).toHaveLength(1);
  });
});
