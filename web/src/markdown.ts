// A record's summary as Markdown, from the sentences in the record.

import { visible } from './dom';
import { minute } from './format';
import { mapItems, fields, items, text } from './fields';
import type {
  Arm,
  CommandRecord,
  ContrastRecord,
  Finding,
  HeadlineRecord,
} from './records';
import type { AnyRecord, Entry } from './source';

/** Escapes text so that Markdown treats it as text, in one line. */
const escapeMarkdown = (words: string): string =>
  visible(words)
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/[\\`*_{}[\]<>#|~&]/g, '\\$&')
    .replace(/^([-+]|\d+[.)])(?= )/, '\\$1');

/** A code block, with a fence that the text does not contain. */
function codeBlock(words: string): string {
  const shown = visible(words);
  const longest = Math.max(
    2,
    ...(shown.match(/`+/g) ?? []).map((s) => s.length),
  );
  const fence = '`'.repeat(longest + 1);
  return `${fence}sh\n${shown}\n${fence}`;
}

/** The record's title, verdict, arms, commands and findings. */
export function toMarkdown(
  record: AnyRecord,
  entry: Entry | undefined,
): string {
  const verdict = fields(record['verdict'] as Record<string, unknown>);
  const said = text(verdict['sentence']) || text(record['sentence']);
  const parts = [
    `# ${escapeMarkdown(entry?.title || text(record.id) || 'pinwise')}`,
    said || entry?.verdict
      ? `**${escapeMarkdown(said || entry!.verdict)}**`
      : '',
    headlineText(fields(verdict['headline'] as HeadlineRecord)),
    escapeMarkdown(text(verdict['advice'])),
    armTable(record),
    ...mapItems(verdict['commands'] as CommandRecord[], ({ what, line }) =>
      line
        ? `Run it ${escapeMarkdown(what ?? '')}:\n\n${codeBlock(line)}`
        : null,
    ),
    ...['steadiness', 'beside', 'condition'].map((name) =>
      escapeMarkdown(text(verdict[name])),
    ),
    items(record['findings'] as Finding[])
      .map(
        ({ severity, sentence, advice }) =>
          `- ${escapeMarkdown(`${severity ?? 'note'}: ${sentence ?? ''} ${advice ?? ''}`)}`,
      )
      .join('\n'),
    text(record['again'])
      ? `Again:\n\n${codeBlock(text(record['again']))}`
      : '',
    escapeMarkdown(
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

const headlineText = ({
  change,
  interval,
  of,
  confidence,
}: Partial<HeadlineRecord>): string =>
  change
    ? escapeMarkdown(
        `${change}${interval ? ` (${interval})` : ''} ${of ?? ''}${confidence ? `; ${confidence}` : ''}`,
      )
    : '';

/** The arms of a comparison with their results; empty for other records. */
function armTable(record: AnyRecord): string {
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
    ...rows.map((row) => row.map((cell) => escapeMarkdown(text(cell)))),
  ]
    .map((row) => `| ${row.join(' | ')} |`)
    .join('\n');
}
