// A summary as Markdown, in which the record's words are plain text.

import { expect, test } from 'vitest';

import { toMarkdown } from './markdown';
import { fakeEntry } from './fake-entry';

const entry = fakeEntry('20260101-000000-00000000', {
  host: 'node_7',
  title: 'prog',
});

test('a summary has title, verdict, arms, commands and findings', () => {
  const record = {
    schema: 'pinwise.comparison/1',
    again: 'pinwise compare -- prog',
    verdict: {
      sentence: 'one-llc is best.',
      headline: { change: '−10 %', interval: '−11 to −9 %', of: 'time' },
      commands: [{ what: 'with taskset', line: 'taskset -c 0-3 prog' }],
    },
    arms: [
      { name: 'os-default', cpus: '0-7', standing: 'baseline' },
      { name: 'one-llc', cpus: '0-3', standing: 'faster' },
    ],
    contrasts: [
      { arm: 'one-llc', effect: { text: '−10 %', interval: '−11 to −9 %' } },
    ],
    findings: [
      { severity: 'warning', sentence: 'Load rose.', advice: 'Wait.' },
    ],
  };
  expect(toMarkdown(record, entry)).toBe(`# prog

**one-llc is best.**

−10 % (−11 to −9 %) time

| Arm | CPUs | Change | Interval | Verdict |
| --- | --- | --: | --: | --- |
| os-default | 0-7 |  |  | baseline |
| one-llc | 0-3 | −10 % | −11 to −9 % | faster |

Run it with taskset:

\`\`\`sh
taskset -c 0-3 prog
\`\`\`

- warning: Load rose. Wait.

Again:

\`\`\`sh
pinwise compare -- prog
\`\`\`

20260101-000000-00000000 · 2026-01-01 00:00 UTC · node\\_7
`);
});

test('hostile words are escaped', () => {
  const hostile = '</script>\n# a [x](y) ```\n| \u202e';
  const made = toMarkdown(
    {
      schema: 'x',
      sentence: hostile,
      verdict: { commands: [{ what: hostile, line: hostile }] },
    },
    { ...entry, title: hostile },
  );
  expect(made.split('\n')[0]).toBe(
    '# \\</script\\> \\# a \\[x\\](y) \\`\\`\\` \\| \\\\u\\{202e\\}',
  );
  expect(made).toContain('\n````sh\n');
  expect(made).not.toContain('\u202e');
  expect(toMarkdown({ schema: 'x' }, undefined)).toBe('# pinwise\n');
});
