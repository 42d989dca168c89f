// Filters in the address, machine changes, figures over time.

import { describe, expect, test } from 'vitest';

import { fakeEntry } from '../../fake-entry';
import type { CommitRange, Entry, GateChange, GateStep } from '../../source';
import { describeChange } from './machine';
import { explainIncomparable, explainPair, sortByTime } from './pair';
import {
  changeText,
  figureText,
  formatAddress,
  describeHistory,
  describeTrend,
  diffCommand,
  findChanges,
  findChangesOfSteps,
  findNewVerdict,
  parseFilter,
  foldParts,
  nameKind,
  collectOverTime,
  findQuestions,
  parseTimeRange,
  findRepeatedSubjects,
  selectTimeRange,
  spreadTimes,
} from './shape';
import { formatVerdict } from './verdict';

const entry = (id: string, more: Partial<Entry> = {}): Entry =>
  fakeEntry(id, {
    time: `2026-01-${id.padStart(2, '0')}T00:00:00Z`,
    title: 'xz',
    subject: 'comparison · xz',
    machine: 'EPYC, shape ab, kernel 6.1',
    figures: [
      {
        name: 'os-default',
        unit: 's',
        value: Number(id),
        low: null,
        high: null,
      },
    ],
    ...more,
  });

describe('filters', () => {
  test('are restored from an address', () => {
    const filter = {
      host: 'node 7 & co',
      schema: 'pinwise.trace/1',
      text: '</script> ünïcode',
    };
    expect(
      parseFilter(new URLSearchParams(formatAddress(filter).split('?')[1])),
    ).toEqual(filter);
    expect(formatAddress({})).toBe('#/history');
    expect(parseFilter(new URLSearchParams('limit=5&offset=2&else=1'))).toEqual(
      {},
    );
  });

  test('kinds have plain names', () => {
    expect(nameKind('pinwise.topology/1')).toBe('machine');
    expect(nameKind('pinwise.spin-pause/12')).toBe('spin pause');
    expect(nameKind('nonsense')).toBe('nonsense');
  });
});

test('verdicts follow their signs', () => {
  const shown = (more: Partial<Entry>): string =>
    formatVerdict(entry('1', { verdict: 'Slower.', ...more }));
  expect(shown({ outcome: 'fail' })).toBe('✗ Slower.');
  expect(shown({ outcome: 'later word' })).toBe('Slower.');
  expect(shown({ outcome: 'pass', complete: false })).toBe(
    '◌ unfinished: running, or cut off',
  );
});

describe('comparisons that change their verdict', () => {
  const run = (day: number, percent: number, outcome: string): Entry =>
    entry(String(day), {
      outcome,
      baseline: 'os-default',
      ...(outcome === 'best' ? { best: 'pair' } : {}),
      figures: [
        { name: 'os-default', unit: 's', value: 1, low: null, high: null },
        {
          ...{ name: 'pair', unit: 's', value: 1, low: null, high: null },
          change: { value: percent, low: percent - 2, high: percent + 2 },
        },
      ],
    });
  const runs = [
    run(1, -11, 'best'),
    run(2, -10, 'best'),
    run(3, 50, 'undecided'),
    run(4, 3, 'leave_alone'),
    run(5, 4, 'leave_alone'),
  ];

  test('show the change that each record judged, and when the verdict changed', () => {
    const { figures, hosts } = collectOverTime(runs, null);
    expect(figures).toEqual(['pair against os-default', 'os-default', 'pair']);
    const { figure } = hosts[0]!.points[0]!;
    expect([figure.value, figure.low, figure.high]).toEqual([-11, -13, -9]);
    const found = findNewVerdict(hosts[0]!.points)!;
    expect(found.sentence).toBe(
      'pair no longer beats os-default since 2026-01-04 00:00: from −10.0 % to +3.0 %',
    );
    expect(diffCommand(found.before, found.after)[1]).toBe(
      'pinwise record diff 2 4',
    );
    const first = collectOverTime(runs.slice(0, 3), null).hosts[0]!.points;
    expect(findNewVerdict(first)).toBe(null);
    const back = collectOverTime([...runs, run(6, -9, 'best')], null).hosts[0]!;
    expect(findNewVerdict(back.points)?.sentence).toMatch(
      /^pair now beats os-default since .*: from \+4.0 % to −9.0 %$/,
    );
  });

  test('comparisons without the pair have no change of it', () => {
    const other = { ...run(6, 9, 'leave_alone'), baseline: 'A' };
    const { hosts } = collectOverTime([...runs, other], null);
    expect(hosts[0]!.points).toHaveLength(5);
  });
});

test('records within a minute lie beside each other', () => {
  expect(spreadTimes([0, 1, 2, 5e6])).toEqual([0, 1e5, 2e5, 5e6]);
  expect(spreadTimes([0, 4.9999e6, 5e6])).toEqual([0, 4.9e6, 5e6]);
  expect(spreadTimes([5])).toEqual([5]);
  expect(spreadTimes([5000, 5000])).toEqual([3800, 5000]);
});

describe('over time', () => {
  test('each host has the points of the requested figure, oldest first', () => {
    const other = entry('3', {
      host: 'b',
      figures: [{ name: 'one-llc', unit: 's', value: 9, low: 8, high: 10 }],
    });
    const data = collectOverTime(
      [entry('5'), entry('2'), other, entry('4', { time: 'never' })],
      null,
    );
    expect(data.figures).toEqual(['os-default', 'one-llc']);
    expect(
      data.hosts.map((host) => [
        host.host,
        host.points.map((p) => p.figure.value),
      ]),
    ).toEqual([['a', [2, 5]]]);
    expect(
      collectOverTime([entry('5'), other], 'one-llc').hosts.map(
        (host) => host.host,
      ),
    ).toEqual(['b']);
    expect(collectOverTime([entry('5')], 'gone').hosts[0]!.points).toHaveLength(
      1,
    );
  });

  test('a machine change is shown once, in words, and only for its host', () => {
    const changes = findChanges([
      entry('1'),
      entry('2', { host: 'b', machine: 'EPYC, shape cd, kernel 6.9' }),
      entry('3', { machine: null }),
      entry('4', { machine: 'EPYC, shape ab, kernel 6.2, on kvm' }),
      entry('5', { machine: 'EPYC, shape ab, kernel 6.2, on kvm' }),
    ]);
    expect(changes).toEqual([
      {
        host: 'a',
        time: Date.parse('2026-01-04T00:00:00Z'),
        words: 'kernel 6.1 → 6.2, hypervisor unknown → kvm',
      },
    ]);
  });

  test('a rebuilt program is a change only of its question', () => {
    const built = (id: string, program: string | null, subject = 'a'): Entry =>
      entry(id, { program, subject });
    const changes = findChanges([
      built('1', '0123456789abcdef'),
      built('2', 'fedcba9876543210', 'b'),
      built('3', null),
      built('4', '0123456789abcdef'),
      built('5', '0123456789abcdef, 89abcdef01234567'),
    ]);
    expect(changes.map(({ words }) => words)).toEqual([
      'program 01234567 → 01234567, 89abcdef',
    ]);
  });

  test('a CPU model may contain commas', () => {
    expect(
      describeChange(
        "sim 'pu:2(indexes=0, 1)', shape a",
        "sim 'pu:2(indexes=0, 2)', shape a",
      ),
    ).toBe("CPU sim 'pu:2(indexes=0, 1)' → sim 'pu:2(indexes=0, 2)'");
  });

  test('only repeated questions can be shown over time', () => {
    const once = entry('3', { subject: 'once' });
    const none = entry('4', { subject: 'bare', figures: [] });
    expect(
      findRepeatedSubjects([
        entry('1'),
        entry('2'),
        once,
        none,
        none,
        entry('5', { subject: null }),
      ]),
    ).toEqual(['comparison · xz']);
  });

  test('each host has its repeated questions', () => {
    const changed = { machine: 'EPYC, shape ab, kernel 6.2' };
    const all = [
      entry('1'),
      entry('2'),
      entry('3', changed),
      entry('4', { host: 'b' }),
      entry('5', { host: 'b' }),
      entry('6', { subject: 'once' }),
    ];
    expect(
      findQuestions(all).map((q) => [
        q.host,
        q.figure,
        q.points.length,
        q.changes.length,
      ]),
    ).toEqual([
      ['a', 'os-default', 3, 1],
      ['b', 'os-default', 2, 0],
    ]);
  });

  test('nodes of a fleet that share a host name are told apart', () => {
    const part = (node: string, at: string): Entry =>
      entry(at, { id: `f.${node}~xz`, host: 'vm', tags: ['fleet:f'] });
    const nodes = [part('n1', '1'), part('n2', '2')];
    expect(findQuestions(nodes)).toEqual([]);
    expect(collectOverTime(nodes, null).hosts.map((h) => h.host)).toEqual([
      'vm (n1)',
      'vm (n2)',
    ]);
  });

  test('a trend is a change only where intervals do not overlap', () => {
    const trend = (...ends: [number, number][]): string =>
      describeTrend(
        collectOverTime(
          ends.map(([low, high], at) =>
            entry(`${at + 1}`, {
              figures: [
                { name: 'x', unit: 's', value: (low + high) / 2, low, high },
              ],
            }),
          ),
          null,
        ).hosts[0]!.points,
      );
    expect(trend([1, 3], [2, 4])).toBe(
      'no change shown since 2026-01-01 00:00',
    );
    expect(trend([1, 3], [2, 4], [4, 6])).toBe(
      'changed from 2.00 s to 5.00 s since 2026-01-01 00:00',
    );
    expect(trend([1, 3])).toBe('measured once');
    const times = [423, 44.1].map((value, at) =>
      entry(`${at + 1}`, {
        figures: [{ name: 'CPU', unit: 's', value, low: null, high: null }],
      }),
    );
    expect(describeTrend(collectOverTime(times, null).hosts[0]!.points)).toBe(
      '2 records are too few to judge; last 44.1 s, before 423 s',
    );
    expect(
      describeTrend(collectOverTime(times, null).hosts[0]!.points, true),
    ).toBe('2 records are too few to judge');
    const counts = [2, 5].map((value, at) =>
      entry(`${at + 1}`, {
        figures: [{ name: 'nodes', unit: '', value, low: null, high: null }],
      }),
    );
    expect(describeTrend(collectOverTime(counts, null).hosts[0]!.points)).toBe(
      'changed from 2 to 5 since 2026-01-01 00:00',
    );
    // Less than the digits that are shown.
    expect(trend([11.501, 11.502], [11.503, 11.504])).toBe(
      'no change shown since 2026-01-01 00:00',
    );
  });

  test('a range of time selects points and changes, and is restored from an address', () => {
    const query = new URLSearchParams('from=2026-01-02&to=2026-01-03T12:00Z');
    const range = parseTimeRange(query);
    const data = collectOverTime([entry('1'), entry('2'), entry('3')], null);
    expect(
      selectTimeRange(data, range).hosts[0]!.points.map((p) => p.figure.value),
    ).toEqual([2, 3]);
    expect(selectTimeRange(data, null)).toBe(data);
    const back = new URLSearchParams(
      formatAddress({ subject: 'x' }, range).split('?')[1],
    );
    expect(parseTimeRange(back)).toEqual(range);
    for (const odd of ['', 'from=x&to=2026', 'from=2027&to=2026'])
      expect(parseTimeRange(new URLSearchParams(odd))).toBe(null);
  });

  test('only records of one kind with a figure in common are compared', () => {
    const figure = { unit: 's', value: 1, low: null, high: null };
    expect(explainIncomparable(entry('1'), entry('2'))).toBe('');
    expect(explainIncomparable(entry('1'), entry('2', { figures: [] }))).toBe(
      '',
    );
    expect(
      explainIncomparable(
        entry('1'),
        entry('2', { schema: 'pinwise.trace/1' }),
      ),
    ).toBe('is a trace, the chosen one a comparison');
    expect(
      explainIncomparable(
        entry('1'),
        entry('2', { figures: [{ ...figure, name: 'other' }] }),
      ),
    ).toContain('no figure in common');
  });

  test('two records that are not compared say why', () => {
    const trace = entry('2', { schema: 'pinwise.trace/1' });
    expect(explainPair(entry('1'), trace)).toBe(
      'one is a comparison, the other a trace',
    );
    expect(explainPair(entry('1'), entry('2', { subject: 'b' }))).toBe(
      'they measure different commands or figures; `pinwise record diff 1 2` says why',
    );
    expect(explainPair(entry('1'), entry('2'))).toMatch(/ says why$/);
  });

  test('the older of two records comes first', () => {
    const [a, b] = [entry('1'), entry('2')];
    expect(sortByTime(b, a, [])).toEqual([a, b]);
    expect(sortByTime(a, b, [])).toEqual([a, b]);
  });

  test('keeps the order of the list within a second', () => {
    const [before, newest] = ['1', '2'].map((id) =>
      entry(id, { time: '2026-01-01T00:00:00Z' }),
    ) as [Entry, Entry];
    const list = [newest, before];
    const { points } = collectOverTime(list, null).hosts[0]!;
    expect(points.map((p) => p.entry)).toEqual([before, newest]);
    expect(sortByTime(newest, before, list)).toEqual([before, newest]);
    expect(sortByTime(before, newest, list)).toEqual([before, newest]);
  });
});

const range = (base: string, head: string): CommitRange => ({
  base,
  head,
  effect: { unit: '%' },
});
const step = (base: string, head: string): GateStep => ({
  ...range(base, head),
  records: [],
  started: '',
  since_first: { unit: '%' },
});
const change = (base: string, head: string, steps: number): GateChange => ({
  ...range(base, head),
  steps,
  is_worse: true,
  sentence: '',
});

test('a change includes the steps up to its head', () => {
  const steps = [
    step('a', 'b'),
    step('b', 'c'),
    step('c', 'd'),
    step('d', 'e'),
  ];
  const changes = [change('b', 'd', 2), change('gone', 'lost', 1)];
  expect(findChangesOfSteps({ steps, changes })).toEqual([null, 0, 0, null]);
});

test('parts of a bench or a fleet share a line, unless their tag is requested', () => {
  const part = (id: string): Entry => entry(id, { tags: ['bench:9'] });
  const bench = entry('9', { schema: 'pinwise.bench/1', tags: ['bench:9'] });
  const all = [part('4'), entry('3'), part('2'), part('1'), bench];
  const ids = (asked?: string): [string, number][] =>
    foldParts(all, asked).map(({ entry: { id }, others }) => [id, others]);
  expect(ids()).toEqual([
    ['4', 2],
    ['3', 0],
    ['9', 0],
  ]);
  expect(ids('bench:9').length).toBe(5);
  expect(foldParts(all.slice(2), undefined).length).toBe(3);
});

test('nodes of a fleet, and what they ran, are folded under the fleet', () => {
  const tags = ['fleet:f'];
  const all = [
    entry('1', { schema: 'pinwise.fleet-node/1', tags }),
    entry('2', { tags }),
    entry('3', { schema: 'pinwise.fleet-report/1', tags }),
    entry('4', { schema: 'pinwise.fleet/1', tags }),
  ];
  const ids = (asked?: string): [string, number][] =>
    foldParts(all, asked).map(({ entry: { id }, others }) => [id, others]);
  expect(ids()).toEqual([
    ['3', 0],
    ['4', 2],
  ]);
  expect(ids('fleet:f')).toHaveLength(4);
});

test('a history of gates names its newest change, and the sum of all', () => {
  const effect = { text: '+14.5 %', interval: '+12.9 to +16.2 %' };
  const range = { base: 'a'.repeat(40), head: 'b'.repeat(40), effect };
  const step = { ...range, records: [], started: '', since_first: effect };
  const change = { ...range, steps: 1, is_worse: true, sentence: '' };
  const history = {
    benchmark: 'parse',
    suite: '',
    metric: { label: 'CPU time' },
    sentence: '',
    method: '',
  };
  expect(
    describeHistory({ ...history, steps: [step], changes: [change] }),
  ).toBe(
    'parse got worse by CPU time in aaaaaaaaaa..bbbbbbbbbb: +14.5 %; in all +14.5 % (+12.9 to +16.2 %) since aaaaaaaaaa.',
  );
  expect(describeHistory({ ...history, steps: [step], changes: [] })).toBe(
    'parse is not shown to have changed by CPU time: +14.5 % (+12.9 to +16.2 %) since aaaaaaaaaa.',
  );
});

test('a count is whole, a change has its interval', () => {
  expect(figureText(8, '')).toBe('8');
  expect(figureText(2.5, '')).toBe('2.50');
  const change = { name: 'sum', unit: '%', value: -20.4 };
  expect(changeText({ ...change, low: -62.8, high: 63.4 })).toBe(
    '−62.8 % to +63.4 %',
  );
  expect(changeText({ ...change, low: null, high: null })).toBe('−20.4 %');
});
