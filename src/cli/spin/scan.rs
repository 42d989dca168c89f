//! `spin scan`: the loops with spin-wait hints in binaries.

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
use crate::cli::opening::open_store;
use crate::cli::plan::new_id_and_start;
use crate::cli::terminal::Terminal;
use pinwise_code::Arch;
use pinwise_code::elf::{self, Binary};
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::{Probe, Prober};
use pinwise_record::{CodeArch, ScanChip, SkippedFile, SpinScan};
use pinwise_spin::chips::{Chip, chip};
use pinwise_study::spin::probe_median;
use pinwise_study::spin::scan::{GapLimit, ScanOptions, scan_binaries};

/// Chips that gaps are reported for if none is named.
const DEFAULT_CHIPS: [&str; 5] = [
    // Before PAUSE became long.
    "broadwell",
    // The server on which it was noticed.
    "skylake-sp",
    // Two that shortened it again.
    "ice-lake-sp",
    "zen-4",
    // The longest.
    "meteor-lake-p",
];
/// Bytes of the largest file that is read.
const MAX_FILE_BYTES: u64 = 4 << 30;
/// Files above this many bytes are refused if their length is this many times their
/// allocated size: holes take no room on a disk, but all of it in memory.
const SPARSE_FROM: u64 = 64 << 20;
const SPARSE_TIMES: u64 = 16;
/// How PAUSE is measured with `--here`.
const BATCHES: usize = 200;
const BATCHES_LIMIT: Duration = Duration::from_millis(500);

pub(super) fn scan(
    global: &Global,
    args: &SpinScanArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let store = open_store(global)?;
    let mut chips = chips(args)?;
    if args.here {
        chips.push(describe_this_machine(
            open_machine(global, 0, CycleCounting::IfCheap)?.as_mut(),
        )?);
    }
    let limit = args.max_blind_gap.map(|gap| GapLimit {
        max_blind_gap_ns: gap.as_secs_f64() * 1e9,
        unknown_fails: args.unknown == UnknownGap::Fail,
    });
    let cpus = match args.cpu_count {
        Some(cpus) => cpus as u64,
        None => allowed_cpus(global)?,
    };
    let mut skipped = Vec::new();
    let binaries = args.binaries.iter().filter_map(|path| {
        let named = path.display().to_string();
        let reason = match read(path) {
            Ok(binary) => return Some((named, binary)),
            Err(error) => error.to_string(),
        };
        skipped.push(SkippedFile {
            path: named,
            reason,
        });
        None
    });
    let mut record = scan_binaries(binaries, chips, ScanOptions { cpus, limit });
    record.skipped = skipped;
    print_skipped(&record, terminal)?;
    (record.id, record.started) = new_id_and_start();
    let exit = match record.passed {
        Some(false) => Exit::GateFailed,
        _ => Exit::Done,
    };
    let show = || terminal.show(&record, pinwise_report::spin_scan);
    keep_and_show(store, &record, terminal, show, exit)
}

/// Of many files some may be scripts or damaged; if none can be read, there is nothing to report.
fn print_skipped(record: &SpinScan, terminal: &Terminal) -> anyhow::Result<()> {
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

/// CPUs that a program started here would count.
fn allowed_cpus(global: &Global) -> anyhow::Result<u64> {
    let (topology, _) = open_machine(global, 0, CycleCounting::IfCheap)?.topology()?;
    Ok(topology.allowed.len() as u64)
}

fn chips(args: &SpinScanArgs) -> anyhow::Result<Vec<ScanChip>> {
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

fn describe_chip(chip: &Chip) -> ScanChip {
    ScanChip {
        id: chip.id.to_owned(),
        // The table has PAUSE only.
        arch: CodeArch::X86_64,
        pause_ns: chip.pause_ns(),
        source: format!(
            "{} cycles at {} GHz ({})",
            chip.pause_cycles.0, chip.ghz, chip.source
        ),
    }
}

/// This machine, as a program on its first CPU finds it.
fn describe_this_machine(machine: &mut dyn Prober) -> anyhow::Result<ScanChip> {
    let arch = Arch::here().context("--here: hints of this architecture are not known")?;
    let (topology, _) = machine.topology()?;
    let cpu = topology.allowed.first().context("--here: no CPU")?;
    let pause_ns = probe_median(machine, Probe::Pause { cpu }, BATCHES, BATCHES_LIMIT)?;
    let pause_ns = pause_ns.context("--here: PAUSE could not be measured on this machine")?;
    Ok(ScanChip {
        id: "here".to_owned(),
        arch: arch.into(),
        pause_ns,
        source: format!("measured on CPU {cpu}"),
    })
}

fn read(path: &Path) -> anyhow::Result<Binary> {
    let mut file = open(path)?;
    let found = file.metadata()?;
    let written = found.blocks().saturating_mul(512);
    if found.len() > SPARSE_FROM && found.len() / SPARSE_TIMES > written {
        bail!(
            "a sparse file: {} MB, of which {} are written; not made by a linker",
            found.len() >> 20,
            written >> 20
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
fn open(path: &Path) -> anyhow::Result<File> {
    // Asked before it is opened: opening a pipe would wait for its writer.
    let kind = path.metadata()?;
    if kind.is_dir() {
        bail!("it is a directory; name the binaries in it");
    }
    if !kind.is_file() {
        bail!("it is not a regular file");
    }
    Ok(File::open(path)?)
}
