// The timeline's state in the address: a link shows what its sender saw. What is missing, or makes
// no sense for this trace, has its initial value.

import { type ColourBy, COLOURINGS } from './colours';
import type { Rows } from './lanes';
import { type Window, within } from './scene';

/** What a link to the timeline keeps. */
export interface Shown {
  window: Window;
  rows: Rows;
  /** Null: what fits the rows. */
  colourBy: ColourBy | null;
  /** Number of the thread that is followed. */
  thread: number | null;
  /** Words that threads are searched for. */
  find: string;
  selection: Window | null;
}

const MIN_NS = 1;

/** Seconds with as many decimals as nanoseconds need. */
const secondsText = (ns: number): string =>
  (ns * 1e-9).toFixed(9).replace(/\.?0+$/, '');

/** What the address says; only what differs from the whole trace at first. */
export function toParams(shown: Shown, span: number): URLSearchParams {
  const params = new URLSearchParams();
  if (shown.window.from > 0 || shown.window.to < span) {
    params.set('from', secondsText(shown.window.from));
    params.set('to', secondsText(shown.window.to));
  }
  if (shown.thread !== null) params.set('thread', String(shown.thread));
  if (shown.rows !== 'cpus') params.set('rows', shown.rows);
  if (shown.colourBy !== null) params.set('colour', shown.colourBy);
  if (shown.find !== '') params.set('find', shown.find);
  if (shown.selection)
    params.set(
      'selected',
      `${secondsText(shown.selection.from)}-${secondsText(shown.selection.to)}`,
    );
  return params;
}

const nanoseconds = (text: string | null | undefined): number | null =>
  text && /^\d{1,9}(\.\d{1,9})?$/.test(text)
    ? Math.round(Number(text) * 1e9)
    : null;

function windowOf(
  from: string | null | undefined,
  to: string | null | undefined,
  span: number,
): Window | null {
  const [start, end] = [nanoseconds(from), nanoseconds(to)];
  if (start === null || end === null || end - start < MIN_NS) return null;
  return start >= span ? null : within({ from: start, to: end }, span);
}

/** The state that an address asks for. */
export function fromParams(params: URLSearchParams, span: number): Shown {
  const thread = params.get('thread');
  const colour = params.get('colour');
  const [from, to] = params.get('selected')?.split('-') ?? [];
  return {
    window: windowOf(params.get('from'), params.get('to'), span) ?? {
      from: 0,
      to: span,
    },
    rows: params.get('rows') === 'threads' ? 'threads' : 'cpus',
    colourBy: COLOURINGS.find((known) => known === colour) ?? null,
    thread:
      thread !== null && /^\d{1,10}$/.test(thread) ? Number(thread) : null,
    find: (params.get('find') ?? '').slice(0, 200),
    selection: windowOf(from, to, span),
  };
}
