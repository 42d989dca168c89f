//! The sentences of a gate.

use std::time::Duration;

use super::measured::Measured;
use super::{GatePlan, PlannedBenchmark};
use pinwise_format::{count, duration, join_words, percent, percent_range};
use pinwise_record::{
    Direction, EffectRecord, GateBenchmark, GateDecision, GateOutcome, GateRecord, Stopped,
    renew_command, renew_command_with,
};
use pinwise_stats::verdict::{self, ROOM, Setting};

/// A sentence names at most this many benchmarks.
const MAX_NAMED: usize = 3;

/// The standing of a benchmark whose interval would decide it.
const TOO_FEW_PAIRS: &str = "undecided (too few pairs)";
/// Why it is undecided all the same.
const RULED_OUT_BY_MORE: &str =
    "it takes more pairs to rule out rare slow runs and a change that fades";

/// The sentence on a benchmark that both builds have. Sets `entry.problem` if a caveat withholds its
/// verdict.
pub(super) fn describe_benchmark(
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
        GateOutcome::Slower if entry.is_decided_by_cpu() => format!(
            "{name} needs {} more CPU time; its {} is undecided: {} ({pairs}).",
            effect_range(entry.cpu.as_ref().map(|cpu| &cpu.effect)),
            entry.metric.label,
            describe_change(entry.effect.as_ref())
        ),
        GateOutcome::Slower => format!(
            "{name} is {worse} by {} ({pairs}).",
            describe_slowdown(entry)
        ),
        GateOutcome::Faster => format!(
            "{name} is {} by {} ({pairs}).",
            entry.metric.better_word,
            effect_range(entry.effect.as_ref())
        ),
        GateOutcome::Passed if entry.is_decided_by_cpu() => format!(
            "{name} does not need {} more CPU time: {} ({}; {pairs}); its {} is undecided: {}.",
            percent(entry.min_effect),
            entry.change,
            entry.interval,
            entry.metric.label,
            describe_change(entry.effect.as_ref())
        ),
        GateOutcome::Passed => format!(
            "{name} is not {worse} by {} or more{}: {} ({}; {pairs}).",
            percent(entry.min_effect),
            describe_likely(entry, plan.alpha),
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
    let caveat = verdict::describe_caveat(contrast, &setting);
    entry.problem.clone_from(&caveat);
    let is_early = caveat.is_none() && contrast.caveats.is_early;
    if is_early {
        TOO_FEW_PAIRS.clone_into(&mut entry.standing);
    }
    let caveat = match caveat {
        Some(caveat) => format!(", but {caveat}"),
        None if is_early => format!(", but {RULED_OUT_BY_MORE}"),
        None => String::new(),
    };
    let pairs = count(look.pairs, "pair");
    let cpu = entry.cpu.as_ref().map_or_else(String::new, |cpu| {
        format!(", CPU time {}", describe_change(Some(&cpu.effect)))
    });
    let waits = match entry.waits_longer() {
        true => ": it waits longer",
        false => "",
    };
    format!(
        "{name} is undecided: {}{cpu}{waits}{caveat} ({pairs}).",
        describe_change(entry.effect.as_ref())
    )
}

/// ` but likely faster`, if the benchmark is among the changes of the suite at this false-discovery
/// rate.
fn describe_likely(entry: &GateBenchmark, rate: f64) -> String {
    let word = entry.find_likely_change(rate);
    word.map_or_else(String::new, |word| format!(" but likely {word}"))
}

/// `−0.3 % (−0.9 to +0.4 %)`.
fn describe_change(effect: Option<&EffectRecord>) -> String {
    match effect {
        None => "no estimate yet".to_owned(),
        Some(effect) if effect.interval.is_empty() => format!("{}, no interval yet", effect.text),
        Some(effect) => effect.describe_with_interval(),
    }
}

/// `2.1–4.0 %`, of the deciding figure; with `of CPU time` if CPU time decides.
fn describe_slowdown(entry: &GateBenchmark) -> String {
    if let Some(late) = &entry.timed_out {
        return format!("{} (timed out)", late.change);
    }
    match entry.cpu.as_ref().filter(|cpu| cpu.decides) {
        Some(cpu) => format!("{} of CPU time", effect_range(Some(&cpu.effect))),
        None if entry.waits_longer() => {
            format!("{} (it waits longer)", effect_range(entry.effect.as_ref()))
        }
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

/// The sentence on a benchmark that only one build has.
pub(super) fn describe_single_build(entry: &GateBenchmark, names: &[String; 2]) -> String {
    let [base, head] = names;
    match entry.outcome {
        GateOutcome::Missing => format!("{}: {base} has it, {head} does not.", entry.name),
        _ => format!("{}: {head} has it, {base} does not.", entry.name),
    }
}

/// The result as a sentence.
pub(super) fn describe_verdict(record: &GateRecord, decision: &GateDecision) -> String {
    let total = record.benchmarks.len();
    let of_total = |number: usize| match (number, total) {
        (1, 1) => "The benchmark".to_owned(),
        _ => format!("{number} of {}", count(total, "benchmark")),
    };
    let is_or_are = |number: usize| if number == 1 { "is" } else { "are" };
    let undecided = record.benchmarks_with(&GateOutcome::Undecided).count();
    let broken = |entry: &&GateBenchmark| {
        matches!(entry.outcome, GateOutcome::Failed | GateOutcome::Missing)
    };
    let broken: Vec<&GateBenchmark> = record.benchmarks.iter().filter(broken).collect();
    match decision {
        GateDecision::Fail => {
            let slower: Vec<&GateBenchmark> =
                record.benchmarks_with(&GateOutcome::Slower).collect();
            let named = slower.iter().take(MAX_NAMED);
            let named =
                named.map(|entry| format!("{} by {}", entry.name, describe_slowdown(entry)));
            let mut named: Vec<String> = named.collect();
            if slower.len() > MAX_NAMED {
                named.push(format!("{} more", slower.len() - MAX_NAMED));
            }
            format!(
                "{} {} {}: {}{}.",
                of_total(slower.len()),
                is_or_are(slower.len()),
                slower[0].metric.worse_word,
                named.join(", "),
                describe_unjudged(record, &broken)
            )
        }
        GateDecision::Broken => {
            let first = broken.first().map_or("", |entry| entry.sentence.as_str());
            format!(
                "{} could not be judged, and none is known to be slower. {first}",
                of_total(broken.len())
            )
        }
        GateDecision::Pass => {
            let judged = record.benchmarks.iter();
            let judged = judged.filter(|entry| entry.outcome != GateOutcome::New);
            let by_cpu = judged.clone().filter(|entry| entry.is_decided_by_cpu());
            let by_cpu = match by_cpu.count() {
                0 => String::new(),
                by_cpu => format!(", {by_cpu} by CPU time"),
            };
            format!(
                "No benchmark is slower{} in the typical run: {} passed{by_cpu}.",
                describe_limit(record),
                judged.count()
            )
        }
        _ => {
            if undecided > 0 && is_withheld(record) {
                return format!(
                    "Undecided: the verdict on {} is withheld; none is known to be slower.",
                    of_total(undecided).to_lowercase()
                );
            }
            let interrupted = match record.stopped {
                Some(Stopped::Interrupted) => ", interrupted",
                _ => "",
            };
            format!(
                "Undecided{interrupted}: {} may be slower{}; none is known to be.",
                of_total(undecided).to_lowercase(),
                describe_limit(record)
            )
        }
    }
}

/// `; render is undecided`: the benchmarks of a failed gate on which there is no verdict.
fn describe_unjudged(record: &GateRecord, broken: &[&GateBenchmark]) -> String {
    let undecided: Vec<&GateBenchmark> = record.benchmarks_with(&GateOutcome::Undecided).collect();
    let verb = if undecided.len() == 1 { "is" } else { "are" };
    let when = match record.stopped {
        Some(Stopped::Interrupted) => " when interrupted",
        _ => "",
    };
    let clause = |found: &[&GateBenchmark], what: &str| match found {
        [] => String::new(),
        found => format!("; {} {what}", name_or_count(found)),
    };
    clause(broken, "could not be judged") + &clause(&undecided, &format!("{verb} undecided{when}"))
}

/// The names of a few, or how many there are.
fn name_or_count(found: &[&GateBenchmark]) -> String {
    match found.len() {
        few if few <= MAX_NAMED => {
            let names: Vec<String> = found.iter().map(|entry| entry.name.clone()).collect();
            join_words(&names)
        }
        many => many.to_string(),
    }
}

/// Are all undecided verdicts withheld, so that more time decides none?
fn is_withheld(record: &GateRecord) -> bool {
    let mut undecided = record.benchmarks_with(&GateOutcome::Undecided);
    undecided.all(|entry| entry.problem.is_some())
}

/// ` by 1 % or more`, if all benchmarks have the same limit.
fn describe_limit(record: &GateRecord) -> String {
    let first = record.benchmarks.first().map_or(0.0, |b| b.min_effect);
    let is_same = |entry: &GateBenchmark| (entry.min_effect - first).abs() < 1e-12;
    match record.benchmarks.iter().all(is_same) {
        true => format!(" by {} or more", percent(first)),
        false => " by its smallest effect or more".to_owned(),
    }
}

/// CPU time is advised if the interval of wall-clock time is at least this many times as wide: then
/// it takes a quarter of the pairs.
const MIN_WIDTH_RATIO: f64 = 2.0;

/// Which benchmarks CPU time alone decides, or would decide sooner, if wall-clock time leaves them
/// undecided.
pub(super) fn describe_cpu_time(record: &GateRecord) -> String {
    let list_names = |is_selected: &dyn Fn(&GateBenchmark, f64, f64) -> bool| {
        let undecided = record
            .benchmarks_with(&GateOutcome::Undecided)
            .filter(|entry| {
                let cpu = entry.cpu.as_ref();
                let ends = cpu.and_then(|cpu| cpu.low.zip(cpu.high));
                ends.is_some_and(|(low, high)| is_selected(entry, low, high))
            });
        let names: Vec<&str> = undecided.map(|entry| entry.name.as_str()).collect();
        let more = names.len().saturating_sub(MAX_NAMED);
        let shown = names[..names.len() - more].join(", ");
        match more {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    };
    let fails = list_names(&|entry, low, _| low > 1.0 + entry.min_effect);
    let sooner = list_names(&|entry, low, high| {
        let limit = 1.0 + entry.min_effect;
        let is_undecided = low <= limit && high >= limit;
        let wall = entry
            .low
            .zip(entry.high)
            .map(|(low, high)| (high / low).ln());
        is_undecided && wall.is_some_and(|wall| wall >= MIN_WIDTH_RATIO * (high / low).ln())
    });
    let clauses = [
        (fails, "would fail by CPU time"),
        (sooner, "varies less in CPU time, which decides sooner"),
    ];
    let clauses = clauses.iter().filter(|(names, _)| !names.is_empty());
    let clauses: Vec<String> = clauses
        .map(|(names, verb)| format!("{names} {verb}"))
        .collect();
    match clauses.as_slice() {
        [] => String::new(),
        clauses => format!(
            "{}: metric = \"cpu\" in the suite judges that alone. ",
            clauses.join("; ")
        ),
    }
}

/// The command that judges the slower benchmarks again, with a new seed.
pub(super) fn repeat_slower(record: &GateRecord) -> Option<String> {
    let slower: Vec<&GateBenchmark> = record.benchmarks_with(&GateOutcome::Slower).collect();
    // A suite of one, or a long list of names: as it was called.
    if slower.len() == record.benchmarks.len() || slower.len() > MAX_NAMED {
        return renew_command(&record.argv, "gate");
    }
    let names: Vec<String> = slower.iter().map(|entry| escape(&entry.name)).collect();
    let pattern = match names.as_slice() {
        [name] => format!("^{name}$"),
        names => format!("^({})$", names.join("|")),
    };
    renew_command_with(&record.argv, "gate", &[("--filter", pattern)])
}

/// A name as a regular expression that matches it alone.
fn escape(name: &str) -> String {
    let mut pattern = String::new();
    for c in name.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Longer efforts are not advised.
const MAX_EFFORT: Duration = Duration::from_secs(3600);

/// What to do.
pub(super) fn write_advice(
    record: &GateRecord,
    plan: &GatePlan,
    states: &[Option<Measured>],
    decision: &GateDecision,
) -> String {
    match decision {
        GateDecision::Fail => {
            let log = match (record.base.short_commit(), record.head.short_commit()) {
                (Some(base), Some(head)) if base != head => {
                    format!(", then look at git log -p {base}..{head}")
                }
                _ => String::new(),
            };
            match repeat_slower(record) {
                Some(command) => format!("Repeat it to confirm the slowdown{log}: {command}"),
                None => format!("Repeat the gate to confirm the slowdown{log}."),
            }
        }
        GateDecision::Broken => {
            let rest = match record.stopped {
                Some(Stopped::Failed) => " The others were not measured.",
                _ => "",
            };
            format!("Fix what fails, or leave it out of the suite.{rest}")
        }
        GateDecision::Undecided if record.stopped == Some(Stopped::Interrupted) => String::new(),
        GateDecision::Undecided => {
            let by_cpu = describe_cpu_time(record);
            if is_withheld(record) {
                return format!(
                    "{by_cpu}More time does not resolve why the verdict is withheld: look at the pairs (pinwise record show last -v), or judge the mean (pinwise compare --judge mean)."
                );
            }
            let states = states.iter().zip(&plan.benchmarks);
            let needs_s = states.filter_map(|(state, benchmark)| {
                let is_undecided = |s: &&Measured| s.is_active() && !s.is_only_measured();
                let state = state.as_ref().filter(is_undecided)?;
                state.needed_s(benchmark.min_effect.ln_1p())
            });
            let needed_s = ROOM * needs_s.sum::<f64>();
            let needed = Duration::try_from_secs_f64(needed_s).unwrap_or(Duration::MAX);
            match needed_s > 0.0 && needed <= MAX_EFFORT {
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
