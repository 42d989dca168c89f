// The timeline's state in the address: a link shows what its sender saw. Missing values, and those
// that make no sense for this trace, have their defaults.

import { type ColourBy, COLOURINGS } from './colours';
import type { Rows } from './lanes';
import { type Window, clampWindow } from './scene';

/** The part of the timeline's state that an address holds. */
export interface AddressState {
  window: Window;
  rows: Rows;
  /** Null: the default of the rows. */
  colourBy: ColourBy | null;
  /** Number of the thread that is followed. */
  thread: number | null;
  /** Words that threads are searched for. */
  find: string;
  selection: Window | null;
}

const MIN_NS = 1;

/** Seconds with as many decimals as nanoseconds need. */
const formatSeconds = (ns: number): string =>
  (ns * 1e-9).toFixed(9).replace(/\.?0+$/, '');

/** The state as parameters of an address; defaults are left out. */
export function toParams(shown: AddressState, span: number): URLSearchParams {
  const params = new URLSearchParams();
  if (shown.window.from > 0 || shown.window.to < span) {
    params.set('from', formatSeconds(shown.window.from));
    params.set('to', formatSeconds(shown.window.to));
  }
  if (shown.thread !== null) params.set('thread', String(shown.thread));
  if (shown.rows !== 'cpus') params.set('rows', shown.rows);
  if (shown.colourBy !== null) params.set('colour', shown.colourBy);
  if (shown.find !== '') params.set('find', shown.find);
  if (shown.selection)
    params.set(
      'selected',
      `${formatSeconds(shown.selection.from)}-${formatSeconds(shown.selection.to)}`,
    );
  return params;
}

const parseSeconds = (text: string | null | undefined): number | null =>
  text && /^\d{1,9}(\.\d{1,9})?$/.test(text)
    ? Math.round(Number(text) * 1e9)
    : null;

function parseWindow(
  from: string | null | undefined,
  to: string | null | undefined,
  span: number,
): Window | null {
  const [start, end] = [parseSeconds(from), parseSeconds(to)];
  if (start === null || end === null || end - start < MIN_NS) return null;
  return start >= span ? null : clampWindow({ from: start, to: end }, span);
}

/** The state in the parameters of an address. */
export function fromParams(
  params: URLSearchParams,
  span: number,
): AddressState {
  const thread = params.get('thread');
  const colour = params.get('colour');
  const [from, to] = params.get('selected')?.split('-') ?? [];
  return {
    window: parseWindow(params.get('from'), params.get('to'), span) ?? {
      from: 0,
      to: span,
    },
    rows: params.get('rows') === 'threads' ? 'threads' : 'cpus',
    colourBy: COLOURINGS.find((known) => known === colour) ?? null,
    thread:
      thread !== null && /^\d{1,10}$/.test(thread) ? Number(thread) : null,
    find: (params.get('find') ?? '').slice(0, 200),
    selection: parseWindow(from, to, span),
  };
}
