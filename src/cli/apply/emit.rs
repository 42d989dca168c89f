//! `apply --as`: prints a placement in the syntax of other tools.

use anyhow::{Context as _, bail};
use serde_json::json;

use super::super::Exit;
use super::super::args::{ApplyArgs, Global};
use super::super::machine::open_machine;
use super::super::opening::require_store;
use super::super::terminal::Terminal;
use super::answer::{Answer, ArmChoice, NOTHING_TO_APPLY, read_answer};
use pinwise_machine::linux::CycleCounting;
use pinwise_placement::emit::{Context, Emission, Piece, Target, Tool, emit};
use pinwise_placement::{Placement, Realised};
use pinwise_topology::Topology;

pub(super) fn apply(
    global: &Global,
    args: &ApplyArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let targets = args.target.as_deref().map(Target::parse_list);
    let targets = targets.transpose().context("--as")?;
    if args.threads == Some(0) {
        bail!("--threads 0: a program has at least 1 thread");
    }
    if args.lasts.is_some() {
        bail!("--for goes with --pid, --unit or --cgroup: --as changes nothing");
    }
    let mut machine = open_machine(global, 0, CycleCounting::IfCheap)?;
    let (topology, _) = machine.topology()?;
    let (placement, mut context, record) = match (&args.place, &args.record) {
        (Some(place), _) => {
            let placement: Placement = place.parse().context("--place")?;
            (placement, Context::default(), None)
        }
        (None, Some(id)) => {
            let answer = read_answer(
                &require_store(global)?.load(id)?,
                &ArmChoice::from_args(global, args),
            )?;
            let context = answer.context();
            (answer.placement.parse()?, context, Some(answer))
        }
        (None, None) => bail!("apply needs a record, or a placement with --place"),
    };
    if !args.argv.is_empty() {
        context.command.clone_from(&args.argv);
    }
    context.threads = args.threads.or(context.threads);
    let source = if record.is_some() {
        "RECORD"
    } else {
        "--place"
    };
    let realised = placement.realise(&topology).map_err(|error| {
        let simulated = record.as_ref().filter(|_| global.machine.is_local());
        match simulated.and_then(|answer| answer.explain_simulated(args)) {
            Some(hint) => anyhow::anyhow!("{hint}"),
            None => anyhow::Error::new(error).context(source),
        }
    })?;
    if let Some(answer) = &record {
        note_differences(answer, &realised, &topology, terminal);
        if answer.has_nothing_to_apply() && !terminal.is_json() {
            terminal.print(&format!("# {NOTHING_TO_APPLY}\n"))?;
            return Ok(Exit::Done);
        }
    }
    let targets = targets.unwrap_or_else(|| {
        terminal.note("For other tools: --as TOOL, or all (pinwise apply --help).");
        vec![Target::new(default_tool(&realised))]
    });
    let emissions: Vec<Emission> = targets
        .iter()
        .map(|target| emit(target, &realised, &topology, &context))
        .collect();
    print(&realised, &emissions, terminal)?;
    Ok(Exit::Done)
}

/// The tool that most people would use.
const fn default_tool(realised: &Realised) -> Tool {
    match realised.memory {
        Some(_) => Tool::Numactl,
        None => Tool::Taskset,
    }
}

/// Notes how the record's machine and runs differ from what is printed.
fn note_differences(
    answer: &Answer,
    realised: &Realised,
    topology: &Topology,
    terminal: &Terminal,
) {
    if answer.shape_hash != format!("{:016x}", topology.shape_hash()) {
        terminal.warn(&format!(
            "record {} is from another machine ({}) with another shape: measure here before you rely on it",
            answer.id, answer.host
        ));
    } else if answer.cpus != realised.cpus.to_string() {
        terminal.warn(&format!(
            "record {} ran on CPUs {}; here {} stands for {}",
            answer.id, answer.cpus, answer.placement, realised.cpus
        ));
    }
    answer.note_conditions(terminal);
    if let Some(why) = &answer.nothing_to_apply {
        terminal.note(&format!("Nothing needs applying: {why}"));
    }
}

/// Prints the emissions as text, or with the placement as JSON.
pub(in crate::cli) fn print(
    realised: &Realised,
    emissions: &[Emission],
    terminal: &Terminal,
) -> anyhow::Result<()> {
    if terminal.is_json() {
        let tools: Vec<serde_json::Value> = emissions.iter().map(emission_to_json).collect();
        return terminal.print_json(&json!({
            "placement": realised.placement.to_string(),
            "cpus": realised.cpus.to_string(),
            "order": realised.order,
            "mask": realised.cpus.to_mask(),
            "memory": realised.memory.as_ref().map(|memory| memory.policy.name()),
            "memory_nodes": realised.memory.as_ref().map(|memory| &memory.nodes),
            "tools": tools,
        }));
    }
    let texts: Vec<String> = emissions
        .iter()
        .map(|emission| pinwise_report::render_emission(emission, terminal.palette()))
        .collect();
    terminal.print(&texts.join("\n"))
}

pub(super) fn emission_to_json(emission: &Emission) -> serde_json::Value {
    let pieces: Vec<serde_json::Value> = emission
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Command(line) => json!({ "command": line }),
            Piece::Variable { name, value } => json!({ "variable": name, "value": value }),
            Piece::File { path, text } => json!({ "file": path, "text": text }),
        })
        .collect();
    json!({
        "tool": emission.tool.name(),
        "pieces": pieces,
        "cannot": emission.unsupported,
        "notes": emission.notes,
        "verify": emission.verify,
    })
}
