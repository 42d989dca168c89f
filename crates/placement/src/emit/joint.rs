//! Placements of several programs that share a machine, as one configuration.

use super::{Context, Emission, Piece, Request, Target, Tool, containers, emit};
use crate::{Realised, Wish};
use pinwise_format::shell;
use pinwise_topology::Topology;

/// A program of a joint plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JointPlace {
    /// Its name, which its unit, pod and container have as well.
    pub name: String,
    /// The program with its arguments.
    pub command: Vec<String>,
    /// Its CPUs.
    pub place: Realised,
}

/// Places several programs at once; `None` for tools that place one program.
#[must_use]
pub fn emit_jointly(tool: Tool, programs: &[JointPlace], topology: &Topology) -> Option<Emission> {
    match tool {
        Tool::Systemd => Some(emit_systemd_units(programs, topology)),
        Tool::Kubernetes => Some(emit_pods(programs, topology)),
        _ => None,
    }
}

fn emit_systemd_units(programs: &[JointPlace], topology: &Topology) -> Emission {
    let mut pieces = Vec::new();
    let mut units = Vec::new();
    let mut notes = vec![
        "Each program is expected in a unit of its name; rename the folders if yours differ."
            .to_owned(),
    ];
    for program in programs.iter().filter(|program| is_placed(program)) {
        let unit = format!("{}.service", program.name);
        let target = Target {
            tool: Tool::Systemd,
            unit: Some(unit.clone()),
        };
        let emission = emit(&target, &program.place, topology, &Context::default());
        let files = emission.pieces.into_iter();
        pieces.extend(files.filter(|piece| matches!(piece, Piece::File { .. })));
        notes.extend(emission.notes);
        units.push(unit);
    }
    notes.sort_unstable();
    notes.dedup();
    notes.extend(name_unplaced(programs));
    let units = shell::line(&units);
    pieces.push(Piece::Command("systemctl daemon-reload".to_owned()));
    pieces.push(Piece::Command(format!("systemctl restart {units}")));
    Emission {
        tool: Tool::Systemd,
        pieces,
        unsupported: Vec::new(),
        notes,
        verify: format!("systemctl show -p Id,EffectiveCPUs,CPUAffinity {units}"),
    }
}

/// A pod for each program: whole CPUs of its own, or the shared pool.
fn emit_pods(programs: &[JointPlace], topology: &Topology) -> Emission {
    let write = |program: &JointPlace, text: fn(&Request<'_>) -> String| {
        let context = Context {
            command: program.command.clone(),
            ..Context::default()
        };
        text(&Request {
            tool: Tool::Kubernetes,
            realised: &program.place,
            topology,
            context: &context,
        })
    };
    let is_exclusive = |program: &&JointPlace| {
        let others = programs.iter().filter(|other| other.name != program.name);
        let mut others = others.map(|other| &other.place.cpus);
        is_placed(program) && !others.any(|cpus| cpus.intersects(&program.place.cpus))
    };
    let mut pods = String::new();
    for program in programs {
        let container = match is_exclusive(&program) {
            true => write(program, containers::write_pod),
            false => write(program, containers::write_sharing_pod),
        };
        let container = container.lines().map(|line| format!("    {line}\n"));
        pods.push_str(&format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {0}\nspec:\n  containers:\n  - name: \
             {0}\n    image: IMAGE\n{1}",
            program.name.to_lowercase().replace('_', "-"),
            container.collect::<String>()
        ));
    }
    let mut pieces = vec![Piece::File {
        path: "pods.yaml".to_owned(),
        text: pods,
    }];
    let exclusive = programs.iter().filter(is_exclusive);
    let largest = exclusive.max_by_key(|program| program.place.cpus.len());
    if let Some(program) = largest {
        pieces.push(Piece::File {
            path: "/var/lib/kubelet/config.yaml, of the node".to_owned(),
            text: write(program, containers::write_kubelet_config),
        });
    }
    let unsupported = vec![
        "A pod cannot name CPUs: the kubelet chooses them by its policy.".to_owned(),
        "Programs that share CPUs get the node's shared pool: all CPUs that no pod has for its own."
            .to_owned(),
    ];
    Emission {
        tool: Tool::Kubernetes,
        pieces,
        unsupported,
        notes: vec![
            "A changed policy takes effect only after draining the node and removing \
             cpu_manager_state."
                .to_owned(),
        ],
        verify: "kubectl exec POD -- grep Cpus_allowed_list /proc/self/status".to_owned(),
    }
}

fn is_placed(program: &JointPlace) -> bool {
    program.place.placement.wish != Wish::OsDefault
}

/// A sentence that names the programs that are not placed.
fn name_unplaced(programs: &[JointPlace]) -> Option<String> {
    let names = programs.iter().filter(|program| !is_placed(program));
    let names: Vec<&str> = names.map(|program| program.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("Left on all CPUs: {}.", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn realise_programs(placements: [&str; 3]) -> (Vec<JointPlace>, Topology) {
        let topology = Topology::from_synthetic("package:1 core:4 pu:2").unwrap();
        let names = ["web", "batch_1", "rest"];
        let programs = names.into_iter().zip(placements).map(|(name, placement)| {
            let placement: crate::Placement = placement.parse().unwrap();
            JointPlace {
                name: name.to_owned(),
                command: vec![name.to_owned(), "-x $y".to_owned()],
                place: placement.realise(&topology).unwrap(),
            }
        });
        (programs.collect(), topology)
    }

    #[test]
    fn systemd_has_a_drop_in_for_each_placed_program() {
        let (programs, topology) = realise_programs(["cpu:0-1", "cpu:2-7", "os-default"]);
        let text = emit_jointly(Tool::Systemd, &programs, &topology)
            .unwrap()
            .text();
        assert_eq!(
            text,
            "# /etc/systemd/system/web.service.d/50-pinwise.conf\n\
             [Service]\nAllowedCPUs=0-1\nCPUAffinity=0-1\n\
             # /etc/systemd/system/batch_1.service.d/50-pinwise.conf\n\
             [Service]\nAllowedCPUs=2-7\nCPUAffinity=2-7\n\
             # then, in a shell:\n\
             systemctl daemon-reload\nsystemctl restart web.service batch_1.service\n"
        );
    }

    #[test]
    fn pods_have_exclusive_cpus_unless_programs_share_them() {
        let (programs, topology) = realise_programs(["cpu:0-1", "cpu:2-7", "cpu:4-7"]);
        let text = emit_jointly(Tool::Kubernetes, &programs, &topology)
            .unwrap()
            .text();
        assert!(text.contains("name: batch-1\n"), "{text}");
        assert!(text.contains("command: [\"web\",\"-x $$y\"]"), "{text}");
        let exclusive = "    resources:\n      requests:\n        cpu: \"2\"\n";
        assert!(text.contains(exclusive), "{text}");
        // The other two programs share CPUs 4-7, so neither gets a limit.
        assert_eq!(text.matches("limits:").count(), 1, "{text}");
        assert!(text.contains("cpuManagerPolicy: static"), "{text}");
        for tool in Tool::ALL {
            let emission = emit_jointly(tool, &programs, &topology);
            assert_eq!(emission.is_some(), tool.places_several(), "{tool:?}");
        }
    }
}
