// `pinwise serve` on a store, and a comparison that runs meanwhile.

import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import { onTestFinished } from 'vitest';

import type { Bench } from './pinwise';
import { PINWISE } from './pinwise';

/** A process that ends with its test, if not before. */
function start(
  bench: Bench,
  words: readonly string[],
  environment: Record<string, string> = {},
): ChildProcess {
  const env = { ...process.env, ...environment };
  const child = spawn(PINWISE, ['--store', bench.store, ...words], {
    cwd: bench.folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** The local site of a store. */
export class Site {
  private stderr = '';

  private constructor(
    private readonly child: ChildProcess,
    /** `http://127.0.0.1:PORT/SECRET/` */
    readonly address: string,
  ) {
    child.stderr!.on('data', (text) => (this.stderr += String(text)));
  }

  static async start(
    bench: Bench,
    options: readonly string[] = [],
    environment: Record<string, string> = {},
  ): Promise<Site> {
    const child = start(bench, ['serve', ...options], environment);
    const [line] = (await once(createInterface(child.stdout!), 'line')) as [
      string,
    ];
    return new Site(child, line);
  }

  get origin(): string {
    return new URL(this.address).origin;
  }

  /** Ends it as a user does; its exit status and what it said. */
  async stop(): Promise<{ status: number | null; stderr: string }> {
    const ended = once(this.child, 'close');
    this.child.kill('SIGTERM');
    const [status] = (await ended) as [number | null];
    return { status, stderr: this.stderr };
  }
}

/** A comparison of slow commands on this machine, begun and not waited for. */
export function beginComparison(
  bench: Bench,
  runs: number,
): { child: ChildProcess; ended: Promise<unknown> } {
  const commands = ['--command', 'sleep 0.25', '--command', 'sleep 0.3'];
  const child = start(bench, [
    '--quiet',
    'compare',
    '--seed',
    '1',
    '--warmup',
    '0',
    '--max-runs',
    String(runs),
    '--place',
    'os-default',
    ...commands,
  ]);
  child.stdout!.resume();
  child.stderr!.resume();
  return { child, ended: once(child, 'close') };
}
