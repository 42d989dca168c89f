import { expect, test, vi } from 'vitest';

import { type Steps, finish, workInPieces, lazily } from './steps';

/** Steps that are counted in `done`. */
function* counted(done: number[], many: number): Steps<string> {
  for (let at = 0; at < many; at += 1) {
    done.push(at);
    yield;
  }
  return 'value';
}

test('work done in steps is not repeated', () => {
  const done: number[] = [];
  const value = lazily(() => counted(done, 4));
  const steps = value.steps();
  steps.next();
  steps.next();
  expect(done).toEqual([0, 1]);
  expect(value.now()).toBe('value');
  expect(finish(steps)).toBe('value');
  expect(finish(value.steps())).toBe('value');
  expect(done).toEqual([0, 1, 2, 3]);
});

/** What the browser would call once a frame is painted. */
function withFrames(): () => void {
  let frame: () => void = () => undefined;
  vi.stubGlobal('requestAnimationFrame', (next: () => void) => {
    frame = next;
    return 1;
  });
  vi.stubGlobal('document', { hidden: false });
  return () => frame();
}

test('work begins after a frame is painted, and ends with its value', async () => {
  const paint = withFrames();
  const done: number[] = [];
  const value = new Promise<string>((resolve, reject) => {
    workInPieces(counted(done, 3), resolve, reject);
  });
  expect(done).toEqual([]);
  paint();
  expect(done).toEqual([]);
  expect(await value).toBe('value');
  expect(done).toEqual([0, 1, 2]);
});

test('work finished at once is done once', () => {
  const paint = withFrames();
  const done: number[] = [];
  const values: string[] = [];
  const work = workInPieces(counted(done, 3), (value) => values.push(value));
  work.finish();
  work.finish();
  paint();
  expect(values).toEqual(['value']);
});

test('stopped work does nothing more', () => {
  withFrames();
  const values: string[] = [];
  const work = workInPieces(counted([], 3), (value) => values.push(value));
  work.stop();
  work.finish();
  expect(values).toEqual([]);
});

test('a step that fails is reported', () => {
  withFrames();
  const errors: unknown[] = [];
  const broken = (function* (): Steps<void> {
    yield;
    throw new Error('damaged');
  })();
  workInPieces(broken, undefined, (error) => errors.push(error)).finish();
  expect(errors).toEqual([new Error('damaged')]);
});
