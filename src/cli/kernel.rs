//! `bench kernel`: runs a built-in workload once, in this process.

use anyhow::{Context, bail};
use clap::ValueEnum;

use super::Exit;
use super::args::{Global, KernelArgs, SplitChoice, Suite};
use super::surroundings::find_temporary_folder;
use super::terminal::Terminal;
use pinwise_kernels::work::{
    self, Amount, Isa, KERNELS, Kernel, KernelOutcome, Order, Setup, Split,
};
use pinwise_machine::linux::available_memory_bytes;
use pinwise_record::{Answer, KernelRecord, KernelSplit};
use pinwise_topology::CpuSet;

/// Units of work without `--work`: about a second on one core.
const DEFAULT_WORK: u64 = 100;

pub(super) fn run_kernel(
    global: &Global,
    args: &KernelArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if args.list {
        return list_kernels(terminal);
    }
    if !global.machine.is_local() {
        bail!("kernel runs for real; it needs --machine local (compare and bench can simulate)");
    }
    let order = parse_order(args)?;
    let outcome = work::run(&order, available_memory_bytes())?;
    let record = to_record(&order, &outcome);
    if terminal.is_json() {
        terminal.print_json(&record)?;
    } else {
        terminal.print(&pinwise_report::render_kernel_run(
            &record,
            terminal.palette(),
        ))?;
    }
    Ok(Exit::Done)
}

fn list_kernels(terminal: &Terminal) -> anyhow::Result<Exit> {
    if terminal.is_json() {
        bail!("--list has no JSON output");
    }
    let rows: Vec<pinwise_report::KernelRow> = KERNELS
        .iter()
        .map(|kernel| pinwise_report::KernelRow {
            name: kernel.name,
            group: kernel.group.name(),
            about: kernel.about,
            source: kernel.source,
            operation: kernel.operation,
            size: kernel.size.map(|size| (size.of, size.default)),
            has_versions: kernel.has_versions,
        })
        .collect();
    terminal.print(&pinwise_report::render_kernel_list(&rows))?;
    Ok(Exit::Done)
}

/// Finds the kernel of this name; the error suggests a similar one.
pub(super) fn find_kernel(name: &str) -> anyhow::Result<&'static Kernel> {
    work::find(name).with_context(|| {
        let likeness = |kernel: &&Kernel| strsim::jaro_winkler(name, kernel.name);
        let nearest = KERNELS
            .iter()
            .filter(|kernel| likeness(kernel) > 0.75)
            .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        let hint = match nearest {
            _ if Suite::from_str(name, false).is_ok() => {
                return format!("'{name}' is a suite: pinwise bench --suite {name}");
            }
            Some(kernel) => format!(
                "did you mean {}? (pinwise bench kernel --list)",
                kernel.name
            ),
            None => "pinwise bench kernel --list lists them".to_owned(),
        };
        format!("'{name}' is not a kernel; {hint}")
    })
}

fn parse_order(args: &KernelArgs) -> anyhow::Result<Order> {
    let kernel = find_kernel(args.name.as_deref().unwrap_or_default())?;
    let isa: Isa = args
        .isa
        .parse()
        .map_err(|error: String| anyhow::anyhow!("--isa: {error}"))?;
    let cpus: Vec<usize> = match &args.bind {
        None => Vec::new(),
        Some(text) => {
            let set = CpuSet::parse_list(text).with_context(|| format!("--bind '{text}'"))?;
            set.iter().collect()
        }
    };
    let amount = match (args.seconds, args.work) {
        (Some(time), _) => Amount::Time(time),
        (None, work) => Amount::Units(work.map_or(DEFAULT_WORK, |units| units as u64)),
    };
    Ok(Order {
        kernel,
        setup: Setup {
            size: kernel.size_or_default(args.size)?,
            threads: args.threads,
            isa,
            folder: args.folder.clone().unwrap_or_else(find_temporary_folder),
        },
        amount,
        split: match args.split {
            SplitChoice::Static => Split::Static,
            SplitChoice::Dynamic => Split::Dynamic,
        },
        cpus,
    })
}

fn to_record(order: &Order, outcome: &KernelOutcome) -> KernelRecord {
    let seconds = outcome.elapsed.as_secs_f64();
    let per_second = |amount: u64| amount as f64 / seconds.max(1e-9);
    let mut record = KernelRecord {
        kernel: order.kernel.name.to_owned(),
        threads: order.setup.threads,
        operations: outcome.operations,
        operation: order.kernel.operation.to_owned(),
        seconds,
        rate: per_second(outcome.operations),
        checksum: format!("{:016x}", outcome.checksum),
        work: outcome.units,
        bytes: outcome.bytes,
        bytes_per_s: outcome.bytes.map(per_second),
        size: order.kernel.size.map(|_| order.setup.size),
        working_set_bytes: outcome.working_set_bytes,
        isa: order.setup.isa.name().to_owned(),
        isa_version: order.setup.isa.version().name().to_owned(),
        chosen: outcome.chosen.clone(),
        split: match order.split {
            Split::Static => KernelSplit::Static,
            Split::Dynamic => KernelSplit::Dynamic,
        },
        cpus: (!order.cpus.is_empty()).then(|| order.cpus.clone()),
        answer: Answer::default(),
    };
    record.conclude();
    record
}

/// Parses `v1,native` or `all` into instruction sets that this CPU has, oldest first. A simulated
/// machine has all.
pub(super) fn parse_isas(text: Option<&str>, is_local: bool) -> anyhow::Result<Vec<Isa>> {
    let available = if is_local {
        Isa::list_supported()
    } else {
        Isa::ALL.to_vec()
    };
    select_isas(text, &available)
}

pub(super) fn select_isas(text: Option<&str>, available: &[Isa]) -> anyhow::Result<Vec<Isa>> {
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    if text == "all" {
        return Ok(available.to_vec());
    }
    let mut selected = Vec::new();
    for word in text.split(',') {
        let isa: Isa = word
            .trim()
            .parse()
            .map_err(|error: String| anyhow::anyhow!("--isa: {error}"))?;
        if !available.contains(&isa) {
            let names: Vec<&str> = available.iter().map(|isa| isa.name()).collect();
            bail!("--isa {isa}: this CPU has {} only", names.join(", "));
        }
        selected.push(isa);
    }
    selected.sort_unstable();
    selected.dedup();
    Ok(selected)
}

/// The program whose `kernel` command is run: this executable, or its name if nothing is executed.
pub(super) fn find_kernel_program(is_local: bool) -> anyhow::Result<String> {
    if is_local {
        super::surroundings::find_own_program()
    } else {
        Ok("pinwise".to_owned())
    }
}
