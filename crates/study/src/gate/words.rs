//! What a gate says, in sentences.

use std::time::Duration;

use super::measured::Measured;
use super::{GatePlan, PlannedBenchmark};
use pinwise_format::{count, duration, percent, percent_range};
use pinwise_record::{
    Direction, EffectRecord, GateBenchmark, GateDecision, GateOutcome, GateRecord, Stopped,
};
use pinwise_stats::regression::Standing;
use pinwise_stats::verdict::{self, ROOM, Setting};

/// Benchmarks that a sentence names.
const NAMED: usize = 3;

/// The sentence on a benchmark that both builds have; notes what withholds its verdict.
pub(super) fn sentence(
    entry: &mut GateBenchmark,
    state: &Measured,
    planned: &PlannedBenchmark,
    plan: &GatePlan,
    names: &[String; 2],
) -> String {
    let name = &entry.name.clone();
    let pairs = count(entry.pairs.len(), "pair");
    let worse = &entry.metric.worse_word;
    if let Some(late) = &entry.timed_out {
        return format!("{name}: {}", late.sentence);
    }
    match &entry.outcome {
        GateOutcome::Failed => format!("{name}: {}.", entry.problem.as_deref().unwrap_or("?")),
        GateOutcome::Slower if entry.is_slower_by_cpu() => format!(
            "{name} needs {} more CPU time; its {} is undecided: {} ({pairs}).",
            effect_range(entry.cpu.as_ref().map(|cpu| &cpu.effect)),
            entry.metric.label,
            change(entry.effect.as_ref())
        ),
        GateOutcome::Slower => format!("{name} is {worse} by {} ({pairs}).", slower_by(entry)),
        GateOutcome::Faster => format!(
            "{name} is {} by {} ({pairs}).",
            entry.metric.better_word,
            effect_range(entry.effect.as_ref())
        ),
        GateOutcome::Passed => format!(
            "{name} is not {worse} by {} or more{}: {} ({}; {pairs}).",
            percent(entry.min_effect),
            likely_text(entry, plan.alpha),
            entry.change,
            entry.interval
        ),
        _ => describe_undecided(entry, state, planned, plan, names),
    }
}

fn describe_undecided(
    entry: &mut GateBenchmark,
    state: &Measured,
    planned: &PlannedBenchmark,
    plan: &GatePlan,
    names: &[String; 2],
) -> String {
    let name = &entry.name.clone();
    let Some(look) = state.look() else {
        let least = state.least_pairs();
        return format!(
            "{name} is undecided: {} of the {least} that a verdict needs.",
            count(entry.pairs.len(), "pair")
        );
    };
    let contrast = look.alone.as_ref().unwrap_or(&look.shared);
    let figure = planned.metric.figure_name();
    let setting = Setting {
        names,
        baseline: 0,
        delta: entry.min_effect.ln_1p(),
        words: planned.metric.words(),
        is_rate: entry.metric.better == Direction::Higher,
        judge: planned.question(plan).judge,
        figure: figure.as_deref(),
        resolution: look.resolution,
        least: state.least_pairs(),
        spent: Duration::ZERO,
    };
    let caveat = verdict::caveat(contrast, &setting);
    entry.problem.clone_from(&caveat);
    let caveat = caveat.map_or_else(String::new, |caveat| format!(", but {caveat}"));
    let pairs = count(look.pairs, "pair");
    if let Some(cpu) = entry.cpu.as_ref().filter(|_| state.is_passed_by_cpu()) {
        return format!(
            "{name} does not need {} more CPU time: {}; its {} is undecided: {}{caveat} ({pairs}).",
            percent(entry.min_effect),
            cpu.effect.text,
            entry.metric.label,
            change(entry.effect.as_ref())
        );
    }
    let cpu = entry.cpu.as_ref().map_or_else(String::new, |cpu| {
        format!(", CPU time {}", change(Some(&cpu.effect)))
    });
    format!(
        "{name} is undecided: {}{cpu}{caveat} ({pairs}).",
        change(entry.effect.as_ref())
    )
}

/// ` and likely faster`, if it is among the changes of the suite at this rate of false discoveries.
fn likely_text(entry: &GateBenchmark, rate: f64) -> String {
    let word = entry.find_likely_change(rate);
    word.map_or_else(String::new, |word| format!(" but likely {word}"))
}

/// `−0.3 % (−0.9 to +0.4 %)`.
fn change(effect: Option<&EffectRecord>) -> String {
    match effect {
        None => "no estimate yet".to_owned(),
        Some(effect) if effect.interval.is_empty() => format!("{}, no interval yet", effect.text),
        Some(effect) => effect.describe_with_interval(),
    }
}

/// `2.1–4.0 %`, of the deciding figure; names CPU time if it is that.
fn slower_by(entry: &GateBenchmark) -> String {
    if let Some(late) = &entry.timed_out {
        return format!("{} (timed out)", late.change);
    }
    match entry.cpu.as_ref().filter(|cpu| cpu.decides) {
        Some(cpu) => format!("{} of CPU time", effect_range(Some(&cpu.effect))),
        None => effect_range(entry.effect.as_ref()),
    }
}

/// `2.1–4.0 %`, without a sign.
fn effect_range(effect: Option<&EffectRecord>) -> String {
    let ends = effect.and_then(|effect| effect.low.zip(effect.high));
    let Some((low, high)) = ends else {
        return effect.map_or_else(String::new, |effect| effect.text.clone());
    };
    let (low, high) = (low.abs() / 100.0, high.abs() / 100.0);
    percent_range(low.min(high), low.max(high))
}

/// A benchmark that only one build has.
pub(super) fn describe_single_build(entry: &GateBenchmark, names: &[String; 2]) -> String {
    let [base, head] = names;
    match entry.outcome {
        GateOutcome::Missing => format!("{}: {base} has it, {head} does not.", entry.name),
        _ => format!("{}: {head} has it, {base} does not.", entry.name),
    }
}

/// The result as a sentence.
pub(super) fn verdict(record: &GateRecord, decision: &GateDecision) -> String {
    let all = record.benchmarks.len();
    let of_all = |number: usize| match (number, all) {
        (1, 1) => "The benchmark".to_owned(),
        _ => format!("{number} of {}", count(all, "benchmark")),
    };
    let is = |number: usize| if number == 1 { "is" } else { "are" };
    let open = record.benchmarks_with(&GateOutcome::Undecided).count();
    let broken = |entry: &&GateBenchmark| {
        matches!(entry.outcome, GateOutcome::Failed | GateOutcome::Missing)
    };
    let broken: Vec<&GateBenchmark> = record.benchmarks.iter().filter(broken).collect();
    match decision {
        GateDecision::Fail => {
            let slower: Vec<&GateBenchmark> =
                record.benchmarks_with(&GateOutcome::Slower).collect();
            let named = slower.iter().take(NAMED);
            let named = named.map(|entry| format!("{} by {}", entry.name, slower_by(entry)));
            let mut named: Vec<String> = named.collect();
            if slower.len() > NAMED {
                named.push(format!("{} more", slower.len() - NAMED));
            }
            let rest = [(broken.len(), "could not be judged"), (open, "undecided")];
            let rest = rest.iter().filter(|(number, _)| *number > 0);
            let rest = rest.map(|(number, what)| format!(" {number} {what}."));
            format!(
                "{} {} {}: {}.{}",
                of_all(slower.len()),
                is(slower.len()),
                slower[0].metric.worse_word,
                named.join(", "),
                rest.collect::<String>()
            )
        }
        GateDecision::Broken => {
            let first = broken.first().map_or("", |entry| entry.sentence.as_str());
            format!(
                "{} could not be judged, and none is known to be slower. {first}",
                of_all(broken.len())
            )
        }
        GateDecision::Pass => {
            let judged = record.benchmarks.iter();
            let judged = judged.filter(|entry| entry.outcome != GateOutcome::New);
            format!(
                "No benchmark is slower{}: {} passed.",
                limit(record),
                judged.count()
            )
        }
        _ => {
            if open > 0 && is_withheld(record) {
                return format!(
                    "Undecided: the verdict on {} is withheld; none is known to be slower.",
                    of_all(open).to_lowercase()
                );
            }
            let interrupted = match record.stopped {
                Some(Stopped::Interrupted) => ", interrupted",
                _ => "",
            };
            format!(
                "Undecided{interrupted}: {} may be slower{}; none is known to be.",
                of_all(open).to_lowercase(),
                limit(record)
            )
        }
    }
}

/// Is every verdict that is open withheld, so that more time decides none?
fn is_withheld(record: &GateRecord) -> bool {
    let mut open = record.benchmarks_with(&GateOutcome::Undecided);
    open.all(|entry| entry.problem.is_some())
}

/// ` by 1 % or more`, if all benchmarks have the same limit.
fn limit(record: &GateRecord) -> String {
    let first = record.benchmarks.first().map_or(0.0, |b| b.min_effect);
    let is_same = |entry: &GateBenchmark| (entry.min_effect - first).abs() < 1e-12;
    match record.benchmarks.iter().all(is_same) {
        true => format!(" by {} or more", percent(first)),
        false => " by its smallest effect or more".to_owned(),
    }
}

/// CPU time that is known this many times as exactly as wall-clock time takes a quarter of the pairs.
const SHARPER: f64 = 2.0;

/// What CPU time decides, or would decide sooner, when wall-clock time leaves benchmarks undecided.
pub(super) fn cpu_time_decides(record: &GateRecord) -> String {
    let named = |is_so: &dyn Fn(&GateBenchmark, f64, f64) -> bool| {
        let open = record
            .benchmarks_with(&GateOutcome::Undecided)
            .filter(|entry| {
                let cpu = entry.cpu.as_ref();
                let ends = cpu.and_then(|cpu| cpu.low.zip(cpu.high));
                ends.is_some_and(|(low, high)| is_so(entry, low, high))
            });
        let names: Vec<&str> = open.map(|entry| entry.name.as_str()).collect();
        let more = names.len().saturating_sub(NAMED);
        let shown = names[..names.len() - more].join(", ");
        match more {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    };
    let passes = named(&|entry, _, _| entry.is_open_but_for_cpu());
    let fails = named(&|entry, low, _| low > 1.0 + entry.min_effect);
    let sooner = named(&|entry, low, high| {
        let limit = 1.0 + entry.min_effect;
        let is_open = low <= limit && high >= limit;
        let wall = entry
            .low
            .zip(entry.high)
            .map(|(low, high)| (high / low).ln());
        is_open && wall.is_some_and(|wall| wall >= SHARPER * (high / low).ln())
    });
    let said = [
        (passes, "would pass by CPU time"),
        (fails, "would fail by CPU time"),
        (sooner, "varies less in CPU time, which decides sooner"),
    ];
    let said = said.iter().filter(|(names, _)| !names.is_empty());
    let said: Vec<String> = said
        .map(|(names, what)| format!("{names} {what}"))
        .collect();
    match said.as_slice() {
        [] => String::new(),
        said => format!(
            "{}: metric = \"cpu\" in the suite judges that alone. ",
            said.join("; ")
        ),
    }
}

/// More than anybody waits for.
const LONG: Duration = Duration::from_secs(3600);

/// What to do.
pub(super) fn advice(
    record: &GateRecord,
    plan: &GatePlan,
    states: &[Option<Measured>],
    decision: &GateDecision,
) -> String {
    match decision {
        GateDecision::Fail => {
            "Look at the change. A real slowdown shows up again when the gate is repeated."
                .to_owned()
        }
        GateDecision::Broken => "Fix what fails, or leave it out of the suite.".to_owned(),
        GateDecision::Undecided if record.stopped == Some(Stopped::Interrupted) => String::new(),
        GateDecision::Undecided => {
            let by_cpu = cpu_time_decides(record);
            if is_withheld(record) {
                return format!("{by_cpu}More time does not resolve why the verdict is withheld.");
            }
            let undecided = states.iter().flatten();
            let mut undecided = undecided.filter(|s| s.standing() == Standing::Undecided);
            if undecided.all(Measured::is_passed_by_cpu) {
                return "CPU time has passed, and wall-clock time would take long. Count that as passed (--undecided pass), or judge one of them alone (metric = \"cpu\" or \"wall\" in the suite)."
                    .to_owned();
            }
            let states = states.iter().zip(&plan.benchmarks);
            let open = states.filter_map(|(state, benchmark)| {
                let is_undecided = |s: &&Measured| s.is_open() && !s.is_only_measured();
                let state = state.as_ref().filter(is_undecided)?;
                state.needed_s(benchmark.min_effect.ln_1p())
            });
            let needed_s = ROOM * open.sum::<f64>();
            let needed = Duration::try_from_secs_f64(needed_s).unwrap_or(Duration::MAX);
            match needed_s > 0.0 && needed <= LONG {
                true => format!(
                    "{by_cpu}About {} more decide them (--budget); or accept a larger smallest effect (--min-effect).",
                    duration(needed)
                ),
                false if record.stopped.is_none() => String::new(),
                false => format!(
                    "{by_cpu}Give it a longer --budget, or accept a larger smallest effect (--min-effect)."
                ),
            }
        }
        _ => String::new(),
    }
}
