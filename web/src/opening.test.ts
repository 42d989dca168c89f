import { readFileSync } from 'node:fs';
import { deflateRawSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { openSource } from './opening';

const history = { benchmark: 'parse', suite: 's.toml', steps: [] };
const entry = { id: 'a', title: 'Größe', host: '', verdict: '', tags: [] };
const record = { schema: 'pinwise.trace/1', seed: 1 };
const json = JSON.stringify({
  from: 'file',
  records: [{ entry, record }],
  histories: [history],
});
// Its first case has these data.
const columns = readFileSync(
  new URL('../../tests/data/columns.json', import.meta.url),
  'utf8',
);
const [[, inColumns]] = JSON.parse(columns) as [[string, string]];
const packed = deflateRawSync(inColumns).toString('base64');

test.each([
  ['as they are', json],
  ['compressed', packed],
])('data are read %s', async (_, text) => {
  const source = await openSource(text, 'file:///report.html');
  const { records } = await source.list({});
  expect(records[0]!.title).toBe('Größe');
  expect(await source.load('a')).toEqual(record);
  expect(await source.text('a')).toBe(JSON.stringify(record));
  expect(await source.gates('gate · s.toml', 'parse')).toEqual(history);
  expect(await source.gates('gate · t.toml', 'parse')).toBeNull();
});

test.each([
  ['nothing', ''],
  ['no base64', '<>'],
  ['an end that is missing', packed.slice(0, packed.length / 2)],
])('data with %s count as damaged', async (_, text) => {
  await expect(openSource(text, 'file:///report.html')).rejects.toThrow(
    'cut off or damaged',
  );
});

test('of records of the same second the later one is the newer', async () => {
  const records = ['old', 'new'].map((id) => ({
    entry: { ...entry, id, time: '2026-01-01T00:00:00Z' },
    record,
  }));
  const text = JSON.stringify({ from: 'file', records });
  const source = await openSource(text, 'file:///report.html');
  const listed = (await source.list({})).records.map(({ id }) => id);
  expect(listed).toEqual(['new', 'old']);
});
