// Made by `cargo xtask gen` from schema/records.json: what records hold. Records of
// older versions lack fields, so that each may be missing.

/** A placement that was applied to what ran already, and given back. */
export interface Applied {
  /** CPUs that the placement stands for, as a list. */
  asked_cpus?: string | null;
  /** From the first change to the last, seconds. */
  elapsed_s?: number | null;
  /** Threads that ended meanwhile. */
  ended?: number | null;
  /** CPUs that the kernel granted, all threads together, as a list. */
  granted_cpus?: string | null;
  /** Interrupts that were moved, and queues of network cards. */
  interrupts?: AppliedInterrupt[] | null;
  /** Threads left alone, each with the reason. */
  left_alone?: string[] | null;
  /** Memory that was moved; `null`: none was to be. */
  memory?: AppliedMemory | null;
  /** Times that a thread was seen after it had run. */
  observations?: number | null;
  /** CPUs that threads were seen on, as a list. */
  observed_cpus?: string | null;
  /** Of these, on CPUs of the placement, 0 to 1; `null` where nothing ran. */
  observed_share?: number | null;
  /** The placement, as on the command line. */
  placement?: string | null;
  /** Threads that have their own mask again. */
  returned?: number | null;
  schema?: "pinwise.applied/1" | null;
  /** Whose threads. */
  service?: ServiceRecord | null;
  /** Threads that were placed, all in all. */
  threads?: number | null;
}

/** Built-in workloads, measured. */
export interface Bench {
  /** Time for everything, seconds. */
  budget_s?: number | null;
  /** The conclusions, as full sentences. */
  conclusions?: string[] | null;
  /** Time from start to end, seconds. */
  elapsed_s?: number | null;
  /** When it was last written, likewise. */
  ended?: string | null;
  /** What disturbed it, and what else is worth knowing. */
  findings?: Finding[] | null;
  /** Where it ran. */
  host?: HostRecord | null;
  /** Name under which it is stored. */
  id?: string | null;
  /** One entry per comparison. */
  kernels?: BenchKernel[] | null;
  /** Smallest effect of interest, as a share. */
  min_effect?: number | null;
  /** Version of pinwise that wrote it. */
  pinwise_version?: string | null;
  /** Comparisons that were planned. */
  planned?: number | null;
  schema?: "pinwise.bench/1" | null;
  /** Geometric means over the kernels of a group. */
  scores?: GroupScore[] | null;
  /** Seed that those of the comparisons are made from. */
  seed?: number | null;
  /** Whether cores have several CPUs here. */
  smt?: SmtRecord | null;
  /** When it began, RFC 3339 in UTC. */
  started?: string | null;
  /** Why it ended; `null` while it runs or where it was killed. */
  stopped?: Stopped | null;
  /** The suite asked for; `null` where kernels were named. */
  suite?: string | null;
  /** Labels of the user's. */
  tags?: string[] | null;
}

/** A comparison: plan, runs, analysis. */
export interface Comparison {
  /** The command that makes it again with the same seed; `null` likewise. */
  again?: string | null;
  /** The arguments that made it, without where it is stored; empty where no command line did. */
  argv?: string[] | null;
  /** What was compared. */
  arms?: Arm[] | null;
  /** Name of the arm that others are compared with. */
  baseline?: string | null;
  /** Name of the best arm, where there is a verdict for one. */
  best?: string | null;
  /** Whole blocks that the contrasts rest on. */
  blocks?: number | null;
  /** Arm against baseline; only arms that were confirmed on fresh blocks. */
  contrasts?: ContrastRecord[] | null;
  /** Time from start to end, seconds. */
  elapsed_s?: number | null;
  /** The same in words, or that it has not ended. */
  ended?: string | null;
  /** What disturbed it, and what else is worth knowing. */
  findings?: Finding[] | null;
  /** Where it ran. */
  host?: HostRecord | null;
  /** Name under which it is stored. */
  id?: string | null;
  /** What is compared. */
  metric?: MetricRecord | null;
  /** Version of pinwise that wrote it. */
  pinwise_version?: string | null;
  /** How it was planned. */
  plan?: PlanRecord | null;
  schema?: "pinwise.comparison/1" | null;
  /** Seed of the order of runs (and of a simulated machine's noise). */
  seed?: number | null;
  /** The service that ran already and was placed in turns; `null` where every run started a command. */
  service?: ServiceRecord | null;
  /** When it began, RFC 3339 in UTC. */
  started?: string | null;
  /** Why it ended; `null` while it runs or where it was killed. */
  stopped?: Stopped | null;
  /** What it is made for. */
  study?: ComparisonStudy | null;
  /** Labels of the user's. */
  tags?: string[] | null;
  /** The result. */
  verdict?: VerdictRecord | null;
}

/** Two records of the same kind, compared. */
export interface DiffRecord {
  /** The first. */
  a?: ComparedRecord | null;
  /** The second. */
  b?: ComparedRecord | null;
  /** What else must be known to read it, as full sentences. */
  caveats?: string[] | null;
  /** Figures of both, in the order of A. */
  figures?: FigureChange[] | null;
  /** What is another machine, system or pinwise. */
  machine_changes?: MachineChange[] | null;
  schema?: "pinwise.diff/1" | null;
  /** The result. */
  sentence?: string | null;
}

/** What would distort measurements on a machine, worst first. */
export interface Doctor {
  /** What was found. */
  findings?: Finding[] | null;
  /** Names of checks that found nothing wrong. */
  passed?: string[] | null;
  schema?: "pinwise.doctor/1" | null;
  /** Checks that could not be made here, with the reason. */
  unavailable?: Record<string, string> | null;
}

/** One group of machines against another. */
export interface FleetDiff {
  /** The first. */
  a?: FleetSide | null;
  /** Which part of the difference of a profiled workload stands where. */
  attributions?: FleetAttribution[] | null;
  /** The second. */
  b?: FleetSide | null;
  /** Figures that both have. */
  figures?: FleetFigureChange[] | null;
  /** Figures that one of them lacks. */
  only_one?: string[] | null;
  schema?: "pinwise.fleet-diff/1" | null;
  /** The answer in one sentence. */
  sentence?: string | null;
  /** Settings that differ. */
  settings?: FleetSettingChange[] | null;
}

/** A node of a fleet. There is one record a node and fleet, whatever the number of attempts: its id is `FLEET.NODE`. */
export interface FleetNode {
  /** Times that it was begun: 1, and 1 for each requeue and resumption. */
  attempts?: number | null;
  /** How far the node's clock was ahead of the submitter's or the shared folder's, seconds; `null` where it is unknown. */
  clock_ahead_s?: number | null;
  /** When the last step ended; `null` where steps are missing. */
  ended?: string | null;
  /** Headline figures of all records of the node. */
  figures?: NodeFigure[] | null;
  /** The fleet's id. */
  fleet?: string | null;
  /** The machine; `null` where nothing is known. */
  host?: HostRecord | null;
  /** `FLEET.NODE`. */
  id?: string | null;
  /** The node, as the scheduler calls it. */
  node?: string | null;
  schema?: "pinwise.fleet-node/1" | null;
  /** What the node is set to, by name: `bios`, `memory`, `smt`, `numa-nodes-per-package`, `governor`, `boost`, `transparent-hugepages`, `kernel-command-line` … Names and microcode, kernel and hypervisor stand in `host`, too. */
  settings?: Record<string, string> | null;
  /** When its first attempt began, RFC 3339, by the node's clock. */
  started?: string | null;
  /** What it ran. */
  steps?: NodeStep[] | null;
  /** Labels: the fleet's among them. */
  tags?: string[] | null;
}

/** The same studies on many machines: what was asked. */
export interface FleetRecord {
  /** How many nodes were asked for. */
  asked?: number | null;
  /** The folder that submitter and nodes share; `null` of a simulated fleet. */
  folder?: string | null;
  /** The host it was submitted from. */
  host?: string | null;
  /** The fleet's id. */
  id?: string | null;
  /** Jobs that were submitted, those of resumptions behind. */
  jobs?: FleetJob[] | null;
  /** What starts the nodes: `slurm`, a template's name, `simulated`. */
  launcher?: string | null;
  /** Nodes that were not asked, each with the reason. */
  left_out?: string[] | null;
  /** Nodes asked for by name; empty where the scheduler chooses. */
  nodes?: string[] | null;
  /** Version of pinwise. */
  pinwise?: string | null;
  /** Faults of a simulated fleet; empty of a real one. */
  planted?: PlantedFault[] | null;
  schema?: "pinwise.fleet/1" | null;
  /** When it was submitted first, RFC 3339. */
  started?: string | null;
  /** What every node runs, in this order. */
  steps?: FleetStep[] | null;
  /** Labels of the user's. */
  tags?: string[] | null;
  /** The number of the user who submitted it; `null` where that was not written down. Whoever can write a store can write this, too: it chooses what `last` means, and permits nothing. */
  user?: number | null;
}

/** Nodes beside their peers. */
export interface FleetReport {
  /** Nodes asked for. */
  asked?: number | null;
  /** What outliers have in common. */
  common?: FleetCommon[] | null;
  /** Nodes of which every step is done. */
  complete?: number | null;
  /** The expected share of nodes named that are named by chance, at most; 0 to 1. */
  false_discovery_rate?: number | null;
  /** What else there is to say: nodes that failed or are missing, clocks. */
  findings?: Finding[] | null;
  /** The fleet's id. */
  fleet?: string | null;
  /** Groups of similar nodes, the largest first. */
  groups?: FleetGroup[] | null;
  /** The host on which it was found. */
  host?: string | null;
  /** `FLEET.report`: the newest report of a fleet stands in the store. */
  id?: string | null;
  /** Figures of nodes that were judged. */
  judged?: number | null;
  /** Nodes that a record is there of. */
  nodes?: number | null;
  /** Figures and settings of nodes that differ from their group; nodes that differ most first, the figures of a node together. */
  outliers?: FleetOutlier[] | null;
  schema?: "pinwise.fleet-report/1" | null;
  /** The answer in one sentence. */
  sentence?: string | null;
  /** When this was found, RFC 3339. */
  started?: string | null;
  /** When the fleet was submitted, RFC 3339. */
  submitted?: string | null;
  /** Labels of the user's, and the fleet's. */
  tags?: string[] | null;
}

/** What a fleet is at. */
export interface FleetStatus {
  /** Nodes asked for. */
  asked?: number | null;
  /** When it was looked at, RFC 3339. */
  at?: string | null;
  /** Nodes of which every step has its record. */
  done?: number | null;
  /** Nodes that ended without all records. */
  failed?: number | null;
  /** The fleet's id. */
  fleet?: string | null;
  /** Nodes that were asked for, have no job, and never began; those that a scheduler would have chosen among them. */
  missing?: number | null;
  /** Each node that is known. */
  nodes?: NodeStatus[] | null;
  /** What else there is to say, in whole sentences. */
  notes?: string[] | null;
  /** Nodes that wait for their job. */
  queued?: number | null;
  /** Nodes that run. */
  running?: number | null;
  schema?: "pinwise.fleet-status/1" | null;
  /** Steps of each. */
  steps?: number | null;
}

/** Two builds over a suite of benchmarks. */
export interface GateRecord {
  /** The arguments of pinwise that it was made with. */
  argv?: string[] | null;
  /** What is compared with. */
  base?: BuildRecord | null;
  /** The benchmarks, in the order of the suite. */
  benchmarks?: GateBenchmark[] | null;
  /** Time from start to end, seconds. */
  elapsed_s?: number | null;
  /** The same in words, or that it has not ended. */
  ended?: string | null;
  /** What else is worth knowing, worst first. */
  findings?: Finding[] | null;
  /** What is judged. */
  head?: BuildRecord | null;
  /** Where it ran. */
  host?: HostRecord | null;
  /** Name under which it is stored. */
  id?: string | null;
  /** Version of pinwise that wrote it. */
  pinwise_version?: string | null;
  /** How it was planned. */
  plan?: GatePlanRecord | null;
  schema?: "pinwise.gate/1" | null;
  /** Seed of the order of runs. */
  seed?: number | null;
  /** When it began, RFC 3339 in UTC. */
  started?: string | null;
  /** Why it ended; `null` while it runs or where it was killed. */
  stopped?: Stopped | null;
  /** Name of the suite. */
  suite?: string | null;
  /** Labels of the user's. */
  tags?: string[] | null;
  /** The result. */
  verdict?: GateVerdict | null;
}

/** For how long threads that only read the clock were kept from it, CPU by CPU. */
export interface JitterRecord {
  /** For how long each CPU should be watched, s. */
  asked_s?: number | null;
  /** What took the time, of all CPUs together, most first. */
  causes?: JitterCauseRecord[] | null;
  /** Why causes are unknown, and what would make them known; `null` where the kernel reported them. */
  causes_unavailable?: string | null;
  /** Every CPU that was watched. */
  cpus?: JitterCpuRecord[] | null;
  /** What follows from the settings and from what was measured. */
  findings?: Finding[] | null;
  /** Gaps of all CPUs together. */
  gaps?: number | null;
  /** Where. */
  host?: HostRecord | null;
  /** Date, time and a random part: names the record in the store. */
  id?: string | null;
  /** Did the user end it before? */
  interrupted?: boolean | null;
  /** How the system is set to keep CPUs free. */
  isolation?: IsolationRecord | null;
  /** The longest gaps, longest first. */
  longest?: GapRecord[] | null;
  /** Share of the gaps whose cause is known; `null` where there are none. */
  named_share?: number | null;
  /** What was odd, as full sentences. */
  notes?: string[] | null;
  schema?: "pinwise.jitter/1" | null;
  /** When it began, RFC 3339 in UTC. */
  started?: string | null;
  /** What is longer than this between two readings of the clock is a gap, µs. */
  threshold_us?: number | null;
}

/** One run of a built-in workload. */
export interface KernelRecord {
  /** Bytes moved as STREAM counts, where that is what is measured. */
  bytes?: number | null;
  /** The same per second. */
  bytes_per_s?: number | null;
  /** Proof of the work, 16 hexadecimal digits: the same for the same work, however it was run. */
  checksum?: string | null;
  /** Which of several loops the threads chose; `null` where there was no choice. */
  chosen?: string | null;
  /** CPUs that threads were bound to, in order; `null` where not bound. */
  cpus?: number[] | null;
  /** Instruction set asked for. */
  isa?: string | null;
  /** The compiled version that was run. */
  isa_version?: string | null;
  /** Its name. */
  kernel?: string | null;
  /** What an operation is, such as `calls`. */
  operation?: string | null;
  /** Operations done by all threads together. */
  operations?: number | null;
  /** Operations per second. */
  rate?: number | null;
  schema?: "pinwise.kernel/1" | null;
  /** From the start of the first thread's work to the end of the last one's, seconds: without preparing. */
  seconds?: number | null;
  /** Value of `--size`; `null` where the kernel has none. */
  size?: number | null;
  /** How the work was shared out. */
  split?: KernelSplit | null;
  /** Threads that shared the work. */
  threads?: number | null;
  /** Units of work done. */
  work?: number | null;
  /** Bytes that each thread's loop goes through again and again. */
  working_set_bytes?: number | null;
}

/** Predictions, best first where placements were not named. */
export interface PlacementPrediction {
  /** Which direction is good: costs are values, or the inverse of values. */
  better?: Direction | null;
  /** Placements whose truth is known. */
  checked?: number | null;
  /** The program, as the search had it. */
  command?: string[] | null;
  /** Of those, how many true ratios lie in their 90 % intervals. */
  covered?: number | null;
  /** Is it the machine that was searched? */
  is_searched_machine?: boolean | null;
  /** Machine that is asked about: `local` or `sim:…`. */
  machine?: string | null;
  /** Median size of their errors, a share; `null` where none is known. */
  median_error?: number | null;
  /** Name of the metric whose cost is predicted. */
  metric?: string | null;
  /** Version of pinwise that wrote it. */
  pinwise_version?: string | null;
  /** What is expected of each placement. */
  placements?: PredictedPlacement[] | null;
  schema?: "pinwise.prediction/1" | null;
  /** The search's id. */
  search?: string | null;
  /** Its unit. */
  unit?: string | null;
}

/** How many ways there are to place threads on a machine, and the even ones. */
export interface PlacementsRecord {
  /** Names and versions. */
  machine?: MachineRecord | null;
  schema?: "pinwise.placements/1" | null;
  /** For each number of threads. */
  threads?: ThreadPlacements[] | null;
}

/** What changed from one profile to another. */
export interface ProfileDiff {
  /** The profile after. */
  after?: DiffSide | null;
  /** Which part of the difference stands where: of elapsed time where both know it, and of CPU time. */
  attributions?: AttributionRecord[] | null;
  /** The profile before. */
  before?: DiffSide | null;
  /** Both trees of calls as one, callers before callees. */
  calls?: CallChangeRecord[] | null;
  /** The largest change of own time first, whatever its sign. */
  functions?: FunctionChangeRecord[] | null;
  /** Functions that are not in the list. */
  functions_left_out?: number | null;
  /** What else should be known, as full sentences. */
  notes?: string[] | null;
  /** More PAUSEs, or longer ones; `null` where one side waits in none, or what a PAUSE takes there is not known. */
  pausing?: PausingRecord | null;
  schema?: "pinwise.profile-diff/1" | null;
  /** What came out, in words. */
  sentences?: string[] | null;
  /** All CPU time. */
  total?: ChangeRecord | null;
  /** What both are divided by. */
  unit?: string | null;
  /** Waiting in spin hints. */
  waits?: ChangeRecord | null;
}

/** A profile of a command or a process. */
export interface ProfileRecord {
  /** Of the rest, seen at accesses of memory: on an instruction that reads or writes memory other than the stack, or right after one; `null` where that is not known. */
  accesses?: AmountRecord | null;
  /** All stacks as a tree of calls. */
  calls?: CallsRecord | null;
  /** What made the samples. */
  event?: SampleEvent | null;
  /** How the last command ended: exit status, or 128 + signal; `null` where none was started, and where `--for` ended it. */
  exit?: number | null;
  /** The longest own time first. */
  functions?: FunctionRecord[] | null;
  /** Functions that are not in the list. */
  functions_left_out?: LeftOutRecord | null;
  /** Where it ran. */
  host?: HostRecord | null;
  /** Samples per second of a thread's CPU time. */
  hz?: number | null;
  /** Name under which it is stored. */
  id?: string | null;
  /** The hottest instructions, each with the code around it. */
  instructions?: SpotRecord[] | null;
  /** Time at instructions that are not shown. */
  instructions_left_out?: AmountRecord | null;
  /** Of that, in the kernel; `null` where the kernel was not sampled. */
  kernel?: AmountRecord | null;
  /** Samples that the kernel had to drop. */
  lost?: number | null;
  /** What else was measured of the machine right afterwards; `null` where nothing was. */
  machine?: ProfileMachine | null;
  /** What else should be known, as full sentences. */
  notes?: string[] | null;
  /** CPU time that pinwise itself used meanwhile, seconds. */
  own_cpu_s?: number | null;
  /** What a PAUSE takes on this machine; `null` where it was not measured. */
  pause?: ProfilePause | null;
  /** Each run; of a process one. */
  runs?: ProfileRun[] | null;
  schema?: "pinwise.profile/1" | null;
  /** What came out, in words. */
  sentence?: string | null;
  /** What it is about. */
  source?: TraceSource | null;
  /** How complete the stacks are; `null` where there are none, and in records that were made before there was this field. */
  stacks?: StacksRecord | null;
  /** When it began, RFC 3339 in UTC. */
  started?: string | null;
  /** Labels of the user's. */
  tags?: string[] | null;
  /** The busiest first. */
  threads?: ProfileThread[] | null;
  /** Threads that are not in the list. */
  threads_left_out?: LeftOutRecord | null;
  /** All of it. */
  total?: AmountRecord | null;
  /** In code that could not be read, such as the kernel's; `null` where that is not known. */
  unread?: AmountRecord | null;
  /** Of that, waiting in spin hints: right after one, or on one. */
  waits?: AmountRecord | null;
  /** How long was sampled, all runs together, seconds. */
  wall_s?: number | null;
  /** The work that was done meanwhile. */
  work?: WorkRecord | null;
}

/** The levels found in a matrix. */
export interface ReplayRecord {
  /** Why nothing, or nothing more, can be said; `null` where all could. */
  cannot_tell?: string | null;
  /** Rows of the matrix. */
  cpus?: number | null;
  /** No level divides the CPUs. */
  flat?: boolean | null;
  /** Levels, smallest groups first. Groups hold two CPUs or more; at level `smt`, which lists the cores, those of one CPU stand there too. */
  levels?: MeasuredLevel[] | null;
  /** What was odd, as full sentences. */
  notes?: string[] | null;
  schema?: "pinwise.replay/1" | null;
}

/** Experiments of field reports, run here or on simulated machines. */
export interface Reproduction {
  /** Claims by verdict. */
  counts?: ClaimCounts | null;
  /** Time from start to end, seconds. */
  elapsed_s?: number | null;
  /** Name of the machine that ran it. */
  host?: string | null;
  /** Name under which it is stored. */
  id?: string | null;
  /** Was it stopped before its end? */
  interrupted?: boolean | null;
  /** Version of pinwise that wrote it. */
  pinwise_version?: string | null;
  /** The reports. */
  reports?: ReportRecord[] | null;
  schema?: "pinwise.reproduction/1" | null;
  /** Seed of the order of runs and of the simulated machines. */
  seed?: number | null;
  /** On the reports' machines, simulated? */
  simulated?: boolean | null;
  /** When it began, RFC 3339 in UTC. */
  started?: string | null;
}

/** A change that was made by rules, or was not; a line of the log. */
export interface RuleChange {
  /** What happened. */
  change?: RuleChangeKind | null;
  /** Was nothing changed, as only a look was wanted? */
  dry_run?: boolean | null;
  /** CPUs before, as a list; `null` where they were not changed. */
  from?: string | null;
  /** What it calls itself; `null` where that was not looked up. */
  name?: string | null;
  /** The nice value now; `null` where it was not changed. */
  nice?: number | null;
  /** The process. */
  process?: number | null;
  /** The rule; `null` where none asks for anything any more. */
  rule?: string | null;
  schema?: "pinwise.rule-change/1" | null;
  /** Threads that were changed. */
  threads?: number | null;
  /** Threads of which something was left, as somebody else had set their CPUs or nice value. */
  threads_left?: number | null;
  /** When, RFC 3339 in UTC; empty until it is written. */
  time?: string | null;
  /** CPUs now. */
  to?: string | null;
  /** Why it was refused or released. */
  why?: string | null;
}

/** A file of rules and whom it concerns now. */
export interface RulesRecord {
  /** The file. */
  file?: string | null;
  /** The rules, in its order. */
  rules?: RuleRecord[] | null;
  schema?: "pinwise.rules/1" | null;
  /** What is odd about the file, each with line and column. */
  warnings?: string[] | null;
}

/** A search: candidates, every run, what the model makes of them, the answer. It is stored as it grows; of one that was cut off `stopped` is `null`, and `pinwise search --resume` goes on with it. */
export interface SearchRecord {
  /** The command that makes it again with the same seed; `null` likewise. */
  again?: string | null;
  /** The arguments that made it, without where it is stored; empty where no command line did. */
  argv?: string[] | null;
  /** What could be run: `os-default` first, then shapes, then placements that were made on the way by moving one thread. */
  arms?: SearchArm[] | null;
  /** Name of the arm that is best; `null` where none is known. */
  best?: string | null;
  /** The command's arguments; `{threads}` stands for the number of threads. */
  command?: string[] | null;
  /** The best arm against `os-default`, measured afresh; `null` without. */
  confirmation?: ConfirmationRecord | null;
  /** Time from start to end, s; without pauses between interruption and resumption. */
  elapsed_s?: number | null;
  /** The same in words, or that it has not ended. */
  ended?: string | null;
  /** What disturbed it, and what else is worth knowing. */
  findings?: Finding[] | null;
  /** Where it ran. */
  host?: HostRecord | null;
  /** Name under which it is stored. */
  id?: string | null;
  /** The least resource that is nearly as good; `null` where unknown, and where CPUs of one shape differ. */
  least?: LeastRecord | null;
  /** What is searched for the least cost of. */
  metric?: MetricRecord | null;
  /** The model at the end; `null` before the first runs. */
  model?: SearchModelRecord | null;
  /** The best shape on other CPUs, in pairs beside those that it was found on; without an answer or `confirmation_pairs` nothing. */
  other_cpus?: OtherCpusRecord[] | null;
  /** Version of pinwise that wrote it. */
  pinwise_version?: string | null;
  /** How it was planned. */
  plan?: SearchPlanRecord | null;
  /** What is expected of every arm; `[]` before the first runs. */
  predictions?: PredictedArm[] | null;
  /** Who led after each block: best so far against runs. */
  progress?: ProgressPoint[] | null;
  /** Every run, in order of time. */
  runs?: SearchRun[] | null;
  /** Runs that it took to find it: profiling, search and refinement, those of `os-default` among them; not the warm-up and the confirmation. */
  runs_used?: number | null;
  schema?: "pinwise.search/1" | null;
  /** Seed of what is run when (and of a simulated machine's noise). */
  seed?: number | null;
  /** How many placements there are, for each number of threads. */
  space?: SpaceRecord[] | null;
  /** When it began, RFC 3339 in UTC. */
  started?: string | null;
  /** Why it ended; `null` while it runs or where it was cut off. */
  stopped?: Stopped | null;
  /** Labels of the user's. */
  tags?: string[] | null;
  /** On a simulated machine: true cost of `best` over the true best, minus 1; `null` elsewhere and without a best arm. */
  true_regret?: number | null;
  /** On a simulated machine: the true best. */
  truth?: TruthRecord | null;
  /** The result. */
  verdict?: SearchVerdict | null;
  /** Surroundings of the command. */
  workload?: WorkloadRecord | null;
  /** Indifference zone that was used: `plan.within`, or half the standard deviation of a run where that is more, but not above 3 % for that; 0 in records of versions that had none. */
  zone?: number | null;
}

/** What waiting costs, and what settings fit that. */
export interface SpinAdviceRecord {
  /** A row per setting. */
  advice?: AdviceRecord[] | null;
  /** Both together: how long to spin at most, ns. */
  budget_ns?: number | null;
  /** The same in PAUSEs of the processor. */
  budget_pauses?: number | null;
  /** A switch between threads, ns, measured here. */
  context_switch_ns?: number | null;
  /** CPUs that programs count. */
  cpus?: number | null;
  /** From a wake-up until the woken thread runs, ns, measured here. */
  futex_wake_ns?: number | null;
  /** What was assumed. */
  notes?: string[] | null;
  /** The processor whose PAUSE it is. */
  processor?: ProcessorRecord | null;
  /** Why that is the budget. */
  rule?: string | null;
  schema?: "pinwise.spin-advice/1" | null;
}

/** How much of a program's CPU time is spinning, and where. What could not be reported is `null`, never 0. */
export interface SpinAttachRecord {
  /** CPU time of the command as the kernel counted it, s; `null` of a process that ran already. */
  counted_cpu_s?: number | null;
  /** CPU time that they stand for, s; with `proc` what the kernel counted. */
  cpu_s?: number | null;
  /** What made the samples. */
  event?: SampleEvent | null;
  /** How the command ended: exit status, or 128 + signal; `null` where `--for` ended it. */
  exit?: number | null;
  /** What it means. */
  findings?: Finding[] | null;
  /** Where it ran. */
  host?: HostRecord | null;
  /** Samples per second of a thread's CPU time. */
  hz?: number | null;
  /** Name under which it is stored. */
  id?: string | null;
  /** Records that found no room. */
  lost?: number | null;
  /** What else should be known, as full sentences. */
  notes?: string[] | null;
  /** CPU time of pinwise meanwhile, s. */
  own_cpu_s?: number | null;
  /** What one PAUSE costs on this machine, measured afterwards, ns. */
  pause_ns?: number | null;
  /** PAUSEs per second of wall-clock time, all threads together; an estimate from the time spent in them. */
  pauses_per_s?: number | null;
  /** Loops that spin, the hottest first. */
  places?: SpinPlace[] | null;
  /** Samples. */
  samples?: number | null;
  schema?: "pinwise.spin-attach/1" | null;
  /** CPU time by what it went into; `null` with `proc`. */
  shares?: SpinShares | null;
  /** The command or process. */
  source?: TraceSource | null;
  /** All kinds of spinning together over the CPU time, 0 to 1. */
  spin_share?: number | null;
  /** Standard error of that, from the number of samples. */
  spin_share_error?: number | null;
  /** When it began, RFC 3339 in UTC. */
  started?: string | null;
  /** Labels of the user's. */
  tags?: string[] | null;
  /** Threads, the busiest first. */
  threads?: SpinThread[] | null;
  /** How long was sampled, s. */
  wall_s?: number | null;
}

/** PAUSE on the CPUs of a machine, and where that stands. */
export interface SpinPauseRecord {
  /** Whether known algorithms would wait too long; `null` unless asked. */
  check?: PauseCheckRecord | null;
  /** The machine's chips in the table of known ones, or why it has none. */
  chips?: ChipRecord[] | null;
  /** Why there is no count of cycles by the CPU's own counter; `null` where there is one. */
  counter_unavailable?: string | null;
  /** Every CPU that was measured. */
  cpus?: CpuPauseRecord[] | null;
  /** Where. */
  host?: HostRecord | null;
  /** Date, time and a random part: names the record in the store. */
  id?: string | null;
  /** The instruction: `PAUSE`, on arm64 `ISB`. */
  instruction?: string | null;
  /** What was odd, as full sentences. */
  notes?: string[] | null;
  schema?: "pinwise.spin-pause/1" | null;
  /** How long it took, s. */
  spent_s?: number | null;
  /** When it began, RFC 3339 in UTC. */
  started?: string | null;
}

/** Predictions for one processor, or for two to compare. */
export interface SpinPredictRecord {
  /** Numbers of CPUs at which totals change, per algorithm, where several numbers were asked for. */
  cliffs?: CliffsRecord[] | null;
  /** The processor moved from. */
  from?: ProcessorRecord | null;
  /** What moving changes, most first. */
  moves?: MoveRecord[] | null;
  /** Every algorithm with every number of CPUs, on `processor`. */
  predictions?: PredictionRecord[] | null;
  /** The processor; the one moved to, where two are compared. */
  processor?: ProcessorRecord | null;
  schema?: "pinwise.spin-predict/1" | null;
}

/** A replay: what was executed, what it ought to have taken, what it took. What could not be measured or is not predicted is `null`, never 0. */
export interface SpinReplayRecord {
  /** One entry per algorithm, in the order asked for. */
  algorithms?: ReplayedAlgorithm[] | null;
  /** The chip whose hint was imitated; `null`: by a figure, or none was. */
  chip?: string | null;
  /** What came out, as sentences. */
  conclusions?: string[] | null;
  /** CPUs of the threads: holder and waiter, or all that contended. */
  cpus?: number[] | null;
  /** Number of CPUs that the algorithms assumed. */
  cpus_assumed?: number | null;
  /** What was replayed. */
  experiment?: ReplayExperiment | null;
  /** The spin-wait hint. */
  hint?: ReplayHint | null;
  /** How long the lock was held for an item, ms; `null` where that varied. */
  hold_ms?: number | null;
  /** Where it ran. */
  host?: HostRecord | null;
  /** Name under which it is stored. */
  id?: string | null;
  /** Items wanted of each cell, all repeats together. */
  items?: number | null;
  /** What else should be known, as full sentences. */
  notes?: string[] | null;
  /** At real-time priority? */
  realtime?: boolean | null;
  /** Times that all cells were gone through. */
  repeats?: number | null;
  schema?: "pinwise.spin-replay/1" | null;
  /** When it began, RFC 3339 in UTC. */
  started?: string | null;
  /** From the release until a parked waiter has the lock, ns, measured beforehand. */
  wake_ns?: number | null;
}

/** Loops that hint, and for how long they do not look. */
export interface SpinScan {
  /** The files. */
  binaries?: ScannedBinary[] | null;
  /** The chips that gaps are reported for. */
  chips?: ScanChip[] | null;
  /** CPUs that programs were taken to count, where an algorithm goes by them. */
  cpus?: number | null;
  /** The loops, by file and address. */
  loops?: ScannedLoop[] | null;
  /** The longest blind gap that passes, ns; `null` where none was asked for. */
  max_blind_gap_ns?: number | null;
  /** Did all loops pass? `null` where no limit was asked for. */
  passed?: boolean | null;
  schema?: "pinwise.spin-scan/1" | null;
  /** Files that could not be read. */
  skipped?: SkippedFile[] | null;
  /** How to treat loops whose gap is not known from the code. */
  unknown?: UnknownGaps | null;
}

/** Threads and CPUs at one moment, with rates over the interval before it. What the source does not report is `null`, never 0. */
export interface TopRecord {
  /** Overhead per context switch while it is watched, ns of CPU time; `null` where it was not measured. */
  cost_ns_per_switch?: number | null;
  /** CPUs, by number. */
  cpus?: TopCpu[] | null;
  /** Name of the machine. */
  host?: string | null;
  /** Length of the interval, seconds. */
  interval_s?: number | null;
  /** Records lost since the beginning. */
  lost?: number | null;
  /** Moves between CPUs per second, by the outermost boundary crossed. */
  migrations_per_s?: MoveRates | null;
  /** What else should be known, as full sentences. */
  notes?: string[] | null;
  /** The process that is watched; `null`: everything. */
  pid?: number | null;
  schema?: "pinwise.top/1" | null;
  /** Is every figure simulated? */
  simulated?: boolean | null;
  /** Cores with several busy CPUs; `null` where no core has several, or the source does not report it. */
  smt_sharing?: TopSharing | null;
  /** Threads, in the order that was asked for. */
  threads?: TopThread[] | null;
  /** Threads left out of `threads`. */
  threads_left_out?: number | null;
  /** Of those, running or (by polling) runnable at this moment. */
  threads_running?: number | null;
  /** Threads that are meant. */
  threads_total?: number | null;
  /** How it is watched. */
  tier?: TraceTier | null;
}

/** Everything that differs between two machines A and B. */
export interface TopologyDiff {
  /** Where A and B come from. */
  between?: string[] | null;
  /** Differences, the weightiest first. */
  differences?: Difference[] | null;
  /** What could not be compared, as full sentences. */
  not_compared?: string[] | null;
  /** Is there no difference? */
  same?: boolean | null;
  schema?: "pinwise.topology-diff/1" | null;
}

/** How the CPUs are wired. */
export interface TopologyRecord {
  /** CPUs that this process may use, as a list. */
  allowed?: string | null;
  /** All caches. */
  caches?: CacheRecord[] | null;
  /** Where measurement contradicts the system's report. */
  contradictions?: Contradiction[] | null;
  /** Units that this process may use. */
  counts?: CountsRecord | null;
  /** All present CPUs. */
  cpus?: CpuRecord[] | null;
  /** The nearest way from each GPU and other accelerator to the others and to the network cards. */
  device_paths?: DevicePathRecord[] | null;
  /** Devices on the PCI bus, by address. */
  devices?: DeviceRecord[] | null;
  /** Kinds of CPU, slowest first; empty where all are alike. */
  kinds?: KindRecord[] | null;
  /** Names and versions. */
  machine?: MachineRecord | null;
  /** What probes found; `null` unless measured. */
  measured?: Measured | null;
  /** NUMA nodes. */
  numa_nodes?: NodeRecord[] | null;
  /** CPUs that are switched on, as a list. */
  online?: string | null;
  /** Limit on CPU time. */
  quota?: QuotaRecord | null;
  /** Who takes CPUs away. */
  restrictions?: RestrictionRecord[] | null;
  schema?: "pinwise.topology/1" | null;
  /** The same for machines of the same shape. */
  shape_hash?: string | null;
  /** What is odd about the system's report. */
  warnings?: string[] | null;
}

/** A trace: how it was made, what came out, what it means. What the source did not report is `null`, never 0. */
export interface TraceRecord {
  /** Time on CPUs whose SMT sibling was busy, where that could be avoided. */
  avoidable_smt_sharing?: SmtSharingRecord | null;
  /** Time of each core. */
  cores?: CoreTimeRecord[] | null;
  /** What tracing cost. */
  cost?: TraceCost | null;
  /** Time of each CPU. */
  cpus?: CpuTimeRecord[] | null;
  /** Time from the first to the last moment, seconds. */
  elapsed_s?: number | null;
  /** How the command ended: exit status, or 128 + signal; `null` where none was started, and where `--for` ended it. */
  exit?: number | null;
  /** What it means, gravest first. */
  findings?: Finding[] | null;
  /** Where it ran; of an imported file, the machine it was read as. */
  host?: HostRecord | null;
  /** Name under which it is stored. */
  id?: string | null;
  /** Time in run queues while an allowed CPU idled. */
  idle_while_waiting?: IdleWaitingRecord | null;
  /** What interrupts and softirqs took (`--interrupts`); `null` where nobody asked. */
  interrupts?: InterruptsRecord | null;
  /** What the trace does not know. */
  lost?: LostRecord | null;
  /** Figures that are lower bounds: the source did not see all of it. */
  lower_bounds?: LowerBound[] | null;
  /** Where its memory was; `null` where nobody looked. */
  memory?: MemoryRecord | null;
  /** What else should be known, as full sentences. */
  notes?: string[] | null;
  schema?: "pinwise.trace/1" | null;
  /** What it is about. */
  source?: TraceSource | null;
  /** When it began, RFC 3339 in UTC; of an imported file, when it was read. */
  started?: string | null;
  /** Labels of the user's. */
  tags?: string[] | null;
  /** Threads that the trace is about, the busiest first. */
  threads?: ThreadRecord[] | null;
  /** Threads left out of `threads`, beyond the largest number kept. */
  threads_left_out?: number | null;
  /** What a quota on CPU time took; `null` where there is none, or nobody knows. */
  throttled?: ThrottledRecord | null;
  /** How it was made. */
  tier?: TraceTier | null;
  /** All tiers, and why those that were not available were not. */
  tiers?: TierRecord[] | null;
  /** Who ran where and when. */
  timeline?: TimelineRecord | null;
  /** Counts and sums. */
  totals?: TraceTotals | null;
  /** Time in run queues. */
  waits?: WaitRecord | null;
}

/** A value with its 95 % interval. */
export interface AccountRecord {
  /** Upper end. */
  high?: number | null;
  /** Lower end. */
  low?: number | null;
  /** The value. */
  value?: number | null;
}

/** A setting and a value for it. */
export interface AdviceRecord {
  /** The algorithm's id; `null` for a program's own. */
  algorithm?: string | null;
  /** Where it is set. */
  how?: string | null;
  /** Why. */
  reasoning?: string | null;
  /** Whose setting it is. */
  runtime?: string | null;
  /** Its name. */
  setting?: string | null;
  /** What would fit; `null`: leave it alone. */
  suggested?: string | null;
  /** How long that would spin, ns. */
  suggested_ns?: number | null;
  /** Its usual value. */
  usual?: string | null;
  /** How long that spins on this processor, ns. */
  usual_ns?: number | null;
  /** A command that shows whether it helps; `null` where there is none. */
  verify?: string | null;
  /** Versions of the runtime that take the value; `null` where there are none. */
  versions?: string | null;
}

/** Does the report of a level hold? */
export type Agreement = "agrees" | "contradicted" | "cannot_tell";

/** Samples and the CPU time that they stand for. */
export interface AmountRecord {
  /** CPU time, seconds. */
  cpu_s?: number | null;
  /** CPU time per unit of work, seconds; `null` where no work is known of. */
  cpu_s_per_unit?: number | null;
  /** Samples. */
  samples?: number | null;
}

/** An interrupt, or a queue of a network card, that had other CPUs meanwhile. */
export interface AppliedInterrupt {
  /** Its CPUs meanwhile, as a list. */
  asked_cpus?: string | null;
  /** Its CPUs before, as a list; empty where a queue had none. */
  before_cpus?: string | null;
  /** The interrupt's number; `null` of a queue. */
  irq?: number | null;
  /** The interface and its queue, `eth0 rx-0` (RPS) or `eth0 tx-0` (XPS); `null` of an interrupt. */
  queue?: string | null;
  /** Has it its old CPUs again? `null`: not yet. */
  returned?: boolean | null;
}

/** Memory of what ran already that was moved to other NUMA nodes, and back. */
export interface AppliedMemory {
  /** The nodes that it was moved to. */
  asked_nodes?: number[] | null;
  /** Nodes that had memory of it before, or after. */
  nodes?: AppliedNode[] | null;
}

/** Memory on a NUMA node, by the kernel's `numa_maps` of all processes. */
export interface AppliedNode {
  /** Before anything was moved, bytes. */
  before_bytes?: number | null;
  /** The operating system's number of it. */
  node?: number | null;
  /** After it was moved, bytes. */
  placed_bytes?: number | null;
  /** After it was moved back, bytes; `null`: not yet, or the processes had ended. */
  returned_bytes?: number | null;
}

/** One thing that is compared. */
export interface Arm {
  /** The command's arguments. */
  command?: string[] | null;
  /** The CPUs asked for, as a list. */
  cpus?: string | null;
  /** Was it dropped by the screening? */
  eliminated?: boolean | null;
  /** Typical value of the metric, with a 95 % interval for the median. */
  estimate?: Estimate | null;
  /** Why its runs do not count, where they do not. */
  invalid?: string | null;
  /** Its name, unique in the comparison. */
  name?: string | null;
  /** Runs that do not count: warm-up, and blocks that were dropped. */
  other_runs?: RunRecord[] | null;
  /** Where it ran. */
  placement?: PlacementRecord | null;
  /** Runs of whole blocks, in time order. */
  runs?: RunRecord[] | null;
  /** Other placements asked for that stand for the same CPUs here. */
  same_as?: string[] | null;
  /** Spread of the metric over the runs. */
  spread?: Spread | null;
  /** How it came out, in a word of the metric's: `faster`, `baseline`, `failed`; empty before there is a verdict. */
  standing?: string | null;
  /** What the scheduler did in one more, traced run; `null` where none was. */
  trace?: ArmTrace | null;
  /** Surroundings of the command. */
  workload?: WorkloadRecord | null;
}

/** What the scheduler did with an arm in one traced run, none of its runs. */
export interface ArmTrace {
  /** Time on CPUs whose SMT sibling was busy, where that could be avoided. */
  avoidable_smt_sharing?: SmtSharingRecord | null;
  /** From the first to the last moment of the trace, seconds. */
  elapsed_s?: number | null;
  /** Time in run queues while an allowed CPU idled. */
  idle_while_waiting?: IdleWaitingRecord | null;
  /** What the trace does not know. */
  lost?: LostRecord | null;
  /** Figures that are lower bounds: the source did not see all of it. */
  lower_bounds?: LowerBound[] | null;
  /** Where its memory was; `null` where nobody looked. */
  memory?: MemoryRecord | null;
  /** What else should be known of it, as full sentences. */
  notes?: string[] | null;
  /** The figures in words, as a full sentence. */
  sentence?: string | null;
  /** What a quota on CPU time took; `null` where there is none, or nobody knows. */
  throttled?: ThrottledRecord | null;
  /** How it was traced, as in a trace's record. */
  tier?: TraceTier | null;
  /** Counts and sums. */
  totals?: TraceTotals | null;
  /** Time in run queues. */
  waits?: WaitRecord | null;
}

/** Where a part of a difference stands. */
export type AttributedPart = "spin-wait-length" | "spin-wait-count" | "spin-waits" | "memory" | "frequency" | "waiting" | "unexplained" | (string & {});

/** Which time is taken apart. */
export type AttributedTime = "wall" | "cpu" | (string & {});

/** A difference per unit of work and its parts, which add up to it. */
export interface AttributionRecord {
  /** After, seconds per unit. */
  after_s?: number | null;
  /** Before, seconds per unit. */
  before_s?: number | null;
  /** After less before, seconds per unit. */
  delta?: AccountRecord | null;
  /** Is it more than chance, and than 1 %? */
  is_difference?: boolean | null;
  /** CPUs that count as its own, busy or not: the most that either side kept busy on average, at least 1. */
  lanes?: number | null;
  /** What is taken apart. */
  of?: AttributedTime | null;
  /** Its parts, the unexplained one last. */
  parts?: PartRecord[] | null;
  /** The answer in one sentence. */
  sentence?: string | null;
}

/** Bandwidth. */
export interface BandwidthRecord {
  /** CPUs with a thread each, as a list. */
  cpus?: string | null;
  /** 1e9 bytes per second, all threads together. */
  gb_per_s?: Median | null;
  /** NUMA node of the memory; `null`: each thread's own. */
  node?: number | null;
  /** How it was streamed. */
  stream?: MemoryStream | null;
}

/** One way in which a kernel was run. */
export interface BenchCell {
  /** Bytes per second, where they are what is measured. */
  bytes_per_s?: Estimate | null;
  /** Its CPUs, as a list. */
  cpus?: string | null;
  /** Speed-up over the ratio of threads: 1 is linear. */
  efficiency?: number | null;
  /** The placement asked for, without the number of CPUs. */
  family?: string | null;
  /** Why its runs do not count, where they do not. */
  invalid?: string | null;
  /** Instruction set asked for. */
  isa?: string | null;
  /** Unique in the comparison. */
  name?: string | null;
  /** The placement. */
  placement?: string | null;
  /** Operations per second, likewise; `null` where operations are unknown. */
  rate?: Estimate | null;
  /** Other placements that stand for the same CPUs here. */
  same_as?: string[] | null;
  /** Time of a run without preparing, seconds: median with its interval. */
  seconds?: Estimate | null;
  /** Value of `--size`; `null` for the kernel's default. */
  size?: number | null;
  /** Rate over that of the baseline, with the interval of the contrast. */
  speed_up?: Estimate | null;
  /** Threads that shared the work. */
  threads?: number | null;
}

/** A kernel and one question to it. */
export interface BenchKernel {
  /** The cell that speed-ups are over. */
  baseline?: string | null;
  /** Whole blocks that the figures rest on. */
  blocks?: number | null;
  /** The same against the caches, as a sentence; empty where unknown. */
  cache_fit?: string | null;
  /** Ways in which it was run, the baseline first. */
  cells?: BenchCell[] | null;
  /** Name of the stored comparison. */
  comparison?: string | null;
  /** Confidence of the intervals, valid for all cells together. */
  confidence?: number | null;
  /** What it is part of. */
  group?: string | null;
  /** The kernel. */
  kernel?: string | null;
  /** What is counted, such as `calls`. */
  operation?: string | null;
  /** The question. */
  question?: Question | null;
  /** What the other CPUs of a core add, as a share: 0.18 is 18 % more. Only of the SMT questions. */
  smt_yield?: Estimate | null;
  /** Why the comparison ended. */
  stopped?: Stopped | null;
  /** Units of work of each run, all threads together. */
  work?: number | null;
  /** Bytes that each thread of the baseline goes through again and again; `null` where unknown. */
  working_set_bytes?: number | null;
}

/** How blocks count. */
export type BlockScore = "weighted" | "rank" | (string & {});

/** A build of the program. */
export interface BuildRecord {
  /** The commit, where it was a revision; `null` of a folder as it stands. */
  commit?: string | null;
  /** Folder that its benchmarks start in. */
  folder?: string | null;
  /** As on the command line: a folder or a revision. */
  name?: string | null;
  /** Number of the build, where several were asked for. */
  variant?: number | null;
}

/** The thread that used most of a CPU. */
export interface Busiest {
  /** Its name. */
  name?: string | null;
  /** Share of the interval, per cent. */
  percent?: number | null;
  /** Its number. */
  thread?: number | null;
}

/** Does the outermost cache hold what the one before holds? */
export type CacheInclusion = "inclusive" | "exclusive" | (string & {});

/** What a cache holds. */
export type CacheKind = "data" | "instruction" | "unified" | (string & {});

/** A cache. */
export interface CacheRecord {
  /** CPUs that share it, as a list. */
  cpus?: string | null;
  /** 1 for L1 and so on. */
  level?: number | null;
  /** Capacity; `null` where unknown. */
  size_bytes?: number | null;
  /** What it holds. */
  type?: CacheKind | null;
}

/** A function as called from those above it, before and after. */
export interface CallChangeRecord {
  /** Whose it is. */
  kind?: FunctionKind | null;
  /** Path of its module. */
  module?: string | null;
  /** Its name. */
  name?: string | null;
  /** Index of its caller; `null` at the root. */
  parent?: number | null;
  /** In it and what it called. */
  total?: ChangeRecord | null;
}

/** A function as called from those above it. */
export interface CallRecord {
  /** CPU time of those, seconds. */
  cpu_s?: number | null;
  /** Index into `functions`. */
  function?: number | null;
  /** Index of its caller; `null` at the root. */
  parent?: number | null;
  /** Samples in its own code, without what it called. */
  samples?: number | null;
}

/** A function of the tree. */
export interface CalledRecord {
  /** Whose it is. */
  kind?: FunctionKind | null;
  /** Path of its module. */
  module?: string | null;
  /** Its name. */
  name?: string | null;
}

/** A tree of calls. */
export interface CallsRecord {
  /** Who is called. */
  functions?: CalledRecord[] | null;
  /** Time in stacks that are not listed one by one; it stands at their callers', as `[left out]`. */
  left_out?: AmountRecord | null;
  /** Callers before callees. */
  nodes?: CallRecord[] | null;
}

/** CPU time per unit of work, before and after. */
export interface ChangeRecord {
  /** After, seconds per unit. */
  after_s?: number | null;
  /** Samples after. */
  after_samples?: number | null;
  /** Before, seconds per unit. */
  before_s?: number | null;
  /** Samples before. */
  before_samples?: number | null;
  /** After less before, seconds per unit. */
  delta_s?: number | null;
  /** Upper end of it. */
  high_s?: number | null;
  /** It may be chance: the interval holds 0. */
  is_noise?: boolean | null;
  /** Lower end of its 95 % interval by counting samples. */
  low_s?: number | null;
}

/** How a figure of B is against that of A. */
export type ChangeVerdict = "lower" | "higher" | "same" | "cannot_tell";

/** What is known of a chip, against what was measured. */
export interface ChipRecord {
  /** Do both agree within 10 %? */
  agrees?: boolean | null;
  /** Known chips whose PAUSE is cheaper. */
  cheaper_chips?: number | null;
  /** Its id; `null` where the machine is none of the table's. */
  chip?: string | null;
  /** CPUs that it stands for, as a list. */
  cpus?: string | null;
  /** Known chips. */
  known_chips?: number | null;
  /** Measured, cycles: the median of the CPUs. */
  measured_cycles?: number | null;
  /** Its name, or family, model and stepping. */
  name?: string | null;
  /** Highest published cost, cycles. */
  published_high?: number | null;
  /** Lowest published cost, cycles. */
  published_low?: number | null;
  /** All that as a sentence. */
  sentence?: string | null;
  /** Where the published figure is from. */
  source?: string | null;
}

/** Claims by verdict. */
export interface ClaimCounts {
  /** Came out otherwise. */
  contradicted?: number | null;
  /** Set a parameter, or no mechanism predicts them: never counted as either. */
  given?: number | null;
  /** Cannot be tried where it ran. */
  not_here?: number | null;
  /** Came out as reported. */
  reproduced?: number | null;
}

/** A claim of a report. */
export interface ClaimRecord {
  /** What is claimed. */
  claim?: string | null;
  /** What came out; `null` where nothing was tried. */
  measured?: string | null;
  /** Its 95 % interval. */
  measured_high?: number | null;
  /** Its 95 % interval. */
  measured_low?: number | null;
  /** The figure that came out. */
  measured_value?: number | null;
  /** As the report has it. */
  reported?: string | null;
  /** The reported figure in `unit`, where it is one. */
  reported_value?: number | null;
  /** Unit of the figures: `%` of change, `s`, `ms`, `ns`. */
  unit?: string | null;
  /** What became of it. */
  verdict?: ClaimVerdict | null;
  /** Why that verdict. */
  why?: string | null;
}

/** What became of a claim. */
export type ClaimVerdict = "reproduced" | "given" | "not_here" | "contradicted";

/** Where an algorithm's total changes with the number of CPUs. */
export interface CliffsRecord {
  /** Its id. */
  algorithm?: string | null;
  /** Numbers of CPUs whose total differs from that with one CPU less. */
  changes_at?: number[] | null;
  /** Looked at from this many CPUs … */
  from_cpus?: number | null;
  /** … to this many. */
  to_cpus?: number | null;
}

/** Clocks. */
export interface ClockRecord {
  /** Core clock while it was measured, 1e9 cycles per second. */
  core_ghz?: number | null;
  /** Smallest step of the clock that probes are timed with, ns. */
  step_ns?: number | null;
  /** Ticks of the time-stamp counter, 1e9 per second. */
  tick_ghz?: number | null;
}

/** An architecture of code. */
export type CodeArch = "x86_64" | "aarch64" | (string & {});

/** A command to copy. */
export interface CommandRecord {
  /** The line for a shell. */
  line?: string | null;
  /** What it does, to follow "Run it": `with taskset`. */
  what?: string | null;
}

/** One of both records. */
export interface ComparedRecord {
  /** Where it was made. */
  host?: string | null;
  /** Its id. */
  id?: string | null;
  /** What the machine was, in one line; `null` where unknown. */
  machine?: string | null;
  /** Its schema. */
  schema?: string | null;
  /** When, RFC 3339. */
  time?: string | null;
  /** What it is about. */
  title?: string | null;
}

/** What a comparison is made for. */
export type ComparisonStudy = "compare" | "aa" | "bench" | "reproduce" | (string & {});

/** A part of what a difference is made of, in the typical run. */
export interface ComponentRecord {
  /** Is it the verdict on the arm, which wall-clock time leaves open? */
  decides?: boolean | null;
  /** `ratio` as a change. */
  effect?: EffectRecord | null;
  /** Upper end. */
  high?: number | null;
  /** Lower end of its interval, at the level of the contrast; `null` where the runs allow none. */
  low?: number | null;
  /** The arm's over that of the baseline. */
  ratio?: number | null;
}

/** The best arm against `os-default`, in pairs run after the choice. */
export interface ConfirmationRecord {
  /** The arm. */
  arm?: string | null;
  /** Confidence of the interval, whenever one looks. */
  confidence?: number | null;
  /** Upper end. */
  high?: number | null;
  /** Lower end of the interval; `null` where the pairs allow none. */
  low?: number | null;
  /** Pairs. */
  pairs?: number | null;
  /** Typical cost over that of `os-default`. */
  ratio?: number | null;
  /** Runs, two a pair. */
  runs?: number | null;
  /** In words, with the interval. */
  sentence?: string | null;
  /** The verdict. */
  verdict?: PairsVerdict | null;
}

/** Threads that contended; nothing of it is predicted. */
export interface ContentionCell {
  /** The longest that one waited for the lock, ms. */
  longest_ms?: number | null;
  /** Times one of them had the lock, per second of their CPU time: the median of the repeats, as all below. */
  operations_per_cpu_s?: number | null;
  /** Times that one was parked, per 1000 operations. */
  parks_per_1000?: number | null;
  /** Share of their CPU time that went into hints. */
  spinning_share?: number | null;
  /** How many. */
  threads?: number | null;
}

/** A contradiction: the part of a `LevelVerdict` that scripts rely on. */
export interface Contradiction {
  /** What to do. */
  advice?: string | null;
  /** What the system says. */
  claim?: string | null;
  /** How sure, from 0 to 1. */
  confidence?: number | null;
  /** The level, as in `LevelVerdict::level`. */
  level?: LevelName | null;
  /** What the probes say. */
  measured?: string | null;
}

/** One arm against the baseline. */
export interface ContrastRecord {
  /** The arm. */
  arm?: string | null;
  /** What it is compared with. */
  baseline?: string | null;
  /** What else should be known of it, as a sentence; `null` without. */
  beside?: string | null;
  /** The typical ratio under light and heavy load, where it differs; `null` where that is not shown. */
  by_load?: SplitRecord | null;
  /** After the same predecessor and elsewhere, as `by_load`. */
  by_order?: SplitRecord | null;
  /** Early and late, likewise. */
  by_time?: SplitRecord | null;
  /** Confidence of the interval, valid at all looks together. */
  confidence?: number | null;
  /** CPU time (user and system): blind to waiting, and so tighter than wall time where others want the CPUs. `null` where a run did not report it. */
  cpu_time?: ComponentRecord | null;
  /** Does the ratio depend on load, in sign or by more than its size? Then there is no advice to run anything. */
  depends_on_load?: boolean | null;
  /** Is the verdict one of which arm ran before? Then there is none. */
  depends_on_order?: boolean | null;
  /** Does another judge say the opposite? Then there is no verdict. */
  depends_on_tail?: boolean | null;
  /** Is the verdict only that of the first half? Then there is none. */
  depends_on_time?: boolean | null;
  /** Whole blocks after which the arm was dropped as clearly behind the best, on which this rests; `null` where it took part to the end. */
  dropped_after?: number | null;
  /** `ratio` as a change of the metric; `null` in old records only. */
  effect?: EffectRecord | null;
  /** Upper end. */
  high?: number | null;
  /** How it stands against the slow-down that was allowed (`--fail-if-slower`); `null` where none was named. */
  limit?: LimitRecord | null;
  /** The typical ratio under light, medium and heavy load, whether it differs or not; `null` where the load is not known or did not vary, and in old records. */
  load_levels?: LoadLevelsRecord | null;
  /** Lower end of the interval; `null` where the runs allow none. */
  low?: number | null;
  /** Further time until the interval is ±`min_effect`, where undecided. */
  more_time_s?: number | null;
  /** The same contrast as other judges see it, each with an interval of its own at the same level. */
  others?: JudgedRecord[] | null;
  /** p-value adjusted for arms and looks; at most `plan.alpha` exactly where the interval excludes 1. */
  p_adjusted?: number | null;
  /** What is judged (`plan.judge`) of the arm's cost over that of the baseline's: below 1 is better. */
  ratio?: number | null;
  /** The verdict in words, with its interval. */
  sentence?: string | null;
  /** Upper end. */
  spread_high?: number | null;
  /** Lower end of its interval, `null` likewise. */
  spread_low?: number | null;
  /** p-value adjusted for the arms; as `p_adjusted` otherwise. */
  spread_p_adjusted?: number | null;
  /** Spread of the arm's runs around their local level over that of the baseline's: below 1 repeats better. `null` with too few blocks. */
  spread_ratio?: number | null;
  /** Ratios of total and tail. */
  totals?: TotalsRecord | null;
  /** The verdict; a lower cost is `faster` whatever the metric. */
  verdict?: ContrastVerdict | null;
  /** The rest of wall time: waiting, and threads that run at once. The product of both ratios is about that of wall time. */
  wall_per_cpu_time?: ComponentRecord | null;
}

/** How an arm stands against the baseline. */
export type ContrastVerdict = "faster" | "slower" | "same" | "undecided" | (string & {});

/** Time of a core, seconds. */
export interface CoreTimeRecord {
  /** Time with at least one busy CPU. */
  busy_s?: number | null;
  /** Number of the core, as in the topology's record. */
  core?: number | null;
  /** Its CPUs. */
  cpus?: string | null;
  /** CPU time of the traced threads on it. */
  own_s?: number | null;
  /** Time with two or more. */
  shared_s?: number | null;
}

/** Something that the system counts, CPU by CPU. */
export interface CountedRecord {
  /** How often it came. */
  count?: number | null;
  /** A number of `/proc/irq`, or letters as in `/proc/interrupts`. */
  label?: string | null;
  /** What it is; empty where the label says it. */
  name?: string | null;
}

/** Units per level that this process may use. */
export interface CountsRecord {
  /** Physical cores. */
  cores?: number | null;
  /** Logical CPUs. */
  cpus?: number | null;
  /** Last-level-cache domains; 0 where caches are not reported. */
  llcs?: number | null;
  /** NUMA nodes with memory. */
  numa_nodes?: number | null;
  /** Packages. */
  packages?: number | null;
}

/** Threads that were bound before their first instruction, and how much of their CPU time ran there. A thread that moved itself counts as moved from its first moment, so that the share is a lower bound. */
export interface CoverageRecord {
  /** CPU time of these threads, seconds. */
  cpu_s?: number | null;
  /** Of these, threads that had another mask by then. */
  moved_threads?: number | null;
  /** Programs whose threads had moved; the first few. */
  movers?: MoverRecord[] | null;
  /** Threads that were bound and whose end, or the end of binding, was seen. */
  threads?: number | null;
  /** CPU time of those that had not moved, seconds. */
  where_asked_s?: number | null;
}

/** PAUSE on one CPU. */
export interface CpuPauseRecord {
  /** Batches in these. */
  batches?: number | null;
  /** Core cycles by additions; `null` where not. */
  chain_cycles?: number | null;
  /** Core cycles by the CPU's counter; `null` where there is none. */
  counted_cycles?: number | null;
  /** The CPU. */
  cpu?: number | null;
  /** How far the two are apart, as a share of the counter's. */
  disagreement_share?: number | null;
  /** The core's clock meanwhile, GHz. */
  ghz?: number | null;
  /** Other hints that the CPU has, at their least cost. */
  hints?: HintCostRecord[] | null;
  /** Two levels where there are two, lower first; otherwise empty. */
  levels?: LevelRecord[] | null;
  /** How cycles were found; `null` where not. */
  method?: CycleMethod | null;
  /** The same in core cycles; `null` where they are not known. */
  pause_cycles?: number | null;
  /** Upper end. */
  pause_cycles_high?: number | null;
  /** Lower end of its interval. */
  pause_cycles_low?: number | null;
  /** One PAUSE, ns: the median of the rounds. */
  pause_ns?: number | null;
  /** Upper end. */
  pause_ns_high?: number | null;
  /** Lower end of its 95 % interval; `null` for too few rounds. */
  pause_ns_low?: number | null;
  /** Rounds it rests on. */
  rounds?: number | null;
  /** Batches thrown away since the hypervisor took the CPU. */
  stolen?: number | null;
  /** Batches thrown away since the thread was pushed off its CPU. */
  switched?: number | null;
}

/** A logical CPU; unit numbers are `null` where it is offline or unknown. */
export interface CpuRecord {
  /** May this process use it? */
  allowed?: boolean | null;
  /** Core, counted from 0 in the order of their lowest CPU. */
  core?: number | null;
  /** The operating system's number. */
  cpu?: number | null;
  /** Index into `kinds`; `null` where all CPUs are alike. */
  kind?: number | null;
  /** Last-level-cache domain, likewise. */
  llc?: number | null;
  /** NUMA node, the operating system's number. */
  numa_node?: number | null;
  /** Switched on? */
  online?: boolean | null;
  /** Package, counted like cores. */
  package?: number | null;
  /** Position in its core: 0 for the first hyper-thread; `null` where the CPU is offline, since its core is then unknown. */
  smt_rank?: number | null;
}

/** What a CPU did in each span, as shares of it (0 to 1). */
export interface CpuSpans {
  /** The CPU. */
  cpu?: number | null;
  /** Share of others; empty where unknown. */
  foreign?: number[] | null;
  /** Share of traced threads. */
  own?: number[] | null;
}

/** What a CPU does. */
export type CpuState = "idle" | "busy" | (string & {});

/** Time of a CPU, seconds. */
export interface CpuTimeRecord {
  /** Which. */
  cpu?: number | null;
  /** With others. */
  foreign_s?: number | null;
  /** With nothing. */
  idle_s?: number | null;
  /** With threads that the trace is about. */
  own_s?: number | null;
  /** Switches on it. */
  switches?: number | null;
  /** With what nobody knows; 0 below half a percent of the trace. */
  unknown_s?: number | null;
}

/** How cycles were found. */
export type CycleMethod = "pmu" | "add-chain" | (string & {});

/** What a device is for. */
export type DeviceClass = "gpu" | "display" | "network" | "storage" | "accelerator" | (string & {});

/** The nearest way between two devices. */
export interface DevicePathRecord {
  /** PCI address of the one. */
  from?: string | null;
  /** How many NVLinks; `null` for other ways. */
  nvlinks?: number | null;
  /** What lies between them. */
  path?: PathClass | null;
  /** PCI address of the other. */
  to?: string | null;
}

/** A device on the PCI bus. */
export interface DeviceRecord {
  /** PCI address. */
  address?: string | null;
  /** Bridges and switches above it, outermost first, by PCI address. */
  bridges?: string[] | null;
  /** PCI base class and subclass in hexadecimal digits. */
  class?: string | null;
  /** Nearest CPUs, as a list; `null` where the system does not say. */
  cpus?: string | null;
  /** PCI ids of vendor and device, `10de:20b0`; `null` where unknown. */
  ids?: string | null;
  /** CPUs that take those of its interrupts that were raised, as a list; `null` where none is known. */
  interrupted_cpus?: string | null;
  /** Its interrupts by number; empty where they were not read. */
  interrupts?: InterruptRecord[] | null;
  /** What it is sold as; `null` where nobody says. */
  model?: string | null;
  /** Names of users and drivers, the one for placements first; may be empty. */
  names?: string[] | null;
  /** What is odd about its place, as a sentence. */
  note?: string | null;
  /** NUMA node as the system reports it; `null` where it does not. */
  numa_node?: number | null;
  /** Queues of a network card whose CPUs can be set; empty where they were not read. */
  queues?: QueueRecord[] | null;
  /** Root complex; `null` where unknown. */
  root?: string | null;
  /** CPUs that process packets of its queues in place of those with the interrupts (RPS), as a list; `null` where none are set, or unknown. */
  rps_cpus?: string | null;
  /** What it is for. */
  type?: DeviceClass | null;
  /** What lies between it and other GPUs, accelerators and network cards, nearest first, in the classes of `nvidia-smi topo -m`: `NV12 gpu1-3, PXB mlx5_0`; `null` for devices of other kinds. */
  ways?: string | null;
  /** CPUs that have queues of their own to send on (XPS), as a list; `null` where none have, or unknown. */
  xps_cpus?: string | null;
}

/** One of both profiles. */
export interface DiffSide {
  /** CPU time, seconds. */
  cpu_s?: number | null;
  /** Where it ran. */
  host?: string | null;
  /** Its record. */
  id?: string | null;
  /** What a PAUSE takes there, ns. */
  pause_ns?: number | null;
  /** Samples. */
  samples?: number | null;
  /** What it is about. */
  title?: string | null;
  /** Units of work that were done. */
  units?: number | null;
}

/** A difference. */
export interface Difference {
  /** How it is in A; `null` where A does not say. */
  a?: unknown | null;
  /** How it is in B. */
  b?: unknown | null;
  /** The level it is about, where it is about one. */
  level?: string | null;
  /** The difference in words. */
  sentence?: string | null;
  /** A stable name of what differs, such as `kernel` or `units`. */
  what?: string | null;
}

/** Which direction of a figure is good. */
export type Direction = "lower" | "higher" | (string & {});

/** A pair that was watched. */
export interface DriftPair {
  /** One CPU. */
  a?: number | null;
  /** The other. */
  b?: number | null;
  /** One entry per repetition: seconds since the start, one-way time in ns, contention ratio (`null` where not measured), index of the state. */
  samples?: ([number, number, number | null, number])[] | null;
  /** States that it was seen in. */
  states?: DriftState[] | null;
}

/** A wiring that changes while it is watched. */
export interface DriftRecord {
  /** Changes of any pair. */
  changes?: number | null;
  /** The longest time without a change, s. */
  longest_dwell_s?: number | null;
  /** Median time between two changes, s; `null` for fewer than two. */
  median_dwell_s?: number | null;
  /** Pairs that were repeated. */
  pairs?: DriftPair[] | null;
  /** The same in a sentence. */
  sentence?: string | null;
  /** How long a measured map may be believed, s; `null`: no change was seen. */
  valid_s?: number | null;
  /** How long it was watched, s. */
  watched_s?: number | null;
}

/** A state of a pair. */
export interface DriftState {
  /** Typical contention ratio. */
  contention?: number | null;
  /** What it looks like. */
  kind?: LevelName | null;
  /** Typical one-way time, ns. */
  latency_ns?: number | null;
  /** Median length of a visit, s. */
  median_dwell_s?: number | null;
  /** Share of the repetitions, 0 to 1. */
  share?: number | null;
  /** Visits to it. */
  visits?: number | null;
}

/** A change of a figure, in the figure's own direction and ready to be shown. */
export interface EffectRecord {
  /** Upper end. */
  high?: number | null;
  /** The interval in words: `−30.0 to −10.0 %`; empty without one. */
  interval?: string | null;
  /** Lower end of its interval; `null` where the runs allow none. */
  low?: number | null;
  /** In words: `−20.0 %`. */
  text?: string | null;
  /** Unit of the numbers: `%`. */
  unit?: string | null;
  /** The change: −20 is a fifth less. */
  value?: number | null;
}

/** What the measurement took. */
export interface EffortRecord {
  /** Batches measured. */
  batches?: number | null;
  /** Batches thrown away since the hypervisor took the CPU. */
  batches_stolen?: number | null;
  /** Batches thrown away since a thread was pushed off its CPU. */
  batches_switched?: number | null;
  /** Budget, s. */
  budget_s?: number | null;
  /** Parts that were left out, and why, as full sentences. */
  left_out?: string[] | null;
  /** Of these, how many disagreed with what their leaders said. */
  pairs_disagreed?: number | null;
  /** Pairs measured. */
  pairs_measured?: number | null;
  /** Pairs taken from the leaders of their groups. */
  pairs_skipped?: number | null;
  /** Skipped pairs measured after all, as a check. */
  pairs_verified?: number | null;
  /** Pairs measured at the same time; 1 where they would have disturbed each other. */
  parallel_pairs?: number | null;
  /** Time used, s. */
  spent_s?: number | null;
  /** CPU time that the hypervisor gave to others meanwhile, as a share of the time of all CPUs; `null` where it is unknown. */
  steal_share?: number | null;
}

/** A value with an interval. */
export interface Estimate {
  /** Upper end. */
  high?: number | null;
  /** Lower end; `null` with too few runs. */
  low?: number | null;
  /** Median over the runs. */
  value?: number | null;
}

/** One experiment. */
export interface ExperimentRecord {
  /** What was claimed, and what came out. */
  claims?: ClaimRecord[] | null;
  /** Its name, as `whetstone-placement`. */
  name?: string | null;
  /** What it asks. */
  question?: string | null;
}

/** A feature of placements and what it costs this program. */
export interface FeatureRecord {
  /** The effect over the range that candidates span, from the one that has least of it to the one that has most, with its 90 % interval, as a change of the metric; `null` where they are alike. */
  change?: EffectRecord | null;
  /** Effect on ln(cost) of one unit. */
  effect?: number | null;
  /** Is it more than twice its standard deviation from none? */
  is_clear?: boolean | null;
  /** What it is, in words. */
  meaning?: string | null;
  /** Its name. */
  name?: string | null;
  /** Its standard deviation. */
  sd?: number | null;
}

/** A figure in both records. */
export interface FigureChange {
  /** The figure in A; `null` where A has none. */
  a?: number | null;
  /** Upper end of its interval. */
  a_high?: number | null;
  /** Lower end of its interval. */
  a_low?: number | null;
  /** The figure in B. */
  b?: number | null;
  /** Upper end of its interval. */
  b_high?: number | null;
  /** Lower end of its interval. */
  b_low?: number | null;
  /** Upper end of it. */
  high?: number | null;
  /** Lower end of the ratio's interval; `null` where there is none. */
  low?: number | null;
  /** What it is of, such as an arm's name. */
  name?: string | null;
  /** The baseline that `a` and `b` are ratios to; absent of a figure by itself. */
  over?: string | null;
  /** B over A. */
  ratio?: number | null;
  /** The same in words. */
  sentence?: string | null;
  /** Unit of the figures. */
  unit?: string | null;
  /** What that means. */
  verdict?: ChangeVerdict | null;
}

/** One finding. */
export interface Finding {
  /** What to do about it; empty where nothing needs to be done. */
  advice?: string | null;
  /** Stable name of the check, such as `drift`. */
  check?: string | null;
  /** The figures behind it, units in the names. */
  evidence?: Record<string, unknown> | null;
  /** What was found, as a full sentence. */
  sentence?: string | null;
  /** How much it matters. */
  severity?: Severity | null;
  /** The same finer, from 0 to 10; findings are sorted by it. */
  weight?: number | null;
}

/** What was expected of an arm before it was run. */
export interface FirstPredictionRecord {
  /** Upper end. */
  high?: number | null;
  /** Lower end of the 90 % interval for a single run. */
  low?: number | null;
  /** What its first run then cost. */
  measured?: number | null;
  /** Expected cost. */
  predicted?: number | null;
}

/** A step's difference, taken apart. */
export interface FleetAttribution {
  /** After, seconds per unit. */
  after_s?: number | null;
  /** Before, seconds per unit. */
  before_s?: number | null;
  /** After less before, seconds per unit. */
  delta?: AccountRecord | null;
  /** Is it more than chance, and than 1 %? */
  is_difference?: boolean | null;
  /** CPUs that count as its own, busy or not: the most that either side kept busy on average, at least 1. */
  lanes?: number | null;
  /** What is taken apart. */
  of?: AttributedTime | null;
  /** Its parts, the unexplained one last. */
  parts?: PartRecord[] | null;
  /** The answer in one sentence. */
  sentence?: string | null;
  /** The step: a profile. */
  step?: string | null;
}

/** A setting that separates outliers from the rest of their group. */
export interface FleetCommon {
  /** Chance of so clear a separation, adjusted for the settings looked at. */
  adjusted_p?: number | null;
  /** The figure that they differ in, or several; settings are not examined. */
  figures?: string[] | null;
  /** Place of the group in `groups`, from 0. */
  group?: number | null;
  /** The outliers. */
  nodes?: string[] | null;
  /** Other nodes of the group. */
  others?: number | null;
  /** Other nodes of the group that have it. */
  others_with?: number | null;
  /** Outliers that have it. */
  outliers_with?: number | null;
  /** All that in one sentence. */
  sentence?: string | null;
  /** The setting. */
  setting?: string | null;
  /** Its value among the outliers. */
  value?: string | null;
}

/** A figure over the nodes of a group. */
export interface FleetFigure {
  /** Greatest. */
  greatest?: number | null;
  /** Least. */
  least?: number | null;
  /** Median. */
  median?: number | null;
  /** What it is of. */
  name?: string | null;
  /** Nodes that have it. */
  nodes?: number | null;
  /** 5th and 95th percentile. */
  p5?: number | null;
  /** 95th percentile. */
  p95?: number | null;
  /** Robust standard deviation of the nodes' logarithms: about the relative spread of ordinary nodes; `null` where there are too few. */
  spread?: number | null;
  /** The step it comes from. */
  step?: string | null;
  /** Unit. */
  unit?: string | null;
}

/** A figure of two groups. */
export interface FleetFigureChange {
  /** Median of the first. */
  a?: number | null;
  /** Median of the second. */
  b?: number | null;
  /** Found to differ: by 1 % or more, at a rate of false discoveries of 5 %. */
  differs?: boolean | null;
  /** Its upper end. */
  high?: number | null;
  /** 95 % interval of the ratio, over nodes; `null` where there are too few. */
  low?: number | null;
  /** What it is of. */
  name?: string | null;
  /** p-value of "the ratio is 1", adjusted for the number of figures (Benjamini and Hochberg 1995); `null` as the interval. */
  p_adjusted?: number | null;
  /** Typical second over typical first. */
  ratio?: number | null;
  /** The step it comes from. */
  step?: string | null;
  /** Unit. */
  unit?: string | null;
}

/** Nodes that should be alike. */
export interface FleetGroup {
  /** Their figures. */
  figures?: FleetFigure[] | null;
  /** What they are alike in, and the value that most of them have. */
  identity?: Record<string, string> | null;
  /** Its name, such as the CPU model. */
  name?: string | null;
  /** Nodes in it. */
  nodes?: number | null;
}

/** A job as the scheduler knows it. */
export interface FleetJob {
  /** Its id, in the scheduler's words. */
  id?: string | null;
  /** The node it is bound to; `null` where the scheduler chooses. */
  node?: string | null;
  /** When it was submitted, RFC 3339. */
  submitted?: string | null;
}

/** A node's figure, or setting, that differs from its group. */
export interface FleetOutlier {
  /** Its p-value, adjusted: the false-discovery rate at which it is just named; `null` of settings. */
  adjusted_p?: number | null;
  /** The figure, as `step · name`, or the setting. */
  figure?: string | null;
  /** Place of its group in `groups`, from 0. */
  group?: number | null;
  /** Its name. */
  kind?: OutlierKind | null;
  /** The node. */
  node?: string | null;
  /** The first over the second. */
  ratio?: number | null;
  /** Id of the record it stands in. */
  record?: string | null;
  /** All that in one sentence. */
  sentence?: string | null;
  /** The node's setting; `null` of figures. */
  setting?: string | null;
  /** Its group's median; `null` of settings. */
  typical?: number | null;
  /** The setting of most of its group. */
  typical_setting?: string | null;
  /** Unit. */
  unit?: string | null;
  /** The node's figure; `null` of settings. */
  value?: number | null;
  /** Distance in robust standard deviations of its group. */
  z?: number | null;
}

/** A setting that two groups have otherwise. */
export interface FleetSettingChange {
  /** What most nodes of the first have. */
  a?: string | null;
  /** What most nodes of the second have. */
  b?: string | null;
  /** The setting. */
  name?: string | null;
}

/** One of two groups. */
export interface FleetSide {
  /** The fleet's id. */
  fleet?: string | null;
  /** The group's name. */
  group?: string | null;
  /** Nodes. */
  nodes?: number | null;
}

/** One study of a fleet. */
export interface FleetStep {
  /** Arguments of pinwise, such as `["topology", "--measure"]`. */
  arguments?: string[] | null;
  /** Its name, of letters, digits, `-`, `_` and `.`; no two alike. */
  name?: string | null;
  /** Longest time, seconds. */
  timeout_s?: number | null;
}

/** A function before and after. */
export interface FunctionChangeRecord {
  /** Whose it is. */
  kind?: FunctionKind | null;
  /** Path of its module. */
  module?: string | null;
  /** Its name. */
  name?: string | null;
  /** In its own code. */
  own?: ChangeRecord | null;
  /** Where it was seen. */
  seen?: SeenIn | null;
  /** In it and what it called. */
  total?: ChangeRecord | null;
  /** Of its own time, waiting in spin hints. */
  waits?: ChangeRecord | null;
}

/** Whose a function is. */
export type FunctionKind = "user" | "kernel" | "pause" | "left_out" | "broken" | (string & {});

/** A function. */
export interface FunctionRecord {
  /** `user` or `kernel`. */
  kind?: FunctionKind | null;
  /** Path of its module; `null` where nobody knows. */
  module?: string | null;
  /** Its symbol; its first address and `+` where there is none. */
  name?: string | null;
  /** In its own code. */
  own?: AmountRecord | null;
  /** Standard error of its own CPU time by counting samples, seconds. */
  own_error_s?: number | null;
  /** In it and what it called; calls of itself are counted once. */
  total?: AmountRecord | null;
  /** Of its own time, waiting in spin hints. */
  waits?: AmountRecord | null;
}

/** A kind of what takes a CPU from a thread. */
export type GapCause = "interrupt" | "cpu-interrupt" | "nmi" | "softirq" | "thread" | "quota" | "hypervisor" | "hardware" | "unknown" | (string & {});

/** A blind gap on a chip. */
export interface GapOnChip {
  /** The chip's id. */
  chip?: string | null;
  /** Is that above the limit? */
  exceeds?: boolean | null;
  /** ns; `null` where the code does not say how many hints it is. */
  ns?: number | null;
}

/** Something that took a part of a gap. */
export interface GapPartRecord {
  /** An interrupt's number. */
  irq?: number | null;
  /** What kind of thing. */
  kind?: GapCause | null;
  /** Its name. */
  name?: string | null;
  /** How much it took, µs. */
  us?: number | null;
}

/** One gap. */
export interface GapRecord {
  /** When it began, s from the start. */
  at_s?: number | null;
  /** The CPU. */
  cpu?: number | null;
  /** How long it was, µs. */
  length_us?: number | null;
  /** What took it, most first; all parts together are the gap. */
  parts?: GapPartRecord[] | null;
}

/** A benchmark and what became of it. */
export interface GateBenchmark {
  /** Median figure of the base; `null` without a pair. */
  base?: number | null;
  /** The change that its outcome rests on: `+5.4 %`, `+2.1 % CPU` where CPU time decides; empty without one. */
  change?: string | null;
  /** The command, started in the build's folder. */
  command?: string[] | null;
  /** What is known of its CPU time, where that is judged beside its wall-clock time; `null` elsewhere. */
  cpu?: GateCpuTime | null;
  /** `ratio` with the first interval as a change of the figure. */
  effect?: EffectRecord | null;
  /** Median figure of the head. */
  head?: number | null;
  /** Upper end. */
  high?: number | null;
  /** Upper end of the interval of this benchmark alone: below 1 plus the smallest effect it passes. */
  high_alone?: number | null;
  /** Nominal level of that interval: that of the look it is of. */
  level?: number | null;
  /** The ratio as a history chains it; `null` of builds without commits, before the end and with too few pairs. */
  link?: GateLink | null;
  /** Lower end of the interval that holds for all benchmarks and looks together; `null` with too few pairs. */
  low?: number | null;
  /** The figure. */
  metric?: MetricRecord | null;
  /** Smallest slow-down of interest, as a share: 0.01 is 1 %. */
  min_effect?: number | null;
  /** Its name, unique in the suite. */
  name?: string | null;
  /** What became of it. */
  outcome?: GateOutcome | null;
  /** Pairs of runs, in time order. */
  pairs?: GatePair[] | null;
  /** Why there is no verdict, where it is not a matter of time. */
  problem?: string | null;
  /** p-value adjusted for looks and for the suite by the rate of false discoveries (Benjamini and Hochberg); `null` with too few pairs. */
  q?: number | null;
  /** Cost of the head over that of the base; `null` without an estimate. */
  ratio?: number | null;
  /** The same as a full sentence. */
  sentence?: string | null;
  /** The same in the words of its figure, with what is likely where it passed: `passed (faster)`. */
  standing?: string | null;
}

/** CPU time of a benchmark, which other programs make vary less than its wall-clock time. */
export interface GateCpuTime {
  /** The benchmark is slower by this alone: its wall-clock time does not show it. */
  decides?: boolean | null;
  /** The same as a change. */
  effect?: EffectRecord | null;
  /** Upper end. */
  high?: number | null;
  /** Nominal level of that interval: that of the look it is of. */
  level?: number | null;
  /** The ratio as a history chains it. */
  link?: GateLink | null;
  /** Lower end of the interval that holds for all benchmarks and looks together; `null` with too few pairs. */
  low?: number | null;
  /** CPU time of the head over that of the base. */
  ratio?: number | null;
}

/** What a gate says. */
export type GateDecision = "pass" | "fail" | "broken" | "undecided" | (string & {});

/** A ratio that does not depend on when the gate stopped: of pairs that were enough by the width of its interval, wherever that lay. */
export interface GateLink {
  /** Standard error of its logarithm. */
  error?: number | null;
  /** The first pairs of the gate, of which it is. */
  pairs?: number | null;
  /** Cost of the head over that of the base. */
  ratio?: number | null;
}

/** What became of a benchmark. */
export type GateOutcome = "slower" | "faster" | "passed" | "undecided" | "failed" | "missing" | "new" | (string & {});

/** A run of each build, one right after the other. */
export interface GatePair {
  /** Start of the first run, seconds from the start of the gate. */
  at_s?: number | null;
  /** Figure of the base. */
  base?: number | null;
  /** CPU time of the base, seconds; `null` where it was not read. */
  base_cpu_s?: number | null;
  /** Figure of the head. */
  head?: number | null;
  /** CPU time of the head. */
  head_cpu_s?: number | null;
  /** Did the head run first? */
  head_first?: boolean | null;
}

/** How a gate was planned. */
export interface GatePlanRecord {
  /** Two-sided error: that any benchmark of the suite is called slower or faster that is not; and that the gate passes with one that is slower by its smallest effect. */
  alpha?: number | null;
  /** Budget in seconds. */
  budget_s?: number | null;
  /** Most pairs of runs per benchmark. */
  max_pairs?: number | null;
  /** It went on until every benchmark was decided: no end was planned. */
  open_ended?: boolean | null;
  /** How pairs count. */
  score?: BlockScore | null;
}

/** The result of a gate. */
export interface GateVerdict {
  /** What to do; empty where nothing is to be done. */
  advice?: string | null;
  /** Which. */
  decision?: GateDecision | null;
  /** As a full sentence. */
  sentence?: string | null;
}

/** Score of a group of kernels. */
export interface GroupScore {
  /** The cell scored, such as `4 @ spread`. */
  cell?: string | null;
  /** The group. */
  group?: string | null;
  /** Kernels that it is the mean of. */
  kernels?: string[] | null;
  /** The question. */
  question?: Question | null;
  /** The cell that has score 1. */
  reference?: string | null;
  /** Geometric mean of the speed-ups of the cell over the reference. */
  score?: number | null;
}

/** The figure that says most, for the first lines of a face. */
export interface HeadlineRecord {
  /** The change: `−20.0 %`. */
  change?: string | null;
  /** How sure that is; empty without an interval. */
  confidence?: string | null;
  /** Its interval, or that there is none. */
  interval?: string | null;
  /** Of what, against what. */
  of?: string | null;
}

/** Another hint. */
export interface HintCostRecord {
  /** The same in core cycles. */
  cycles?: number | null;
  /** `TPAUSE`, `UMWAIT`, `YIELD`. */
  hint?: string | null;
  /** Its least cost, ns. */
  ns?: number | null;
}

/** Latency of a pair with the line's memory on one node. */
export interface HomeLatency {
  /** Batches it rests on. */
  batches?: number | null;
  /** Upper end. */
  high?: number | null;
  /** NUMA node; `null` where there is but one. */
  home_node?: number | null;
  /** Lower end of the 95 % interval; `null` for too few batches. */
  low?: number | null;
  /** Batches thrown away since the hypervisor took the CPU. */
  stolen?: number | null;
  /** Batches thrown away since a thread was pushed off its CPU. */
  switched?: number | null;
  /** Median of the batches. */
  value?: number | null;
}

/** The machine that a record was made on. */
export interface HostRecord {
  /** CPUs that could be used, as a list. */
  allowed?: string | null;
  /** Instruction set architecture. */
  arch?: string | null;
  /** Units that could be used. */
  counts?: CountsRecord | null;
  /** CPU family. */
  cpu_family?: number | null;
  /** Marketing name of the processor. */
  cpu_model?: string | null;
  /** CPU model number. */
  cpu_model_number?: number | null;
  /** CPU stepping. */
  cpu_stepping?: number | null;
  /** Network name. */
  hostname?: string | null;
  /** Hypervisor, `null` on bare metal. */
  hypervisor?: string | null;
  /** Kernel release. */
  kernel?: string | null;
  /** `local` or `sim:…`. */
  machine_spec?: string | null;
  /** Microcode revision. */
  microcode?: string | null;
  /** The same for machines of the same shape. */
  shape_hash?: string | null;
  /** Is every figure simulated? */
  simulated?: boolean | null;
  /** Processor vendor. */
  vendor?: string | null;
}

/** Time queued while a CPU idled, in episodes of 1 ms and more. */
export interface IdleWaitingRecord {
  /** How many. */
  episodes?: number | null;
  /** The longest, seconds. */
  longest_s?: number | null;
  /** Part during which only CPUs idled that the mask forbids. */
  mask_s?: number | null;
  /** Why nothing is reported. */
  note?: string | null;
  /** The same as a share of the time queued, per cent. */
  percent?: number | null;
  /** Part during which an allowed CPU idled: the scheduler's doing. */
  scheduler_s?: number | null;
  /** All episodes, seconds. */
  seconds?: number | null;
}

/** What a cause took. */
export interface InterruptCauseRecord {
  /** How often it came. */
  count?: number | null;
  /** What the kernel's own counter of it (`/proc/interrupts`, `/proc/softirqs`) rose by meanwhile; `null` where there is none. */
  counted?: number | null;
  /** The CPUs that it came to, in order. */
  cpus?: InterruptCpuRecord[] | null;
  /** The PCI device that raises it; `null` where there is none. */
  device?: string | null;
  /** An interrupt's number, as in `/proc/irq`; `null` of anything else. */
  irq?: number | null;
  /** The kernel counted clearly more than it reported: these figures are lower bounds. */
  is_lower_bound?: boolean | null;
  /** What kind of thing. */
  kind?: GapCause | null;
  /** Its name: who asked for the interrupt, the softirq; empty where the kind says all. */
  name?: string | null;
  /** The time it took, seconds. */
  seconds?: number | null;
  /** Of that, while threads of the program had the CPU, seconds. */
  stolen_s?: number | null;
}

/** What a cause took of a CPU. */
export interface InterruptCpuRecord {
  /** How often it came. */
  count?: number | null;
  /** Which. */
  cpu?: number | null;
  /** The same as a share of the trace's time, per cent. */
  percent?: number | null;
  /** The time it took, seconds. */
  seconds?: number | null;
  /** The same as a share of the program's CPU time there, per cent; `null` where it did not run there, or nobody knows. */
  stolen_percent?: number | null;
  /** Of that time, while threads of the program had the CPU, seconds. */
  stolen_s?: number | null;
}

/** An interrupt of a device. */
export interface InterruptRecord {
  /** How often it was raised since boot; `null` where unknown. */
  count?: number | null;
  /** CPUs that take it, as a list. */
  cpus?: string | null;
  /** The system's number. */
  irq?: number | null;
  /** Does the kernel choose its CPUs, and lets nobody move it? */
  managed?: boolean | null;
}

/** What interrupts and softirqs took while a trace ran.  Each moment belongs to the innermost thing that the kernel was at. What has no beginning, no end, or lost records within counts nowhere. */
export interface InterruptsRecord {
  /** Each cause, most time first. */
  causes?: InterruptCauseRecord[] | null;
  /** Times that reports were lost: figures are lower bounds then. */
  gaps?: number | null;
  /** Reports of the kernel that the figures rest on; each costs what runs there. */
  reports?: number | null;
  /** The same as a share of the program's CPU time, per cent; `null` where that is unknown. */
  stolen_percent?: number | null;
  /** Time that they took of CPUs while threads of the program had them, seconds: it is part of the program's CPU time. */
  stolen_s?: number | null;
  /** Beginnings without an end and ends without a beginning. */
  unmatched?: number | null;
}

/** How a system is set to keep CPUs free, CPUs as lists; empty where it is not. */
export interface IsolationRecord {
  /** CPUs that interrupts may use unless something else is set (`irqaffinity`). */
  irq_default?: string | null;
  /** CPUs that the scheduler gives to nobody who does not ask (`isolcpus`). */
  isolated?: string | null;
  /** Are interrupts that the kernel places itself kept off isolated CPUs (`isolcpus=managed_irq`)? */
  managed_irq?: boolean | null;
  /** CPUs without a tick while they run one thread (`nohz_full`). */
  nohz_full?: string | null;
  /** CPUs whose RCU callbacks others run (`rcu_nocbs`). */
  rcu_nocbs?: string | null;
}

/** How much something took. */
export interface JitterCauseRecord {
  /** The CPUs that it took time from, as a list. */
  cpus?: string | null;
  /** The PCI device that raises it; `null` where there is none. */
  device?: string | null;
  /** Gaps that it took most of. */
  gaps?: number | null;
  /** An interrupt's number, as in `/proc/irq`; `null` of anything else. */
  irq?: number | null;
  /** What kind of thing. */
  kind?: GapCause | null;
  /** The most it took of one gap, µs. */
  longest_us?: number | null;
  /** Time that it took, of all gaps, ms. */
  lost_ms?: number | null;
  /** Its name: who asked for the interrupt, the softirq, the thread; empty where the kind says all. */
  name?: string | null;
}

/** A CPU that was watched. */
export interface JitterCpuRecord {
  /** What took the time, most first. */
  causes?: JitterCauseRecord[] | null;
  /** The CPU. */
  cpu?: number | null;
  /** What the way into the kernel and out of it usually takes, µs: it belongs to what is done there. `null` where the kernel reported too little. */
  entry_us?: number | null;
  /** Gaps. */
  gaps?: number | null;
  /** Interrupts that the system counted meanwhile. */
  interrupts?: CountedRecord[] | null;
  /** The longest, µs. */
  longest_us?: number | null;
  /** All gaps together as a share of the time. */
  lost_share?: number | null;
  /** The length that half of them do not exceed, µs; `null` where there are none. */
  median_us?: number | null;
  /** The length that 99 % of them do not exceed, µs. */
  p99_us?: number | null;
  /** How long the thread was queued behind others, ms; `null` where unknown. */
  queued_ms?: number | null;
  /** Time between two readings of the clock, ns: nothing shorter is seen. */
  resolution_ns?: number | null;
  /** Softirqs that it counted. */
  softirqs?: CountedRecord[] | null;
  /** What the hypervisor gave to others, ms, in steps of 10 ms on most systems; `null` where unknown. */
  steal_ms?: number | null;
  /** Gaps of which nothing is known but that they were: no figure counts them. */
  unwritten?: number | null;
  /** For how long it was watched, s. */
  watched_s?: number | null;
}

/** A contrast as another judge sees it. */
export interface JudgedRecord {
  /** `ratio` as a change of the metric; `null` in old records only. */
  effect?: EffectRecord | null;
  /** Upper end. */
  high?: number | null;
  /** `typical`, `mean` or a percentile such as `p90`. */
  judge?: string | null;
  /** Lower end of its interval; `null` where the runs allow none. */
  low?: number | null;
  /** Cost of the arm over that of the baseline. */
  ratio?: number | null;
}

/** How work is shared out. */
export type KernelSplit = "static" | "dynamic" | (string & {});

/** A kind of CPU on a hybrid machine. */
export interface KindRecord {
  /** Its CPUs, as a list. */
  cpus?: string | null;
  /** `E`, `M` or `P`. */
  name?: string | null;
}

/** One size of the ladder. */
export interface LadderPoint {
  /** Working set, bytes. */
  bytes?: number | null;
  /** One load, ns. */
  latency_ns?: Median | null;
}

/** Load latency over working-set size, on one CPU. */
export interface LadderRecord {
  /** The CPU. */
  cpu?: number | null;
  /** What capacities hint at. */
  hint?: CacheInclusion | null;
  /** Plateaus: what a program sees as caches, and memory last. */
  plateaus?: PlateauRecord[] | null;
  /** Sizes in ascending order. */
  points?: LadderPoint[] | null;
}

/** The least resource that is nearly as good as the best. */
export interface LeastRecord {
  /** The arm. */
  arm?: string | null;
  /** What that rests on, in words; empty where nothing smaller will do. */
  basis?: string | null;
  /** Commands that run it, where it is not the best arm itself. */
  commands?: CommandRecord[] | null;
  /** Do those pairs say that it is within the limit? With an error of 5 %; the interval is then theirs. */
  confirmed?: boolean | null;
  /** Upper end. */
  high?: number | null;
  /** Lower end of the 90 % interval. */
  low?: number | null;
  /** Was it run, or only predicted? */
  measured?: boolean | null;
  /** Expected performance over that of the best arm: 0.98 is 98 % of it. */
  of_best?: number | null;
  /** Fresh pairs of it, or of a smaller one that they did not confirm, and the best arm. */
  pairs?: number | null;
  /** In words: "4 cores of one LLC: 98 % of the best". */
  sentence?: string | null;
}

/** What is not listed one by one. */
export interface LeftOutRecord {
  /** How many. */
  count?: number | null;
  /** Their own time. */
  own?: AmountRecord | null;
}

/** Spans that are not kept one by one. */
export interface LeftOutSpans {
  /** How many. */
  count?: number | null;
  /** Their sum, ns. */
  ns?: number | null;
}

/** What CPUs share, or what is judged of a machine. */
export type LevelName = "smt" | "llc" | "numa" | "package" | "cache" | "stacked" | "placement" | "other" | (string & {});

/** One of two costs. */
export interface LevelRecord {
  /** The same in core cycles. */
  pause_cycles?: number | null;
  /** One PAUSE, ns. */
  pause_ns?: number | null;
  /** Share of the batches, 0 to 1. */
  share?: number | null;
}

/** The verdict on what the system reports of one level. */
export interface LevelVerdict {
  /** What to do; empty where nothing needs to be done. */
  advice?: string | null;
  /** What this map says by itself, where earlier maps of the same boot say otherwise and `verdict` rests on all of them. */
  alone?: Agreement | null;
  /** What the system says, as a sentence. */
  claim?: string | null;
  /** How sure, from 0 to 1. */
  confidence?: number | null;
  /** The level. */
  level?: LevelName | null;
  /** What the probes say, as a sentence with its figures. */
  measured?: string | null;
  /** The verdict. */
  verdict?: Agreement | null;
}

/** How an arm stands against the slow-down that was allowed. */
export interface LimitRecord {
  /** That slow-down, as a share of the cost. */
  limit?: number | null;
  /** As of a benchmark of a gate: `slower` by more, `passed`, or `undecided`. */
  outcome?: GateOutcome | null;
  /** In words. */
  sentence?: string | null;
}

/** An instruction. */
export interface LineRecord {
  /** Its address, as the file has it. */
  address?: number | null;
  /** A spin hint. */
  is_hint?: boolean | null;
  /** Time seen at it; none where another spot has it. */
  own?: AmountRecord | null;
  /** Disassembled. */
  text?: string | null;
  /** The time seen at it was spent waiting in a spin hint. */
  waits?: boolean | null;
}

/** A typical ratio under some load. */
export interface LoadLevelRecord {
  /** `ratio` as a change of the metric, in words. */
  change?: string | null;
  /** CPUs that others used, median of the blocks. */
  foreign_cpus?: number | null;
  /** The arm's cost over that of the baseline. */
  ratio?: number | null;
}

/** A typical ratio by the CPUs that others used, each of a third of the blocks. */
export interface LoadLevelsRecord {
  /** Where others used most. */
  heavy?: LoadLevelRecord | null;
  /** Where others used least. */
  light?: LoadLevelRecord | null;
  /** Between them; `null` where the load had two states only. */
  medium?: LoadLevelRecord | null;
}

/** Latency under load. */
export interface LoadedLatencyRecord {
  /** Their bandwidth, 1e9 bytes per second. */
  background_gb_per_s?: number | null;
  /** Where latency was measured. */
  cpu?: number | null;
  /** One load, ns. */
  latency_ns?: Median | null;
  /** CPUs that loaded the memory, as a list; empty: none. */
  loaders?: string | null;
}

/** A share of accesses over a trace. */
export interface LocalShare {
  /** The highest of the looks. */
  high?: number | null;
  /** The lowest of the looks. */
  low?: number | null;
  /** On average over the time, per cent. */
  percent?: number | null;
}

/** Who caused a wait, or needless sharing. */
export type LossCause = "scheduler" | "mask" | "other_processes" | "own_threads" | "starting" | "unreported" | (string & {});

/** What the trace does not know. */
export interface LostRecord {
  /** Events whose time was before that of their predecessor. */
  backwards?: number | null;
  /** Events that contradict what was known (a thread on two CPUs, one that leaves without having come); what followed counts again. */
  contradictions?: number | null;
  /** CPUs whose idle task's events did not arrive, so that threads left them that had never come: CPU time and time queued are lower bounds. */
  idle_task_unseen?: number[] | null;
  /** Records that the kernel or the file lost. */
  records?: number | null;
  /** Their sum, seconds of CPUs; nothing in them is counted. */
  seconds?: number | null;
  /** Online CPUs without a single event: whether they idled is not known, and what follows from idle CPUs is a lower bound. */
  silent_cpus?: number | null;
  /** Spans of time on a CPU in which records are missing. */
  windows?: number | null;
}

/** A figure that may be a bound. */
export type LowerBound = "cpu_time" | "switches" | "threads" | "migrations" | "queued" | "other";

/** Something that differs between the machines. */
export interface MachineChange {
  /** How it is in A; `null` where A does not say. */
  a?: string | null;
  /** How it is in B. */
  b?: string | null;
  /** What. */
  what?: MachineFact | null;
}

/** What may differ between machines. */
export type MachineFact = "host" | "CPU model" | "shape" | "kernel" | "microcode" | "hypervisor" | "pinwise" | (string & {});

/** Names and versions of a machine; `null` where unknown. */
export interface MachineRecord {
  /** Instruction set architecture. */
  arch?: string | null;
  /** CPU family. */
  cpu_family?: number | null;
  /** Marketing name of the processor. */
  cpu_model?: string | null;
  /** CPU model number. */
  cpu_model_number?: number | null;
  /** CPU stepping. */
  cpu_stepping?: number | null;
  /** Network name. */
  hostname?: string | null;
  /** Hypervisor, `null` on bare metal. */
  hypervisor?: string | null;
  /** Kernel release. */
  kernel?: string | null;
  /** Microcode revision. */
  microcode?: string | null;
  /** Processor vendor. */
  vendor?: string | null;
}

/** How sure it is that a loop is an algorithm's. */
export type MatchStrength = "possible" | "likely" | "certain" | (string & {});

/** An algorithm of the table. */
export interface MatchedAlgorithm {
  /** Its id. */
  id?: string | null;
  /** Why, as a sentence. */
  reason?: string | null;
  /** How sure that is. */
  strength?: MatchStrength | null;
}

/** What probes found. */
export interface Measured {
  /** Bandwidth of memory. */
  bandwidth?: BandwidthRecord[] | null;
  /** Why nothing can be said of the levels. */
  cannot_tell?: string | null;
  /** Clocks. */
  clock?: ClockRecord | null;
  /** CPUs of the rows and columns of the matrices, in order. */
  cpus?: number[] | null;
  /** How long the map stays true; `null` unless watched. */
  drift?: DriftRecord | null;
  /** What the measurement took. */
  effort?: EffortRecord | null;
  /** No level divides the CPUs. */
  flat?: boolean | null;
  /** Was this entry measured (`true`) or taken from leaders of its groups? */
  is_measured?: boolean[][] | null;
  /** Load latency over working-set size. */
  ladder?: LadderRecord | null;
  /** Median one-way time of a cache line between two CPUs, ns. On the diagonal and where a pair was skipped and could not be inferred from its groups: `null`. */
  latency_ns?: ((number | null)[])[] | null;
  /** All levels that were found, smallest groups first. */
  levels?: MeasuredLevel[] | null;
  /** CPUs that share a last-level cache or a cluster, as lists. */
  llc_groups?: string[] | null;
  /** Latency of memory while others load it. */
  loaded_latency?: LoadedLatencyRecord[] | null;
  /** What was odd, as full sentences. */
  notes?: string[] | null;
  /** CPUs of a package, as lists. */
  packages?: string[] | null;
  /** Every pair that was measured, with intervals. */
  pairs?: PairRecord[] | null;
  /** Cost of a spin-wait hint per CPU. */
  pause?: PauseRecord[] | null;
  /** Costs of switching and waking. */
  scheduling?: SchedulingRecord | null;
  /** Pairs of SMT siblings. */
  smt_pairs?: number[][] | null;
  /** When, where and how. */
  survey?: SurveyRecord | null;
  /** The system's report against the probes, one verdict per level. */
  verdicts?: LevelVerdict[] | null;
}

/** A level that was found. */
export interface MeasuredLevel {
  /** How sure, from 0 to 1. */
  confidence?: number | null;
  /** Why, in a sentence. */
  evidence?: string | null;
  /** Its groups of two or more CPUs, as lists. */
  groups?: string[] | null;
  /** Typical latency within, ns. */
  inside_ns?: number | null;
  /** What is shared. */
  kind?: LevelName | null;
  /** Typical latency to the nearest outside, ns. */
  outside_ns?: number | null;
}

/** A median with its interval, in the unit of the field's name. */
export interface Median {
  /** Batches it rests on. */
  batches?: number | null;
  /** Upper end. */
  high?: number | null;
  /** Lower end of the 95 % interval; `null` for too few batches. */
  low?: number | null;
  /** Batches thrown away since the hypervisor took the CPU. */
  stolen?: number | null;
  /** Batches thrown away since a thread was pushed off its CPU. */
  switched?: number | null;
  /** Median of the batches. */
  value?: number | null;
}

/** Where pages of the traced processes were, seen now and then.  Pages that two of the processes map count for each, as with `numastat -p`. */
export interface MemoryRecord {
  /** Share of pages on nodes where the threads used less than 5 % of their CPU time, per cent: far from whoever uses them. `null` on a machine of one node. */
  far_percent?: number | null;
  /** Share of pages in huge pages, transparent or reserved, per cent. */
  huge_percent?: number | null;
  /** Does the kernel move pages to who uses them (`numa_balancing`)? `null` where unknown. */
  is_balanced?: boolean | null;
  /** Share of accesses that would be local if all threads used all pages alike, per cent: what the nodes have of the CPU time, by what they have of the pages. `null` on a machine of one node. */
  local?: LocalShare | null;
  /** How often it was looked at. */
  looks?: number | null;
  /** Each NUMA node. */
  nodes?: NodePagesRecord[] | null;
}

/** How memory is streamed. */
export type MemoryStream = "read" | "write" | "copy" | "triad" | (string & {});

/** The compared figure of one run. */
export interface MetricReading {
  /** The cost that ratios are made of: the value, or its inverse where higher is better. */
  cost?: number | null;
  /** As the metric gives it; `null` where the run failed. */
  value?: number | null;
}

/** The figure that is compared. */
export interface MetricRecord {
  /** Which direction is good. */
  better?: Direction | null;
  /** What one with a lower cost is called: `faster`, `smaller`, `better`. */
  better_word?: string | null;
  /** What it is called in sentences; empty in old records. */
  label?: string | null;
  /** As on the command line. */
  name?: string | null;
  /** Unit of values; empty where the program defines it. */
  unit?: string | null;
  /** The opposite. */
  worse_word?: string | null;
}

/** Moves between CPUs, by the outermost boundary crossed; each move is counted once. */
export interface MigrationCounts {
  /** To another core of the same last-level cache. */
  core?: number | null;
  /** To another last-level cache of the same NUMA node. */
  llc?: number | null;
  /** To another NUMA node of the same package. */
  numa?: number | null;
  /** To another package. */
  package?: number | null;
  /** To an SMT sibling on the same core. */
  smt?: number | null;
  /** Where the machine's description has not both CPUs, or moves were only counted. */
  unknown?: number | null;
}

/** What predictions were worth. */
export type ModelJudgement = "fits" | "misfits" | "useless" | (string & {});

/** Two clusters of figures. */
export interface Modes {
  /** Centre of the upper one, ns. */
  high_ns?: number | null;
  /** Centre of the lower one, ns. */
  low_ns?: number | null;
  /** Share of the lower one, 0 to 1. */
  low_share?: number | null;
}

/** Moves per second. */
export interface MoveRates {
  /** To another core of the same last-level cache. */
  core?: number | null;
  /** To another last-level cache of the same NUMA node. */
  llc?: number | null;
  /** To another NUMA node of the same package. */
  numa?: number | null;
  /** To another package. */
  package?: number | null;
  /** To an SMT sibling. */
  smt?: number | null;
  /** Unknown. */
  unknown?: number | null;
}

/** What moving from one processor to another does to an algorithm. */
export interface MoveRecord {
  /** Its id. */
  algorithm?: string | null;
  /** CPUs, on both. */
  cpus?: number | null;
  /** Its blind gap before, ms. */
  from_blind_gap_ms?: number | null;
  /** Its total before, ms. */
  from_ms?: number | null;
  /** The cost of PAUSE hardly matters to it. */
  immune?: boolean | null;
  /** After over before. */
  ratio?: number | null;
  /** Its blind gap after, ms. */
  to_blind_gap_ms?: number | null;
  /** Its total after, ms. */
  to_ms?: number | null;
}

/** A program that places its own threads. */
export interface MoverRecord {
  /** The setting by which it does so; `null` where that is not known. */
  knob?: string | null;
  /** Name of its executable file. */
  program?: string | null;
}

/** A figure of a node. */
export interface NodeFigure {
  /** Upper end of its interval. */
  high?: number | null;
  /** Lower end of its interval. */
  low?: number | null;
  /** What it is of. */
  name?: string | null;
  /** The step it comes from. */
  step?: string | null;
  /** Unit; `""` for a number without one. */
  unit?: string | null;
  /** The figure. */
  value?: number | null;
}

/** A node's share of memory and of CPU time. */
export interface NodePagesRecord {
  /** Pages on it, bytes, on average over the time. */
  bytes?: number | null;
  /** Its share of the traced threads' CPU time, per cent. */
  cpu_percent?: number | null;
  /** Pages on it at the last look, bytes. */
  last_bytes?: number | null;
  /** Its number. */
  node?: number | null;
}

/** A NUMA node. */
export interface NodeRecord {
  /** May this process allocate there? */
  allowed?: boolean | null;
  /** Its CPUs, as a list; empty for memory-only nodes. */
  cpus?: string | null;
  /** Memory; `null` where unknown. */
  memory_bytes?: number | null;
  /** The operating system's number. */
  node?: number | null;
}

/** How far a node is. */
export type NodeState = "queued" | "running" | "done" | "failed" | "missing";

/** What a node is at. */
export interface NodeStatus {
  /** Attempts. */
  attempts?: number | null;
  /** How far its clock is ahead of the shared folder's, seconds. */
  clock_ahead_s?: number | null;
  /** Steps that have their record. */
  done?: number | null;
  /** Its newest job, in the scheduler's words. */
  job?: string | null;
  /** The node. */
  node?: string | null;
  /** When its newest attempt began, RFC 3339, by its own clock. */
  since?: string | null;
  /** How far it is. */
  state?: NodeState | null;
  /** The step that runs, or that failed; `null` of others. */
  step?: string | null;
  /** Why it failed, or what its job waits for. */
  why?: string | null;
}

/** A step on a node. */
export interface NodeStep {
  /** The attempt that this is of, from 1. */
  attempt?: number | null;
  /** How long it took, seconds. */
  elapsed_s?: number | null;
  /** The fleet's name for it. */
  name?: string | null;
  /** Id of its record; `null` where there is none. */
  record?: string | null;
  /** How it ended. */
  state?: StepState | null;
  /** Why it failed. */
  why?: string | null;
}

/** Why the placement of the best arm is not recommended. */
export type NotRecommended = "depends_on_load" | "small_gain" | "short_runs" | "busy_machine" | "quiet_only" | (string & {});

/** The best shape on other CPUs: do all CPUs of a shape do as well? */
export interface OtherCpusRecord {
  /** The arm whose shape it has. */
  against?: string | null;
  /** The arm on other CPUs. */
  arm?: string | null;
  /** Confidence of the interval, whenever one looks. */
  confidence?: number | null;
  /** Upper end. */
  high?: number | null;
  /** Lower end of the interval; `null` where the pairs allow none. */
  low?: number | null;
  /** Pairs. */
  pairs?: number | null;
  /** Typical cost over that of `against`. */
  ratio?: number | null;
  /** In words. */
  sentence?: string | null;
  /** As of the confirmation, against the arm whose shape it has. */
  verdict?: PairsVerdict | null;
}

/** A loop around a blind delay. */
export interface OuterLoop {
  /** Address of its first instruction, in hexadecimal digits. */
  address?: string | null;
  /** What it does. */
  kind?: SpinKind | null;
  /** Its looks in one turn. */
  looks_per_turn?: number | null;
}

/** An anomaly of a node. */
export type OutlierKind = "figure" | "setting";

/** Slices of a CPU as bytes. */
export interface PackedCpuRecord {
  /** They, as base64. */
  bytes?: string | null;
  /** How many slices. */
  count?: number | null;
  /** The CPU. */
  cpu?: number | null;
}

/** Needless sharing in the order of its beginning. Of each span: ns from the beginning of the one before, its length in ns, the core, and the threads that could have been alone times 4 plus the place of the cause in `causes`. */
export interface PackedSharingRecord {
  /** They, as base64. */
  bytes?: string | null;
  /** Who caused it. */
  causes?: LossCause[] | null;
  /** How many spans. */
  count?: number | null;
  /** `varint/1`. */
  form?: string | null;
  /** Of very many all but the longest; the sum counts each thread. */
  left_out?: LeftOutSpans | null;
}

/** Slices as bytes, CPU by CPU. Of each slice: ns since the CPU's last slice ended (of the first: since the trace's first moment), its length in ns, and its thread's place in `threads` times 4 plus the place of its end in `ends`. */
export interface PackedSlicesRecord {
  /** How many slices. */
  count?: number | null;
  /** Slices of each CPU. */
  cpus?: PackedCpuRecord[] | null;
  /** How slices end. */
  ends?: SliceEnd[] | null;
  /** `varint/1`. */
  form?: string | null;
  /** Threads; a number that came again stands twice. */
  threads?: number[] | null;
}

/** Waits in the order of their beginning. Of each: ns from the beginning of the one before (of the first: from the trace's first moment), its length in ns, the CPU it was queued on, and its thread's place in `threads` times 8 plus the place of its cause in `causes`. */
export interface PackedWaitsRecord {
  /** They, as base64. */
  bytes?: string | null;
  /** Causes; of a wait that had several that of the longest part. */
  causes?: LossCause[] | null;
  /** How many waits. */
  count?: number | null;
  /** `varint/1`. */
  form?: string | null;
  /** All that are left out: those shorter, and of very many all but the longest. */
  left_out?: LeftOutSpans | null;
  /** Shorter ones are left out, ns. */
  shortest_ns?: number | null;
  /** Threads. */
  threads?: number[] | null;
}

/** A measured pair. */
export interface PairRecord {
  /** One CPU. */
  a?: number | null;
  /** The other. */
  b?: number | null;
  /** The same of floating-point arithmetic. */
  contention_float?: Median | null;
  /** The same of integer arithmetic. */
  contention_integer?: Median | null;
  /** Time of a spin loop beside the other over alone; `null` where not measured. */
  contention_spin?: Median | null;
  /** One-way time, ns, for each home of the line that was tried. */
  latency_ns?: HomeLatency[] | null;
}

/** What fresh pairs say of an arm. */
export type PairsVerdict = "faster" | "slower" | "same" | "not_slower" | "not_faster" | "undecided" | (string & {});

/** A part of a difference. */
export interface PartRecord {
  /** After less before, seconds per unit; `null` where it is not known, and stands in the unexplained part. */
  delta_s?: AccountRecord | null;
  /** The figures of both machines that it rests on, or why it is not known. */
  detail?: string | null;
  /** What it is called: `longer spin-waits`. */
  name?: string | null;
  /** Where it stands. */
  part?: AttributedPart | null;
  /** Share of the whole difference; `null` where it is not known, or where there is no difference. */
  share?: AccountRecord | null;
}

/** What lies between two devices, in the classes of `nvidia-smi topo -m`. */
export type PathClass = "NV" | "XGMI" | "PIX" | "PXB" | "PHB" | "NODE" | "SYS" | (string & {});

/** Would known algorithms wait too long? */
export interface PauseCheckRecord {
  /** None is too long. */
  is_fine?: boolean | null;
  /** A blind gap of this length is too long, ms. */
  limit_blind_gap_ms?: number | null;
  /** Spinning of this length is too long, ms. */
  limit_total_ms?: number | null;
  /** A million PAUSEs on the slowest CPU, ms. */
  million_ms?: number | null;
  /** CPUs that a program would count. */
  processors?: number | null;
  /** The verdict in a line. */
  sentence?: string | null;
  /** Those that are, longest first. */
  too_long?: TooLongRecord[] | null;
}

/** Cost of the spin-wait hint on a CPU. */
export interface PauseRecord {
  /** The CPU. */
  cpu?: number | null;
  /** Two costs, where batches fall into two clusters: ns of each, and the share of the first. */
  modes?: Modes | null;
  /** The same in core cycles. */
  pause_cycles?: Median | null;
  /** One PAUSE (YIELD, ISB), ns. */
  pause_ns?: Median | null;
}

/** More PAUSEs, or longer ones. */
export interface PausingRecord {
  /** PAUSEs per unit after. */
  after_pauses?: number | null;
  /** PAUSEs per unit before. */
  before_pauses?: number | null;
  /** Part of the change that comes from longer PAUSEs, seconds per unit. */
  by_longer_s?: number | null;
  /** Part of the change that comes from more PAUSEs, seconds per unit. */
  by_more_s?: number | null;
}

/** In which part of the experiment a run was made. */
export type Phase = "warmup" | "screening" | "confirmation" | "dropped";

/** How threads are held to a placement. */
export type PlacementKind = "os-default" | "confined" | "bound" | (string & {});

/** Where memory is to come from. */
export type PlacementMemory = "local" | "bind" | "interleave" | "weighted" | "preferred" | (string & {});

/** A placement and what it means on this machine. */
export interface PlacementRecord {
  /** Cores touched. */
  cores?: number | null;
  /** How threads are held to it. */
  kind?: PlacementKind | null;
  /** Last-level-cache domains touched. */
  llcs?: number | null;
  /** Memory policy, `null` for the inherited one. */
  memory?: PlacementMemory | null;
  /** NUMA nodes of the memory policy. */
  memory_nodes?: number[] | null;
  /** As on the command line. */
  name?: string | null;
  /** NUMA nodes touched. */
  numa_nodes?: number | null;
  /** Packages touched. */
  packages?: number | null;
}

/** How a comparison was planned. */
export interface PlanRecord {
  /** Family-wise two-sided error. */
  alpha?: number | null;
  /** Budget in seconds. */
  budget_s?: number | null;
  /** What of the runs is judged: `typical`, `mean` or a percentile, `p90`. */
  judge?: string | null;
  /** Budget in runs per arm. */
  max_runs?: number | null;
  /** Smallest effect of interest, as a share: 0.01 is 1 %. */
  min_effect?: number | null;
  /** It went on until the answer was known: no end was planned. */
  open_ended?: boolean | null;
  /** Half-width asked for, as a share. */
  precision?: number | null;
  /** How blocks count where that is the typical run. */
  score?: BlockScore | null;
  /** Arms screened before the confirmation; 0 without screening. */
  screened_arms?: number | null;
  /** Whole blocks thrown away at the start. */
  warmup_blocks?: number | null;
}

/** A fault that a simulated node has. */
export interface PlantedFault {
  /** What is wrong with it. */
  fault?: string | null;
  /** The node. */
  node?: string | null;
}

/** A plateau of the ladder. */
export interface PlateauRecord {
  /** Capacity as a program sees it, bytes; `null` for memory. */
  effective_bytes?: number | null;
  /** One load, ns. */
  latency_ns?: number | null;
  /** 1 for L1 and so on; `null` for memory. */
  level?: number | null;
  /** Capacity that the system reports; `null` where it reports none. */
  reported_bytes?: number | null;
}

/** What is expected of an arm. */
export interface PredictedArm {
  /** The arm's name. */
  arm?: string | null;
  /** Probability that it beats the best arm by more than the indifference zone. */
  beats_best?: number | null;
  /** The same as a change of the metric, in words. */
  change?: string | null;
  /** What was expected before the arm's first run, where it had one. */
  first_prediction?: FirstPredictionRecord | null;
  /** Upper end. */
  high?: number | null;
  /** Lower end of the 90 % interval of the cost over that of the bound arm with most runs, times the expected cost of that: how the machine's level wanders over hours is not in it. Of that arm the interval of its cost. */
  low?: number | null;
  /** What its own runs alone say; `null` without any. */
  measured?: Estimate | null;
  /** Expected cost in the metric's unit (of rates: the inverse); by the model with all runs, the arm's own included. */
  predicted?: number | null;
  /** Expected over that of `os-default`. */
  ratio?: number | null;
  /** Runs of the arm that count. */
  runs?: number | null;
  /** On a simulated machine: the truth, in the metric's unit. */
  truth?: number | null;
}

/** What is expected of a placement. */
export interface PredictedPlacement {
  /** Expected cost in the metric's unit (of rates: the inverse); `null` on another machine whose speed is unknown. */
  cost?: number | null;
  /** Its CPUs on the machine asked about, as a list. */
  cpus?: string | null;
  /** Predicted over true, minus 1: of the costs where one is predicted, else of the ratios. */
  error?: number | null;
  /** Upper end. */
  high?: number | null;
  /** Lower end of the 90 % interval of the ratio. */
  low?: number | null;
  /** As `--place` takes it. */
  place?: string | null;
  /** Expected cost over that of `os-default` on the machine asked about. */
  ratio?: number | null;
  /** Runs of this very placement that it rests on. */
  runs?: number | null;
  /** Threads. */
  threads?: number | null;
  /** The same over the true cost of `os-default`. */
  true_ratio?: number | null;
  /** On a simulated machine: the true cost, s; `null` where unknown. */
  truth?: number | null;
}

/** One algorithm with one number of CPUs. `null`: it never ends, is not known in figures, or spends its time in something else than PAUSE. */
export interface PredictionRecord {
  /** Its id. */
  algorithm?: string | null;
  /** How long these take, ms. */
  blind_gap_ms?: number | null;
  /** Most PAUSEs between two looks. */
  blind_gap_pauses?: number | null;
  /** CPUs that the program counts. */
  cpus?: number | null;
  /** What was read of it. */
  evidence?: SpinEvidence | null;
  /** The clock, GHz. */
  ghz?: number | null;
  /** The cost of PAUSE hardly matters to it. */
  immune?: boolean | null;
  /** How long these take, ms. */
  longest_ms?: number | null;
  /** The same at the longest. */
  longest_pauses?: number | null;
  /** Its name. */
  name?: string | null;
  /** It spins until it has the lock. */
  never_parks?: boolean | null;
  /** What else; `null` for nothing. */
  note?: string | null;
  /** One PAUSE, core cycles. */
  pause_cycles?: number | null;
  /** One PAUSE, ns. */
  pause_ns?: number | null;
  /** Where it was read. */
  source?: string | null;
  /** What follows in the end. */
  then?: string | null;
  /** How long they take, ms. */
  total_ms?: number | null;
  /** PAUSEs before it gives up; draws at their mean. */
  total_pauses?: number | null;
  /** What changes it. */
  tunables?: TunableRecord[] | null;
  /** What it counts. */
  unit?: SpinUnit | null;
  /** Versions that have it. */
  versions?: string | null;
  /** CPU time burnt where all CPUs but one wait in full, ms. */
  wasted_cpu_ms?: number | null;
}

/** A median with its interval. */
export interface ProbedFigure {
  /** Upper end. */
  high?: number | null;
  /** Lower end of its 95 % interval; `null` where so few batches allow none. */
  low?: number | null;
  /** The median. */
  value?: number | null;
}

/** A processor and where its figures are from. */
export interface ProcessorRecord {
  /** Its id in the table of chips; `null` for none of them. */
  chip?: string | null;
  /** The clock, GHz. */
  ghz?: number | null;
  /** Where the clock is from. */
  ghz_from?: string | null;
  /** Its name, as `Skylake-SP/X` or `this machine`. */
  name?: string | null;
  /** The same in core cycles. */
  pause_cycles?: number | null;
  /** Where the cycles are from, as a sentence or an address. */
  pause_from?: string | null;
  /** One PAUSE, ns. */
  pause_ns?: number | null;
}

/** What differences between machines rest on, measured on the CPU on which a PAUSE is. */
export interface ProfileMachine {
  /** The largest cache of the CPU as reported, bytes. */
  cache_bytes?: number | null;
  /** A core cycle, ns. */
  cycle_ns?: ProbedFigure | null;
  /** Bandwidth of one CPU reading memory, 1e9 bytes per second. */
  gb_per_s?: ProbedFigure | null;
  /** A load from memory, ns. */
  memory_ns?: ProbedFigure | null;
}

/** What a PAUSE takes. */
export interface ProfilePause {
  /** Where it was measured. */
  cpu?: number | null;
  /** See `low_ns`. */
  high_ns?: number | null;
  /** Its interval, ns; `null` where so few batches allow none. */
  low_ns?: number | null;
  /** The median, ns. */
  ns?: number | null;
}

/** A run. */
export interface ProfileRun {
  /** CPU time seen at accesses of memory, seconds. */
  accesses_s?: number | null;
  /** CPU time that the samples stand for, seconds. */
  cpu_s?: number | null;
  /** Exit status, or 128 + signal; `null` of a process, and where `--for` ended it. */
  exit?: number | null;
  /** What was sampled. */
  samples?: number | null;
  /** Units of work that it did. */
  units?: number | null;
  /** CPU time in code that could not be read, such as the kernel's, seconds. */
  unread_s?: number | null;
  /** CPU time of all its processes as the kernel counts it, seconds; `null` of a process that ran already. */
  used_cpu_s?: number | null;
  /** CPU time that waits in spin hints, by samples, seconds. */
  waits_s?: number | null;
  /** Wall-clock time, seconds. */
  wall_s?: number | null;
}

/** A thread, or all of one name where there were several runs. */
export interface ProfileThread {
  /** CPU time as the kernel counts it, seconds; of a thread that ended before the command by samples, where they show more than the last look at it. */
  cpu_s?: number | null;
  /** Its name. */
  name?: string | null;
  /** What was sampled. */
  sampled?: AmountRecord | null;
  /** Its number; `null` for several. */
  thread?: number | null;
  /** How many. */
  threads?: number | null;
  /** Of that, waiting in spin hints. */
  waits?: AmountRecord | null;
}

/** Who led when. */
export interface ProgressPoint {
  /** What taking it is expected to lose to the best of all, as a share of the best one's cost. */
  expected_loss?: number | null;
  /** Upper end. */
  high?: number | null;
  /** The leader's name. */
  leader?: string | null;
  /** Lower end of the 90 % interval. */
  low?: number | null;
  /** Its expected cost. */
  predicted?: number | null;
  /** Probability that some arm beats it by more than the indifference zone. */
  probability_of_better?: number | null;
  /** Runs so far, as `SearchRecord::runs_used` counts them. */
  runs?: number | null;
  /** On a simulated machine: the leader's true cost over the true best, minus 1. */
  true_regret?: number | null;
}

/** What is asked of a kernel. */
export type Question = "smt_core" | "smt_machine" | "scaling" | "builds" | "sizes";

/** A queue of a network card. */
export interface QueueRecord {
  /** As a list: of one that receives, CPUs that process its packets (RPS), empty where that is the one with the interrupt; of one that sends, CPUs that send on it (XPS), empty where any may. */
  cpus?: string | null;
  /** The interface. */
  interface?: string | null;
  /** `rx-0` receives, `tx-0` sends. */
  queue?: string | null;
}

/** A limit on CPU time. */
export interface QuotaRecord {
  /** CPUs' worth of time. */
  cpus?: number | null;
  /** The file that says so. */
  source?: string | null;
}

/** How a waiter learns of a release. */
export type ReleaseSeen = "spinning" | "yielding" | "parked" | (string & {});

/** An algorithm at a delay. */
export interface ReplayCell {
  /** The smallest change of the hint's latency that gives another result, per cent; `null`: none of up to 100. */
  cliff_percent?: number | null;
  /** How long after its being taken the waiter came, ms. */
  delay_ms?: number | null;
  /** Measured against predicted lateness, per cent of the predicted. */
  error_percent?: number | null;
  /** What a hint took here, ns. */
  hint_achieved_ns?: number | null;
  /** How long the lock was held, ms. */
  hold_ms?: number | null;
  /** Good items. */
  items?: number | null;
  /** Over the good items; `null` where there were none. */
  measured?: ReplayMeasured | null;
  /** With the hint that was wanted; the processor's own as it was right before the waits. */
  predicted?: ReplayPrediction | null;
  /** With the hint that was achieved. */
  predicted_as_achieved?: ReplayPrediction | null;
  /** Items left out because something else stopped a thread. */
  stopped?: number | null;
  /** Items left out because the waiter was pushed off its CPU. */
  switched?: number | null;
  /** Is that so near that the result may be the other one? */
  unstable?: boolean | null;
}

/** What is replayed. */
export type ReplayExperiment = "producer-consumer" | "handoff" | "contend" | (string & {});

/** The hint of a replay. */
export interface ReplayHint {
  /** What one took, ns: the median over the cells. */
  achieved_ns?: number | null;
  /** What it was made of. */
  made?: ReplayHintMade | null;
  /** This processor's own, ns. */
  own_ns?: number | null;
  /** What each was to take, ns. */
  wanted_ns?: number | null;
}

/** What a hint was made of. */
export type ReplayHintMade = "own" | "stretched" | "shortened" | (string & {});

/** What came out; medians over the items unless it says otherwise. */
export interface ReplayMeasured {
  /** Hints of a wait. */
  hints?: number | null;
  /** Upper quartile of that. */
  lateness_high_us?: number | null;
  /** Lower quartile of that. */
  lateness_low_us?: number | null;
  /** The latest. */
  lateness_max_us?: number | null;
  /** 90 of 100 were at most so late. */
  lateness_p90_us?: number | null;
  /** How late, µs. */
  lateness_us?: number | null;
  /** Items whose waiter was parked. */
  parks?: number | null;
  /** What 100 items take, seconds. */
  seconds_per_100_items?: number | null;
  /** CPU time of the waits for 100 items, seconds: their mean. */
  waiter_cpu_s_per_100_items?: number | null;
}

/** What theory says. */
export interface ReplayPrediction {
  /** Hints of a wait. */
  hints?: number | null;
  /** How late, µs. */
  lateness_us?: number | null;
  /** What 100 items take, seconds. */
  seconds_per_100_items?: number | null;
  /** How the waiter learns of the release. */
  seen?: ReleaseSeen | null;
}

/** An algorithm that was replayed. */
export interface ReplayedAlgorithm {
  /** Its id; `futex` for parking at once. */
  algorithm?: string | null;
  /** Most hints between two looks. */
  blind_gap_hints?: number | null;
  /** One per delay; empty where threads contended. */
  cells?: ReplayCell[] | null;
  /** One per number of threads; empty elsewhere. */
  contention?: ContentionCell[] | null;
  /** How it ends. */
  ends?: WaitEnd | null;
  /** Median size of `error_percent` over the stable cells that spin to the end. */
  median_error_percent?: number | null;
  /** Its name. */
  name?: string | null;
  /** How many those are. */
  stable_cells?: number | null;
  /** Hints before it gives up; `null`: it never does. */
  total_hints?: number | null;
}

/** One report. */
export interface ReportRecord {
  /** Parameters that no figure of the report gives, as "key: why". */
  assumed?: string[] | null;
  /** Its experiments. */
  experiments?: ExperimentRecord[] | null;
  /** When and on what it was made. */
  machine?: string | null;
  /** Its name, as `hyperthread-fill`. */
  name?: string | null;
}

/** Who takes CPUs away, and what is left. */
export interface RestrictionRecord {
  /** `affinity mask` or the cpuset. */
  by?: string | null;
  /** CPUs that it leaves, as a list. */
  leaves?: string | null;
}

/** What happened to a process. */
export type RuleChangeKind = "placed" | "released" | "refused";

/** A process that a rule concerns. */
export interface RuleProcess {
  /** CPUs of its first thread, as a list; `null` where it ended meanwhile. */
  cpus?: string | null;
  /** What it calls itself. */
  name?: string | null;
  /** Its number. */
  process?: number | null;
}

/** A rule. */
export interface RuleRecord {
  /** The CPUs that it stands for where no cpuset forbids any, as a list; `null` where it leaves processes where they are. */
  cpus?: string | null;
  /** Line of its name, from 1. */
  line?: number | null;
  /** Its name. */
  name?: string | null;
  /** The nice value; `null`: it is left. */
  nice?: number | null;
  /** Its patterns, each `KEY = "PATTERN"`. */
  patterns?: string[] | null;
  /** The placement; `null`: processes are not placed. */
  place?: string | null;
  /** Processes that match now, and no earlier rule. */
  processes?: RuleProcess[] | null;
}

/** One run. What could not be measured is `null`, never 0. */
export interface RunRecord {
  /** Seconds since the experiment began. */
  at_s?: number | null;
  /** Number of the block within its phase, from 0. */
  block?: number | null;
  /** Number of runs that make this block whole. */
  block_runs?: number | null;
  /** Context switches, both kinds. */
  context_switches?: number | null;
  /** What became of threads that were bound; absent where none were. */
  coverage?: CoverageRecord | null;
  /** Core cycles. */
  cycles?: number | null;
  /** Exit status; `null` where a signal or a time-out ended it. */
  exit?: number | null;
  /** CPU seconds that others used meanwhile. */
  foreign_cpu_s?: number | null;
  /** CPUs that the kernel granted, as a list. */
  granted_cpus?: string | null;
  /** Instructions. */
  instructions?: number | null;
  /** Of these, because the program was preempted. */
  involuntary_switches?: number | null;
  /** Page faults with I/O. */
  major_faults?: number | null;
  /** Largest resident set of any process. */
  max_rss_bytes?: number | null;
  /** The compared figure. */
  metric?: MetricReading | null;
  /** Moves of threads between CPUs. */
  migrations?: number | null;
  /** Page faults without I/O. */
  minor_faults?: number | null;
  /** Place within the block, from 0. */
  order?: number | null;
  /** Part of the experiment. */
  phase?: Phase | null;
  /** Signal that ended it. */
  signal?: number | null;
  /** CPU seconds that the hypervisor gave to others meanwhile. */
  steal_s?: number | null;
  /** CPU time in the kernel, seconds. */
  sys_s?: number | null;
  /** Largest number of threads seen at once. */
  threads?: number | null;
  /** Times a quota stopped it. */
  throttled?: number | null;
  /** Was it killed for taking too long? */
  timed_out?: boolean | null;
  /** CPU time in user mode, seconds. */
  user_s?: number | null;
  /** Wall-clock time, seconds. */
  wall_s?: number | null;
}

/** What made samples. */
export type SampleEvent = "cycles" | "cpu-clock" | "proc" | (string & {});

/** A chip, or this machine. */
export interface ScanChip {
  /** Binaries of this architecture run on it. */
  arch?: CodeArch | null;
  /** Its id, or `here`. */
  id?: string | null;
  /** One hint, ns. */
  pause_ns?: number | null;
  /** Where that is from. */
  source?: string | null;
}

/** A file that was read. */
export interface ScannedBinary {
  /** Its architecture. */
  arch?: CodeArch | null;
  /** Its build id. */
  build_id?: string | null;
  /** Bytes of code. */
  code_bytes?: number | null;
  /** Functions that only hint and return. */
  hint_functions?: number | null;
  /** Spin-wait hints in it. */
  hints?: number | null;
  /** Hints in neither a loop nor such a function. */
  hints_outside_loops?: number | null;
  /** Its path as given. */
  path?: string | null;
}

/** A loop with hints. */
export interface ScannedLoop {
  /** Address of its first instruction in the file, in hexadecimal digits. */
  address?: string | null;
  /** Algorithms that it may be, surest first. */
  algorithms?: MatchedAlgorithm[] | null;
  /** The file, as an index into `binaries`. */
  binary?: number | null;
  /** Does it fail the limit? `null` where none was asked for. */
  fails?: boolean | null;
  /** The function that holds it; `null` where the file does not name it. */
  function?: string | null;
  /** What says how long it is blind: `code`, or the id of the algorithm that it is known as; `null` where nothing does. */
  gap_from?: string | null;
  /** Hints between two looks; `null` where that depends on what the code does not say. */
  gap_hints?: number | null;
  /** That as time on each chip that its binary runs on. */
  gaps?: GapOnChip[] | null;
  /** Hints of one turn. */
  hints_per_turn?: number | null;
  /** What it does. */
  kind?: SpinKind | null;
  /** Reads of memory that others may write, in one turn. */
  looks_per_turn?: number | null;
  /** Bytes from the function's beginning. */
  offset?: number | null;
  /** Of a blind delay, the loop around it that looks. */
  outer?: OuterLoop | null;
}

/** Costs of the scheduler. */
export interface SchedulingRecord {
  /** Switch from one thread to another on one CPU, ns. */
  context_switch_ns?: Median | null;
  /** From the wake-up on one CPU until the woken thread runs on another, ns. */
  futex_wake_ns?: Median | null;
}

/** Kinds of answer. */
export type SearchAnswer = "best" | "leave_alone" | "does_not_matter" | "undecided";

/** A candidate. */
export interface SearchArm {
  /** Cores used. */
  cores?: number | null;
  /** CPUs used. */
  cpu_count?: number | null;
  /** CPUs asked for, as a list. */
  cpus?: string | null;
  /** What the model sees of it, in the order of `SearchModelRecord::features`. */
  features?: number[] | null;
  /** Why its runs do not count, where they do not. */
  invalid?: string | null;
  /** Last-level caches used. */
  llcs?: number | null;
  /** Its name as `--place` takes it, with ` @ N threads` where several numbers are searched; unique. */
  name?: string | null;
  /** NUMA nodes used. */
  numa_nodes?: number | null;
  /** Packages used. */
  packages?: number | null;
  /** The same for equal placements on machines of equal trees; `null` of `os-default`. */
  place_id?: string | null;
  /** The placement alone. */
  placement?: string | null;
  /** Was it made by moving one thread of another arm? */
  refined_from?: string | null;
  /** Threads; `null` of `os-default` where the program decides. */
  threads?: number | null;
}

/** The model that predicts arms. */
export interface SearchModelRecord {
  /** Standard deviation of ln(cost) that blocks share. */
  block_sd?: number | null;
  /** Standard deviation over placements of what features explain. */
  explained_sd?: number | null;
  /** What the program is sensitive to: effects on ln(cost) of one unit of a feature. */
  features?: FeatureRecord[] | null;
  /** Factor by which variances were widened because first runs of arms missed their predictions; 1 where they did not. */
  inflation?: number | null;
  /** What predictions were worth. */
  judgement?: ModelJudgement | null;
  /** Standard deviation of ln(cost) from run to run. */
  noise_sd?: number | null;
  /** Median error of predictions made before an arm's first run, as a share; `null` with fewer than three. */
  prediction_error?: number | null;
  /** Standard deviation of what they do not, placement by placement. */
  unexplained_sd?: number | null;
}

/** How a search was planned. */
export interface SearchPlanRecord {
  /** Does any exit status count as success? */
  any_status?: boolean | null;
  /** Time for everything, s. */
  budget_s?: number | null;
  /** Most pairs of the confirmation. */
  confirmation_pairs?: number | null;
  /** Threads of `os-default` as a run before the search showed them; `null` where they were set. */
  counted_threads?: number | null;
  /** Threads of `os-default` where that was set; `null`: as the program does. */
  default_threads?: number | null;
  /** Probability that may be left that another is better by three times `within`; the expected loss may be `within`. */
  error?: number | null;
  /** How much worse the least resource may be. */
  least_within?: number | null;
  /** Most runs of profiling, search and refinement. */
  max_runs?: number | null;
  /** What became of the command's output: `discard`, `keep`, `inherit`, or the folder that got it. */
  output?: string | null;
  /** Is the number of threads set by the environment of each run? */
  sets_threads?: boolean | null;
  /** Numbers of threads that were searched. */
  threads?: number[] | null;
  /** Runs of `os-default` thrown away at the start. */
  warmup?: number | null;
  /** Indifference zone: a placement that is better by less is not missed. Where runs vary much the zone follows their noise, see `SearchRecord::zone`. */
  within?: number | null;
}

/** One run of a search. */
export interface SearchRun {
  /** Number of its arm in `SearchRecord::arms`. */
  arm?: number | null;
  /** Seconds since the experiment began. */
  at_s?: number | null;
  /** Number of the block within its phase, from 0. */
  block?: number | null;
  /** Number of runs that make this block whole. */
  block_runs?: number | null;
  /** Context switches, both kinds. */
  context_switches?: number | null;
  /** What became of threads that were bound; absent where none were. */
  coverage?: CoverageRecord | null;
  /** Core cycles. */
  cycles?: number | null;
  /** Exit status; `null` where a signal or a time-out ended it. */
  exit?: number | null;
  /** CPU seconds that others used meanwhile. */
  foreign_cpu_s?: number | null;
  /** CPUs that the kernel granted, as a list. */
  granted_cpus?: string | null;
  /** Instructions. */
  instructions?: number | null;
  /** Of these, because the program was preempted. */
  involuntary_switches?: number | null;
  /** Page faults with I/O. */
  major_faults?: number | null;
  /** Largest resident set of any process. */
  max_rss_bytes?: number | null;
  /** The compared figure. */
  metric?: MetricReading | null;
  /** Moves of threads between CPUs. */
  migrations?: number | null;
  /** Page faults without I/O. */
  minor_faults?: number | null;
  /** Place within the block, from 0. */
  order?: number | null;
  /** Part of the experiment. */
  phase?: Phase | null;
  /** Signal that ended it. */
  signal?: number | null;
  /** CPU seconds that the hypervisor gave to others meanwhile. */
  steal_s?: number | null;
  /** What for. */
  step?: SearchStep | null;
  /** CPU time in the kernel, seconds. */
  sys_s?: number | null;
  /** Largest number of threads seen at once. */
  threads?: number | null;
  /** Times a quota stopped it. */
  throttled?: number | null;
  /** Was it killed for taking too long? */
  timed_out?: boolean | null;
  /** CPU time in user mode, seconds. */
  user_s?: number | null;
  /** Wall-clock time, seconds. */
  wall_s?: number | null;
}

/** What a run of a search is for. */
export type SearchStep = "warmup" | "profiling" | "search" | "refinement" | "confirmation" | "other_cpus" | "least";

/** The result of a search. */
export interface SearchVerdict {
  /** What to do, or what is missing. */
  advice?: string | null;
  /** What else was found, as sentences. */
  beside?: string[] | null;
  /** Commands that run the best arm; none where that is `os-default`. */
  commands?: CommandRecord[] | null;
  /** What it is conditional on. */
  condition?: string | null;
  /** The figure that says most; `null` without a confirmation. */
  headline?: HeadlineRecord | null;
  /** Which. */
  kind?: SearchAnswer | null;
  /** Why the best arm has no commands although it could be run; `advice` says it in words. `null` otherwise, and in old records. */
  not_recommended?: NotRecommended | null;
  /** In words. */
  sentence?: string | null;
}

/** In which profiles a function was seen. */
export type SeenIn = "came" | "gone" | "both" | (string & {});

/** Whose threads were placed while they ran. */
export interface ServiceRecord {
  /** The cgroup, where it was named by one or by a unit. */
  cgroup?: string | null;
  /** Its command line. */
  command?: string[] | null;
  /** Where its figure came from: a command or an address; `null`: not measured. */
  metric_source?: string | null;
  /** The name of that process. */
  name?: string | null;
  /** Its process, of a cgroup the first one; `null` where it had ended. */
  pid?: number | null;
  /** How long each placement was measured at a time, seconds. */
  sample_s?: number | null;
  /** Time thrown away after each change of placement, seconds. */
  settle_s?: number | null;
  /** The systemd unit, where it was named by one. */
  unit?: string | null;
}

/** How much a finding matters to what was asked. */
export type Severity = "note" | "warning" | "problem";

/** An even placement and what of the machine it uses. */
export interface ShapeRecord {
  /** Cores used. */
  cores?: number | null;
  /** CPUs used. */
  cpu_count?: number | null;
  /** CPUs that lie so, as a list. */
  cpus?: string | null;
  /** The same for equal placements on machines of equal trees. */
  id?: string | null;
  /** Last-level caches used; 0 where caches are not reported. */
  llcs?: number | null;
  /** Its name, as `--place` takes it. */
  name?: string | null;
  /** NUMA nodes used. */
  numa_nodes?: number | null;
  /** Packages used. */
  packages?: number | null;
}

/** Who caused avoidable SMT sharing, seconds of CPU time. */
export interface SharingCauses {
  /** The idle core was forbidden by the threads' mask. */
  mask_s?: number | null;
  /** The sibling ran a thread of another program. */
  other_processes_s?: number | null;
  /** The idle core was in the threads' mask. */
  scheduler_s?: number | null;
}

/** A file that was not read. */
export interface SkippedFile {
  /** Its path as given. */
  path?: string | null;
  /** Why. */
  reason?: string | null;
}

/** How a slice ended. */
export type SliceEnd = "blocked" | "preempted" | "ended" | "unreported" | (string & {});

/** A thread on a CPU from one switch to the next. */
export interface SliceRecord {
  /** The CPU. */
  cpu?: number | null;
  /** How it ended. */
  end?: SliceEnd | null;
  /** Its length, seconds. */
  length_s?: number | null;
  /** Its beginning, seconds since the trace's first moment. */
  start_s?: number | null;
  /** The thread. */
  thread?: number | null;
}

/** What is known of SMT on the machine. */
export interface SmtRecord {
  /** What follows; empty where nothing does. */
  advice?: string | null;
  /** The same as a sentence, with its reason. */
  sentence?: string | null;
  /** `reported`; `measured` (the report has none, or others); `absent`; `unstable` (siblings come and go). */
  state?: SmtState | null;
}

/** Time on CPUs whose SMT sibling was busy. */
export interface SmtSharingRecord {
  /** Who caused that part. */
  by?: SharingCauses | null;
  /** Why nothing is reported, or how far it can be trusted. */
  note?: string | null;
  /** The same as a share of their CPU time, per cent. */
  percent?: number | null;
  /** The part of it during which as many cores idled entirely, seconds. */
  seconds?: number | null;
  /** The same as a share of their CPU time, per cent. */
  shared_percent?: number | null;
  /** CPU time of the traced threads beside a busy sibling, seconds; `null` where cores have one CPU or the source does not report it. */
  shared_s?: number | null;
}

/** Are there SMT siblings? */
export type SmtState = "reported" | "measured" | "absent" | "unstable";

/** How many placements there are of this many threads, one CPU each. */
export interface SpaceRecord {
  /** Placements that differ by more than the exchange of equal units, as a decimal number: it may have dozens of digits. */
  placements?: string | null;
  /** Those that are spread evenly: the search's candidates. */
  shapes?: number | null;
  /** Threads. */
  threads?: number | null;
}

/** A stack above a loop. */
export interface SpinCaller {
  /** CPU time, s. */
  cpu_s?: number | null;
  /** Functions, innermost first. */
  functions?: string[] | null;
}

/** What is known of an algorithm. */
export type SpinEvidence = "read" | "excerpt" | (string & {});

/** What a loop does. */
export type SpinKind = "polling" | "blind_delay" | "bare_load" | "yielding" | "work" | (string & {});

/** A known algorithm that fits. */
export interface SpinMatch {
  /** Its id. */
  algorithm?: string | null;
  /** Its name. */
  name?: string | null;
  /** How sure that is. */
  strength?: MatchStrength | null;
  /** How to change it; empty where nothing is known. */
  tunables?: string[] | null;
  /** Why, as a sentence. */
  why?: string | null;
}

/** A loop that spins. */
export interface SpinPlace {
  /** Address of the loop: in the file where it is of one, else in the process. */
  address?: number | null;
  /** Known algorithms that it may be, the likeliest first. */
  algorithms?: SpinMatch[] | null;
  /** Who waits: the commonest stacks, innermost first, with CPU seconds. */
  callers?: SpinCaller[] | null;
  /** The loop, disassembled. */
  code?: string[] | null;
  /** Constants in and before the loop. */
  constants?: number[] | null;
  /** CPU time, s. */
  cpu_s?: number | null;
  /** Function, where it has a name. */
  function?: string | null;
  /** Hints between two looks, where the code says it. */
  gap_hints?: number | null;
  /** Neighbouring samples that it rests on. */
  hint_ns_pairs?: number | null;
  /** What one hint took, ns, from counters in registers between neighbouring samples. */
  hint_ns_seen?: number | null;
  /** Hints of one iteration. */
  hints?: number | null;
  /** How it spins. */
  kind?: SpinKind | null;
  /** File it is from; `null` for code made at run time. */
  module?: string | null;
  /** Samples. */
  samples?: number | null;
  /** Of all CPU time, 0 to 1. */
  share?: number | null;
  /** Threads that were seen there. */
  threads?: number | null;
}

/** CPU time by what it went into, s. */
export interface SpinShares {
  /** Loops that look without a hint. */
  bare_load_s?: number | null;
  /** Loops that hint without looking. */
  blind_delay_s?: number | null;
  /** Loops that look and hint. */
  polling_s?: number | null;
  /** Everything else. */
  work_s?: number | null;
  /** Calls of `sched_yield`, the kernel's work for them included. */
  yielding_s?: number | null;
}

/** A thread. */
export interface SpinThread {
  /** CPU time by samples, with `proc` by the kernel's count, s. */
  cpu_s?: number | null;
  /** Its name. */
  name?: string | null;
  /** Its process. */
  pid?: number | null;
  /** Of that in spinning, s. */
  spin_s?: number | null;
  /** Its number. */
  tid?: number | null;
}

/** What an algorithm counts. */
export type SpinUnit = "pause" | "graded" | "normalised" | "time" | "load" | "yield" | (string & {});

/** A typical ratio in two parts of the blocks. */
export interface SplitRecord {
  /** Under the lightest third of the load; after the same predecessor; in the first third. */
  first?: number | null;
  /** Under the heaviest third; after different ones; in the last third. */
  second?: number | null;
}

/** A hot instruction. */
export interface SpotRecord {
  /** Its address, as the file has it. */
  address?: number | null;
  /** Its function. */
  function?: string | null;
  /** `user` or `kernel`. */
  kind?: FunctionKind | null;
  /** The code around it; empty where its bytes could not be read. */
  lines?: LineRecord[] | null;
  /** Path of its module; `null` where nobody knows. */
  module?: string | null;
  /** Bytes from the function's beginning. */
  offset?: number | null;
  /** Time seen at it. */
  own?: AmountRecord | null;
  /** Time seen at all lines. */
  shown?: AmountRecord | null;
  /** `file:line`. */
  source?: string | null;
}

/** Spread of an arm's runs in the metric's unit. */
export interface Spread {
  /** Standard deviation over mean. */
  cv?: number | null;
  /** Interquartile range. */
  iqr?: number | null;
  /** Largest. */
  max?: number | null;
  /** Arithmetic mean. */
  mean?: number | null;
  /** Smallest. */
  min?: number | null;
  /** Standard deviation. */
  sd?: number | null;
}

/** How callers were found. */
export type StackMethod = "auto" | "fp" | "dwarf" | "none" | (string & {});

/** How complete stacks are. */
export interface StacksRecord {
  /** Time in stacks that end before their outermost function: they stand below `[broken]`. By frame pointers at least this much. */
  broken?: AmountRecord | null;
  /** How callers were found. */
  by?: StackMethod | null;
  /** Frames of the program in a stack, on average. */
  mean_frames?: number | null;
}

/** How a step ended. */
export type StepState = "done" | "failed" | "missing";

/** Why a comparison ended. */
export type Stopped = "precision" | "budget" | "runs" | "interrupted" | "failed";

/** Name and circumstances of a measurement. */
export interface SurveyRecord {
  /** The kernel's name for this boot; `null` where unknown. What was measured holds for one boot at most. */
  boot_id?: string | null;
  /** Date, time and a random part: names the record in the store. */
  id?: string | null;
  /** `local`, or the simulated machine. */
  machine_spec?: string | null;
  /** Seed of the pairs that were chosen at random. */
  seed?: number | null;
  /** When it began, RFC 3339 in UTC. */
  started?: string | null;
}

/** A CPU that a thread ran on. */
export interface ThreadCpu {
  /** Which. */
  cpu?: number | null;
  /** For how long, seconds. */
  cpu_s?: number | null;
}

/** The placements of this many threads, one CPU each. */
export interface ThreadPlacements {
  /** Placements that differ by more than the exchange of equal units, as a decimal number: it may have dozens of digits. */
  placements?: string | null;
  /** Those that are spread evenly, fewest units first. */
  shapes?: ShapeRecord[] | null;
  /** Threads. */
  threads?: number | null;
}

/** A thread. */
export interface ThreadRecord {
  /** The CPUs it was last known to be allowed. */
  allowed?: string | null;
  /** Time on CPUs, seconds. */
  cpu_s?: number | null;
  /** CPUs that it ran on with the time there, the longest first. */
  cpus?: ThreadCpu[] | null;
  /** Moves between CPUs. */
  migrations?: MigrationCounts | null;
  /** Its name. */
  name?: string | null;
  /** Of those, because it was preempted. */
  preemptions?: number | null;
  /** Its process. */
  process?: number | null;
  /** CPU time beside a busy sibling, seconds. */
  shared_s?: number | null;
  /** Times it left its CPU. */
  switches?: number | null;
  /** Its number. */
  thread?: number | null;
  /** It ended before the kernel could be asked: `wait_s` was more. */
  wait_is_lower_bound?: boolean | null;
  /** Time queued, seconds. */
  wait_s?: number | null;
}

/** What a thread does. */
export type ThreadState = "running" | "queued" | "runnable" | "waiting" | "ended" | (string & {});

/** What a cgroup's quota on CPU time did. */
export interface ThrottledRecord {
  /** Periods of the quota in which something ran. */
  periods?: number | null;
  /** Time of CPUs on which threads were held back, all together, seconds. */
  seconds?: number | null;
  /** Of those in which it was used up. */
  times?: number | null;
}

/** A tier on this machine. */
export interface TierRecord {
  /** Was it available? */
  available?: boolean | null;
  /** See `cost_low_ns`. */
  cost_high_ns?: number | null;
  /** Interval of that. */
  cost_low_ns?: number | null;
  /** CPU time that a switch of a traced thread takes more, ns; `null` where it was not measured. */
  cost_ns_per_switch?: number | null;
  /** Why not. */
  reason?: string | null;
  /** The command that would permit it. */
  remedy?: string | null;
  /** Its name. */
  tier?: TraceTier | null;
}

/** Who ran where and when: every slice, or sums over equal spans of time. */
export interface TimelineRecord {
  /** Slices packed at most; a still longer trace has spans only. */
  most_packed?: number | null;
  /** Slices kept as objects at most. */
  most_slices?: number | null;
  /** Every slice of traced threads, packed; `null` where `slices` has them, and where there were more than `most_packed`. */
  packed?: PackedSlicesRecord | null;
  /** When cores shared needlessly; `null` where the source does not report it. */
  sharing?: PackedSharingRecord | null;
  /** Every slice of traced threads; `null` where there were more. */
  slices?: SliceRecord[] | null;
  /** Length of a span, seconds. */
  span_s?: number | null;
  /** Spans of each CPU. */
  spans?: CpuSpans[] | null;
  /** The longest waits; `null` where the source does not report it. */
  waits?: PackedWaitsRecord | null;
}

/** An algorithm that would wait too long. */
export interface TooLongRecord {
  /** Its id. */
  algorithm?: string | null;
  /** Its longest time without a look, ms. */
  blind_gap_ms?: number | null;
  /** That over the limit. */
  blind_gap_ratio?: number | null;
  /** All that as a sentence. */
  sentence?: string | null;
  /** Its longest wait, ms; `null` where it never ends. */
  total_ms?: number | null;
  /** That over the limit. */
  total_ratio?: number | null;
}

/** A CPU. */
export interface TopCpu {
  /** The thread that used most of it in the interval. */
  busiest?: Busiest | null;
  /** Share of the interval that it was busy, per cent. */
  busy_percent?: number | null;
  /** Its core, as in the topology's record. */
  core?: number | null;
  /** Its number. */
  cpu?: number | null;
  /** Its last-level cache. */
  llc?: number | null;
  /** Its NUMA node. */
  numa_node?: number | null;
  /** Share of the threads that are meant, per cent. */
  own_percent?: number | null;
  /** Its package. */
  package?: number | null;
  /** What it does; `null` where that is not known. */
  state?: CpuState | null;
  /** Switches per second. */
  switches_per_s?: number | null;
  /** The thread on it at this moment. */
  thread?: number | null;
}

/** Cores with several busy CPUs. */
export interface TopSharing {
  /** At each moment the smaller of both, on average. */
  avoidable?: number | null;
  /** Cores in all. */
  cores?: number | null;
  /** Cores that idled entirely, on average. */
  idle?: number | null;
  /** Cores that idle entirely at this moment. */
  idle_now?: number | null;
  /** `shared` and `idle` are at least this much, from busy times of CPUs. */
  is_lower_bound?: boolean | null;
  /** Cores shared, on average over the interval. */
  shared?: number | null;
  /** Cores with two or more busy CPUs at this moment. */
  shared_now?: number | null;
  /** CPUs of which nothing is known. */
  unknown_cpus?: number | null;
}

/** A thread. */
export interface TopThread {
  /** CPUs that it may use, as a list. */
  allowed?: string | null;
  /** The CPU it is on, or was on last. */
  cpu?: number | null;
  /** Share of the interval on CPUs, per cent. */
  cpu_percent?: number | null;
  /** Moves between CPUs per second. */
  migrations_per_s?: number | null;
  /** Its name. */
  name?: string | null;
  /** Its scheduling policy: `other`, `batch`, `idle`, `fifo`, `rr`, `deadline`, `ext`. */
  policy?: string | null;
  /** Its process. */
  process?: number | null;
  /** What it does; `null` where that is not known. */
  state?: ThreadState | null;
  /** Times it left its CPU, per second. */
  switches_per_s?: number | null;
  /** Its number. */
  thread?: number | null;
  /** CPUs that it used in the interval, by number. */
  used?: UsedCpu[] | null;
  /** Share of the interval in run queues, per cent. */
  wait_percent?: number | null;
}

/** Ratios of the mean and of the 90th percentile. */
export interface TotalsRecord {
  /** The first as a change of the metric, in words. */
  mean?: string | null;
  /** Mean of the arm's cost over that of the baseline. */
  mean_ratio?: number | null;
  /** The second, likewise. */
  p90?: string | null;
  /** 90th percentile over that of the baseline. */
  p90_ratio?: number | null;
}

/** What tracing cost. */
export interface TraceCost {
  /** CPU time that a switch took more, ns, measured on this machine before the trace. */
  ns_per_switch?: number | null;
  /** CPU time that pinwise used for collecting, seconds. */
  own_cpu_s?: number | null;
  /** An estimate: that times the switches, over the CPU time of the traced threads, per cent. */
  percent_of_cpu?: number | null;
}

/** What a trace is about. */
export type TraceSource = {
  /** Its arguments. */
  command?: string[] | null;
  /** The CPUs of that placement. */
  cpus?: string | null;
  kind?: "command" | null;
  /** Where it was asked to run. */
  placement?: string | null;
} | {
  kind?: "process" | null;
  /** Its name. */
  name?: string | null;
  /** Its id. */
  pid?: number | null;
} | {
  kind?: "machine" | null;
} | {
  kind?: "import" | null;
  /** Its path as given. */
  path?: string | null;
  /** The process asked for; `null`: all of it. */
  pid?: number | null;
};

/** How a trace was made. */
export type TraceTier = "proc" | "switch" | "cpu-wide" | "tracepoint" | "bpf" | "perf.data" | "ftrace" | "simulated" | (string & {});

/** Counts and sums over the threads that the trace is about, unless it says otherwise. */
export interface TraceTotals {
  /** Switches of all CPUs, whoever ran. */
  all_switches?: number | null;
  /** `cpu_s` is an upper bound: more than the kernel counted for the command, whose own account leaves out what a hypervisor took from the CPU meanwhile. */
  cpu_is_upper_bound?: boolean | null;
  /** Time on CPUs, seconds. */
  cpu_s?: number | null;
  /** Events that the figures rest on. */
  events?: number | null;
  /** CPU time of all other threads, seconds. */
  foreign_cpu_s?: number | null;
  /** Time that CPUs idled, all together, seconds. */
  idle_s?: number | null;
  /** Moves between CPUs by the outermost boundary that was crossed. */
  migrations?: MigrationCounts | null;
  /** Of those, because it was preempted. */
  preemptions?: number | null;
  /** Processes seen. */
  processes?: number | null;
  /** Times a thread left its CPU. */
  switches?: number | null;
  /** Threads seen. */
  threads?: number | null;
  /** Times a thread became runnable. */
  wakeups?: number | null;
}

/** The truth of a simulated machine. */
export interface TruthRecord {
  /** The arm that is truly best. */
  best?: string | null;
  /** Its cost. */
  cost?: number | null;
  /** Share of true costs, over that of the bound arm with most runs, inside their 90 % intervals. */
  coverage?: number | null;
  /** `os-default`'s cost over it. */
  default_ratio?: number | null;
  /** Median error of the predictions of arms that were never run, as a share; `null` where all were run. */
  prediction_error?: number | null;
}

/** A setting that changes how long something spins. */
export interface TunableRecord {
  /** Where it is set. */
  how?: string | null;
  /** Its name. */
  name?: string | null;
  /** Its usual value; `null` for none. */
  usual?: string | null;
}

/** How to treat loops whose gap is not known from the code. */
export type UnknownGaps = "pass" | "fail" | (string & {});

/** A CPU that a thread used. */
export interface UsedCpu {
  /** Which. */
  cpu?: number | null;
  /** Share of the interval, per cent. */
  percent?: number | null;
}

/** Kinds of overall verdict. */
export type VerdictKind = "best" | "same" | "leave_alone" | "undecided";

/** The result of a comparison. */
export interface VerdictRecord {
  /** What to do; empty where that is to run one of the commands. */
  advice?: string | null;
  /** What the scheduler did in one traced run each of the arms that the verdict is about, in words; `null` without traces. It stands beside the verdict and proves nothing. */
  beside?: string | null;
  /** Commands that apply it, the plainest first; none where nothing is to be applied. */
  commands?: CommandRecord[] | null;
  /** What it is conditional on. */
  condition?: string | null;
  /** The figure that says most; `null` where none stands out. */
  headline?: HeadlineRecord | null;
  /** Which. */
  kind?: VerdictKind | null;
  /** Why the best arm has no commands although its placement could be applied; `advice` says it in words. `null` otherwise, and in old records. */
  not_recommended?: NotRecommended | null;
  /** In words. */
  sentence?: string | null;
  /** An arm that is as good and repeats better, in words; `null` without one. */
  steadiness?: string | null;
}

/** What waits were added up from. */
export type WaitBasis = "events" | "schedstat" | (string & {});

/** Why threads waited, seconds. */
export interface WaitCauses {
  /** Only CPUs idled that the thread's mask forbids. */
  mask_s?: number | null;
  /** No CPU idled for it; a thread of another program ran where it was queued. */
  other_processes_s?: number | null;
  /** No CPU idled for it; a thread of the same program ran where it was queued. */
  own_threads_s?: number | null;
  /** Another CPU that the thread may use idled: the scheduler left it queued. A CPU idles for one waiting thread at a time, the one that has waited longest. */
  scheduler_s?: number | null;
  /** The CPU it was queued on idled and had yet to start: wake-up latency, in a virtual machine also the hypervisor. */
  starting_s?: number | null;
  /** A quota on CPU time was used up. */
  throttled_s?: number | null;
}

/** How a wait ends. */
export type WaitEnd = "parks" | "yields" | "never" | (string & {});

/** Time in run queues. */
export interface WaitRecord {
  /** After a preemption. */
  after_preemption_s?: number | null;
  /** After being woken. */
  after_wakeup_s?: number | null;
  /** What they were added up from. */
  basis?: WaitBasis | null;
  /** Why they waited; sums to `total_s` where events show it. */
  because?: WaitCauses | null;
  /** Waits that ended. */
  count?: number | null;
  /** `total_s` is an upper bound: waits are so short that the time from the kernel's own moments to those of events may be more than 3 % of them, or switches are missing, so that threads which ran may seem queued. */
  is_upper_bound?: boolean | null;
  /** The longest. */
  longest_s?: number | null;
  /** Half of the waits were at most this long; accurate to 4 %. */
  p50_s?: number | null;
  /** 99 of 100 were at most this long. */
  p99_s?: number | null;
  /** All of it, seconds. */
  total_s?: number | null;
}

/** The work that times are divided by. */
export interface WorkRecord {
  /** How many were done. */
  count?: number | null;
  /** The metric that the program's figure was read with. */
  metric?: string | null;
  /** `run`, `second`, or what the user calls it. */
  unit?: string | null;
}

/** What a command is and how it was run. */
export interface WorkloadRecord {
  /** Run after every run. */
  cleanup?: string | null;
  /** Added environment. */
  environment?: [string, string][] | null;
  /** Regular expression that the output had to hold. */
  expect?: string | null;
  /** File on standard input. */
  input?: string | null;
  /** Run before every run. */
  prepare?: string | null;
  /** Hash of the command's file (FNV-1a, 64 bits, hexadecimal), which changes where the program was built anew; `null` where it is unknown, as on a simulated machine. */
  program?: string | null;
  /** The recipe it was made from. */
  recipe?: string | null;
  /** Time-out, seconds. */
  timeout_s?: number | null;
  /** Run after every run that succeeded: its failure makes the run fail. */
  verify?: string | null;
}
