//! `compare --kernel`: a built-in workload in place of a command, its
//! instruction sets as arms.

use anyhow::{Context, bail};
use clap::Parser;

use super::candidates::Candidate;
use crate::cli::args::{CompareArgs, KernelArgs, SplitChoice, WorkloadArgs};
use crate::cli::kernel::{find_kernel, isas, program};
use crate::cli::parser_words::one_line;
use pinwise_kernels::work::Isa;
use pinwise_machine::CommandRunner;
use pinwise_placement::Placement;
use pinwise_record::{Finding, TopologyRecord};
use pinwise_study::bench::cache_fit;
use pinwise_study::bench::command::{Call, run_once};
use pinwise_topology::Topology;
use pinwise_workload::Workload;

/// Units of work a thread without `--work`: about 100 ms.
const WORK_A_THREAD: usize = 10;

/// The text in quotes after `--kernel`: the arguments of `pinwise bench kernel`.
#[derive(Debug, Parser)]
#[command(name = "--kernel", disable_help_flag = true)]
struct Line {
    #[command(flatten)]
    args: KernelArgs,
}

/// A kernel to be compared under several instruction sets.
pub(super) struct KernelRequest {
    call: Call,
    isas: Vec<Isa>,
}

/// What `--kernel` and `--isa` ask for, if they do.
pub(super) fn parse_kernel(
    args: &CompareArgs,
    is_local: bool,
) -> anyhow::Result<Option<KernelRequest>> {
    let Some(text) = &args.kernel else {
        // The parser does not insist on it if a command takes its place.
        if args.isa.is_some() {
            bail!("--isa chooses how a built-in workload is compiled; it needs --kernel");
        }
        return Ok(None);
    };
    let words = shell_words::split(text)
        .ok()
        .filter(|words| !words.is_empty())
        .with_context(|| {
            format!("--kernel '{text}': write a kernel with its options, such as 'fft --threads 2'")
        })?;
    let line = std::iter::once("--kernel".to_owned()).chain(words);
    let line = Line::try_parse_from(line)
        .map_err(|error| anyhow::anyhow!("--kernel '{text}': {}", one_line(&error)))?;
    let options = line.args;
    refuse(&options, args)?;
    let kernel = find_kernel(options.name.as_deref().unwrap_or_default()).context("--kernel")?;
    kernel.size_or_default(options.size).context("--kernel")?;
    let isas = match &args.isa {
        Some(list) => isas(Some(list), is_local)?,
        None => isas(Some(&options.isa), is_local)?,
    };
    let is_compiled = |isa: &&Isa| !matches!(isa, Isa::V1 | Isa::Native) || isas.len() > 1;
    if let Some(isa) = isas
        .iter()
        .rfind(is_compiled)
        .filter(|_| !kernel.has_versions)
    {
        bail!(
            "--isa {isa}: {} is compiled for the baseline only; omit --isa (pinwise bench kernel --list says which kernels have versions)",
            kernel.name
        );
    }
    let work = options.work.unwrap_or(WORK_A_THREAD * options.threads);
    Ok(Some(KernelRequest {
        call: Call {
            program: program(is_local)?,
            kernel,
            threads: options.threads,
            work: work as u64,
            size: options.size,
            isa: isas.first().copied().unwrap_or(Isa::Native),
            more: more(&options),
        },
        isas,
    }))
}

/// Options of `pinwise bench kernel` that do not apply here.
fn refuse(options: &KernelArgs, args: &CompareArgs) -> anyhow::Result<()> {
    if options.list {
        bail!("--kernel: --list lists kernels; name one here (pinwise bench kernel --list)");
    }
    if options.seconds.is_some() {
        bail!("--kernel: with --seconds every arm takes the same time; give --work instead");
    }
    if options.isa != "native" && args.isa.is_some() {
        bail!("--isa is given twice, once inside --kernel; omit that one");
    }
    Ok(())
}

/// Options that are passed on as they are.
fn more(options: &KernelArgs) -> Vec<String> {
    let mut words = Vec::new();
    if options.split == SplitChoice::Dynamic {
        words.extend(["--split".to_owned(), "dynamic".to_owned()]);
    }
    if let Some(cpus) = &options.bind {
        words.extend(["--bind".to_owned(), cpus.clone()]);
    }
    if let Some(folder) = &options.folder {
        words.extend(["--folder".to_owned(), folder.display().to_string()]);
    }
    words
}

impl KernelRequest {
    /// One command for each instruction set.
    pub(super) fn candidates(&self, options: &WorkloadArgs) -> anyhow::Result<Vec<Candidate>> {
        let mut candidates = Vec::new();
        for isa in &self.isas {
            let call = Call {
                isa: *isa,
                ..self.call.clone()
            };
            candidates.push(Candidate {
                name: (self.isas.len() > 1).then(|| isa.name().to_owned()),
                command: call.command()?,
                options: options.for_command(0, 1, &[])?,
            });
        }
        Ok(candidates)
    }

    /// Threads that it will run.
    pub(super) const fn threads(&self) -> usize {
        self.call.threads
    }

    /// Runs it once, shortly: it refuses before anything is measured, and
    /// says what it works on.
    pub(super) fn look(
        &self,
        topology: &Topology,
        known: Option<&TopologyRecord>,
        machine: &mut dyn CommandRunner,
    ) -> anyhow::Result<Option<Finding>> {
        let call = Call {
            work: self.call.threads as u64,
            ..self.call.clone()
        };
        let place = Placement::os_default().realise(topology)?;
        let facts = run_once(&Workload::new(call.command()?), &place, machine)?;
        let Some(facts) = facts.filter(|facts| facts.working_set_bytes > 0) else {
            return Ok(None);
        };
        let caches = cache_fit::find_data_caches(topology, known);
        let bytes = facts.working_set_bytes;
        let fit = cache_fit::describe_fit(bytes, self.call.threads, &caches);
        Ok(cache_fit::to_finding(self.call.kernel.name, bytes, &fit))
    }
}
