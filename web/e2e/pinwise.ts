// Runs the program itself, so that tests show the page with what it really
// writes.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));

/** The binary under test. */
export const PINWISE =
  process.env['PINWISE'] ?? path.join(here, '../../target/debug/pinwise');

/** The folder for pictures and reports; never in the repository. */
export const OUTPUT = path.join(here, 'output');
mkdirSync(OUTPUT, { recursive: true });

/** A machine on which one-llc is truly 10 % faster, and one-core half as slow again. */
export const SHARE = `topology = "package:1 l3:2 core:2 pu:2"
[workload.default]
base_s = 0.5
threads = 2
[effects]
"one-llc" = 0.90
"one-core" = 1.5
[noise]
sd = 0.01
`;

/** A folder with its own store, in which tests run the program. */
export class Workspace {
  readonly folder = mkdtempSync(
    path.join(process.env['PINWISE_E2E'] ?? tmpdir(), 'workspace-'),
  );
  readonly store = path.join(this.folder, 'store.db');
  private reports = 0;

  /** Runs pinwise in the folder and returns its output; `line` is split at spaces, `last` is not. */
  run(line: string, ...last: string[]): string {
    const words = [...line.split(' '), ...last];
    return execFileSync(PINWISE, ['--store', this.store, ...words], {
      cwd: this.folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      maxBuffer: 1 << 30,
    });
  }

  /** Writes a file into the folder; returns its path. */
  file(name: string, text: string): string {
    const file = path.join(this.folder, name);
    writeFileSync(file, text);
    return file;
  }

  /** Runs pinwise and parses its JSON output. */
  json<T>(line: string, ...last: string[]): T {
    return JSON.parse(this.run(`--format json ${line}`, ...last)) as T;
  }

  /** The stored records, newest first. */
  history(): { id: string; verdict: string }[] {
    return this.json<{ records: { id: string; verdict: string }[] }>(
      'record history',
    ).records;
  }

  /** The newest record. */
  newest<T>(): T & { id: string } {
    return this.json('record show', this.history()[0]!.id);
  }

  /** Writes a report of stored or exported records; returns its path. */
  report(...records: string[]): string {
    this.reports += 1;
    const report = path.join(this.folder, `report-${this.reports}.html`);
    this.run('record report', ...records, '-o', report);
    return report;
  }

  /** Runs a comparison on the machine `SHARE`; returns the path of its report. */
  comparison(...words: string[]): string {
    this.file('share.toml', SHARE);
    const report = path.join(this.folder, 'comparison.html');
    this.run(
      '--machine sim:share.toml compare --seed 1 --max-runs 60 --report',
      report,
      ...words,
      '--',
      'prog',
    );
    return report;
  }
}
