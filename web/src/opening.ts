// Opens the page's source of records: a report file with inlined records, or the local site.

import { fromBase64 } from './base64';
import { fromColumns } from './columns';
import { sliceValue } from './json-slice';
import { watchList, watchRecord } from './live';
import type {
  AnyRecord,
  Entry,
  Filter,
  GateHistory,
  Listing,
  Source,
} from './source';
import { PageError } from './source';
import { shellWords } from './words';

interface Inlined {
  from: 'file';
  pinwise_version: string;
  records: { entry: Entry; record: AnyRecord }[];
  diffs?: { a: string; b: string; record: AnyRecord }[];
  histories?: GateHistory[];
}

/** Opens the source that the page's data describe: JSON or, if that is long, base64 of its deflated
 * columns. */
export async function openSource(text: string, base: string): Promise<Source> {
  const json = /^[^{]/.test(text) ? await unpack(text) : text;
  const data = parse(json);
  const given = data as { from?: string } | null;
  if (given?.from === 'site') return siteSource(base);
  if (given?.from === 'file') return fileSource(data as Inlined, json);
  throw new PageError(
    'The data of this page are damaged.',
    'Write the report again with pinwise record report.',
  );
}

/** The text that was packed; empty if it is damaged. */
async function unpack(text: string): Promise<string> {
  try {
    const packed = new Blob([fromBase64(text)]).stream();
    const json = packed.pipeThrough(new DecompressionStream('deflate-raw'));
    return fromColumns(await new Response(json).text());
  } catch {
    return '';
  }
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new PageError(
      'The data of this page are cut off or damaged.',
      'Write the report again with pinwise record report.',
    );
  }
}

/** Does an entry pass a filter? */
function matchesFilter(entry: Entry, filter: Filter): boolean {
  const words = (filter.text ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const searched =
    `${entry.id} ${entry.title} ${entry.host} ${entry.verdict} ${entry.tags.join(' ')}`.toLowerCase();
  return (
    (!filter.host || entry.host === filter.host) &&
    (!filter.schema || entry.schema === filter.schema) &&
    (!filter.tag || entry.tags.includes(filter.tag)) &&
    (!filter.subject || entry.subject === filter.subject) &&
    words.every((word) => searched.includes(word))
  );
}

/** A file's data in the expected form, whatever the file contains. */
function fileSource(data: Inlined, json: string): Source {
  if (
    !Array.isArray(data.records) ||
    data.records.some((r) => !r?.entry || !r.record)
  ) {
    throw new PageError(
      'The data of this page are damaged: its records are missing.',
      'Write the report again with pinwise record report.',
    );
  }
  return inlinedSource(data, data.diffs ?? [], json);
}

const distinct = (values: string[]): string[] => [...new Set(values)].sort();

function inlinedSource(
  data: Inlined,
  diffs: NonNullable<Inlined['diffs']>,
  json: string,
): Source {
  const entries = data.records.map((r) => r.entry);
  // Of records of the same second, the one that was given later is the newer.
  const newestFirst = [...entries]
    .reverse()
    .sort((a, b) => b.time.localeCompare(a.time));
  const ids = new Set(entries.map((entry) => entry.id));
  const placeOf = (id: string): number => {
    const place = entries.findIndex((entry) => entry.id === id);
    if (place < 0)
      throw new PageError(
        `This report has no record '${id}'.`,
        'The page lists its records under Records.',
      );
    return place;
  };
  return {
    kind: 'file',
    list: async (filter) => {
      const all = newestFirst.filter((entry) => matchesFilter(entry, filter));
      const offset = filter.offset ?? 0;
      return {
        records: all.slice(offset, offset + (filter.limit ?? all.length)),
        total: all.length,
        hosts: distinct(entries.map((e) => e.host)),
        schemas: distinct(entries.map((e) => e.schema)),
        tags: distinct(entries.flatMap((e) => e.tags)),
      };
    },
    load: async (id) => data.records[placeOf(id)]!.record,
    text: async (id) =>
      sliceValue(json, ['records', placeOf(id), 'record']) ?? '',
    has: (id) => ids.has(id),
    diff: async (a, b) => {
      const found = diffs.find((diff) => diff.a === a && diff.b === b);
      if (!found)
        throw new PageError(
          `This report does not compare '${a}' with '${b}'.`,
          `pinwise record diff ${shellWords([a, b])} does, and so does the page of pinwise serve.`,
        );
      return found.record;
    },
    gates: async (subject, benchmark) =>
      data.histories?.find(
        (one) =>
          one.benchmark === benchmark && `gate · ${one.suite}` === subject,
      ) ?? null,
    canDiff: (a, b) => diffs.some((diff) => diff.a === a && diff.b === b),
    watch: () => () => undefined,
    watchList: () => () => undefined,
  };
}

/** The local site: everything below the page's own address, which holds its secret. */
function siteSource(base: string): Source {
  const api = new URL('api/', base);
  const address = (path: string): string => new URL(path, api).href;
  return {
    kind: 'site',
    list: (filter) => {
      const query = new URLSearchParams();
      for (const [key, value] of Object.entries(filter)) {
        if (value !== undefined && value !== '') query.set(key, String(value));
      }
      return fetchJson<Listing>(address(`records?${query}`));
    },
    has: () => true,
    load: (id) =>
      fetchJson<AnyRecord>(address(`records/${encodeURIComponent(id)}`)),
    text: (id) => fetchText(address(`records/${encodeURIComponent(id)}`)),
    diff: (a, b) =>
      fetchJson<AnyRecord>(address(`diff?${new URLSearchParams({ a, b })}`)),
    gates: (subject, benchmark) =>
      fetchJson<GateHistory | null>(
        address(`gates?${new URLSearchParams({ subject, benchmark })}`),
      ),
    canDiff: () => true,
    watch: (id, onChange) => {
      return watchRecord(address(`live/${encodeURIComponent(id)}`), onChange);
    },
    watchList: (onChange, onState) => {
      return watchList(address('live'), onChange, onState);
    },
  };
}

const fetchJson = async <T>(address: string): Promise<T> =>
  JSON.parse(await fetchText(address)) as T;

/** The JSON that the site answers with. */
async function fetchText(address: string): Promise<string> {
  let response: Response;
  try {
    response = await fetch(address, {
      headers: { accept: 'application/json' },
      cache: 'no-store',
    });
  } catch {
    throw new PageError(
      'pinwise serve does not answer.',
      'Is it still running? Start it again and open the address that it prints.',
    );
  }
  const text = await response.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new PageError(
      'The answer of pinwise serve is cut off or damaged.',
      'Load the page again.',
    );
  }
  if (!response.ok) {
    const failure = body as { error?: string; hint?: string };
    throw new PageError(
      failure.error ?? `pinwise serve answered ${response.status}.`,
      failure.hint ?? '',
    );
  }
  return text;
}
