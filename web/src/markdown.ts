// A record's summary as Markdown, of the words that the record has.

import { visible } from './dom';
import { minute } from './format';
import { each, fields, items, text } from './fields';
import type {
  Arm,
  CommandRecord,
  ContrastRecord,
  Finding,
  HeadlineRecord,
} from './records';
import type { AnyRecord, Entry } from './source';

/** Text that Markdown treats as text, in one line. */
const plain = (words: string): string =>
  visible(words)
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/[\\`*_{}[\]<>#|~&]/g, '\\$&')
    .replace(/^([-+]|\d+[.)])(?= )/, '\\$1');

/** Text between fences that it does not contain. */
function code(words: string): string {
  const shown = visible(words);
  const longest = Math.max(
    2,
    ...(shown.match(/`+/g) ?? []).map((s) => s.length),
  );
  const fence = '`'.repeat(longest + 1);
  return `${fence}sh\n${shown}\n${fence}`;
}

/** The record's title, verdict, arms, commands and findings. */
export function markdownOf(
  record: AnyRecord,
  entry: Entry | undefined,
): string {
  const verdict = fields(record['verdict'] as Record<string, unknown>);
  const said = text(verdict['sentence']) || text(record['sentence']);
  const parts = [
    `# ${plain(entry?.title || text(record.id) || 'pinwise')}`,
    said || entry?.verdict ? `**${plain(said || entry!.verdict)}**` : '',
    headlineOf(fields(verdict['headline'] as HeadlineRecord)),
    plain(text(verdict['advice'])),
    armsOf(record),
    ...each(verdict['commands'] as CommandRecord[], ({ what, line }) =>
      line ? `Run it ${plain(what ?? '')}:\n\n${code(line)}` : null,
    ),
    ...['steadiness', 'beside', 'condition'].map((name) =>
      plain(text(verdict[name])),
    ),
    items(record['findings'] as Finding[])
      .map(
        ({ severity, sentence, advice }) =>
          `- ${plain(`${severity ?? 'note'}: ${sentence ?? ''} ${advice ?? ''}`)}`,
      )
      .join('\n'),
    text(record['again']) ? `Again:\n\n${code(text(record['again']))}` : '',
    plain(
      [
        entry?.id ?? text(record.id),
        entry?.time ? `${minute(entry.time)} UTC` : '',
        entry?.host ?? '',
      ]
        .filter(Boolean)
        .join(' · '),
    ),
  ];
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}

const headlineOf = ({
  change,
  interval,
  of,
  confidence,
}: Partial<HeadlineRecord>): string =>
  change
    ? plain(
        `${change}${interval ? ` (${interval})` : ''} ${of ?? ''}${confidence ? `; ${confidence}` : ''}`,
      )
    : '';

/** The arms of a comparison with their results; empty for other records. */
function armsOf(record: AnyRecord): string {
  const contrasts = new Map(
    items(record['contrasts'] as ContrastRecord[]).map((c) => [c.arm, c]),
  );
  if (contrasts.size === 0) return '';
  const rows = items(record['arms'] as Arm[]).map(
    ({ name, cpus, standing }) => {
      const effect = contrasts.get(name)?.effect;
      return [name, cpus, effect?.text, effect?.interval, standing];
    },
  );
  return [
    ['Arm', 'CPUs', 'Change', 'Interval', 'Verdict'],
    ['---', '---', '--:', '--:', '---'],
    ...rows.map((row) => row.map((cell) => plain(text(cell)))),
  ]
    .map((row) => `| ${row.join(' | ')} |`)
    .join('\n');
}
