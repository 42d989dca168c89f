//! Whose PAUSE a prediction is about: a chip's, figures', or this machine's.

use anyhow::{Context, bail};

use crate::cli::args::ProcessorArgs;
use pinwise_machine::Prober;
use pinwise_record::ProcessorRecord;
use pinwise_spin::chips::chip;
use pinwise_spin::prediction::PauseCost;
use pinwise_study::spin::pause::measure_quickly;

/// Figures that no processor has.
const LARGEST_NS: f64 = 1e6;
const LARGEST_GHZ: f64 = 20.0;

/// The processor that the arguments name; `None` for the machine at hand.
pub(super) fn find_processor(args: &ProcessorArgs) -> anyhow::Result<Option<ProcessorRecord>> {
    let ghz = args.ghz.map(|ghz| check_range("--ghz", ghz, LARGEST_GHZ));
    let ghz = ghz.transpose()?;
    if let Some(name) = &args.chip {
        return find_chip("--chip", name, ghz).map(Some);
    }
    if let (Some(cycles), Some(ghz)) = (args.pause_cycles, ghz) {
        let cycles = check_range("--pause-cycles", cycles, LARGEST_NS)?;
        let processor = PauseCost::from_cycles(cycles, ghz);
        return Ok(Some(record(
            "a processor of these figures",
            None,
            &processor,
            "given",
        )));
    }
    if let Some(ns) = args.pause_ns {
        let pause_ns = check_range("--pause-ns", ns, LARGEST_NS)?;
        let processor = PauseCost {
            pause_ns,
            pause_cycles: ghz.map(|ghz| pause_ns * ghz),
            ghz,
        };
        return Ok(Some(record(
            "a processor of these figures",
            None,
            &processor,
            "given",
        )));
    }
    Ok(None)
}

/// A chip of the table; `option`: the option that asks for it.
pub(super) fn find_chip(
    option: &str,
    name: &str,
    ghz: Option<f64>,
) -> anyhow::Result<ProcessorRecord> {
    let chip = chip(name).map_err(|error| anyhow::anyhow!("{option}: {error}"))?;
    let processor = PauseCost::from_chip(chip, ghz);
    let made = record(chip.name, Some(chip.id), &processor, chip.source);
    Ok(ProcessorRecord {
        ghz_from: Some(ghz.map_or(chip.ghz_from, |_| "given").to_owned()),
        ..made
    })
}

/// This machine, measured.
pub(super) fn measure_this_machine(
    machine: &mut dyn Prober,
    ghz: Option<f64>,
) -> anyhow::Result<ProcessorRecord> {
    let found = measure_quickly(machine)?;
    let mut processor = found.context(
        "PAUSE could not be measured here: name a processor with --chip, --pause-ns, or --pause-cycles and --ghz",
    )?;
    if let Some(ghz) = ghz {
        let ghz = check_range("--ghz", ghz, LARGEST_GHZ)?;
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
    Ok(record(name, None, &processor, from))
}

fn record(
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

fn check_range(option: &str, value: f64, most: f64) -> anyhow::Result<f64> {
    if value.is_finite() && value > 0.0 && value <= most {
        return Ok(value);
    }
    bail!("{option} {value}: more than 0, and {most} at most")
}
