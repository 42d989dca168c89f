//! `compare --kernel`: a built-in workload instead of a command, with an arm for each instruction
//! set.

use anyhow::{Context, bail};
use clap::Parser;

use super::candidates::Candidate;
use crate::cli::args::{CompareArgs, KernelArgs, SplitChoice, WorkloadArgs};
use crate::cli::kernel::{find_kernel, find_kernel_program, parse_isas};
use crate::cli::parser_words::to_one_line;
use pinwise_kernels::work::Isa;
use pinwise_machine::CommandRunner;
use pinwise_placement::Placement;
use pinwise_record::{Finding, TopologyRecord};
use pinwise_study::bench::cache_fit;
use pinwise_study::bench::command::{Call, run_once};
use pinwise_topology::Topology;
use pinwise_workload::Workload;

/// Units of work per thread without `--work`: about 100 ms.
const WORK_PER_THREAD: usize = 10;

/// The text in quotes after `--kernel`: the arguments of `pinwise bench kernel`.
#[derive(Debug, Parser)]
#[command(name = "--kernel", disable_help_flag = true)]
struct KernelLine {
    #[command(flatten)]
    args: KernelArgs,
}

/// A kernel to compare, under one or more instruction sets.
pub(super) struct KernelRequest {
    call: Call,
    isas: Vec<Isa>,
}

/// Parses `--kernel` and `--isa`; `None` without them.
pub(super) fn parse_kernel(
    args: &CompareArgs,
    is_local: bool,
) -> anyhow::Result<Option<KernelRequest>> {
    let Some(text) = &args.kernel else {
        // The parser does not require --kernel if a command conflicts with it.
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
    let line = KernelLine::try_parse_from(line)
        .map_err(|error| anyhow::anyhow!("--kernel '{text}': {}", to_one_line(&error)))?;
    let options = line.args;
    refuse_inapplicable(&options, args)?;
    let kernel = find_kernel(options.name.as_deref().unwrap_or_default()).context("--kernel")?;
    kernel.size_or_default(options.size).context("--kernel")?;
    let isas = match &args.isa {
        Some(list) => parse_isas(Some(list), is_local)?,
        None => parse_isas(Some(&options.isa), is_local)?,
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
    let work = options.work.unwrap_or(WORK_PER_THREAD * options.threads);
    Ok(Some(KernelRequest {
        call: Call {
            program: find_kernel_program(is_local)?,
            kernel,
            threads: options.threads,
            work: work as u64,
            size: options.size,
            isa: isas.first().copied().unwrap_or(Isa::Native),
            more: list_passed_options(&options),
        },
        isas,
    }))
}

/// Refuses options of `pinwise bench kernel` that do not apply to a comparison.
fn refuse_inapplicable(options: &KernelArgs, args: &CompareArgs) -> anyhow::Result<()> {
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

/// The options that are passed to `bench kernel` unchanged.
fn list_passed_options(options: &KernelArgs) -> Vec<String> {
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
    /// The commands, one for each instruction set.
    pub(super) fn list_candidates(&self, options: &WorkloadArgs) -> anyhow::Result<Vec<Candidate>> {
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

    /// The number of threads that it runs.
    pub(super) const fn threads(&self) -> usize {
        self.call.threads
    }

    /// Runs the kernel once, briefly, so that errors come before anything is measured, and
    /// describes into which caches its working set fits.
    pub(super) fn find_working_set(
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
