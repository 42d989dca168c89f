//! A built-in workload as a command, `pinwise bench kernel …`, and what its output says about the
//! kernel.
//!
//! Runs are timed like those of any other command, not in this process.

use crate::compare::RunFailure;
use pinwise_kernels::work::{Isa, Kernel};
use pinwise_machine::{CommandRunner, Output, Request};
use pinwise_placement::Realised;
use pinwise_record::KernelRecord;
use pinwise_workload::{Command, CommandError, Workload};

/// A kernel with its command line.
#[derive(Debug, Clone)]
pub struct Call {
    /// The program: this executable.
    pub program: String,
    /// The kernel.
    pub kernel: &'static Kernel,
    /// Threads that share the work.
    pub threads: usize,
    /// Units of work, all threads together.
    pub work: u64,
    /// Value of `--size`; `None` for the kernel's default.
    pub size: Option<u64>,
    /// Instruction set of the hot loop.
    pub isa: Isa,
    /// Further options, as written.
    pub more: Vec<String>,
}

impl Call {
    /// The command that runs the kernel.
    ///
    /// # Errors
    /// [`CommandError`] if a word cannot be an argument.
    pub fn command(&self) -> Result<Command, CommandError> {
        let mut words = vec![
            self.program.clone(),
            "bench".to_owned(),
            "kernel".to_owned(),
            self.kernel.name.to_owned(),
            "--threads".to_owned(),
            self.threads.to_string(),
            "--work".to_owned(),
            self.work.to_string(),
        ];
        if let Some(size) = self.size {
            words.extend(["--size".to_owned(), size.to_string()]);
        }
        words.extend(["--isa".to_owned(), self.isa.name().to_owned()]);
        words.extend(self.more.iter().cloned());
        words.extend(["--format".to_owned(), "json".to_owned()]);
        Command::from_argv(words)
    }
}

/// Runs the workload once and reads the kernel's report from its output; `None` if it succeeds
/// without a report, as on a simulated machine.
///
/// # Errors
/// The kernel's error message if it rejects its arguments, or why it could not be started.
pub fn run_once(
    workload: &Workload,
    place: &Realised,
    machine: &mut dyn CommandRunner,
) -> anyhow::Result<Option<KernelRecord>> {
    let run = machine.run(&Request {
        memory: place.memory.as_ref(),
        output: Output::Keep,
        ..Request::new(workload, &place.cpus)
    })?;
    if let Some(failure) = RunFailure::from_run(&run, workload) {
        anyhow::bail!(
            "{}",
            error_line(&run.stderr_tail).unwrap_or(failure.to_string())
        );
    }
    let output = run.output.unwrap_or_default();
    let text = String::from_utf8_lossy(&output);
    let mut documents = serde_json::Deserializer::from_str(&text).into_iter();
    Ok(documents.next().and_then(Result::ok))
}

/// The kernel's last error message, without `error: `.
fn error_line(stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rfind(|line| line.starts_with("error: "))?;
    Some(line.trim_start_matches("error: ").to_owned())
}
