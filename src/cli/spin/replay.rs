//! `spin replay`: runs algorithms and compares them with their predictions.

use std::time::Duration;

use anyhow::{Context, bail};

use crate::cli::Exit;
use crate::cli::args::{Global, SpinReplayArgs};
use crate::cli::ending::{keep_and_show, warn_if_interrupted};
use crate::cli::machine::open_machine;
use crate::cli::opening::open_store;
use crate::cli::plan::new_id_and_start;
use crate::cli::progress::ProgressLine;
use crate::cli::terminal::Terminal;
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::linux::random_seed;
use pinwise_spin::algorithm::Algorithm;
use pinwise_spin::chips::chip;
use pinwise_spin::table::find_algorithm;
use pinwise_study::spin::replay::{Experiment, FUTEX, ReplayPlan};

/// The most delays: more are almost certainly a typo.
const MAX_DELAYS: usize = 1000;
/// The longest time that a lock is held.
const LONGEST_HOLD: Duration = Duration::from_secs(10);
/// The most threads that contend.
const MAX_THREADS: usize = 512;

pub(super) fn replay(
    global: &Global,
    args: &SpinReplayArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let plan = make_plan(args)?;
    let mut machine = open_machine(
        global,
        args.seed.unwrap_or_else(random_seed),
        CycleCounting::IfCheap,
    )?;
    let store = open_store(global)?;
    let mut line = terminal
        .shows_progress()
        .then(|| ProgressLine::new(terminal));
    let mut on_cell = |done: usize, all: usize| {
        if let Some(line) = &mut line {
            line.show_part("replaying", done, all);
        }
    };
    let replayed = pinwise_study::spin::replay::run(&plan, machine.as_mut(), &mut on_cell);
    if let Some(line) = &mut line {
        line.finish();
    }
    let Some(mut record) = warn_if_interrupted(replayed, terminal)? else {
        return Ok(Exit::Interrupted);
    };
    (record.id, record.started) = new_id_and_start();
    let show = || terminal.show(&record, pinwise_report::render_spin_replay);
    keep_and_show(store, &record, terminal, show, Exit::Done)
}

fn make_plan(args: &SpinReplayArgs) -> anyhow::Result<ReplayPlan> {
    let experiment = find_experiment(&args.experiment)?;
    if experiment == Experiment::Contend && args.realtime {
        bail!(
            "--realtime: contending threads must run at normal priority; a spinning one would starve the holder on its CPU"
        );
    }
    if let Some(many) = args.threads.iter().find(|&&count| count > MAX_THREADS) {
        bail!("--threads {many}: at most {MAX_THREADS}");
    }
    if args.hold > LONGEST_HOLD {
        bail!("--hold: at most {} s", LONGEST_HOLD.as_secs());
    }
    let chip = args.as_chip.as_deref().map(chip).transpose();
    let chip = chip.context("--as-chip")?;
    let algorithms = args.algorithms.iter().map(|id| find_waiter(id));
    Ok(ReplayPlan {
        experiment,
        algorithms: algorithms.collect::<anyhow::Result<_>>()?,
        hint_ns: args.pause_ns.or(chip.map(|chip| chip.pause_ns())),
        chip: chip.map(|chip| chip.name.to_owned()),
        cpus_assumed: args.cpu_count,
        hold: args.hold,
        delays: parse_delays(&args.delays, experiment, args.hold)?,
        items: args.items,
        repeats: args.repeat,
        threads: args.threads.clone(),
        is_realtime: args.realtime,
    })
}

fn find_experiment(name: &str) -> anyhow::Result<Experiment> {
    let known = Experiment::ALL.iter().find(|known| known.name() == name);
    known.copied().with_context(|| {
        let likeness = |known: &Experiment| strsim::jaro_winkler(name, known.name());
        let nearest = Experiment::ALL
            .into_iter()
            .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        let nearest = nearest.map_or("", Experiment::name);
        format!("--experiment '{name}': no such experiment; did you mean {nearest}?")
    })
}

/// The algorithm that waits; `None` for a futex alone.
fn find_waiter(id: &str) -> anyhow::Result<Option<&'static Algorithm>> {
    if id == FUTEX {
        return Ok(None);
    }
    Ok(Some(find_algorithm(id).context("--algorithm")?))
}

/// Parses the delays of an experiment; an error if it cannot use them.
fn parse_delays(
    text: &str,
    experiment: Experiment,
    hold: Duration,
) -> anyhow::Result<Vec<Duration>> {
    let mut delays = Vec::new();
    for part in text.split(',') {
        let times =
            parse_times(part.trim()).map_err(|words| anyhow::anyhow!("--delays {text}: {words}"));
        delays.extend(times?);
        if delays.len() > MAX_DELAYS {
            bail!("--delays {text}: more than {MAX_DELAYS} times");
        }
    }
    let longest = delays.iter().max().copied().unwrap_or_default();
    if experiment == Experiment::Handoff && longest > LONGEST_HOLD {
        bail!("--delays {text}: at most {} s", LONGEST_HOLD.as_secs());
    }
    if experiment == Experiment::ProducerConsumer && longest >= hold {
        bail!(
            "--delays {text}: a waiter that arrives after {longest:?} has nothing to wait for: the lock is held for {hold:?} (see --hold)"
        );
    }
    Ok(delays)
}

/// Parses `2500us`, or `1..9ms`: the first time and all up to the last in steps of one unit.
fn parse_times(text: &str) -> Result<Vec<Duration>, String> {
    let parse_time = |text: &str| {
        let time = humantime::parse_duration(text);
        time.map_err(|_| format!("'{text}' is not a time; write 2ms, 500us or 1..9ms"))
    };
    let Some((from, to)) = text.split_once("..") else {
        return Ok(vec![parse_time(text)?]);
    };
    let unit = to.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let has_unit = from.ends_with(|c: char| c.is_alphabetic());
    let from = if has_unit {
        parse_time(from)?
    } else {
        parse_time(&format!("{from}{unit}"))?
    };
    let (to, step) = (parse_time(to)?, parse_time(&format!("1{unit}"))?);
    if from > to {
        return Err("the range is reversed; write the shorter time first".to_owned());
    }
    let all = std::iter::successors(Some(from), |time| time.checked_add(step));
    Ok(all
        .take_while(|&time| time <= to)
        .take(MAX_DELAYS + 1)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> anyhow::Result<Vec<Duration>> {
        parse_delays(
            text,
            Experiment::ProducerConsumer,
            Duration::from_millis(10),
        )
    }

    #[track_caller]
    fn check(text: &str, expected_us: &[u64]) {
        let expected: Vec<Duration> = expected_us
            .iter()
            .map(|&us| Duration::from_micros(us))
            .collect();
        assert_eq!(parse(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn delays_are_times_and_ranges_of_them() {
        check("2ms", &[2000]);
        check("1..3ms", &[1000, 2000, 3000]);
        check("500us,1ms..2ms", &[500, 1000, 2000]);
        check("9..9ms", &[9000]);
        check("500us..2ms", &[500, 1500]);
    }

    #[test]
    fn invalid_delays_are_reported_with_the_reason() {
        for (text, words) in [
            ("9..1ms", "reversed"),
            ("1..9", "not a time"),
            ("", "not a time"),
            ("1ms,", "not a time"),
            ("10ms", "nothing to wait for"),
            ("1..999999999us", "more than 1000"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(
                error.contains(words) && error.starts_with("--delays"),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9.,msun]{0,12}") {
            if let Ok(delays) = parse(&text) {
                prop_assert!(!delays.is_empty() && delays.len() <= MAX_DELAYS);
            }
        }
    }
}
