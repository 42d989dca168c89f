//! `apply --as` for a joint plan: prints all its programs in one configuration.

use anyhow::{Context, bail};
use serde_json::json;

use super::super::Exit;
use super::super::args::{ApplyArgs, Global};
use super::super::machine::open_machine;
use super::super::opening::require_store;
use super::super::terminal::Terminal;
use super::answer::NOTHING_TO_APPLY;
use super::emit::emission_to_json;
use pinwise_machine::linux::CycleCounting;
use pinwise_placement::Placement;
use pinwise_placement::emit::{JointPlace, Target, emit_jointly};
use pinwise_record::{AnyRecord, Comparison, VerdictKind};
use pinwise_topology::Topology;

/// Prints the joint plan that the arguments name; `None` if they name none.
pub(super) fn apply(
    global: &Global,
    args: &ApplyArgs,
    terminal: &Terminal,
) -> anyhow::Result<Option<Exit>> {
    let Some(id) = args.record.as_ref().filter(|_| args.place.is_none()) else {
        return Ok(None);
    };
    match require_store(global)?.load(id)?.record()? {
        AnyRecord::Comparison(record) if record.joint.is_some() => {
            let targets = args.target.as_deref().map(Target::parse_list);
            let targets = targets.transpose().context("--as")?;
            let mut targets = targets
                .context("several programs are placed by --as systemd or --as kubernetes")?;
            if args.target.as_deref() == Some("all") {
                targets.retain(|target| target.tool.places_several());
            }
            let (topology, _) = open_machine(global, 0, CycleCounting::IfCheap)?.topology()?;
            print(&record, &targets, &topology, terminal).map(Some)
        }
        _ => Ok(None),
    }
}

fn print(
    record: &Comparison,
    targets: &[Target],
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let id = &record.id;
    let joint = record.joint.as_ref().context("no joint plan")?;
    match record.verdict.kind {
        VerdictKind::Best => {}
        VerdictKind::LeaveAlone => {
            terminal.print(&format!("# {NOTHING_TO_APPLY}\n"))?;
            return Ok(Exit::Done);
        }
        _ => bail!("record {id} has no answer: {}", record.verdict.sentence),
    }
    let programs = joint.programs.iter().map(|program| {
        let placement: Placement = program.placement.parse()?;
        let place = placement
            .realise(topology)
            .with_context(|| program.name.clone())?;
        if place.cpus.to_string() != program.cpus {
            terminal.warn(&format!(
                "record {id} ran {} on CPUs {}; here {placement} stands for {}",
                program.name, program.cpus, place.cpus
            ));
        }
        Ok(JointPlace {
            name: program.name.clone(),
            command: program.command.clone(),
            place,
        })
    });
    let programs: Vec<JointPlace> = programs.collect::<anyhow::Result<_>>()?;
    if record.host.shape_hash != format!("{:016x}", topology.shape_hash()) {
        terminal.warn(&format!(
            "record {id} is from another machine ({}) with another shape: measure here before you rely on it",
            record.host.name()
        ));
    }
    let emissions = targets.iter().map(|target| {
        emit_jointly(target.tool, &programs, topology).with_context(|| {
            format!(
                "--as {}: several programs are placed at once by systemd and kubernetes",
                target.tool.name()
            )
        })
    });
    let emissions = emissions.collect::<anyhow::Result<Vec<_>>>()?;
    if terminal.is_json() {
        let places = programs.iter().map(|program| {
            json!({
                "name": program.name,
                "placement": program.place.placement.to_string(),
                "cpus": program.place.cpus.to_string(),
            })
        });
        let tools: Vec<_> = emissions.iter().map(emission_to_json).collect();
        let places: Vec<_> = places.collect();
        terminal.print_json(&json!({ "programs": places, "tools": tools }))?;
        return Ok(Exit::Done);
    }
    let texts: Vec<String> = emissions
        .iter()
        .map(|emission| pinwise_report::render_emission(emission, terminal.palette()))
        .collect();
    terminal.print(&texts.join("\n"))?;
    Ok(Exit::Done)
}
