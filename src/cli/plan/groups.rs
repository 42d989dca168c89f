//! `--limit`, `--exclusive`: cgroups of a command's own as arms; `--fit-threads`.

use anyhow::{Context, bail};

use super::candidates::Candidate;
use crate::cli::args::{CompareArgs, GroupArgs};
use crate::cli::bound;
use pinwise_format::count;
use pinwise_machine::linux::{Ledger, cpusets_exclude_others, discover};
use pinwise_machine::{Binding, OwnGroup, RunSetting};
use pinwise_placement::{CpuLimit, Placement, Realised};
use pinwise_record::{Finding, Severity};
use pinwise_study::compare::ArmPlan;
use pinwise_topology::Topology;
use pinwise_workload::{Workload, thread_variables};

/// A cgroup with its name as an arm, and where the command runs in it.
struct NamedGroup {
    name: String,
    place: Realised,
    group: OwnGroup,
}

/// The groups asked for.
fn groups(args: &GroupArgs, topology: &Topology) -> anyhow::Result<Vec<NamedGroup>> {
    let mut found: Vec<NamedGroup> = Vec::new();
    for limit in &args.limits {
        let cpus = topology.allowed.len();
        if limit.cpus() >= cpus as f64 {
            bail!(
                "--limit {limit}: it would limit nothing: this process may use {}",
                count(cpus, "CPU")
            );
        }
        found.push(NamedGroup {
            name: format!("limit={limit}"),
            place: Placement::os_default().realise(topology)?,
            group: OwnGroup {
                limit: Some(*limit),
                cpus: None,
            },
        });
    }
    for text in &args.exclusive {
        let about = || format!("--exclusive {text}");
        let placement: Placement = text.parse().with_context(about)?;
        let place = placement.realise(topology).with_context(about)?;
        found.push(NamedGroup {
            name: format!("exclusive {text}"),
            group: OwnGroup {
                limit: None,
                cpus: Some(place.cpus.clone()),
            },
            place,
        });
    }
    for (at, group) in found.iter().enumerate() {
        let is_same = |other: &&NamedGroup| other.group == group.group;
        if let Some(other) = found[..at].iter().find(is_same) {
            bail!(
                "{} is the same as {} here: give one of them",
                group.name,
                other.name
            );
        }
    }
    Ok(found)
}

/// Adds every command in every group.
pub(super) fn add_arms(
    arms: &mut Vec<ArmPlan>,
    args: &CompareArgs,
    candidates: &[Candidate],
    workloads: &[Workload],
    topology: &Topology,
) -> anyhow::Result<()> {
    let groups = groups(&args.groups, topology)?;
    for (candidate, workload) in candidates.iter().zip(workloads) {
        for NamedGroup { name, place, group } in &groups {
            let binding = Binding::for_place(place, None);
            arms.push(ArmPlan {
                name: match (&candidate.name, candidates.len()) {
                    (Some(candidate), 2..) => format!("{candidate} @ {name}"),
                    _ => name.clone(),
                },
                workload: bound::workload(workload, binding.as_ref()),
                place: place.clone(),
                same_as: Vec::new(),
                is_default: false,
                binding,
                settings: vec![RunSetting::Group(group.clone())],
            });
        }
    }
    Ok(())
}

/// Gives arms without a group one that limits nothing. A group has a share of the CPUs
/// beside other groups, and joining one takes time: no arm may differ by that.
pub(super) fn give_to_all(arms: &mut [ArmPlan]) {
    for arm in arms {
        if arm.settings.iter().all(|setting| setting.group().is_none()) {
            arm.settings.push(RunSetting::Group(OwnGroup::default()));
        }
    }
}

/// Every arm, and after it the same with as many threads as fit, where there is such a
/// number.
pub(super) fn with_fitting_threads(arms: Vec<ArmPlan>) -> anyhow::Result<Vec<ArmPlan>> {
    let before = arms.len();
    let all: Vec<ArmPlan> = arms
        .into_iter()
        .flat_map(|arm| {
            let fitting = fitting_threads(&arm).map(|threads| {
                let mut environment = arm.workload.environment.clone();
                let added = thread_variables(threads);
                environment.retain(|(name, _)| added.iter().all(|(other, _)| other != name));
                environment.extend(added);
                ArmPlan {
                    name: format!("{}, {}", arm.name, count(threads, "thread")),
                    workload: Workload {
                        environment,
                        ..arm.workload.clone()
                    },
                    is_default: false,
                    ..arm.clone()
                }
            });
            std::iter::once(arm).chain(fitting)
        })
        .collect();
    if all.len() == before {
        bail!("--fit-threads: no arm is limited or placed; give --limit, --exclusive or --place");
    }
    Ok(all)
}

fn fitting_threads(arm: &ArmPlan) -> Option<usize> {
    let groups = arm.settings.iter().filter_map(RunSetting::group);
    let limits = groups.filter_map(|group| group.limit);
    let is_placed = arm.place.placement != Placement::os_default();
    let placed = is_placed.then(|| arm.place.cpus.len());
    limits.map(CpuLimit::threads).chain(placed).min()
}

/// What the groups are in the words of those that make them elsewhere.
pub(super) fn describe(args: &CompareArgs, arms: &[ArmPlan]) -> Option<Finding> {
    if !args.groups.are_given() {
        return None;
    }
    let mut sentences = vec!["Each run had a cgroup of its own.".to_owned()];
    for limit in &args.groups.limits {
        sentences.push(format!(
            "limit={limit} is {} of systemd, {} of Docker, limits.cpu: {} of Kubernetes.",
            limit.systemd(),
            limit.docker().join(" "),
            limit.kubernetes(),
        ));
    }
    for arm in arms {
        let groups = arm.settings.iter().filter_map(RunSetting::group);
        for cpus in groups.filter_map(|group| group.cpus.as_ref()) {
            sentences.push(format!(
                "{} is AllowedCPUs={cpus} of systemd, --cpuset-cpus={cpus} of Docker, and for Kubernetes a Guaranteed pod with cpu: {} under the static policy.",
                arm.name,
                cpus.len()
            ));
        }
    }
    if !args.groups.exclusive.is_empty() && !cpusets_exclude_others() {
        sentences.push(
            "Others could run on an exclusive arm's CPUs as well: only cgroup v2 keeps them away."
                .to_owned(),
        );
    }
    Some(Finding::new(
        "cgroups",
        Severity::Note,
        sentences.join(" "),
        "",
    ))
}

/// Makes each group once, so that any obstacle is reported before anything runs.
pub(super) fn check(args: &GroupArgs, ledger: &mut Ledger) -> anyhow::Result<()> {
    let (topology, _) = discover()?;
    for NamedGroup { name, group, .. } in groups(args, &topology)? {
        let option = match name.strip_prefix("limit=") {
            Some(limit) => format!("--limit {limit}"),
            None => format!("--{name}"),
        };
        ledger
            .check_setting(&RunSetting::Group(group))
            .context(option)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_workload::Command;

    fn four_cpus() -> Topology {
        Topology::from_synthetic("package:1 core:4 pu:1").unwrap()
    }

    fn limit(cpus: f64) -> CpuLimit {
        CpuLimit::new(cpus, CpuLimit::PERIOD).unwrap()
    }

    fn args(limits: &[f64], exclusive: &[&str]) -> GroupArgs {
        GroupArgs {
            limits: limits.iter().map(|&cpus| limit(cpus)).collect(),
            exclusive: exclusive.iter().map(|&text| text.to_owned()).collect(),
            fit_threads: false,
        }
    }

    fn arm(placement: &str, settings: Vec<RunSetting>) -> ArmPlan {
        let placement: Placement = placement.parse().unwrap();
        ArmPlan {
            name: placement.to_string(),
            workload: Workload::new(Command::from_line("prog").unwrap()),
            place: placement.realise(&four_cpus()).unwrap(),
            same_as: Vec::new(),
            is_default: true,
            binding: None,
            settings,
        }
    }

    #[test]
    fn groups_have_names_and_none_comes_twice() {
        let names = |args: &GroupArgs| -> anyhow::Result<Vec<String>> {
            let found = groups(args, &four_cpus())?;
            Ok(found.into_iter().map(|group| group.name).collect())
        };
        let found = names(&args(&[0.5, 2.0], &["compact*2"])).unwrap();
        assert_eq!(found, ["limit=0.5", "limit=2", "exclusive compact*2"]);
        for (args, words) in [
            (args(&[4.0], &[]), "--limit 4: it would limit nothing"),
            (
                args(&[1.0, 1.0], &[]),
                "limit=1 is the same as limit=1 here",
            ),
            (
                args(&[], &["cpu:0,1", "compact*2"]),
                "is the same as exclusive cpu:0,1 here",
            ),
            (args(&[], &["cpu:9"]), "--exclusive cpu:9"),
        ] {
            let error = format!("{:#}", names(&args).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn as_many_threads_as_fit() {
        let limited = |cpus| {
            let limit = Some(limit(cpus));
            RunSetting::Group(OwnGroup { limit, cpus: None })
        };
        let arms = vec![
            arm("os-default", Vec::new()),
            arm("os-default", vec![limited(2.5)]),
            arm("os-default", vec![limited(0.5)]),
            arm("compact*3", Vec::new()),
        ];
        let all = with_fitting_threads(arms).unwrap();
        let names: Vec<&str> = all.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "os-default",
                "os-default",
                "os-default, 2 threads",
                "os-default",
                "os-default, 1 thread",
                "compact*3",
                "compact*3, 3 threads",
            ]
        );
        assert!(all[0].is_default && !all[2].is_default);
        let threads = ("OMP_NUM_THREADS".to_owned(), "2".to_owned());
        assert!(all[2].workload.environment.contains(&threads));
        assert!(with_fitting_threads(vec![arm("os-default", Vec::new())]).is_err());
    }

    #[test]
    fn every_arm_has_a_group() {
        let mut arms = vec![arm("os-default", Vec::new()), arm("compact*2", Vec::new())];
        give_to_all(&mut arms);
        give_to_all(&mut arms);
        let plain = [RunSetting::Group(OwnGroup::default())];
        assert!(arms.iter().all(|arm| arm.settings == plain));
    }
}
