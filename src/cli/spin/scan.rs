//! `spin scan`: lists the loops with spin-wait hints in binaries.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::cli::Exit;
use crate::cli::args::{Global, SpinScanArgs, UnknownGap};
use crate::cli::ending::keep_and_show;
use crate::cli::machine::open_machine;
use crate::cli::opening::{open_store, open_store_to_read};
use crate::cli::plan::new_id_and_start;
use crate::cli::terminal::Terminal;
use pinwise_code::Arch;
use pinwise_code::elf::{self, Binary};
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::{Probe, Prober};
use pinwise_record::{
    CodeArch, HostRecord, Kind, ScanChip, SkippedFile, SpinPauseRecord, SpinScan,
};
use pinwise_spin::chips::{Chip, chip};
use pinwise_study::spin::probe_median;
use pinwise_study::spin::scan::{
    GapLimit, ScanOptions, describe_chip, look_up_this_chip, scan_binaries,
};
use pinwise_topology::Topology;

/// The chips for which gaps are reported without `--chip`.
const DEFAULT_CHIPS: [&str; 5] = [
    // The last server before PAUSE became long.
    "broadwell",
    // The first server with a long PAUSE.
    "skylake-sp",
    // Two with a shorter PAUSE again.
    "ice-lake-sp",
    "zen-4",
    // The longest PAUSE.
    "meteor-lake-p",
];
/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 30;
/// Files above this many bytes are refused if their length is more than this many times their
/// allocated size: a hole takes no room on a disk, but its full length in memory.
const MIN_SPARSE_BYTES: u64 = 64 << 20;
const MAX_SPARSE_RATIO: u64 = 16;
/// Batches to measure PAUSE with `--here`, and their time limit.
const PAUSE_BATCHES: usize = 200;
const PAUSE_TIME: Duration = Duration::from_millis(500);

pub(super) fn scan(
    global: &Global,
    args: &SpinScanArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let store = open_store(global)?;
    let mut chips = choose_chips(args)?;
    let (here, model) = find_this_machine(global, args)?;
    chips.splice(0..0, here);
    if let Some(model) = model.filter(|model| chips.iter().all(|chip| chip.id != model.id)) {
        chips.insert(0, describe_chip(model));
    }
    let limit = args.max_blind_gap.map(|gap| GapLimit {
        max_blind_gap_ns: gap.as_secs_f64() * 1e9,
        unknown_fails: args.unknown == UnknownGap::Fail,
    });
    let cpus = match args.cpu_count {
        Some(cpus) => cpus as u64,
        None => count_allowed_cpus(global)?,
    };
    let options = ScanOptions {
        cpus,
        limit,
        assumed_as: model.map(|model| model.id),
    };
    let mut skipped = Vec::new();
    let binaries = args.binaries.iter().filter_map(|path| {
        let named = path.display().to_string();
        let reason = match read_binary(path) {
            Ok(binary) => return Some((named, binary)),
            Err(error) => error.to_string(),
        };
        skipped.push(SkippedFile {
            path: named,
            reason,
        });
        None
    });
    let mut record = scan_binaries(binaries, chips, options);
    record.skipped = skipped;
    warn_of_skipped(&record, terminal)?;
    (record.id, record.started) = new_id_and_start();
    let exit = match record.passed {
        Some(false) => Exit::GateFailed,
        _ => Exit::Done,
    };
    let show = || terminal.show(&record, pinwise_report::render_spin_scan);
    keep_and_show(store, &record, terminal, show, exit)
}

/// Warns of files that could not be read: some may be scripts. An error if none could be read.
fn warn_of_skipped(record: &SpinScan, terminal: &Terminal) -> anyhow::Result<()> {
    let message = |one: &SkippedFile| format!("{}: {}", one.path, one.reason);
    if record.binaries.is_empty() {
        let first = record.skipped.first().map(message).unwrap_or_default();
        match record.skipped.len() {
            1 => bail!("{first}"),
            many => bail!("none of {many} files could be read; the first is {first}"),
        }
    }
    for one in &record.skipped {
        terminal.warn(&format!("skipped {}", message(one)));
    }
    Ok(())
}

/// The number of CPUs that a program started here sees.
fn count_allowed_cpus(global: &Global) -> anyhow::Result<u64> {
    Ok(read_topology(global)?.allowed.len() as u64)
}

fn read_topology(global: &Global) -> anyhow::Result<Topology> {
    let (topology, _) = open_machine(global, 0, CycleCounting::IfCheap)?.topology()?;
    Ok(topology)
}

fn choose_chips(args: &SpinScanArgs) -> anyhow::Result<Vec<ScanChip>> {
    let named: Vec<&str> = match args.chips.is_empty() {
        true => DEFAULT_CHIPS.to_vec(),
        false => args.chips.iter().map(String::as_str).collect(),
    };
    let mut found: Vec<ScanChip> = Vec::new();
    for name in named {
        let chip = chip(name).context("--chip")?;
        if found.iter().all(|one| one.id != chip.id) {
            found.push(describe_chip(chip));
        }
    }
    Ok(found)
}

/// This machine among the chips: with its PAUSE as it was measured, else the known chip of its model.
fn find_this_machine(
    global: &Global,
    args: &SpinScanArgs,
) -> anyhow::Result<(Option<ScanChip>, Option<&'static Chip>)> {
    if args.here {
        let mut machine = open_machine(global, 0, CycleCounting::IfCheap)?;
        return Ok((Some(describe_this_machine(machine.as_mut())?), None));
    }
    // A gate does not depend on the machine that it runs on, nor do chosen chips.
    if args.max_blind_gap.is_some() || !args.chips.is_empty() {
        return Ok((None, None));
    }
    let topology = read_topology(global)?;
    Ok(match load_measured_pause(global, &topology) {
        Some(here) => (Some(here), None),
        None => (None, look_up_this_chip(&topology.identity)),
    })
}

/// This machine's PAUSE by its newest stored `spin pause`, of the CPU with the longest. A store that
/// cannot be read is reported later, when the scan is to be stored.
fn load_measured_pause(global: &Global, topology: &Topology) -> Option<ScanChip> {
    let spec = global.machine.to_string();
    let host = HostRecord::new(spec, !global.machine.is_local(), topology);
    let store = open_store_to_read(global).ok()??;
    let found = store.find_newest_on_host(Kind::SpinPause.schema(), &host.name());
    let record = found.ok()??.decode::<SpinPauseRecord>().ok()?;
    let model = |host: &HostRecord| {
        let machine = &host.machine;
        let numbers = [machine.cpu_family, machine.cpu_model_number];
        (numbers, machine.cpu_stepping, host.shape_hash.clone())
    };
    // A host of this name may be another machine by now. The probe of arm64 is not its hint.
    if model(&record.host) != model(&host) || record.instruction != "PAUSE" {
        return None;
    }
    let costs = record.cpus.iter().map(|cpu| cpu.pause_ns);
    Some(ScanChip {
        id: "here".to_owned(),
        arch: CodeArch::X86_64,
        pause_ns: costs.max_by(f64::total_cmp)?,
        source: format!("measured by spin pause, record {}", record.id),
    })
}

/// Measures this machine, on its first CPU.
fn describe_this_machine(machine: &mut dyn Prober) -> anyhow::Result<ScanChip> {
    let arch = Arch::here().context("--here: hints of this architecture are not known")?;
    let (topology, _) = machine.topology()?;
    let cpu = topology.allowed.first().context("--here: no CPU")?;
    let pause_ns = probe_median(machine, Probe::Pause { cpu }, PAUSE_BATCHES, PAUSE_TIME)?;
    let pause_ns = pause_ns.context("--here: PAUSE could not be measured on this machine")?;
    Ok(ScanChip {
        id: "here".to_owned(),
        arch: arch.into(),
        pause_ns,
        source: format!("measured on CPU {cpu}"),
    })
}

fn read_binary(path: &Path) -> anyhow::Result<Binary> {
    let mut file = open_binary(path)?;
    let metadata = file.metadata()?;
    let allocated_bytes = metadata.blocks().saturating_mul(512);
    if metadata.len() > MIN_SPARSE_BYTES && metadata.len() / MAX_SPARSE_RATIO > allocated_bytes {
        bail!(
            "a sparse file: {} MB, of which {} are written; not made by a linker",
            metadata.len() >> 20,
            allocated_bytes >> 20
        );
    }
    let mut bytes = Vec::new();
    file.by_ref()
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        bail!("larger than 4 GiB");
    }
    Ok(elf::read(&bytes)?)
}

#[expect(clippy::disallowed_methods, reason = "cli reads what the user names")]
fn open_binary(path: &Path) -> anyhow::Result<File> {
    // Check before opening: to open a pipe would wait for its writer.
    let kind = path.metadata()?;
    if kind.is_dir() {
        bail!("it is a directory; name the binaries in it");
    }
    if !kind.is_file() {
        bail!("it is not a regular file");
    }
    Ok(File::open(path)?)
}
