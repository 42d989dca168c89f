// A record of each kind, as the program writes it: on simulated machines if they can make it, else
// on this machine if it permits that. Records of fleets are synthetic.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { fakeDiff, fakeNode, fakePlan, fakeReport } from './fake-fleet';
import { Workspace } from './pinwise';

/** A record as the tests use it: fields of any kind. */
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

const MISREPORTED = `topology = "package:1 l3:1(size=32MB) core:8 pu:1"
[wiring]
topology = "package:2 l3:1(size=16MB) core:2 pu:2"
`;

/** A machine on which the head is slower in one benchmark and sometimes fails in another. */
const BUILDS = `topology = "package:1 core:4 pu:1"
[workload.default]
base_s = 0.2
[workload."head/parse"]
base_s = 0.208
[workload."head/broken"]
base_s = 0.2
exit = 3
fail_probability = 0.2
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

/** Splits a command line at spaces, and appends last words, which may contain spaces. */
const splitWords = (line: string, ...last: string[]): string[] => [
  ...line.split(' '),
  ...last,
];
const onSimulatedMachine = (line: string): string[] => [
  '--machine',
  'sim:package:1 l3:2 core:2 pu:2',
  ...splitWords(line),
];

/** The command that makes a record; `needsHost` if this machine may refuse it, `status` if its exit
 * status is not 0. */
interface MakingCommand {
  words: readonly string[];
  needsHost?: boolean;
  status?: number;
}

const MAKERS: Readonly<Record<string, MakingCommand | { made: () => Fields }>> =
  {
    comparison: {
      words: onSimulatedMachine('compare --seed 1 --max-runs 10 -- prog'),
    },
    gate: {
      words: splitWords(
        '--machine sim:builds.toml gate base head --suite suite.toml --seed 1 --budget 40s',
      ),
      status: 1,
    },
    topology: {
      words: splitWords(
        '--machine sim:wrong.toml topology --measure --watch 5s',
      ),
    },
    bench: { words: onSimulatedMachine('bench --suite smt --max-runs 6') },
    trace: { words: splitWords('--machine sim:scheduler.toml trace -- prog') },
    search: { words: onSimulatedMachine('search --seed 1 -- prog') },
    reproduction: {
      words: splitWords('reproduce hyperthread-fill --simulated'),
    },
    'spin-predict': {
      words: splitWords(
        'spin predict --from broadwell --to skylake-sp --cpu-count 24',
      ),
    },
    'spin-pause': {
      words: splitWords('spin pause --for 100ms'),
      needsHost: true,
    },
    'spin-replay': {
      words: splitWords(
        'spin replay --pause-ns 43 --cpu-count 24 --experiment handoff --delays 500us --items 2',
      ),
      needsHost: true,
    },
    'spin-attach': {
      words: splitWords('spin attach -- sleep 0.2'),
      needsHost: true,
    },
    'spin-advice': {
      words: splitWords('spin advise --chip skylake-sp --cpu-count 24'),
      needsHost: true,
    },
    jitter: { words: splitWords('bench jitter --for 300ms'), needsHost: true },
    placements: { words: onSimulatedMachine('topology --placements') },
    top: { words: splitWords('top --once'), needsHost: true },
    profile: { words: splitWords('profile -- sh -c', LOOP), needsHost: true },
    diff: { words: splitWords('record diff a.json b.json') },
    'profile-diff': {
      words: splitWords('profile diff profile.json profile.json'),
      needsHost: true,
    },
    fleet: { made: fakePlan },
    'fleet-node': { made: fakeNode },
    'fleet-report': { made: fakeReport },
    'fleet-diff': { made: fakeDiff },
  };

export const KINDS = Object.keys(MAKERS);

let workspace: Workspace | undefined;

/** The workspace in which records are made and reports written. */
export function recordWorkspace(): Workspace {
  if (!workspace) {
    workspace = new Workspace();
    workspace.file('scheduler.toml', SCHEDULER);
    workspace.file('wrong.toml', MISREPORTED);
    workspace.file('builds.toml', BUILDS);
    workspace.file('suite.toml', SUITE);
  }
  return workspace;
}

/** Makes a record of a kind; null if this machine cannot. Test files run in parallel, and share
 * records that one of them has made. */
export function makeRecord(kind: string): Fields | null {
  const maker = MAKERS[kind]!;
  if ('made' in maker) return maker.made();
  const folder = process.env['PINWISE_E2E'] ?? recordWorkspace().folder;
  const known = path.join(folder, `${kind}.json`);
  if (!existsSync(known)) {
    const unfinished = path.join(recordWorkspace().folder, `${kind}.json`);
    writeFileSync(unfinished, JSON.stringify(runMaker(kind, maker)));
    renameSync(unfinished, known);
  }
  return JSON.parse(readFileSync(known, 'utf8')) as Fields | null;
}

/** Runs the command that makes a record; null if this machine refuses. */
function runMaker(kind: string, maker: MakingCommand): Fields | null {
  if (kind === 'diff') {
    const comparison = makeRecord('comparison')!;
    const other = { ...comparison, id: '20260101-000000-00000000' };
    recordWorkspace().file('a.json', JSON.stringify(comparison));
    recordWorkspace().file('b.json', JSON.stringify(other));
  }
  if (kind === 'profile-diff') {
    const profile = makeRecord('profile');
    if (profile === null) return null;
    recordWorkspace().file('profile.json', JSON.stringify(profile));
  }
  try {
    const record = JSON.parse(printJson(maker.words, maker.status)) as Fields;
    if (kind === 'spin-pause') addLevels(record);
    return record;
  } catch (error) {
    // An exit status means that the machine refused; without one, the program did not start or was
    // killed.
    if (
      !maker.needsHost ||
      typeof (error as { status?: unknown }).status !== 'number'
    )
      throw error;
    return null;
  }
}

/** The program's JSON output, if its exit status is the expected one. */
function printJson(words: readonly string[], status = 0): string {
  try {
    return recordWorkspace().run('-q --format json', ...words);
  } catch (error) {
    const ended = error as { status?: unknown; stdout?: unknown };
    if (status === 0 || ended.status !== status) throw error;
    return String(ended.stdout);
  }
}

/** Adds two levels to the first CPU's cost, which a machine shows only by chance; 86.5 % is halfway
 * between two whole percentages. */
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

/** Lets the program write a report of records; returns its path. */
export function writeReport(records: readonly Fields[]): string {
  const own = recordWorkspace();
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

/** Writes a page with any text as its data, which the program would not write. */
export function writePageWithData(data: string): string {
  files += 1;
  const text = data.replaceAll('<', '\\u003c');
  return recordWorkspace().file(
    `page-${files}.html`,
    readFileSync(process.env['PINWISE_PAGE'] ?? PAGE, 'utf8').replace(
      PLACE,
      () =>
        `<script type="application/json" id="pinwise-data">${text}</script>`,
    ),
  );
}

/** Writes a page with a record that the program has not checked. */
export function writePageOfRecord(
  record: Record<string, unknown>,
  title = 'made',
): string {
  const entry = {
    id: record['id'] ?? 'a',
    schema: record['schema'],
    time: record['started'] ?? '',
    host: 'made',
    title,
    verdict: '',
    complete: true,
    tags: [],
    subject: null,
    machine: null,
    figures: [],
  };
  return writePageWithData(
    JSON.stringify({
      from: 'file',
      pinwise_version: '0',
      records: [{ entry, record }],
    }),
  );
}

/** Fields that are never replaced: without them a record has no kind. */
const KEPT_FIELDS = new Set(['schema', 'id']);

/** Replaces each string and number within a value. */
export function replaceValues(
  value: unknown,
  string: (text: string) => unknown,
  number: (value: number) => unknown,
  key = '',
): unknown {
  if (typeof value === 'string')
    return KEPT_FIELDS.has(key) ? value : string(value);
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
