// The first lines of an experiment: its headline figure, and commands to copy.

import './headline.css';

import { h, visible } from './dom';
import type { CommandRecord, HeadlineRecord } from './records';
import { commandLine } from './words';

/** The headline figure of a record. The interval stands alone where the change is no result: it is
 * undecided, or nobody should act on it. */
export function headline(
  figure: HeadlineRecord | null | undefined,
  isResult = true,
): HTMLElement | null {
  if (!figure?.change) return null;
  const interval = figure.interval || figure.change;
  const of = ` ${visible(figure.of ?? '')}${figure.confidence ? `; ${visible(figure.confidence)}` : ''}`;
  return h(
    'p.headline',
    isResult && interval !== figure.change
      ? h('strong.big', figure.change)
      : null,
    ' ',
    h('span', h('span.interval', interval), h('span.muted', of)),
  );
}

/** The purpose of a command, and the command. */
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

/** The tab of a command: the tool in "Run it with taskset". */
export const tabName = (what: string): string =>
  what.replace(/^(Run it ((with|for) )?|Do the )/, '') || 'run';

/** One block to copy from, a tab for each of several commands; on paper they are printed below each other. */
export function copyBlock(all: readonly NamedCommand[]): HTMLElement | null {
  if (all.length < 2) return commandList(all);
  let chosen = 0;
  const own = (blockCount += 1);
  const panels = all.map(([what, command], at) =>
    h(
      'div',
      {
        id: `copy-${own}-${at}`,
        role: 'tabpanel',
        class: 'copy-panel',
        aria: { labelledby: `copy-${own}-${at}-tab` },
      },
      h('p.copy-what.muted', what),
      commandLine(command, `the command: ${what}`),
    ),
  );
  const tabs = all.map(([what], at) =>
    h(
      'button',
      {
        type: 'button',
        id: `copy-${own}-${at}-tab`,
        role: 'tab',
        class: 'tab',
        title: what,
        aria: { controls: `copy-${own}-${at}` },
        onclick: () => show(at),
      },
      tabName(what),
    ),
  );
  const show = (next: number): void => {
    chosen = next;
    panels.forEach((panel, at) => (panel.hidden = at !== next));
    tabs.forEach((tab, at) => {
      tab.setAttribute('aria-selected', String(at === next));
      tab.tabIndex = at === next ? 0 : -1;
    });
  };
  const list = h(
    'div.tabs',
    { role: 'tablist', aria: { label: 'Copy the command' } },
    ...tabs,
  );
  list.addEventListener('keydown', (event) => {
    const last = tabs.length - 1;
    const goal = {
      ArrowRight: chosen === last ? 0 : chosen + 1,
      ArrowLeft: chosen === 0 ? last : chosen - 1,
      Home: 0,
      End: last,
    }[event.key];
    if (goal === undefined) return;
    event.preventDefault();
    show(goal);
    tabs[goal]!.focus();
  });
  show(0);
  return h('div.copy-block', list, ...panels);
}

/** Number of blocks in the page: ids of their parts must be unique. */
let blockCount = 0;

/** Commands to copy, each beside its purpose. */
export function commandList(all: readonly NamedCommand[]): HTMLElement | null {
  if (all.length === 0) return null;
  return h(
    'div.commands',
    ...all.flatMap(([what, command]) => [
      h('span.muted', what),
      commandLine(command, `the command: ${what}`),
    ]),
  );
}
