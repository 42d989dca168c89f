//! Conclusions from the figures of all kernels, in sentences, and the scores of groups.
//!
//! A sentence claims only what an interval supports, and names what is undecided; scores are means
//! without an interval.

use pinwise_format::{count, join_words, percent, percent_range, round_bytes, shell, signed_range};
use pinwise_record::{
    Bench, BenchCell, BenchKernel, Estimate, GroupScore, PlacementDifference, Question, SmtState,
};

/// Writes conclusions and scores into the record, replacing earlier ones.
pub(super) fn draw_conclusions(record: &mut Bench) {
    record.scores = score_groups(&record.kernels);
    let least = record.min_effect;
    let mut conclusions = Vec::new();
    conclusions.extend(conclude_smt(record));
    conclusions.extend(sum_up_scaling(record));
    conclusions
        .extend(kernels_with_question(record, Question::Scaling).filter_map(conclude_places));
    conclusions.extend(
        kernels_with_question(record, Question::Scaling).filter_map(|k| conclude_scaling(k, least)),
    );
    conclusions.extend(
        kernels_with_question(record, Question::Builds).filter_map(|k| conclude_builds(k, least)),
    );
    conclusions.extend(kernels_with_question(record, Question::Sizes).filter_map(conclude_sizes));
    record.conclusions = conclusions;
    record.advice = advise(record);
}

/// What to do next: about what was found, about SMT, or with a program of the user's.
fn advise(record: &Bench) -> String {
    let mut findings = record.findings.iter().map(|finding| &finding.advice);
    let found = findings.find(|advice| !advice.is_empty()).cloned();
    found
        .or_else(|| advise_on_smt(&smt_kernels(record), record.min_effect))
        .or_else(|| wants_smt(record).then(|| record.smt.advice.clone()))
        .filter(|advice| !advice.is_empty())
        .unwrap_or_else(|| {
            let mut kernels = record.kernels.iter();
            let widest = kernels.find_map(|one| Some((one, one.placement_difference.as_ref()?)));
            let places = widest.map_or_else(String::new, |(kernel, widest)| {
                let has_default = find_cell(kernel, widest.threads, OS_DEFAULT).is_some();
                let (best, worst) = (widest.best.as_str(), widest.worst.as_str());
                let places = match has_default && best != OS_DEFAULT {
                    true => [OS_DEFAULT, best],
                    false => [best, worst],
                };
                let [first, second] = places.map(shell::word);
                format!("--place {first} --place {second} ")
            });
            format!("Compare placements of your own program: pinwise compare {places}-- PROGRAM")
        })
}

/// The kernels that decide on SMT: those of the whole machine, if there are any.
fn smt_kernels(record: &Bench) -> Vec<&BenchKernel> {
    let kernels = |question| kernels_with_question(record, question).collect::<Vec<_>>();
    match kernels(Question::SmtMachine) {
        machine if machine.is_empty() => kernels(Question::SmtCore),
        machine => machine,
    }
}

fn wants_smt(record: &Bench) -> bool {
    let suite = record.suite.as_deref();
    suite.is_some_and(|suite| suite == "smt" || suite == "all")
}

fn kernels_with_question(record: &Bench, question: Question) -> impl Iterator<Item = &BenchKernel> {
    let kernels = record.kernels.iter();
    kernels.filter(move |kernel| kernel.question == question)
}

/// What the interval of a relative gain says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    Adds,
    Costs,
    Nothing,
    Undecided,
}

fn judge_effect(share: Estimate, min_effect: f64) -> Effect {
    match (share.low, share.high) {
        (Some(low), _) if low > 0.0 => Effect::Adds,
        (_, Some(high)) if high < 0.0 => Effect::Costs,
        (Some(low), Some(high)) if low > -min_effect && high < min_effect => Effect::Nothing,
        _ => Effect::Undecided,
    }
}

/// `18 % (16–20 %)`, without signs.
fn unsigned_share(share: Estimate) -> String {
    let value = percent(share.value.abs());
    match (share.low, share.high) {
        (Some(low), Some(high)) => {
            let ends = (low.abs().min(high.abs()), low.abs().max(high.abs()));
            format!("{value} ({})", percent_range(ends.0, ends.1))
        }
        _ => value,
    }
}

/// A sentence names at most this many kernels with their figures; for more it gives a range, and
/// the table has the figures.
const MAX_NAMED: usize = 4;

/// What SMT adds on one core and on the machine.
fn conclude_smt(record: &Bench) -> Vec<String> {
    let kernels = |question| kernels_with_question(record, question).collect::<Vec<_>>();
    let (core, machine) = (kernels(Question::SmtCore), kernels(Question::SmtMachine));
    if core.is_empty() && machine.is_empty() {
        if !wants_smt(record) || record.smt.state == SmtState::Reported {
            return Vec::new();
        }
        return vec![record.smt.sentence.clone()];
    }
    let mut sentences = Vec::new();
    if record.smt.state == SmtState::Measured {
        sentences.push(format!("{} {}", record.smt.sentence, record.smt.advice));
    }
    sentences.extend(describe_smt("On one core, SMT", &core, record.min_effect));
    sentences.extend(describe_smt(
        "On all cores, SMT",
        &machine,
        record.min_effect,
    ));
    sentences
}

fn kernels_with_effect<'a>(
    kernels: &[&'a BenchKernel],
    wanted: Effect,
    min_effect: f64,
) -> Vec<(&'a str, Estimate)> {
    let name_and_yield =
        |kernel: &&'a BenchKernel| Some((kernel.kernel.as_str(), kernel.smt_yield?));
    let yields = kernels.iter().filter_map(name_and_yield);
    yields
        .filter(|(_, share)| judge_effect(*share, min_effect) == wanted)
        .collect()
}

fn describe_smt(start: &str, kernels: &[&BenchKernel], min_effect: f64) -> Option<String> {
    let with = |wanted| kernels_with_effect(kernels, wanted, min_effect);
    let list = |found: &[(&str, Estimate)], joint: &str| {
        if found.len() > MAX_NAMED {
            let all = if found.len() == kernels.len() {
                "all "
            } else {
                ""
            };
            return format!(
                "{}{joint}{all}{} kernels",
                range_of_sizes(found),
                found.len()
            );
        }
        let parts: Vec<String> = found
            .iter()
            .map(|(name, share)| format!("{}{joint}{name}", unsigned_share(*share)))
            .collect();
        join_words(&parts)
    };
    let plain = |found: &[(&str, Estimate)]| {
        let names: Vec<String> = found.iter().map(|(name, _)| (*name).to_owned()).collect();
        join_words(&names)
    };
    let mut parts = Vec::new();
    let (adds, costs) = (with(Effect::Adds), with(Effect::Costs));
    let (nothing, undecided) = (with(Effect::Nothing), with(Effect::Undecided));
    if !adds.is_empty() {
        parts.push(format!("adds {}", list(&adds, " to ")));
    }
    if !costs.is_empty() {
        parts.push(format!("costs {}", list(&costs, " in ")));
    }
    if !nothing.is_empty() {
        let names = plain(&nothing);
        parts.push(format!(
            "changes {names} by less than {}",
            percent(min_effect)
        ));
    }
    if !undecided.is_empty() {
        parts.push(format!("is undecided for {}", plain(&undecided)));
    }
    (!parts.is_empty()).then(|| format!("{start} {}.", parts.join(", ")))
}

/// `23.6–26.6 %`, of the estimates.
fn range_of_sizes(found: &[(&str, Estimate)]) -> String {
    let sizes = || found.iter().map(|(_, share)| share.value.abs());
    let low = sizes().fold(f64::INFINITY, f64::min);
    percent_range(low, sizes().fold(0.0, f64::max))
}

/// What to do about SMT.
fn advise_on_smt(kernels: &[&BenchKernel], min_effect: f64) -> Option<String> {
    let with = |wanted| kernels_with_effect(kernels, wanted, min_effect);
    let names = |found: &[(&str, Estimate)]| {
        let all: Vec<String> = found.iter().map(|(name, _)| (*name).to_owned()).collect();
        join_words(&all)
    };
    let (adds, costs) = (with(Effect::Adds), with(Effect::Costs));
    let is_all_undecided = with(Effect::Undecided).len() == kernels.len();
    Some(match (adds.is_empty(), costs.is_empty()) {
        _ if kernels.is_empty() => return None,
        _ if is_all_undecided => "Whether SMT pays is undecided: give it a longer --budget.".to_owned(),
        (false, true) => "Leave SMT on.".to_owned(),
        (false, false) => format!(
            "Leave SMT on, unless this machine is dedicated to work like {}: then run one thread per core (--place one-per-core), which needs no change of the machine.",
            names(&costs)
        ),
        (true, false) => {
            "Run one thread per core (--place one-per-core): SMT gained nothing measured here, and programs that need it can still use it.".to_owned()
        }
        (true, true) => "Leave SMT as it is: it made no difference to anything measured.".to_owned(),
    })
}

/// The best cell of each number of threads, by estimate, ascending.
fn list_best_by_threads(kernel: &BenchKernel) -> Vec<(&BenchCell, Estimate)> {
    let mut best: Vec<(&BenchCell, Estimate)> = Vec::new();
    for cell in &kernel.cells {
        let Some(speed_up) = cell.speed_up else {
            continue;
        };
        let mut best_cells = best.iter_mut();
        match best_cells.find(|(other, _)| other.threads == cell.threads) {
            Some((_, most)) if most.value >= speed_up.value => {}
            Some(found) => *found = (cell, speed_up),
            None => best.push((cell, speed_up)),
        }
    }
    best.sort_by_key(|(cell, _)| cell.threads);
    best
}

/// Up to how many threads does adding threads pay? A step pays if its interval lies above the best
/// speed-up so far; it does not if its interval lies below that plus the smallest effect of
/// interest.
fn conclude_scaling(kernel: &BenchKernel, min_effect: f64) -> Option<String> {
    let best = list_best_by_threads(kernel);
    let first = best.first()?;
    let last = best
        .last()
        .filter(|last| last.0.threads != first.0.threads)?;
    let mut pays_to = 0;
    for (index, step) in best.iter().enumerate().skip(1) {
        let reached = best[pays_to].1.value;
        if step.1.low.is_some_and(|low| low > reached) {
            pays_to = index;
        }
    }
    let reached = best[pays_to].1.value * (1.0 + min_effect);
    let mut later = best[pays_to + 1..].iter();
    let undecided = later.find(|step| step.1.high.is_none_or(|high| high >= reached));
    let end = match undecided {
        // Of two numbers of threads there is one step: that the second does more says it.
        None if pays_to + 1 == best.len() && best.len() == 2 => String::new(),
        None if pays_to + 1 == best.len() => "; the last step still pays".to_owned(),
        None => format!("; more than {} do not pay", best[pays_to].0.threads),
        Some(step) => format!("; whether {} pay is undecided", step.0.threads),
    };
    let (cell, speed_up) = if pays_to == 0 { last } else { &best[pays_to] };
    let speed = match (speed_up.low, speed_up.high) {
        (Some(low), Some(high)) => format!("{:.2} ({low:.2}–{high:.2})", speed_up.value),
        _ => format!("{:.2}", speed_up.value),
    };
    let efficiency = cell.efficiency.map_or_else(String::new, |efficiency| {
        format!(", {:.0} % of linear", 100.0 * efficiency)
    });
    let bandwidth = cell.bytes_per_s.map_or_else(String::new, |rate| {
        format!(", {:.1} GB/s", rate.value / 1e9)
    });
    let mut families = kernel.cells.iter().map(|cell| &cell.family);
    let at = match families.any(|family| *family != cell.family) {
        true => format!(" at {}", cell.family),
        false => String::new(),
    };
    Some(format!(
        "{}: {} threads{at} do {speed} times the work of {}{efficiency}{bandwidth}{end}.",
        kernel.kernel, cell.threads, first.0.threads
    ))
}

/// What the most threads do for all kernels, if there are too many to read one after the other.
fn sum_up_scaling(record: &Bench) -> Option<String> {
    let best = kernels_with_question(record, Question::Scaling).filter_map(|kernel| {
        let best = list_best_by_threads(kernel);
        let (first, last) = (best.first()?.0.threads, best.last()?);
        (last.0.threads != first).then_some((kernel, first, last.0.threads, last.1.value))
    });
    let mut best: Vec<_> = best.collect();
    best.sort_by(|a, b| a.3.total_cmp(&b.3));
    let ((least, first, threads, low), (most, .., high)) = best.first().zip(best.last())?;
    let is_same = best.iter().all(|one| (one.1, one.2) == (*first, *threads));
    (is_same && best.len() > MAX_NAMED).then(|| {
        format!(
            "{} kernels: {threads} threads do {low:.2} ({}) to {high:.2} ({}) times the work of {first}.",
            best.len(),
            least.kernel,
            most.kernel
        )
    })
}

/// The number of threads at which the placement matters most, if it certainly matters. The
/// speed-ups' intervals hold together, and so does that of the ratio of any two of them.
pub(super) fn widest_difference(cells: &[BenchCell]) -> Option<PlacementDifference> {
    let mut widest: Option<PlacementDifference> = None;
    for better in cells {
        let same_threads = |cell: &&BenchCell| cell.threads == better.threads;
        for worse in cells.iter().filter(same_threads) {
            let Some(more) = compare_work(better, worse) else {
                continue;
            };
            let is_sure = more.low.is_some_and(|low| low > 0.0);
            if is_sure
                && widest
                    .as_ref()
                    .is_none_or(|most| more.value > most.more.value)
            {
                widest = Some(PlacementDifference {
                    threads: better.threads,
                    best: better.placement.clone(),
                    worst: worse.placement.clone(),
                    more,
                });
            }
        }
    }
    widest
}

/// How much more work a cell does than another, as a share.
fn compare_work(cell: &BenchCell, other: &BenchCell) -> Option<Estimate> {
    let (more, less) = (cell.speed_up?, other.speed_up?);
    Some(Estimate {
        value: more.value / less.value - 1.0,
        low: divide(more.low, less.high).map(|ratio| ratio - 1.0),
        high: divide(more.high, less.low).map(|ratio| ratio - 1.0),
    })
}

fn divide(above: Option<f64>, below: Option<f64>) -> Option<f64> {
    Some(above? / below.filter(|below| *below > 0.0)?)
}

/// What a program gets that nobody places.
const OS_DEFAULT: &str = "os-default";

fn find_cell<'a>(kernel: &'a BenchKernel, threads: usize, place: &str) -> Option<&'a BenchCell> {
    let mut cells = kernel.cells.iter();
    cells.find(|cell| cell.threads == threads && cell.placement == place)
}

/// The placement that does most work, against what the user has today, and against the worst.
fn conclude_places(kernel: &BenchKernel) -> Option<String> {
    let widest = kernel.placement_difference.as_ref()?;
    let (best, worst) = (&widest.best, &widest.worst);
    let more = unsigned_share(widest.more);
    let start = format!("{} with {}", kernel.kernel, count(widest.threads, "thread"));
    let cell = |place: &str| find_cell(kernel, widest.threads, place);
    let against_default = cell(OS_DEFAULT)
        .filter(|_| best != OS_DEFAULT && worst != OS_DEFAULT)
        .and_then(|default| compare_work(cell(best)?, default));
    Some(match against_default {
        None => format!("{start}: {best} does {more} more work than {worst}."),
        Some(gain) if gain.low.is_some_and(|low| low > 0.0) => format!(
            "{start}: {best} does {} more work than {OS_DEFAULT}, {more} more than {worst}.",
            unsigned_share(gain)
        ),
        Some(gain) => format!(
            "{start}: {best} does {more} more work than {worst}; against {OS_DEFAULT} it is undecided ({}).",
            signed_range(
                gain.low.unwrap_or(gain.value),
                gain.high.unwrap_or(gain.value)
            )
        ),
    })
}

/// The gain from newer instruction sets.
fn conclude_builds(kernel: &BenchKernel, min_effect: f64) -> Option<String> {
    let base = kernel.baseline_cell()?;
    let newest = kernel
        .cells
        .iter()
        .rfind(|cell| cell.threads == base.threads && cell.family == base.family)?;
    let gain = newest.speed_up?;
    let share = Estimate {
        value: gain.value - 1.0,
        low: gain.low.map(|low| low - 1.0),
        high: gain.high.map(|high| high - 1.0),
    };
    let name = if newest.isa == "native" {
        "A build for this processor".to_owned()
    } else {
        format!("A build for {}", newest.isa)
    };
    let worth = match judge_effect(share, min_effect) {
        Effect::Adds => format!("gains {} for {}", unsigned_share(share), kernel.kernel),
        Effect::Costs => format!("costs {} {}", kernel.kernel, unsigned_share(share)),
        Effect::Nothing => format!(
            "gains nothing for {}: within ±{}",
            kernel.kernel,
            percent(min_effect)
        ),
        Effect::Undecided => format!("is undecided for {}", kernel.kernel),
    };
    let fit = if kernel.cache_fit.is_empty() {
        String::new()
    } else {
        format!(" It {}.", kernel.cache_fit)
    };
    Some(format!("{name} {worth}, against {}.{fit}", base.isa))
}

/// Load latency over sizes.
fn conclude_sizes(kernel: &BenchKernel) -> Option<String> {
    let parts: Vec<String> = kernel
        .cells
        .iter()
        .filter_map(|cell| {
            let ns = 1e9 * cell.threads as f64 / cell.rate?.value;
            let size = round_bytes(cell.size?);
            Some(format!("{ns:.1} ns in {size}"))
        })
        .collect();
    let noun = kernel.operation.trim_end_matches('s');
    (kernel.operation == "loads" && !parts.is_empty())
        .then(|| format!("{}: a {noun} takes {}.", kernel.kernel, join_words(&parts)))
}

/// Geometric means of speed-ups over the kernels of a group, of cells that all
/// of them have.
fn score_groups(kernels: &[BenchKernel]) -> Vec<GroupScore> {
    let mut keys: Vec<(Question, String)> = Vec::new();
    for kernel in kernels.iter().filter(|k| k.question != Question::Sizes) {
        let key = (kernel.question, kernel.group.clone());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.iter()
        .flat_map(|(question, group)| {
            let members: Vec<&BenchKernel> = kernels
                .iter()
                .filter(|k| k.question == *question && k.group == *group)
                .collect();
            score_group(&members)
        })
        .collect()
}

/// Cells of different kernels correspond if they have the same threads, placement and instruction
/// set.
fn cell_key(cell: &BenchCell) -> (usize, &str, &str) {
    (cell.threads, cell.placement.as_str(), cell.isa.as_str())
}

fn score_group(kernels: &[&BenchKernel]) -> Vec<GroupScore> {
    let Some(first) = kernels.first() else {
        return Vec::new();
    };
    let score = |cell: &BenchCell| {
        let others: Option<Vec<f64>> = kernels
            .iter()
            .map(|kernel| {
                let other = kernel
                    .cells
                    .iter()
                    .find(|one| cell_key(one) == cell_key(cell))?;
                Some(other.speed_up?.value.ln())
            })
            .collect();
        let logs = others?;
        Some(GroupScore {
            group: first.group.clone(),
            question: first.question,
            cell: cell.name.clone(),
            reference: first.baseline.clone(),
            score: (logs.iter().sum::<f64>() / logs.len() as f64).exp(),
            kernels: kernels.iter().map(|k| k.kernel.clone()).collect(),
        })
    };
    let others = first
        .cells
        .iter()
        .filter(|cell| cell.name != first.baseline);
    others.filter_map(score).collect()
}

#[cfg(test)]
mod tests;
