//! `topology --measure`: measures how the CPUs are wired.

use super::show;
use crate::cli::Exit;
use crate::cli::args::{Global, TopologyArgs};
use crate::cli::ending::keep_and_show;
use crate::cli::machine::open_machine;
use crate::cli::maps;
use crate::cli::opening::open_store;
use crate::cli::plan::new_id_and_start;
use crate::cli::progress::ProgressLine;
use crate::cli::terminal::Terminal;
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::linux::{self, boot_id, random_seed};
use pinwise_record::{Agreement, SurveyRecord, TopologyRecord};
use pinwise_study::probe::{self, Observer, ProbePlan, Step};

/// The progress line, if there is a terminal.
struct Watch {
    line: Option<ProgressLine>,
}

impl Observer for Watch {
    fn progress(&mut self, step: &Step) {
        if let Some(line) = &mut self.line {
            line.show_step(step);
        }
    }
}

pub(super) fn measure(
    global: &Global,
    args: &TopologyArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let seed = args.seed.unwrap_or_else(|| random_seed() % 1_000_000_000);
    let (id, started) = new_id_and_start();
    let plan = ProbePlan {
        budget: args.budget,
        watch: args.watch,
        wiring_only: args.wiring_only,
        survey: SurveyRecord {
            boot_id: global.machine.is_local().then(boot_id).flatten(),
            seed,
            ..SurveyRecord::default()
        },
    };
    let store = open_store(global)?;
    let mut machine = open_machine(global, seed, CycleCounting::IfCheap)?;
    let mut watch = Watch {
        line: terminal
            .shows_progress()
            .then(|| ProgressLine::new(terminal)),
    };
    let outcome = probe::measure(&plan, machine.as_mut(), &mut watch);
    if let Some(line) = &mut watch.line {
        line.finish();
    }
    let mut outcome = outcome?;
    (outcome.record.id, outcome.record.started) = (id, started);
    linux::name_models(&mut outcome.topology);
    if global.machine.is_local() {
        linux::read_interrupts(&mut outcome.topology);
        let warnings = linux::read_links(&mut outcome.topology);
        outcome.record.warnings.extend(warnings);
    }
    outcome.record.set_devices(&outcome.topology);
    if let Some(store) = &store {
        match maps::load_maps_of_this_boot(store, &outcome.topology, &machine.label()) {
            Ok(earlier) => probe::judge_with_earlier(&mut outcome.record, &earlier),
            Err(error) => terminal.warn(&format!("earlier maps were not consulted: {error}")),
        }
    }
    let show = || show(&outcome.topology, &outcome.record, terminal);
    let exit = match outcome.is_interrupted {
        true => {
            terminal.warn("interrupted: showing partial results");
            Exit::Interrupted
        }
        false if args.check => judge(&outcome.record),
        false => Exit::Done,
    };
    keep_and_show(store, &outcome.record, terminal, show, exit)
}

/// The exit status of `--check`.
fn judge(record: &TopologyRecord) -> Exit {
    match record
        .measured
        .as_ref()
        .map(|measured| measured.agreement())
    {
        Some(Agreement::Agrees) => Exit::Done,
        Some(Agreement::Contradicted) => Exit::GateFailed,
        _ => Exit::Undecided,
    }
}
