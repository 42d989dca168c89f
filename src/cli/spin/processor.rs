//! Finds the processor of a prediction: a known chip, given figures, or this machine.

use anyhow::{Context, bail};

use crate::cli::args::ProcessorArgs;
use pinwise_machine::Prober;
use pinwise_record::ProcessorRecord;
use pinwise_spin::chips::chip;
use pinwise_spin::prediction::PauseCost;
use pinwise_study::spin::pause::measure_quickly;

/// The largest PAUSE, in nanoseconds or cycles, and the largest clock that are accepted.
const MAX_PAUSE: f64 = 1e6;
const MAX_GHZ: f64 = 20.0;

/// The processor that the arguments name; `None` for this machine.
pub(super) fn find_processor(args: &ProcessorArgs) -> anyhow::Result<Option<ProcessorRecord>> {
    let ghz = args.ghz.map(|ghz| check_range("--ghz", ghz, MAX_GHZ));
    let ghz = ghz.transpose()?;
    if let Some(name) = &args.chip {
        return find_chip("--chip", name, ghz).map(Some);
    }
    if let (Some(cycles), Some(ghz)) = (args.pause_cycles, ghz) {
        let cycles = check_range("--pause-cycles", cycles, MAX_PAUSE)?;
        let processor = PauseCost::from_cycles(cycles, ghz);
        return Ok(Some(to_record(
            "a processor of these figures",
            None,
            &processor,
            "given",
        )));
    }
    if let Some(ns) = args.pause_ns {
        let pause_ns = check_range("--pause-ns", ns, MAX_PAUSE)?;
        let processor = PauseCost {
            pause_ns,
            pause_cycles: ghz.map(|ghz| pause_ns * ghz),
            ghz,
        };
        return Ok(Some(to_record(
            "a processor of these figures",
            None,
            &processor,
            "given",
        )));
    }
    Ok(None)
}

/// Finds a known chip; `option` is the option that names it.
pub(super) fn find_chip(
    option: &str,
    name: &str,
    ghz: Option<f64>,
) -> anyhow::Result<ProcessorRecord> {
    let chip = chip(name).map_err(|error| anyhow::anyhow!("{option}: {error}"))?;
    let processor = PauseCost::from_chip(chip, ghz);
    let record = to_record(chip.name, Some(chip.id), &processor, chip.source);
    Ok(ProcessorRecord {
        ghz_from: Some(ghz.map_or(chip.ghz_from, |_| "given").to_owned()),
        ..record
    })
}

/// Measures this machine; a given `ghz` replaces its measured clock.
pub(super) fn measure_this_machine(
    machine: &mut dyn Prober,
    ghz: Option<f64>,
) -> anyhow::Result<ProcessorRecord> {
    let measured = measure_quickly(machine)?;
    let mut processor = measured.context(
        "PAUSE could not be measured here: name a processor with --chip, --pause-ns, or --pause-cycles and --ghz",
    )?;
    if let Some(ghz) = ghz {
        let ghz = check_range("--ghz", ghz, MAX_GHZ)?;
        let Some(cycles) = processor.pause_cycles else {
            bail!("--ghz: cycles could not be measured here, so it has no effect");
        };
        processor = PauseCost::from_cycles(cycles, ghz);
    }
    let (name, from) = if machine.is_simulated() {
        ("the simulated machine", "Probed on a simulated machine")
    } else {
        ("this machine", "Measured here, on the first allowed CPU")
    };
    Ok(to_record(name, None, &processor, from))
}

fn to_record(
    name: &str,
    chip: Option<&str>,
    processor: &PauseCost,
    pause_from: &str,
) -> ProcessorRecord {
    ProcessorRecord {
        name: name.to_owned(),
        chip: chip.map(str::to_owned),
        pause_ns: processor.pause_ns,
        pause_cycles: processor.pause_cycles,
        ghz: processor.ghz,
        pause_from: pause_from.to_owned(),
        ghz_from: None,
    }
}

fn check_range(option: &str, value: f64, max: f64) -> anyhow::Result<f64> {
    if value.is_finite() && value > 0.0 && value <= max {
        return Ok(value);
    }
    bail!("{option} {value}: more than 0, and {max} at most")
}
