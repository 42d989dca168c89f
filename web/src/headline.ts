// The first lines of an experiment: its figure in large, and what to copy.

import './headline.css';

import { h, visible } from './dom';
import { commandLine } from './words';

/** The figure that says most. */
export interface Headline {
  /** "−12.0 %". */
  text: string;
  interval: string;
  of: string;
  confidence: string;
}

export function headline(figure: Headline | null): HTMLElement | null {
  if (!figure) return null;
  const of = ` ${visible(figure.of)}${figure.confidence ? `; ${figure.confidence}` : ''}`;
  return h(
    'p',
    { class: 'headline' },
    h('strong', { class: 'big' }, figure.text),
    ' ',
    h('span', {}, h('span', { class: 'interval' }, figure.interval), h('span', { class: 'muted' }, of)),
  );
}

/** What a command is for, and the command. */
export type NamedCommand = readonly [what: string, command: string];

/** Commands to copy, each beside what it is for. */
export function commandList(all: readonly NamedCommand[]): HTMLElement | null {
  if (all.length === 0) return null;
  return h(
    'div',
    { class: 'commands' },
    ...all.flatMap(([what, command]) => [h('span', { class: 'muted' }, what), commandLine(command, `the command: ${what}`)]),
  );
}
