// Live reports of `pinwise serve`. A browser opens at most six connections to a site, for all its
// tabs, so a hidden tab closes its connection.

import type { AnyRecord, Change } from './source';

/** The page connects again this long after a refusal. */
const RECONNECT_DELAY_MS = 3000;
/** `EventSource.CLOSED`: the browser does not connect again. */
const CLOSED = 2;

/** The part of `EventSource` that a listener uses. */
export type Events = Pick<
  EventSource,
  'addEventListener' | 'close' | 'readyState'
>;

/** The surroundings of a listener: the browser, or a test. */
export interface Environment {
  open(address: string): Events;
  isHidden(): boolean;
  /** Calls back when the tab was hidden or shown; returns how to stop that. */
  onShown(callback: () => void): () => void;
  after(milliseconds: number, act: () => void): () => void;
}

const browser: Environment = {
  open: (address) => new EventSource(address),
  isHidden: () => document.hidden,
  onShown: (callback) => {
    document.addEventListener('visibilitychange', callback);
    return () => document.removeEventListener('visibilitychange', callback);
  },
  after: (milliseconds, act) => {
    const timer = setTimeout(act, milliseconds);
    return () => clearTimeout(timer);
  },
};

const text = (event: Event): string =>
  String((event as MessageEvent<string>).data);

/** The page's message while the server does not answer. */
export const NO_ANSWER =
  'pinwise serve does not answer. This page tries again, and shows what it has.';

/** Calls back whenever records are added, removed or changed, with the state of the connection,
 * until the returned function is called. */
export function watchList(
  address: string,
  onChange: () => void,
  onState: (words: string) => void,
  world: Environment = browser,
): () => void {
  return listen(
    world,
    address,
    { list: () => onChange(), open: () => onState('') },
    () => onState(NO_ANSWER),
  );
}

/** Calls back whenever a record grew, until it ends or the returned function is called. */
export function watchRecord(
  address: string,
  onChange: (change: Change) => void,
  world: Environment = browser,
): () => void {
  const stop = listen(
    world,
    address,
    {
      record: (event) =>
        onChange({
          kind: 'record',
          record: JSON.parse(text(event)) as AnyRecord,
        }),
      end: (event) => {
        stop();
        onChange({
          kind: 'ended',
          isComplete:
            (JSON.parse(text(event)) as { complete?: boolean }).complete ===
            true,
        });
      },
      gone: (event) => {
        stop();
        const problem = JSON.parse(text(event)) as {
          error?: string;
          hint?: string;
        };
        onChange({
          kind: 'lost',
          reason:
            `${problem.error ?? 'The record is gone.'} ${problem.hint ?? ''}`.trim(),
        });
      },
    },
    () => onChange({ kind: 'lost', reason: NO_ANSWER }),
  );
  return stop;
}

/** The state of a watched record. */
export function describeState(change: Change): string {
  if (change.kind === 'lost') return change.reason;
  if (change.kind === 'record') return 'Running: this page grows with it.';
  return change.isComplete
    ? 'Ended.'
    : 'Cut off: the pinwise that wrote it ended first. All runs that had finished are here.';
}

/** Listens while the tab is visible; returns a function that stops it. */
function listen(
  world: Environment,
  address: string,
  on: Record<string, (event: Event) => void>,
  onLost: () => void,
): () => void {
  let events: Events | null = null;
  let cancel = (): void => undefined;
  let isOver = false;
  const close = (): void => {
    cancel();
    events?.close();
    events = null;
  };
  const connectIfVisible = (): void => {
    if (isOver || world.isHidden()) {
      close();
      return;
    }
    if (events) return;
    cancel();
    const opened = world.open(address);
    events = opened;
    for (const [name, act] of Object.entries(on))
      opened.addEventListener(name, act);
    opened.addEventListener('error', () => {
      if (events !== opened) return;
      onLost();
      // The browser connects again itself if the connection broke, but not if it was refused.
      if (opened.readyState !== CLOSED) return;
      close();
      cancel = world.after(RECONNECT_DELAY_MS, connectIfVisible);
    });
  };
  const stopObserving = world.onShown(connectIfVisible);
  connectIfVisible();
  return () => {
    isOver = true;
    stopObserving();
    close();
  };
}
