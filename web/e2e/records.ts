// A record of each kind, as the program writes it: on simulated machines if they can make it, else
// on this machine if that permits it. Those of fleets are made up.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { fakeDiff, fakeNode, fakePlan, fakeReport } from './fake-fleet';
import { Bench } from './pinwise';

/** What a record is to the tests: fields of any kind. */
export type Fields = { schema: string; [field: string]: unknown };

const SCHEDULER = `topology = "package:1 l3:2 core:2 pu:2"
[scheduler]
policy = "random-idle"
slice_s = 0.004
[workload.default]
base_s = 0.2
threads = 3
burst_s = 0.002
wait_s = 0.001
`;

const WRONG = `topology = "package:1 l3:1(size=32MB) core:8 pu:1"
[wiring]
topology = "package:2 l3:1(size=16MB) core:2 pu:2"
`;

/** A machine on which the head is slower in one benchmark and broken in another. */
const BUILDS = `topology = "package:1 core:4 pu:1"
[workload.default]
base_s = 0.2
[workload."head/parse"]
base_s = 0.208
[workload."head/broken"]
base_s = 0.2
exit = 3
[noise]
kind = "lognormal"
sd = 0.02
`;

const SUITE = `[[benchmark]]
name = "parse"
run = "parse big.json"
[[benchmark]]
name = "encode"
run = "encode big.json"
min_effect = "2%"
[[benchmark]]
name = "render"
run = "render page.html"
[[benchmark]]
name = "broken"
run = "broken"
`;

const LOOP = 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done';

/** A command line's words, split at spaces, and last ones that hold spaces. */
const words = (line: string, ...last: string[]): string[] => [
  ...line.split(' '),
  ...last,
];
const onMachine = (line: string): string[] => [
  '--machine',
  'sim:package:1 l3:2 core:2 pu:2',
  ...words(line),
];

/** How the program makes a record; `needsHost` if the machine at hand may refuse, `status` if it
 * ends with another than 0. */
interface Made {
  words: readonly string[];
  needsHost?: boolean;
  status?: number;
}

const MAKERS: Readonly<Record<string, Made | { made: () => Fields }>> = {
  comparison: {
    words: onMachine('compare --seed 1 --max-runs 10 -- prog'),
  },
  gate: {
    words: words(
      '--machine sim:builds.toml gate base head --suite suite.toml --seed 1 --budget 40s',
    ),
    status: 1,
  },
  topology: {
    words: words('--machine sim:wrong.toml topology --measure --watch 5s'),
  },
  bench: { words: onMachine('bench --suite smt --max-runs 6') },
  trace: { words: words('--machine sim:scheduler.toml trace -- prog') },
  search: { words: onMachine('search --seed 1 -- prog') },
  reproduction: { words: words('reproduce hyperthread-fill --simulated') },
  'spin-predict': {
    words: words(
      'spin predict --from broadwell --to skylake-sp --cpu-count 24',
    ),
  },
  'spin-pause': { words: words('spin pause --for 100ms'), needsHost: true },
  'spin-replay': {
    words: words(
      'spin replay --pause-ns 43 --cpu-count 24 --experiment handoff --delays 500us --items 2',
    ),
    needsHost: true,
  },
  'spin-attach': {
    words: words('spin attach -- sleep 0.2'),
    needsHost: true,
  },
  profile: { words: words('profile -- sh -c', LOOP), needsHost: true },
  'profile-diff': {
    words: words('profile diff profile.json profile.json'),
    needsHost: true,
  },
  fleet: { made: fakePlan },
  'fleet-node': { made: fakeNode },
  'fleet-report': { made: fakeReport },
  'fleet-diff': { made: fakeDiff },
};

export const KINDS = Object.keys(MAKERS);

let bench: Bench | undefined;

/** The bench on which records are made and reports written. */
export function recordBench(): Bench {
  if (!bench) {
    bench = new Bench();
    bench.file('scheduler.toml', SCHEDULER);
    bench.file('wrong.toml', WRONG);
    bench.file('builds.toml', BUILDS);
    bench.file('suite.toml', SUITE);
  }
  return bench;
}

/** A record of a kind; null if the machine at hand cannot make it. Files of tests run side by
 * side, and share what one of them has made. */
export function recordOf(kind: string): Fields | null {
  const maker = MAKERS[kind]!;
  if ('made' in maker) return maker.made();
  const folder = process.env['PINWISE_E2E'] ?? recordBench().folder;
  const known = path.join(folder, `${kind}.json`);
  if (!existsSync(known)) {
    const unfinished = path.join(recordBench().folder, `${kind}.json`);
    writeFileSync(unfinished, JSON.stringify(make(kind, maker)));
    renameSync(unfinished, known);
  }
  return JSON.parse(readFileSync(known, 'utf8')) as Fields | null;
}

/** Makes a record; null if the machine at hand refuses. */
function make(kind: string, maker: Made): Fields | null {
  if (kind === 'profile-diff') {
    const profile = recordOf('profile');
    if (profile === null) return null;
    recordBench().file('profile.json', JSON.stringify(profile));
  }
  try {
    const record = JSON.parse(printJson(maker.words, maker.status)) as Fields;
    if (kind === 'spin-pause') addLevels(record);
    return record;
  } catch (error) {
    // Refused by the machine, not failed to start or killed.
    if (
      !maker.needsHost ||
      typeof (error as { status?: unknown }).status !== 'number'
    )
      throw error;
    return null;
  }
}

/** What the program prints as JSON, if it ends with that status. */
function printJson(words: readonly string[], status = 0): string {
  try {
    return recordBench().run('-q --format json', ...words);
  } catch (error) {
    const ended = error as { status?: unknown; stdout?: unknown };
    if (status === 0 || ended.status !== status) throw error;
    return String(ended.stdout);
  }
}

/** Two levels of the first CPU's cost, which a machine shows by chance only; 86.5 % is halfway
 * between two whole figures. */
function addLevels(record: Fields): void {
  const [first] = record.cpus as {
    pause_ns: number;
    pause_cycles: number | null;
    levels: unknown[];
  }[];
  if (first === undefined) return;
  first.levels = [1.37, 2.61].map((times, at) => ({
    pause_ns: first.pause_ns * times,
    pause_cycles:
      first.pause_cycles === null ? null : first.pause_cycles * times,
    share: [0.865, 0.135][at],
  }));
}

let files = 0;

/** A report of records, written by the program from files. */
export function reportOf(records: readonly Fields[]): string {
  const own = recordBench();
  files += 1;
  const inputs = records.map((record, at) =>
    own.file(`record-${files}-${at}.json`, JSON.stringify(record)),
  );
  return own.report(...inputs);
}

const PAGE = path.join(
  path.dirname(fileURLToPath(import.meta.url)),
  '../dist/page.html',
);
const PLACE =
  /<script type="application\/json" id="pinwise-data">.*?<\/script>/s;

/** A page with any text in place of its data, such as the program would not write. */
export function pageWith(data: string): string {
  files += 1;
  const text = data.replaceAll('<', '\\u003c');
  return recordBench().file(
    `page-${files}.html`,
    readFileSync(process.env['PINWISE_PAGE'] ?? PAGE, 'utf8').replace(
      PLACE,
      () =>
        `<script type="application/json" id="pinwise-data">${text}</script>`,
    ),
  );
}

/** A page with a record that no program checks. */
export function pageOf(record: Record<string, unknown>): string {
  const entry = {
    id: record['id'] ?? 'a',
    schema: record['schema'],
    time: record['started'] ?? '',
    host: 'made',
    title: 'made',
    verdict: '',
    complete: true,
    tags: [],
    subject: null,
    machine: null,
    figures: [],
  };
  return pageWith(
    JSON.stringify({
      from: 'file',
      pinwise_version: '0',
      records: [{ entry, record }],
    }),
  );
}

/** Fields that are not prose: without them a record has no kind. */
const KEPT = new Set(['schema', 'id']);

/** The same value with each string and number replaced. */
export function replaceValues(
  value: unknown,
  string: (text: string) => unknown,
  number: (value: number) => unknown,
  key = '',
): unknown {
  if (typeof value === 'string') return KEPT.has(key) ? value : string(value);
  if (typeof value === 'number') return number(value);
  if (Array.isArray(value))
    return value.map((item) => replaceValues(item, string, number, key));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [
        name,
        replaceValues(item, string, number, name),
      ]),
    );
  }
  return value;
}
