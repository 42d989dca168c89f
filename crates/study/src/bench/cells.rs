//! Plans what a bench runs: the kernels of a suite, what each is compared by (threads, placements,
//! builds, sizes: the *question*), and the cells of each question.
//!
//! One question to one kernel is a *trial*: one randomised comparison whose first cell is the
//! baseline. Nothing is run here; the machine enters only as its topology.

mod sizes;

use super::smt::Smt;
use crate::bench::cache_fit::CacheSize;
use pinwise_format::round_bytes;
use pinwise_kernels::work::{Group, Isa, KERNELS, Kernel};
use pinwise_placement::{Placement, RealiseError, Realised, Wish, merge_equivalent};
use pinwise_record::{Question, SmtState};
use pinwise_topology::{CpuSet, Topology};
use sizes::{cache_level_of, cells_of_sizes, choose_size};

/// A set of kernels with the questions that suit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// What the other CPUs of a core add.
    Smt,
    /// Memory bandwidth and latency over threads.
    Memory,
    /// Bandwidth and latency of caches, level by level.
    Caches,
    /// Speed-up over threads.
    Scaling,
    /// All of these.
    All,
}

/// The user's request.
#[derive(Debug, Clone, Default)]
pub struct BenchRequest {
    /// Kernels by name; empty if a suite is requested.
    pub kernels: Vec<&'static Kernel>,
    /// The suite.
    pub suite: Option<Suite>,
    /// Placements; empty for those that suit each number of threads.
    pub places: Vec<Placement>,
    /// Numbers of threads, ascending; empty for the suite's own.
    pub threads: Vec<usize>,
    /// Instruction sets, oldest first; empty for `native`.
    pub isas: Vec<Isa>,
    /// Units of work of each run; `None` for the default.
    pub work: Option<u64>,
}

/// One way to run a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Threads that share the work.
    pub threads: usize,
    /// The requested placement, before it was cut to the number of threads.
    pub family: String,
    /// The CPUs that the threads run on.
    pub place: Realised,
    /// Other placements of the same CPUs.
    pub same_as: Vec<String>,
    /// Instruction set.
    pub isa: Isa,
    /// Value of `--size`.
    pub size: Option<u64>,
}

/// One question to one kernel.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// The question.
    pub question: Question,
    /// Two cells or more, the baseline first.
    pub cells: Vec<Cell>,
    /// Units of work of each run.
    pub work: u64,
}

/// What is known about the machine.
#[derive(Debug, Clone, Copy)]
pub struct MachineFacts<'a> {
    /// The topology that the system reports.
    pub topology: &'a Topology,
    /// Its SMT siblings.
    pub smt: &'a Smt,
    /// Its caches, innermost first.
    pub caches: &'a [CacheSize],
}

/// Assumed seconds of a unit of work on one core.
const UNIT_S: f64 = 0.01;
/// Assumed seconds to start and prepare a run.
const START_S: f64 = 0.02;

impl Trial {
    /// Expected seconds of a block of all cells if the work is shared well. Trials get time in
    /// this proportion, so that all get equally many blocks.
    #[must_use]
    pub fn block_s(&self) -> f64 {
        let run_s = |cell: &Cell| {
            let running = cell.threads.min(cell.place.cpus.len()).max(1);
            START_S + self.work as f64 * UNIT_S / running as f64
        };
        self.cells.iter().map(run_s).sum()
    }

    /// Name of a cell, unique in the trial: `4 @ spread*4`, with the instruction set and the size
    /// if they differ.
    #[must_use]
    pub fn name(&self, cell: &Cell) -> String {
        let mut name = format!("{} @ {}", cell.threads, cell.place.placement);
        if self.cells.iter().any(|other| other.isa != cell.isa) {
            name = format!("{} {name}", cell.isa);
        }
        if self.cells.iter().any(|other| other.size != cell.size) {
            let bytes = cell.size.or(self.kernel.size.map(|size| size.default));
            name = format!("{} {name}", round_bytes(bytes.unwrap_or_default()));
        }
        name
    }
}

/// All trials, and full sentences about what was left out.
///
/// # Errors
/// [`RealiseError`] if a placement is not possible on this machine.
pub fn plan_trials(
    request: &BenchRequest,
    facts: MachineFacts<'_>,
) -> Result<(Vec<Trial>, Vec<String>), RealiseError> {
    let mut trials = Vec::new();
    let mut notes = Vec::new();
    for suite in split_suites(request) {
        for kernel in kernels_of_suite(request, suite) {
            if request.isas.len() > 1 && !kernel.has_versions {
                notes.push(format!(
                    "{} is compiled for the baseline only and left out.",
                    kernel.name
                ));
                continue;
            }
            trials.extend(plan_trials_of_kernel(kernel, suite, request, facts)?);
        }
    }
    trials.retain(|trial| trial.cells.len() > 1);
    Ok((trials, notes))
}

fn split_suites(request: &BenchRequest) -> Vec<Option<Suite>> {
    match request.suite {
        Some(Suite::All) => [Suite::Smt, Suite::Scaling, Suite::Memory, Suite::Caches]
            .map(Some)
            .to_vec(),
        suite => vec![suite],
    }
}

/// Memory kernels of the suite `smt`, beside those that compute: they show how siblings compete for
/// bandwidth and latency.
const SMT_MEMORY: [&str; 2] = ["triad", "chase"];
/// The kernel that measures latency.
const CHASE: &str = "chase";

fn kernels_of_suite(request: &BenchRequest, suite: Option<Suite>) -> Vec<&'static Kernel> {
    let is_computing = |kernel: &Kernel| matches!(kernel.group, Group::Integer | Group::Float);
    let belongs = |kernel: &Kernel| match suite {
        None => request.kernels.iter().any(|k| k.name == kernel.name),
        Some(Suite::Smt) => is_computing(kernel) || SMT_MEMORY.contains(&kernel.name),
        Some(Suite::Memory) => kernel.group == Group::Memory,
        Some(Suite::Caches) => kernel.group == Group::Cache || kernel.name == CHASE,
        Some(Suite::Scaling) => is_computing(kernel) || kernel.group == Group::Sharing,
        Some(Suite::All) => true,
    };
    KERNELS.iter().filter(|kernel| belongs(kernel)).collect()
}

fn plan_trials_of_kernel(
    kernel: &'static Kernel,
    suite: Option<Suite>,
    request: &BenchRequest,
    facts: MachineFacts<'_>,
) -> Result<Vec<Trial>, RealiseError> {
    let isa = request.isas.first().copied().unwrap_or(Isa::Native);
    let trial = |question: Question, cells: Vec<Cell>| Trial {
        kernel,
        question,
        work: request.work.unwrap_or_else(|| units_of_work(&cells)),
        cells,
    };
    if request.isas.len() > 1 {
        return Ok(vec![trial(
            Question::Builds,
            cells_of_builds(request, facts)?,
        )]);
    }
    let scaling = || -> Result<Trial, RealiseError> {
        let cells = cells_of_scaling(kernel, request, facts, isa)?;
        Ok(trial(Question::Scaling, cells))
    };
    let siblings = || -> Result<Vec<Trial>, RealiseError> {
        let cells_by_question = cells_of_smt(facts, isa)?.into_iter();
        Ok(cells_by_question
            .map(|(question, cells)| trial(question, cells))
            .collect())
    };
    Ok(match suite {
        Some(Suite::Smt) => siblings()?,
        Some(Suite::Caches) if kernel.name == CHASE => {
            vec![trial(
                Question::Sizes,
                cells_of_sizes(kernel, request, facts, isa)?,
            )]
        }
        Some(Suite::Caches) => {
            let mut trial = scaling()?;
            let level = cache_level_of(kernel);
            for cell in &mut trial.cells {
                cell.size = choose_size(kernel, level, cell.threads, facts.caches);
            }
            vec![trial]
        }
        Some(_) => vec![scaling()?],
        None if request.places.is_empty() && request.threads.is_empty() => {
            let mut trials = vec![scaling()?];
            trials.extend(siblings()?);
            trials
        }
        None => vec![scaling()?],
    })
}

/// Units of work: 10 a thread of the cell with most threads, at most about 100 in total, at least 2
/// a thread. A multiple of all thread counts if that costs little, since a static split of the rest
/// would look like bad scaling.
fn units_of_work(cells: &[Cell]) -> u64 {
    let most = cells.iter().map(|cell| cell.threads).max().unwrap_or(1) as u64;
    let least = most * (100 / most).clamp(2, 10);
    let multiple = cells.iter().fold(1u64, |multiple, cell| {
        let threads = cell.threads as u64;
        (multiple / common_divisor(multiple, threads)).saturating_mul(threads)
    });
    if multiple <= 2 * least {
        least.next_multiple_of(multiple)
    } else {
        least
    }
}

const fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

fn new_cell(
    threads: usize,
    wish: Wish,
    isa: Isa,
    topology: &Topology,
) -> Result<Cell, RealiseError> {
    let place = Placement::new(wish).realise(topology)?;
    Ok(Cell {
        threads,
        family: place.placement.to_string(),
        place,
        same_as: Vec::new(),
        isa,
        size: None,
    })
}

type CellsByQuestion = Vec<(Question, Vec<Cell>)>;

/// One CPU of a core against all of them; one CPU of every core against all.
fn cells_of_smt(facts: MachineFacts<'_>, isa: Isa) -> Result<CellsByQuestion, RealiseError> {
    let Some(core) = facts.smt.shared_core() else {
        return Ok(Vec::new());
    };
    let smt_cell = |threads: usize, wish: Wish| new_cell(threads, wish, isa, facts.topology);
    let first = CpuSet::single(core.first().unwrap_or_default());
    let mut cells_by_question = vec![(
        Question::SmtCore,
        vec![
            smt_cell(1, Wish::Cpus(first))?,
            smt_cell(core.len(), Wish::Cpus(core.clone()))?,
        ],
    )];
    let cores = &facts.smt.cores;
    if cores.len() > 1 {
        let one_each = cores.iter().filter_map(CpuSet::first).collect();
        let one_per_core = match facts.smt.record.state {
            SmtState::Reported => Wish::OnePerCore,
            _ => Wish::Cpus(one_each),
        };
        let all = facts.topology.allowed.len();
        let cells = vec![
            smt_cell(cores.len(), one_per_core)?,
            smt_cell(all, Wish::OsDefault)?,
        ];
        cells_by_question.push((Question::SmtMachine, cells));
    }
    Ok(cells_by_question)
}

/// Every instruction set at every number of threads and placement; one thread under the scheduler
/// if nothing else was requested.
fn cells_of_builds(
    request: &BenchRequest,
    facts: MachineFacts<'_>,
) -> Result<Vec<Cell>, RealiseError> {
    let places = if request.places.is_empty() {
        vec![Placement::os_default()]
    } else {
        request.places.clone()
    };
    let numbers = if request.threads.is_empty() {
        vec![1]
    } else {
        request.threads.clone()
    };
    let mut cells = Vec::new();
    for &threads in &numbers {
        for isa in &request.isas {
            cells.extend(cells_of_thread_count(
                threads,
                &places,
                *isa,
                facts.topology,
            )?);
        }
    }
    Ok(cells)
}

/// Every number of threads at every placement.
fn cells_of_scaling(
    kernel: &Kernel,
    request: &BenchRequest,
    facts: MachineFacts<'_>,
    isa: Isa,
) -> Result<Vec<Cell>, RealiseError> {
    let numbers = if request.threads.is_empty() {
        numbers_of_threads(kernel, facts.topology.allowed.len())
    } else {
        request.threads.clone()
    };
    let mut cells = Vec::new();
    for threads in numbers {
        let places = if request.places.is_empty() {
            default_places(threads, facts.topology)
        } else {
            request.places.clone()
        };
        cells.extend(cells_of_thread_count(
            threads,
            &places,
            isa,
            facts.topology,
        )?);
    }
    Ok(cells)
}

/// 1, 2, 4 … and all CPUs. Threads that work in pairs come in even numbers.
fn numbers_of_threads(kernel: &Kernel, cpus: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1usize), |n| n.checked_mul(2));
    let mut numbers: Vec<usize> = powers.take_while(|n| *n < cpus).collect();
    numbers.push(cpus.max(1));
    if kernel.group == Group::Sharing {
        // On one CPU it still takes two threads to share anything.
        numbers.retain(|n| n.is_multiple_of(2));
        numbers.insert(0, 1);
        if numbers.len() == 1 {
            numbers.push(2);
        }
    }
    numbers
}

/// Placements worth comparing if the user names none: one thread is left to the scheduler, several
/// may be near to each other or apart.
fn default_places(threads: usize, topology: &Topology) -> Vec<Placement> {
    let mut places = vec![Placement::os_default()];
    let counts = topology.counts();
    if threads < 2 {
        return places;
    }
    if topology.has_smt() && threads <= counts.cores {
        places.push(Placement::new(Wish::OnePerCore));
    }
    if threads < counts.cpus {
        places.push(Placement::new(Wish::Spread));
        places.push(Placement::new(Wish::Compact));
    }
    places
}

/// One number of threads at every placement. Placements are cut to that many CPUs if that makes
/// sense; those that mean the same CPUs are merged.
fn cells_of_thread_count(
    threads: usize,
    places: &[Placement],
    isa: Isa,
    topology: &Topology,
) -> Result<Vec<Cell>, RealiseError> {
    let mut realised = Vec::new();
    for place in places {
        realised.push(cut_to_threads(place, threads, topology)?);
    }
    let cells = merge_equivalent(realised)
        .into_iter()
        .map(|merged| Cell {
            threads,
            family: name_without_count(&merged.placement.placement),
            place: merged.placement,
            same_as: merged.also_named,
            isa,
            size: None,
        })
        .collect();
    Ok(cells)
}

/// The placement's name without the number of CPUs that [`cut_to_threads`] gave it.
fn name_without_count(placement: &Placement) -> String {
    let text = placement.to_string();
    let count = placement.count.map(|n| format!("*{n}"));
    count.map_or(text.clone(), |count| text.replacen(&count, "", 1))
}

/// The placement with one CPU per thread if it has more; placements that name CPUs, or a number of
/// them, stay as they are.
fn cut_to_threads(
    placement: &Placement,
    threads: usize,
    topology: &Topology,
) -> Result<Realised, RealiseError> {
    let whole = placement.realise(topology)?;
    let may_be_cut = matches!(
        placement.wish,
        Wish::Compact
            | Wish::OnePerCore
            | Wish::OnePerLlc
            | Wish::OnePerNuma
            | Wish::Spread
            | Wish::Balanced
            | Wish::PCores
            | Wish::ECores
            | Wish::Isolated
    );
    if !may_be_cut || placement.count.is_some() || threads >= whole.cpus.len() {
        return Ok(whole);
    }
    let counted = Placement {
        count: Some(threads),
        ..placement.clone()
    };
    counted.realise(topology)
}

#[cfg(test)]
mod tests;
