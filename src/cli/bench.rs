//! `bench`: built-in workloads over threads and placements.
//!
//! Arguments become trials; every trial is a comparison that is run, stored and shown like any
//! other.

use std::time::Duration;

use anyhow::{Context, bail};

use super::args::{BenchArgs, Global, Suite as SuiteChoice};
use super::compare::run_and_store;
use super::kernel::{find_kernel, find_kernel_program, parse_isas};
use super::machine::open_machine;
use super::maps::load_newest_map;
use super::opening::{check_store, open_store};
use super::outputs::check_outputs;
use super::terminal::Terminal;
use super::{Exit, export, plan};
use pinwise_kernels::work::{Isa, Kernel};
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::{CommandRunner, Host};
use pinwise_placement::Placement;
use pinwise_record::{Bench, Comparison, Stopped};
use pinwise_study::bench::{
    self, BenchPlan, BenchRequest, Conductor, MachineFacts, Suite, cache_fit, smt,
};
use pinwise_study::compare as comparing;
use pinwise_topology::Topology;

/// Without `--budget` there is time for this many blocks of every comparison, but at least the
/// default budget and at most this many seconds in total.
const DEFAULT_BLOCKS: f64 = 12.0;
const MAX_DEFAULT_BUDGET_S: f64 = 600.0;
/// Largest number of threads: more is almost certainly a typo.
const MAX_THREADS: usize = 4096;

pub(super) fn run_bench(
    global: &Global,
    args: &BenchArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let seed = plan::choose_seed(&args.effort);
    refuse_exports_of_runs(args)?;
    check_outputs(global, &export::list_result_files(&args.results), &[])?;
    check_store(global)?;
    let is_local = global.machine.is_local();
    let request = parse_arguments(args, is_local)?;
    let mut machine = open_machine(global, seed, CycleCounting::IfCheap)?;
    let (topology, warnings) = machine.topology()?;
    for warning in warnings {
        terminal.note(&warning);
    }
    let plan = make_plan(
        global,
        args,
        &request,
        seed,
        &topology,
        machine.as_ref(),
        terminal,
    )?;
    let mut conductor = StoringConductor {
        global,
        terminal,
        is_stored: true,
    };
    let record = bench::run(&plan, machine.as_mut(), &mut conductor)?;
    if record.kernels.is_empty() && record.stopped == Some(Stopped::Interrupted) {
        terminal.warn("interrupted before the first counted run; nothing was stored");
        return Ok(Exit::Interrupted);
    }
    show(&record, terminal)?;
    export::write_results(&record, &args.results)?;
    Ok(match exit_status(&record) {
        Exit::Done if !conductor.is_stored => Exit::Error,
        other => other,
    })
}

/// Prints a bench, new or stored.
pub(super) fn show(record: &Bench, terminal: &Terminal) -> anyhow::Result<()> {
    terminal.show(record, pinwise_report::render_bench)
}

fn exit_status(record: &Bench) -> Exit {
    let has_failed = record
        .kernels
        .iter()
        .any(|kernel| kernel.cells.iter().any(|cell| cell.invalid.is_some()));
    match record.stopped {
        Some(Stopped::Interrupted) => Exit::Interrupted,
        _ if has_failed => Exit::Error,
        _ => Exit::Done,
    }
}

/// Refuses formats that list runs: a bench has none of its own, only its comparisons have.
fn refuse_exports_of_runs(args: &BenchArgs) -> anyhow::Result<()> {
    let refused = [
        ("--export-markdown", &args.results.export_markdown),
        ("--export-hyperfine", &args.results.export_hyperfine),
    ];
    for (option, path) in refused {
        if path.is_some() {
            bail!(
                "{option}: a bench is many comparisons; export each by its id (pinwise record history), or take --export-json or --export-csv"
            );
        }
    }
    Ok(())
}

fn parse_arguments(args: &BenchArgs, is_local: bool) -> anyhow::Result<BenchRequest> {
    let mut kernels: Vec<&'static Kernel> = Vec::new();
    for name in &args.kernels {
        kernels.push(find_kernel(name)?);
    }
    if kernels.is_empty() && args.suite.is_none() {
        bail!(
            "name kernels (pinwise bench kernel --list), or a suite: --suite smt, memory, caches, scaling or all"
        );
    }
    let suite = args.suite.map(|choice| match choice {
        SuiteChoice::Smt => Suite::Smt,
        SuiteChoice::Memory => Suite::Memory,
        SuiteChoice::Caches => Suite::Caches,
        SuiteChoice::Scaling => Suite::Scaling,
        SuiteChoice::All => Suite::All,
    });
    let chooses_itself = matches!(suite, Some(Suite::Smt | Suite::All));
    if chooses_itself && !(args.places.is_empty() && args.threads.is_none()) {
        let option = if args.threads.is_some() {
            "--threads"
        } else {
            "--place"
        };
        bail!(
            "{option}: the suites smt and all choose threads and placements by the machine's cores; omit it, or name kernels"
        );
    }
    let places: Vec<Placement> = args
        .places
        .iter()
        .map(|name| name.parse().context("--place"))
        .collect::<anyhow::Result<_>>()?;
    let isas = parse_isas(args.isa.as_deref(), is_local)?;
    check_isas(&kernels, &isas)?;
    Ok(BenchRequest {
        kernels,
        suite,
        places,
        threads: match &args.threads {
            Some(text) => parse_thread_counts(text)?,
            None => Vec::new(),
        },
        isas,
        work: args.work.map(|units| units as u64),
    })
}

/// Named kernels must have the requested instruction sets; kernels of a suite that lack them are
/// left out.
fn check_isas(kernels: &[&'static Kernel], isas: &[Isa]) -> anyhow::Result<()> {
    let above_baseline = isas
        .iter()
        .find(|isa| !matches!(isa, Isa::V1 | Isa::Native));
    let requested = if isas.len() > 1 {
        isas.last()
    } else {
        above_baseline
    };
    let lacking = kernels.iter().find(|kernel| !kernel.has_versions);
    match (requested, lacking) {
        (Some(isa), Some(kernel)) => bail!(
            "--isa {isa}: {} is compiled for the baseline only; omit --isa (pinwise bench kernel --list says which kernels have versions)",
            kernel.name
        ),
        _ => Ok(()),
    }
}

/// Reads `1..4` or `1,2,4`; ascending, each number once.
fn parse_thread_counts(text: &str) -> anyhow::Result<Vec<usize>> {
    let bad = || {
        format!(
            "--threads '{text}': write numbers of threads from 1 to {MAX_THREADS}, such as 1..4 or 1,2,4"
        )
    };
    let parse_number = |word: &str| -> anyhow::Result<usize> {
        let number: usize = word.trim().parse().ok().with_context(bad)?;
        if !(1..=MAX_THREADS).contains(&number) {
            bail!("{}", bad());
        }
        Ok(number)
    };
    let mut counts = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((first, last)) => {
                let (first, last) = (parse_number(first)?, parse_number(last)?);
                if first > last {
                    bail!("{}", bad());
                }
                counts.extend(first..=last);
            }
            None => counts.push(parse_number(part)?),
        }
    }
    counts.sort_unstable();
    counts.dedup();
    Ok(counts)
}

fn make_plan(
    global: &Global,
    args: &BenchArgs,
    request: &BenchRequest,
    seed: u64,
    topology: &Topology,
    machine: &dyn Host,
    terminal: &Terminal,
) -> anyhow::Result<BenchPlan> {
    let map = load_newest_map(global, topology, &machine.label());
    let siblings = smt::find_smt(topology, map.as_ref());
    let caches = cache_fit::find_data_caches(topology, map.as_ref());
    let facts = MachineFacts {
        topology,
        smt: &siblings,
        caches: &caches.sizes,
    };
    let (trials, notes) = bench::plan_trials(request, facts).context("--place")?;
    for note in &notes {
        terminal.note(note);
    }
    if trials.is_empty() && request.suite.is_none() {
        bail!(
            "nothing to compare: one thread in one placement is a single result; add --threads, --place or --isa"
        );
    }
    let mut tuning = plan::to_tuning(&args.effort);
    if let (None, Some(budget)) = (args.effort.budget, tuning.budget) {
        let block_s: f64 = trials.iter().map(bench::Trial::block_s).sum();
        let default_budget =
            Duration::from_secs_f64((DEFAULT_BLOCKS * block_s).min(MAX_DEFAULT_BUDGET_S));
        tuning.budget = Some(budget.max(default_budget));
    }
    let (id, started) = plan::new_id_and_start();
    let mut tags = args.results.tags.clone();
    if trials.len() > 1 {
        // The history shows comparisons with this tag below their bench.
        tags.push(format!("bench:{id}"));
    }
    Ok(BenchPlan {
        program: find_kernel_program(!machine.is_simulated())?,
        id,
        started,
        seed,
        suite: args.suite.map(SuiteChoice::name),
        tuning,
        trials,
        smt: siblings.record,
        caches,
        notes,
        tags,
    })
}

/// Runs comparisons on a machine, and saves partial results.
struct StoringConductor<'a> {
    global: &'a Global,
    terminal: &'a Terminal,
    is_stored: bool,
}

impl Conductor for StoringConductor<'_> {
    fn new_id_and_start(&mut self) -> (String, String) {
        plan::new_id_and_start()
    }

    fn compare(
        &mut self,
        plan: &comparing::ComparePlan,
        machine: &mut dyn CommandRunner,
    ) -> anyhow::Result<Comparison> {
        let (record, is_stored) = run_and_store(self.global, plan, machine, self.terminal)?;
        self.is_stored &= is_stored;
        Ok(record)
    }

    fn note(&mut self, sentence: &str) {
        self.terminal.warn(sentence);
    }

    fn keep(&mut self, record: &Bench) {
        let kept = open_store(self.global).and_then(|store| {
            let Some(mut store) = store else {
                return Ok(());
            };
            Ok(store.keep(record)?)
        });
        if let Err(error) = kept {
            // Saving is tried again after every comparison; only the last failure counts.
            let is_last = record.stopped.is_some();
            if is_last {
                self.is_stored = false;
                self.terminal.error(&format!(
                    "{error:#}; the results below are complete, keep them with --format json or --export-json"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::kernel::select_isas;

    #[test]
    fn thread_counts_are_lists_and_ranges() {
        assert_eq!(parse_thread_counts("1..4").unwrap(), [1, 2, 3, 4]);
        assert_eq!(parse_thread_counts("8,1,2,2").unwrap(), [1, 2, 8]);
        assert_eq!(parse_thread_counts("1,3..4").unwrap(), [1, 3, 4]);
        for bad in ["", "0", "0..2", "4..1", "x", "1..", "1,,2", "5000", "-1"] {
            let message = parse_thread_counts(bad).unwrap_err().to_string();
            assert!(message.starts_with("--threads '"), "{message}");
        }
    }

    #[test]
    fn instruction_sets_are_those_of_the_cpu() {
        let here = [Isa::V1, Isa::V2, Isa::Native];
        let select = |text: &str| select_isas(Some(text), &here);
        assert_eq!(select_isas(None, &here).unwrap(), []);
        assert_eq!(select("native,v1").unwrap(), [Isa::V1, Isa::Native]);
        assert_eq!(select("all").unwrap(), here);
        assert_eq!(
            select("v1,v4").unwrap_err().to_string(),
            "--isa v4: this CPU has v1, v2, native only"
        );
        assert!(select("v9").unwrap_err().to_string().starts_with("--isa: "));
        assert!(select("").is_err());
    }
}
