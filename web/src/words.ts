// Pieces that most views have: copy buttons, findings, facts.

import { count } from './format';
import { type Absent, type Child, h } from './dom';
import type { Finding, GapPartRecord, HostRecord } from './records';

type Cause = Pick<GapPartRecord, 'kind' | 'name' | 'irq'>;

/** A button that copies the current text, and says that it did. */
export function copyButton(
  text: string | (() => string),
  what: string,
  label = 'Copy',
): HTMLElement {
  const button = h(
    'button',
    {
      type: 'button',
      class: 'copy',
      aria: { label: label === 'Copy' ? `Copy ${what}` : `${label}: ${what}` },
    },
    label,
  );
  const status = h('span.status', { role: 'status' });
  button.addEventListener('click', () => {
    void copy(typeof text === 'string' ? text : text()).then((done) => {
      status.textContent = done
        ? 'Copied'
        : 'Could not copy: select the text instead';
      setTimeout(() => (status.textContent = ''), 3000);
    });
  });
  return h('span.copier', button, status);
}

/** Puts text on the clipboard; false if that is not allowed. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', {
      value: text,
      readOnly: true,
      class: 'offscreen',
    });
    document.body.append(area);
    area.select();
    // The only way if a page has no clipboard, as from a file in some browsers.
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

/** Several variables that `env` sets. */
const VARIABLES = /(?<= env)(?: [A-Za-z_]\w*=\S+){3,}(?= )/;

/** Characters of a command above which it is cut to two lines on a screen. */
const MAX_WHOLE_COMMAND = 160;

/** A command line with a copy button; environment variables are folded, and copied too. */
export function commandLine(text: string, what = 'the command'): HTMLElement {
  const code = h('code', ...withBreaks(text.replace(VARIABLES, ' …'), true));
  const line = h('div.command', code, copyButton(text, what));
  if (text.length > MAX_WHOLE_COMMAND) {
    line.classList.add('long');
    code.title = text;
  }
  const variables = VARIABLES.exec(text)?.[0].trim();
  if (!variables) return line;
  const summary = h('summary', '…: environment variables, copied too');
  return h('div', line, h('details.muted', summary, h('code', variables)));
}

/** A sentence of a record, in which `backticks` mark code. */
export const withCode = (sentence: string): Child[] =>
  sentence
    .split(/`([^`]+)`/)
    .flatMap((part, at): Child[] =>
      at % 2 === 1 ? [h('code', ...withBreaks(part, true))] : withBreaks(part),
    );

/** Options such as -s and --max-runs=9, with a bracket or quote around them. */
const OPTION = /((?<!\S)[^\s\w/-]*--?[A-Za-z][^\s/]*\/?)/;
/** Words of a command with a hyphen, also names and ids. */
const HYPHENATED = /((?<!\S)[^\s/]*-\w[^\s/]*\/?)/;

/** Parts of a text between which a line may end beside spaces: after each slash of a path. Of each
 * part, every second piece is a word in which no line ends. */
export const breakParts = (text: string, isCommand = false): string[][] =>
  text
    .split(/(?<=\/)(?=[\w.])/)
    .map((part) => part.split(isCommand ? HYPHENATED : OPTION));

/** Text in which lines end at spaces and after slashes, not within options. */
export const withBreaks = (text: string, isCommand = false): Child[] =>
  breakParts(text, isCommand).flatMap((pieces, place) => [
    place > 0 && h('wbr'),
    ...pieces.map((piece, at) =>
      at % 2 === 1 ? h('span.unbroken', piece) : piece,
    ),
  ]);

/** Findings as a list, in the record's order: the most serious first. */
export const findingList = (findings: readonly Finding[]): HTMLElement =>
  h(
    'ul.findings',
    ...findings.map((finding) =>
      h(
        'li',
        { class: finding.severity ?? '' },
        h('span.severity', finding.severity),
        ' ',
        ...withCode(
          (finding.sentence ?? finding.check ?? '').replace(
            /[^.!?:…]$/,
            finding.advice ? '$&.' : '$&',
          ),
        ),
        finding.advice && h('span.advice', ' ', ...withCode(finding.advice)),
      ),
    ),
  );

/** The name of what interrupted a CPU: `local_timer`, `eth0-rx-1 (IRQ 38)`, `softirq RCU`. */
export function causeName({ kind, name, irq }: Cause): string {
  const numbered = typeof irq === 'number' ? `${name} (IRQ ${irq})` : name;
  return kind?.endsWith('interrupt')
    ? (numbered ?? '').trim()
    : `${kind} ${name}`.trim();
}

/** Names and values. */
export type Facts = Readonly<Record<string, Child>>;

/** Names and values; absent values are left out. */
export function facts(values: Facts): HTMLElement {
  const rows = Object.entries(values).filter(
    (pair): pair is [string, string | number | Node] =>
      pair[1] === 0 || Boolean(pair[1]),
  );
  return h(
    'dl.facts',
    ...rows.flatMap(([name, value]) => [h('dt', name), h('dd', value)]),
  );
}

/** The address of a record's page. */
export const recordHref = (id: string): string =>
  `#/record/${encodeURIComponent(id)}`;

export const recordLink = (id: string, words: Child): HTMLElement =>
  h('a', { href: recordHref(id) }, words);

/** A section with a heading. */
export function section(
  title: string,
  ...children: (Node | Absent)[]
): HTMLElement {
  return h(
    'section',
    { aria: { label: title } },
    h('h2', title, anchor(title)),
    ...children,
  );
}

/** The name of a part of a page in addresses: "runs-in-time-order". */
export const partName = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

/** A button that copies the link to a part, on pages that have addresses for them. */
export const anchor = (title: string): HTMLElement =>
  h('button', {
    type: 'button',
    class: 'anchor',
    title: 'Copy the link to this part',
    data: { part: partName(title) },
    aria: { label: `Copy the link to ${title}` },
  });

/** Quotes arguments for a shell; invisible characters are escaped as bash and zsh read them. */
export function shellWords(words: readonly string[]): string {
  return words.map(shellWord).join(' ');
}

function shellWord(word: string): string {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word;
  // When a word with a line feed is pasted, a terminal could run its first line.
  if (HIDDEN.test(word))
    return `$'${word.replace(/['\\]/g, '\\$&').replace(HIDDEN_ALL, escapeCharacter)}'`;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const HIDDEN_ALL = new RegExp(HIDDEN, 'gu');

const escapeCharacter = (c: string): string =>
  `\\U${c.codePointAt(0)!.toString(16).padStart(8, '0')}`;

/** Units of a machine, one and many. */
const UNITS: Readonly<Record<string, readonly [string, string]>> = {
  cpus: ['CPU', 'CPUs'],
  cores: ['core', 'cores'],
  llcs: ['last-level cache', 'last-level caches'],
  numa_nodes: ['NUMA node', 'NUMA nodes'],
  packages: ['package', 'packages'],
};

/** The machine of a record, for `facts`. */
export function hostFacts(host: HostRecord | null | undefined): Facts {
  if (!host) return {};
  const shape = Object.entries(host.counts ?? {})
    .filter((unit): unit is [string, number] => typeof unit[1] === 'number')
    .map(([name, number]) =>
      count(number, UNITS[name]?.[0] ?? name, UNITS[name]?.[1] ?? name),
    )
    .join(', ');
  const text = (name: keyof HostRecord): string => String(host[name] ?? '');
  return {
    Machine: host.simulated
      ? `${text('machine_spec')} (simulated)`
      : text('hostname'),
    CPU: text('cpu_model'),
    Shape: shape,
    'Allowed CPUs': text('allowed'),
    Kernel: text('kernel'),
    Hypervisor: text('hypervisor'),
    Microcode: text('microcode'),
  };
}
