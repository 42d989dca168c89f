// A line of the history, for tests.

import type { Entry } from './source';

export const fakeEntry = (id: string, more: Partial<Entry> = {}): Entry => ({
  id,
  schema: 'pinwise.comparison/1',
  time: '2026-01-01T00:00:00Z',
  host: 'a',
  title: '',
  verdict: '',
  complete: true,
  tags: [],
  subject: null,
  machine: null,
  program: null,
  outcome: null,
  figures: [],
  ...more,
});
