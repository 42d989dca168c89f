// Loads the report of a fleet, if there is one.

import { h } from '../../dom';
import type { AnyRecord, Entry, Source } from '../../source';
import { commandLine, shellWords } from '../../words';

export const REPORT_SCHEMA = 'pinwise.fleet-report/1';
export const fleetTag = (fleet: string): string => `fleet:${fleet}`;

/** The line of a fleet's newest report. */
async function reportLine(
  fleet: string,
  source: Source,
): Promise<Entry | null> {
  const found = await source.list({
    schema: REPORT_SCHEMA,
    tag: fleetTag(fleet),
    limit: 1,
  });
  return found.records[0] ?? null;
}

/** Loads a fleet's newest report; null if there is none, or if it cannot be read. */
export async function loadReport(
  fleet: string,
  source: Source,
): Promise<AnyRecord | null> {
  if (!fleet) return null;
  try {
    const line = await reportLine(fleet, source);
    return line && (await source.load(line.id));
  } catch {
    return null;
  }
}

/** How to get a report that is missing. */
export const missingReport = (fleet: string): HTMLElement =>
  h(
    'div',
    h('p', 'Its nodes have not been compared yet:'),
    commandLine(
      `pinwise fleet report ${shellWords([fleet])}`,
      'the command that compares the nodes',
    ),
  );
