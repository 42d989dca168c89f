//! `topology --measure`.

use super::show;
use crate::cli::args::{Global, TopologyArgs};
use crate::cli::progress::ProgressLine;
use crate::cli::terminal::Terminal;
use crate::cli::{Exit, open_machine};
use crate::machine::linux::random_seed;
use crate::study::probe::{self, Observer, Plan, Step};

/// The progress line, where there is a terminal.
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
    let seed = args.seed.unwrap_or_else(random_seed);
    let plan = Plan {
        budget: args.budget,
        watch: args.watch,
        wiring_only: args.wiring_only,
        seed,
    };
    let mut machine = open_machine(global, seed, false)?;
    let mut watch = Watch {
        line: terminal.shows_progress().then(ProgressLine::new),
    };
    let outcome = probe::measure(&plan, machine.as_mut(), &mut watch);
    if let Some(line) = &mut watch.line {
        line.finish();
    }
    let outcome = outcome?;
    show(&outcome.topology, &outcome.record, terminal)?;
    if outcome.is_interrupted {
        terminal.warn("interrupted: what was measured by then is shown");
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Done)
}
