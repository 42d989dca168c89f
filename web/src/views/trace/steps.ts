// Long work in steps, so that the page answers while it goes on.

/** Work that can be left off between any two of its steps. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** A piece of work ends with the first step after this, ms. */
const PIECE = 20;
/** A page that is not seen has no frames to wait for, ms. */
const NO_FRAME = 100;

/** Does all that is left, at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const next = steps.next();
    if (next.done) return next.value;
  }
}

/** A value that is worked out once. */
export interface Lazy<T> {
  /** Does what is left of the work at once. */
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
  /** Does what is left at once. */
  finish(): void;
  stop(): void;
}

/** Works in pieces, once what the page shows now is painted. */
export function inPieces<T>(
  steps: Steps<T>,
  done: (value: T) => void = () => undefined,
  failed: (error: unknown) => void = (error) => {
    throw error;
  },
): Work {
  // Timers wait for 4 ms from the fifth on, messages do not.
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
  port1.onmessage = () => work(performance.now() + PIECE);
  let isBegun = false;
  const begin = (): void => {
    if (!isBegun) port2.postMessage(null);
    isBegun = true;
  };
  requestAnimationFrame(() => setTimeout(begin));
  setTimeout(begin, document.hidden ? 0 : NO_FRAME);
  return { finish: () => work(Infinity), stop };
}
