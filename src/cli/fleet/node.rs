//! `fleet node`: runs a fleet's steps on a node.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::launch;
use crate::cli::Exit;
use crate::cli::args::FleetNodeArgs;
use crate::cli::opening::parse_location;
use crate::cli::surroundings::find_own_program;
use crate::cli::terminal::Terminal;
use pinwise_fleet::folder::FleetFolder;
use pinwise_fleet::node::{AttemptOutcome, Runner, StepEnd, run_missing_steps};
use pinwise_fleet::node_folder::{AttemptStart, NodeFolder, NodeSnapshot};
use pinwise_fleet::settings;
use pinwise_machine::linux::{CycleCounting, LinuxMachine, time_of_day};
use pinwise_machine::{CommandRunner, End, Host, MachineError, Output, Request};
use pinwise_record::{FleetStep, HostRecord};
use pinwise_store::{Spool, Store};
use pinwise_workload::{Command, Workload};

pub(super) fn run_node(args: &FleetNodeArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    // Only steps of trusted users are run.
    let users = launch::trusted_users().with_user(args.owner);
    let (folder, fleet) = FleetFolder::open_trusted(&args.folder, &users)?;
    // The lock is held until this process ends; while waiting for it, a signal ends the process.
    let _lock = args.turn.then(|| folder.lock()).transpose()?;
    let mut machine = LinuxMachine::open(CycleCounting::IfCheap)?;
    let (topology, _) = machine.topology()?;
    let host = HostRecord::new("local".to_owned(), false, &topology);
    let name = args.node.clone().or_else(|| host.machine.hostname.clone());
    let name = name.context("--node: this host has no name; give one")?;
    let store = folder
        .submission()
        .ok()
        .and_then(|submission| submission.store);
    let attempt = AttemptStart {
        job: args.job.clone(),
        started: time_of_day(),
        process: std::process::id(),
        settings: settings::read(Path::new("/"), &topology),
        host: Some(host),
        ..AttemptStart::default()
    };
    let mut runner = StepRunner {
        program: find_own_program()?,
        machine,
        terminal,
        delivery: Delivery {
            store,
            delivered: BTreeSet::new(),
        },
    };
    let outcome = run_missing_steps(&folder, &users, &fleet, &name, attempt, &mut runner)?;
    Ok(match outcome {
        AttemptOutcome::Complete => Exit::Done,
        AttemptOutcome::Incomplete => Exit::Error,
        AttemptOutcome::Interrupted => Exit::Interrupted,
    })
}

struct StepRunner<'a> {
    program: String,
    machine: LinuxMachine,
    terminal: &'a Terminal,
    delivery: Delivery,
}

impl StepRunner<'_> {
    fn run_step(&mut self, step: &FleetStep, stem: &Path) -> Result<StepEnd, String> {
        let mut argv = vec![self.program.clone()];
        // These come before the step's own arguments, which may end with a command.
        argv.extend(["--format", "json", "--store", "none", "--quiet"].map(str::to_owned));
        argv.extend(step.arguments.iter().cloned());
        let command = Command::from_argv(argv).map_err(|error| error.to_string())?;
        let timeout = step
            .timeout_s
            .and_then(|s| Duration::try_from_secs_f64(s).ok());
        let workload = Workload {
            timeout,
            // Without a configuration file, so that all nodes measure alike.
            environment: vec![("PINWISE_CONFIG".to_owned(), String::new())],
            ..Workload::new(command)
        };
        let (topology, _) = self.machine.topology().map_err(|e| e.to_string())?;
        let request = Request {
            output: Output::Files(stem.to_owned()),
            ..Request::new(&workload, &topology.allowed)
        };
        let end = match self.machine.run(&request) {
            Ok(run) => run.end,
            Err(MachineError::Interrupted) => {
                let why = "interrupted by a signal, as at a time limit or preemption";
                return Ok(StepEnd::Interrupted(why.to_owned()));
            }
            Err(error) => return Err(error.to_string()),
        };
        Ok(match end {
            End::Status(status) => StepEnd::Status(status),
            End::Signal(signal) => StepEnd::Failed(format!("killed by signal {signal}")),
            End::TimedOut => {
                let limit = humantime::format_duration(timeout.unwrap_or_default());
                StepEnd::Failed(format!("killed at its time-out of {limit}"))
            }
            End::Interrupted => StepEnd::Interrupted("interrupted".to_owned()),
            End::LeftBehind(left) => {
                StepEnd::Failed(format!("it left {} running", left.join(", ")))
            }
            End::NoFigure(why) => StepEnd::Failed(why),
        })
    }
}

impl Runner for StepRunner<'_> {
    fn run(&mut self, step: &FleetStep, stem: &Path) -> (StepEnd, Duration) {
        let began = self.machine.now();
        let end = self.run_step(step, stem);
        let elapsed = self.machine.now().saturating_sub(began);
        (end.unwrap_or_else(StepEnd::Failed), elapsed)
    }

    fn now(&self) -> String {
        time_of_day()
    }

    fn deliver(&mut self, folder: &NodeFolder, snapshot: &NodeSnapshot) {
        if let Err(error) = self.delivery.deliver(folder, snapshot) {
            self.terminal.warn(&format!(
                "not delivered, and kept in the folder for later: {error:#}"
            ));
        }
    }

    fn report(&mut self, sentence: &str) {
        self.terminal.note(sentence);
    }
}

/// Delivers records to a store that nodes can reach. What fails stays in the folder and is
/// delivered the next time, or by `fleet collect`.
struct Delivery {
    store: Option<String>,
    delivered: BTreeSet<String>,
}

impl Delivery {
    fn deliver(&mut self, folder: &NodeFolder, snapshot: &NodeSnapshot) -> anyhow::Result<()> {
        let Some(text) = &self.store else {
            return Ok(());
        };
        let location = parse_location(text)?;
        let spool = Spool {
            // A spool for records that the store cannot take; the fleet's folder keeps them, too.
            folder: folder.spool_path()?,
            warn: std::sync::Arc::new(|_| {}),
        };
        let Some(mut store) = Store::open_at(&location, &spool)? else {
            return Ok(());
        };
        for step in &snapshot.done {
            if self.delivered.contains(step) {
                continue;
            }
            if let Some(body) = folder.read_record(&snapshot.record.fleet, step)? {
                store.create_json(&body)?;
            }
            self.delivered.insert(step.clone());
        }
        store.keep(&snapshot.record)?;
        Ok(())
    }
}
