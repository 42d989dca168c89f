// Watching a record on a site that answers, disconnects, refuses and ends.

import { expect, test } from 'vitest';

import {
  type Events,
  type Environment,
  NO_ANSWER,
  watchList,
  watchRecord,
} from './live';
import type { Change } from './source';

/** A site and a browser, controlled by hand. */
class FakeEnvironment implements Environment {
  readonly opened: {
    readyState: number;
    isClosed: boolean;
    emit(name: string, data?: unknown): void;
  }[] = [];
  hidden = false;
  private listeners = new Set<() => void>();
  private timers = new Set<() => void>();

  open(): Events {
    const on = new Map<string, (event: Event) => void>();
    const events = {
      readyState: 1,
      isClosed: false,
      addEventListener: (name: string, act: (event: Event) => void) =>
        on.set(name, act),
      close: () => {
        events.isClosed = true;
      },
      emit: (name: string, data?: unknown) =>
        on.get(name)?.({ data: JSON.stringify(data) } as MessageEvent),
    };
    this.opened.push(events);
    return events as unknown as Events;
  }
  isHidden(): boolean {
    return this.hidden;
  }
  onShown(look: () => void): () => void {
    this.listeners.add(look);
    return () => this.listeners.delete(look);
  }
  after(_: number, act: () => void): () => void {
    this.timers.add(act);
    return () => this.timers.delete(act);
  }
  hide(hidden: boolean): void {
    this.hidden = hidden;
    this.listeners.forEach((listener) => listener());
  }
  /** Runs the pending timers. */
  runTimers(): number {
    const due = [...this.timers];
    this.timers.clear();
    due.forEach((act) => act());
    return due.length;
  }
}

function startWatching(): {
  world: FakeEnvironment;
  changes: Change[];
  stop: () => void;
} {
  const world = new FakeEnvironment();
  const changes: Change[] = [];
  return {
    world,
    changes,
    stop: watchRecord('x', (change) => changes.push(change), world),
  };
}

test('a record is shown as it grows, until its end', () => {
  const { world, changes } = startWatching();
  world.opened[0]!.emit('record', { schema: 'a', blocks: 1 });
  world.opened[0]!.emit('record', { schema: 'a', blocks: 2 });
  world.opened[0]!.emit('end', { complete: true });
  expect(
    changes.map((change) =>
      change.kind === 'record' ? change.record['blocks'] : change,
    ),
  ).toEqual([1, 2, { kind: 'ended', isComplete: true }]);
  expect(world.opened[0]!.isClosed).toBe(true);
  world.hide(false);
  expect(world.opened.length).toBe(1);
});

test('a record that is cut off or gone is reported', () => {
  const cut = startWatching();
  cut.world.opened[0]!.emit('end', { complete: false });
  expect(cut.changes).toEqual([{ kind: 'ended', isComplete: false }]);
  const gone = startWatching();
  gone.world.opened[0]!.emit('gone', { error: 'No record.', hint: 'Look.' });
  expect(gone.changes).toEqual([{ kind: 'lost', reason: 'No record. Look.' }]);
  expect(gone.world.runTimers()).toBe(0);
});

test('a hidden tab holds no connection', () => {
  const { world, stop } = startWatching();
  world.hide(true);
  expect(world.opened[0]!.isClosed).toBe(true);
  world.hide(false);
  expect(world.opened.length).toBe(2);
  stop();
  expect(world.opened[1]!.isClosed).toBe(true);
  world.hide(false);
  expect(world.opened.length).toBe(2);
});

test('a tab that starts hidden listens when it becomes visible', () => {
  const world = new FakeEnvironment();
  world.hidden = true;
  let calls = 0;
  let state = '';
  watchList(
    'x',
    () => (calls += 1),
    (words) => (state = words),
    world,
  );
  expect(world.opened.length).toBe(0);
  world.hide(false);
  world.opened[0]!.emit('list', 'changed');
  expect(calls).toBe(1);
  world.opened[0]!.emit('error');
  expect(state).toBe(NO_ANSWER);
  world.opened[0]!.emit('open');
  expect(state).toBe('');
});

test('the browser reconnects a broken connection, a refused one is tried again here', () => {
  const { world, changes, stop } = startWatching();
  const [first] = world.opened;
  first!.readyState = 0;
  first!.emit('error');
  expect(changes.length).toBe(1);
  expect(world.runTimers()).toBe(0);
  first!.readyState = 2;
  first!.emit('error');
  expect(world.runTimers()).toBe(1);
  expect(world.opened.length).toBe(2);
  world.opened[1]!.readyState = 2;
  world.opened[1]!.emit('error');
  stop();
  expect(world.runTimers()).toBe(0);
});
