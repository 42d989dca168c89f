//! `fleet report`: finds nodes that differ from their peers.

use std::path::Path;

use super::nodes::{FleetWithNodes, load_fleet};
use crate::cli::Exit;
use crate::cli::args::{FleetFailure, FleetReportArgs, Global};
use crate::cli::ending::keep_and_show;
use crate::cli::files::write_file;
use crate::cli::opening::open_store;
use crate::cli::report::render_page;
use crate::cli::terminal::Terminal;
use pinwise_format::count;
use pinwise_machine::linux::{discover, time_of_day};
use pinwise_nodes::{ReportContext, compare_nodes};
use pinwise_record::{FleetReport, OutlierKind};

pub(super) fn report(
    global: &Global,
    args: &FleetReportArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let FleetWithNodes { id, record, nodes } = load_fleet(global, &args.fleet)?;
    let host = discover().ok().and_then(|(t, _)| t.identity.hostname);
    let report = compare_nodes(
        &nodes,
        &ReportContext {
            fleet: &id,
            record: record.as_ref(),
            false_discoveries: args.false_discoveries,
            now: &time_of_day(),
            host: host.as_deref().unwrap_or("unknown"),
        },
    );
    let page = args
        .output
        .as_ref()
        .map(|_| render_page(&report))
        .transpose()?;
    let show = || {
        let (Some(path), Some(page)) = (&args.output, page) else {
            return terminal.show(&report, pinwise_report::render_fleet_report);
        };
        if path == Path::new("-") {
            return terminal.print_data(&page);
        }
        write_file(path, &page)?;
        terminal.show(&report, pinwise_report::render_fleet_report)?;
        terminal.note(&format!("The page: {}", path.display()));
        Ok(())
    };
    let store = open_store(global)?;
    match keep_and_show(store, &report, terminal, show, Exit::Done)? {
        Exit::Done => Ok(check_gates(args, &report, terminal)),
        exit => Ok(exit),
    }
}

/// The exit status by `--fail-on`, with a warning for each failure.
fn check_gates(args: &FleetReportArgs, report: &FleetReport, terminal: &Terminal) -> Exit {
    let mut exit = Exit::Done;
    if args.fail_on.contains(&FleetFailure::Outlier) {
        let mut nodes: Vec<&str> = report.outliers.iter().map(|o| o.node.as_str()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        if !nodes.is_empty() {
            let by_figure = report
                .outliers
                .iter()
                .filter(|outlier| outlier.kind == OutlierKind::Figure)
                .count();
            terminal.warn(&format!(
                "--fail-on outlier: {} ({}, {}).",
                count(nodes.len(), "node"),
                count(by_figure, "figure"),
                count(report.outliers.len() - by_figure, "setting"),
            ));
            exit = Exit::GateFailed;
        }
    }
    if args.fail_on.contains(&FleetFailure::Missing) {
        let absent = report.asked.saturating_sub(report.nodes);
        let partial = report.nodes - report.complete;
        if absent + partial > 0 {
            terminal.warn(&format!(
                "--fail-on missing: {} without a record, {} lacking steps.",
                count(absent, "node"),
                partial
            ));
            exit = Exit::GateFailed;
        }
    }
    exit
}
