// One folder for all that the tests write, removed when they end.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Makes the folder; what is returned removes it. */
export default function setup(): () => void {
  const folder = mkdtempSync(path.join(tmpdir(), 'pinwise-e2e-'));
  // Workers are started afterwards and inherit it.
  process.env['PINWISE_E2E'] = folder;
  return () => {
    rmSync(folder, { recursive: true, force: true });
  };
}
