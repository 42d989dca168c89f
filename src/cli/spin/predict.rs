//! `spin predict`: predicts how long known algorithms spin.

use anyhow::{Context, bail};

use super::processor;
use crate::cli::Exit;
use crate::cli::args::{Global, SpinPredictArgs};
use crate::cli::ending::keep_and_show;
use crate::cli::machine::open_machine;
use crate::cli::opening::open_store;
use crate::cli::plan::new_id_and_start;
use crate::cli::terminal::Terminal;
use pinwise_machine::Host;
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::linux::random_seed;
use pinwise_record::ProcessorRecord;
use pinwise_spin::algorithm::Algorithm;
use pinwise_spin::table::{algorithms, find_algorithm};
use pinwise_study::spin::predict::PredictionPlan;

/// The most CPUs that a prediction can be for.
const MAX_CPUS: u64 = 65_536;
/// The most numbers of CPUs in one prediction.
const MAX_POINTS: u64 = 4_096;

pub(super) fn predict(
    global: &Global,
    args: &SpinPredictArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let algorithms = choose_algorithms(&args.algorithms)?;
    let cpus = args
        .cpu_count
        .as_deref()
        .map(parse_cpu_counts)
        .transpose()?;
    let (named, from) = find_processors(args)?;
    let (processor, cpus) = match (named, cpus) {
        (Some(processor), Some(cpus)) => (processor, cpus),
        (named, cpus) => {
            let seed = args.seed.unwrap_or_else(random_seed);
            let mut machine = open_machine(global, seed, CycleCounting::IfCheap)?;
            let processor = match named {
                Some(processor) => processor,
                None => processor::measure_this_machine(machine.as_mut(), args.processor.ghz)?,
            };
            let cpus = cpus.map_or_else(|| count_cpus(machine.as_mut()), Ok)?;
            (processor, cpus)
        }
    };
    let store = open_store(global)?;
    let mut record = pinwise_study::spin::predict::run(&PredictionPlan {
        algorithms,
        processor,
        from,
        cpus,
    });
    (record.id, record.started) = new_id_and_start();
    let show = || terminal.show(&record, pinwise_report::render_spin_prediction);
    keep_and_show(store, &record, terminal, show, Exit::Done)
}

/// Finds the processor to predict for, if the arguments name one, and the one of `--from`.
fn find_processors(
    args: &SpinPredictArgs,
) -> anyhow::Result<(Option<ProcessorRecord>, Option<ProcessorRecord>)> {
    let ghz = args.processor.ghz;
    match (&args.from, &args.to) {
        (Some(from), Some(to)) => Ok((
            Some(processor::find_chip("--to", to, ghz)?),
            Some(processor::find_chip("--from", from, ghz)?),
        )),
        _ => Ok((processor::find_processor(&args.processor)?, None)),
    }
}

/// The number of CPUs that programs see on the machine, as a list of one.
pub(super) fn count_cpus(machine: &mut dyn Host) -> anyhow::Result<Vec<u64>> {
    let (topology, _) = machine.topology()?;
    Ok(vec![topology.allowed.len().max(1) as u64])
}

/// The algorithms of `--algorithm`, else all.
fn choose_algorithms(ids: &[String]) -> anyhow::Result<Vec<&'static Algorithm>> {
    if ids.is_empty() {
        return Ok(algorithms().collect());
    }
    ids.iter()
        .map(|id| find_algorithm(id).map_err(|error| anyhow::anyhow!("--algorithm: {error}")))
        .collect()
}

/// Parses `24`, `1,8,24`, `1..128` and combinations; ascending, each number once.
fn parse_cpu_counts(text: &str) -> anyhow::Result<Vec<u64>> {
    let parse_number = |part: &str| -> anyhow::Result<u64> {
        let number = part.trim().parse::<u64>().ok();
        number
            .filter(|number| (1..=MAX_CPUS).contains(number))
            .with_context(|| {
                format!("--cpu-count '{text}': '{part}' is not a number from 1 to {MAX_CPUS}")
            })
    };
    let mut counts = Vec::new();
    for part in text.split(',') {
        let (from, to) = match part.split_once("..") {
            Some((from, to)) => (
                parse_number(from)?,
                parse_number(to.trim_start_matches('='))?,
            ),
            None => (parse_number(part)?, parse_number(part)?),
        };
        if to < from {
            bail!("--cpu-count '{text}': {to} is less than {from}");
        }
        if to - from >= MAX_POINTS {
            bail!("--cpu-count '{text}': more than {MAX_POINTS} numbers");
        }
        counts.extend(from..=to);
    }
    counts.sort_unstable();
    counts.dedup();
    if counts.len() as u64 > MAX_POINTS {
        bail!("--cpu-count '{text}': more than {MAX_POINTS} numbers");
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_cpus_are_lists_and_ranges() {
        assert_eq!(parse_cpu_counts("24").unwrap(), [24]);
        assert_eq!(parse_cpu_counts("8,1..3, 2").unwrap(), [1, 2, 3, 8]);
        assert_eq!(parse_cpu_counts("1..=4").unwrap().len(), 4);
        for bad in [
            "", "0", "a", "3..1", "1..", "1..65536", "70000", "1,,2", "-1",
        ] {
            let error = parse_cpu_counts(bad).unwrap_err().to_string();
            assert!(error.starts_with("--cpu-count"), "{error}");
        }
    }
}
