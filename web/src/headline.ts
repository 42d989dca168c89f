// The first lines of an experiment: its figure in large, and what to copy.

import './headline.css';

import { h, visible } from './dom';
import type { CommandRecord, HeadlineRecord } from './records';
import { commandLine } from './words';

/** The figure that says most, as records have it. */
export function headline(
  figure: HeadlineRecord | null | undefined,
): HTMLElement | null {
  if (!figure?.change) return null;
  const of = ` ${visible(figure.of ?? '')}${figure.confidence ? `; ${visible(figure.confidence)}` : ''}`;
  return h(
    'p',
    { class: 'headline' },
    h('strong', { class: 'big' }, visible(figure.change)),
    ' ',
    h(
      'span',
      {},
      h('span', { class: 'interval' }, visible(figure.interval ?? '')),
      h('span', { class: 'muted' }, of),
    ),
  );
}

/** What a command is for, and the command. */
export type NamedCommand = readonly [what: string, command: string];

/** Commands that a record suggests, and the one that repeats it. */
export function recordCommands(
  commands: readonly CommandRecord[] | null | undefined,
  again: string | null | undefined,
): NamedCommand[] {
  const run = (commands ?? []).map((c): NamedCommand => [
    `Run it ${c.what ?? ''}`,
    c.line ?? '',
  ]);
  return again ? [...run, ['Do the experiment again', again]] : run;
}

/** Commands to copy, each beside what it is for. */
export function commandList(all: readonly NamedCommand[]): HTMLElement | null {
  if (all.length === 0) return null;
  return h(
    'div',
    { class: 'commands' },
    ...all.flatMap(([what, command]) => [
      h('span', { class: 'muted' }, what),
      commandLine(command, `the command: ${what}`),
    ]),
  );
}
