// The folder for all files that the tests write, removed when they end.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Makes the folder; the returned function removes it. */
export default function setup(): () => void {
  const folder = mkdtempSync(path.join(tmpdir(), 'pinwise-e2e-'));
  // Workers are started afterwards and inherit it.
  process.env['PINWISE_E2E'] = folder;
  return () => {
    rmSync(folder, { recursive: true, force: true });
  };
}
