// Long work in steps, so that the page stays responsive.

/** Work that can be interrupted between steps. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** A piece of work ends after the first step that passes this time. */
const PIECE_MS = 20;
/** Work starts after this time even without a frame: hidden pages have none. */
const FRAME_TIMEOUT_MS = 100;

/** Does all remaining work at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const next = steps.next();
    if (next.done) return next.value;
  }
}

/** A value that is computed once, at once or in steps. */
export interface Lazy<T> {
  /** Does the remaining work at once. */
  now(): T;
  steps(): Steps<T>;
}

export function lazily<T>(make: () => Steps<T>): Lazy<T> {
  let steps: Steps<T> | null = null;
  let made: { value: T } | null = null;
  const step = (): void => {
    const next = (steps ??= make()).next();
    if (next.done) made = { value: next.value };
  };
  return {
    now: () => {
      while (!made) step();
      return made.value;
    },
    *steps() {
      while (!made) {
        step();
        yield;
      }
      return made.value;
    },
  };
}

export interface Work {
  /** Does the remaining work at once. */
  finish(): void;
  stop(): void;
}

/** Works in pieces, after the page has been painted. */
export function workInPieces<T>(
  steps: Steps<T>,
  done: (value: T) => void = () => undefined,
  failed: (error: unknown) => void = (error) => {
    throw error;
  },
): Work {
  // Nested timers wait for at least 4 ms from the fifth on, messages do not.
  const { port1, port2 } = new MessageChannel();
  let isOver = false;
  const stop = (): void => {
    isOver = true;
    port1.close();
  };
  const work = (until: number): void => {
    try {
      while (!isOver) {
        const next = steps.next();
        if (next.done) {
          stop();
          done(next.value);
        } else if (performance.now() >= until) {
          port2.postMessage(null);
          return;
        }
      }
    } catch (error) {
      stop();
      failed(error);
    }
  };
  port1.onmessage = () => work(performance.now() + PIECE_MS);
  let isBegun = false;
  const begin = (): void => {
    if (!isBegun) port2.postMessage(null);
    isBegun = true;
  };
  requestAnimationFrame(() => setTimeout(begin));
  setTimeout(begin, document.hidden ? 0 : FRAME_TIMEOUT_MS);
  return { finish: () => work(Infinity), stop };
}
