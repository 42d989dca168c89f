// Starts `pinwise serve` on a store, and a comparison that runs at the same time.

import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import { onTestFinished } from 'vitest';

import type { Workspace } from './pinwise';
import { PINWISE } from './pinwise';

/** Starts pinwise; the end of the test kills it if it still runs. */
function startProcess(
  workspace: Workspace,
  words: readonly string[],
  environment: Record<string, string> = {},
): ChildProcess {
  const env = { ...process.env, ...environment };
  const child = spawn(PINWISE, ['--store', workspace.store, ...words], {
    cwd: workspace.folder,
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
    workspace: Workspace,
    options: readonly string[] = [],
    environment: Record<string, string> = {},
  ): Promise<Site> {
    const child = startProcess(workspace, ['serve', ...options], environment);
    const [line] = (await once(createInterface(child.stdout!), 'line')) as [
      string,
    ];
    return new Site(child, line);
  }

  get origin(): string {
    return new URL(this.address).origin;
  }

  /** Ends the site as a user does; returns its exit status and messages. */
  async stop(): Promise<{ status: number | null; stderr: string }> {
    const ended = once(this.child, 'close');
    this.child.kill('SIGTERM');
    const [status] = (await ended) as [number | null];
    return { status, stderr: this.stderr };
  }
}

/** Starts a comparison of slow commands on this machine without waiting for its end. */
export function beginComparison(
  workspace: Workspace,
  runs: number,
): { child: ChildProcess; ended: Promise<unknown> } {
  const commands = ['--command', 'sleep 0.25', '--command', 'sleep 0.3'];
  const child = startProcess(workspace, [
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
