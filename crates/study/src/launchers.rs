//! Commands that start a program in a placement with other tools: init systems, batch systems,
//! containers, runtimes.

use pinwise_format::shell;
use pinwise_placement::emit::{Context, Piece, Target, Tool, emit};
use pinwise_placement::{Realised, Wish};
use pinwise_record::{CommandRecord, SettingRecord};
use pinwise_topology::Topology;

/// The tools, with their names.
const LAUNCHERS: [(Tool, &str); 4] = [
    (Tool::SystemdRun, "systemd"),
    (Tool::Slurm, "Slurm"),
    (Tool::Docker, "Docker"),
    (Tool::Omp, "OpenMP"),
];

/// Placeholder for the program in an emitter's output.
const PROGRAM: &str = "COMMAND";

/// A command for each tool that can express the whole placement and its setting; none if nothing is
/// placed or limited. `program` gives the program's command line, escaped for the tool; `None` if
/// there is no program to start.
pub(crate) fn launcher_commands(
    place: &Realised,
    setting: &SettingRecord,
    topology: &Topology,
    program: &dyn Fn(Tool) -> Option<String>,
) -> Vec<CommandRecord> {
    let is_unplaced = place.placement.wish == Wish::OsDefault && place.memory.is_none();
    if is_unplaced && !setting.has_group() {
        return Vec::new();
    }
    let context = Context {
        command: vec![PROGRAM.to_owned()],
        limit: setting.limit.and_then(|limit| limit.to_limit()),
        ..Context::default()
    };
    let commands = LAUNCHERS.iter().filter_map(|&(tool, name)| {
        if setting.is_exclusive && !tool.uses_cgroup() {
            return None;
        }
        let emission = emit(&Target::new(tool), place, topology, &context);
        if !emission.unsupported.is_empty() {
            return None;
        }
        let line = join_pieces(&emission.pieces, &program(tool)?)?;
        Some(CommandRecord {
            what: format!("with {name}"),
            line,
        })
    });
    commands.collect()
}

/// The first command, with the variables before it in front. Variables in `program` come later in the
/// line and take precedence.
fn join_pieces(pieces: &[Piece], program: &str) -> Option<String> {
    let mut variables = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Variable { name, value } => variables.push(format!("{name}={value}")),
            Piece::Command(line) => {
                let launcher = line.strip_suffix(PROGRAM)?;
                let env = match variables.as_slice() {
                    [] => String::new(),
                    variables => format!("env {} ", shell::line(variables)),
                };
                return Some(format!("{env}{launcher}{program}"));
            }
            Piece::File { .. } => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_placement::Placement;
    use pinwise_record::CpuLimitRecord;

    #[track_caller]
    fn check(placement: &str, expected: &[&str]) {
        let topology = Topology::from_synthetic("package:2 l3:1 core:4 pu:2").unwrap();
        let placement: Placement = placement.parse().unwrap();
        let place = placement.realise(&topology).unwrap();
        let program = |tool: Tool| Some(format!("./prog '{}' < in", tool.escape_word("$a b")));
        let commands = launcher_commands(&place, &SettingRecord::default(), &topology, &program);
        let lines: Vec<String> = commands.into_iter().map(|c| c.line).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_placement_is_passed_to_launchers() {
        check(
            "one-core",
            &[
                "systemd-run --wait --pipe --collect --same-dir -p AllowedCPUs=0-1 -p \
                 CPUAffinity=0-1 -- ./prog '$$a b' < in",
                "srun --ntasks=1 --cpus-per-task=2 --cpu-bind=mask_cpu:0x3 ./prog '$a b' < in",
                "docker run --rm -i --cpuset-cpus=0-1 IMAGE ./prog '$a b' < in",
                "env 'OMP_PLACES={0,1}' OMP_PROC_BIND=close OMP_NUM_THREADS=2 ./prog '$a b' < in",
            ],
        );
        check("os-default", &[]);
    }

    #[test]
    fn a_cpu_limit_is_passed_to_launchers_that_support_one() {
        let topology = Topology::from_synthetic("package:1 core:4 pu:1").unwrap();
        let lines = |placement: &str, setting: &SettingRecord| -> Vec<String> {
            let placement: Placement = placement.parse().unwrap();
            let place = placement.realise(&topology).unwrap();
            let commands =
                launcher_commands(&place, setting, &topology, &|_| Some("./prog".to_owned()));
            commands.into_iter().map(|command| command.line).collect()
        };
        let limited = SettingRecord {
            limit: Some(CpuLimitRecord {
                cpus: 2.0,
                period_s: 0.1,
            }),
            ..SettingRecord::default()
        };
        assert_eq!(
            lines("os-default", &limited),
            [
                "systemd-run --wait --pipe --collect --same-dir -p CPUQuota=200% -- ./prog",
                "docker run --rm -i --cpus=2 IMAGE ./prog",
            ]
        );
        let exclusive = SettingRecord {
            is_exclusive: true,
            ..SettingRecord::default()
        };
        assert_eq!(lines("compact*2", &exclusive).len(), 2);
    }

    #[test]
    fn tools_that_cannot_bind_threads_are_left_out() {
        check(
            "cpu:0,2/bound",
            &["env 'OMP_PLACES={0},{2}' OMP_PROC_BIND=close OMP_NUM_THREADS=2 ./prog '$a b' < in"],
        );
    }
}
