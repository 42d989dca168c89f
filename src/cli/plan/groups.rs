//! `--limit`, `--exclusive`, `--isolate`: arms that run in a cgroup of their own; `--fit-threads`.

use anyhow::{Context, bail};

use super::candidates::Candidate;
use crate::cli::args::{CompareArgs, GroupArgs};
use crate::cli::bound;
use pinwise_format::count;
use pinwise_machine::linux::{Ledger, cpusets_exclude_others, discover, read_interrupts};
use pinwise_machine::{Binding, OwnGroup, RunSetting};
use pinwise_placement::{CpuLimit, InterruptCpus, Placement, Realised};
use pinwise_record::{Finding, Severity};
use pinwise_study::compare::ArmPlan;
use pinwise_topology::{CpuSet, Topology};
use pinwise_workload::{Workload, thread_variables};

/// A cgroup, the name of its arm, and the CPUs of the command in it.
struct NamedGroup {
    name: String,
    place: Realised,
    group: OwnGroup,
    /// Interrupts that move to other CPUs during its runs.
    moved: Option<InterruptCpus>,
}

impl NamedGroup {
    /// Threads on isolated CPUs are bound: the scheduler does not move them, so all would stay on
    /// one CPU.
    fn binding(&self) -> Option<Binding> {
        match self.group.is_isolated {
            true => Some(Binding {
                order: self.place.order.clone(),
                settle: None,
            }),
            false => Binding::for_place(&self.place, None),
        }
    }

    fn settings(&self) -> Vec<RunSetting> {
        let group = RunSetting::Group(self.group.clone());
        let moved = self.moved.clone().map(RunSetting::Interrupts);
        std::iter::once(group).chain(moved).collect()
    }
}

/// Moves interrupts away from CPUs: their new CPUs, and the numbers of those that cannot be moved.
fn move_interrupts_away(cpus: &CpuSet, topology: &Topology) -> (InterruptCpus, CpuSet) {
    let mut topology = topology.clone();
    read_interrupts(&mut topology);
    InterruptCpus::move_away_from(cpus, &topology)
}

fn format_limit_name(limit: CpuLimit) -> String {
    format!("limit={limit}")
}

fn format_cpuset_name(kind: &str, placement: &str) -> String {
    format!("{kind} {placement}")
}

/// The names of the arms of the requested groups.
pub(super) fn list_arm_names(args: &GroupArgs) -> impl Iterator<Item = String> {
    let limits = args.limits.iter().copied().map(format_limit_name);
    let exclusive = args
        .exclusive
        .iter()
        .map(|p| format_cpuset_name("exclusive", p));
    let isolated = args
        .isolate
        .iter()
        .map(|p| format_cpuset_name("isolate", p));
    limits.chain(exclusive).chain(isolated)
}

/// Parses the first limit, if there are limits and cpusets.
pub(super) fn limit_beside_cpusets(args: &GroupArgs) -> Option<String> {
    let has_cpusets = !(args.exclusive.is_empty() && args.isolate.is_empty());
    let first = args.limits.first().filter(|_| has_cpusets);
    first.copied().map(format_limit_name)
}

/// The requested groups for this machine; refuses equal ones.
fn parse_groups(args: &GroupArgs, topology: &Topology) -> anyhow::Result<Vec<NamedGroup>> {
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
            name: format_limit_name(*limit),
            place: Placement::os_default().realise(topology)?,
            group: OwnGroup {
                limit: Some(*limit),
                ..OwnGroup::default()
            },
            moved: None,
        });
    }
    let exclusive = args.exclusive.iter().map(|text| (text, false));
    let isolated = args.isolate.iter().map(|text| (text, true));
    for (text, is_isolated) in exclusive.chain(isolated) {
        let kind = if is_isolated { "isolate" } else { "exclusive" };
        let about = || format!("--{kind} {text}");
        let placement: Placement = text.parse().with_context(about)?;
        let place = placement.realise(topology).with_context(about)?;
        if is_isolated && topology.online.is_subset(&place.cpus) {
            bail!("{}: a CPU must be left for all others", about());
        }
        found.push(NamedGroup {
            name: format_cpuset_name(kind, text),
            group: OwnGroup {
                cpus: Some(place.cpus.clone()),
                is_isolated,
                ..OwnGroup::default()
            },
            moved: is_isolated.then(|| move_interrupts_away(&place.cpus, topology).0),
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

/// Adds an arm of every command in every group.
pub(super) fn add_arms(
    arms: &mut Vec<ArmPlan>,
    args: &CompareArgs,
    candidates: &[Candidate],
    workloads: &[Workload],
    topology: &Topology,
) -> anyhow::Result<()> {
    let groups = parse_groups(&args.groups, topology)?;
    for (candidate, workload) in candidates.iter().zip(workloads) {
        for group in &groups {
            let binding = group.binding();
            arms.push(ArmPlan {
                name: match (&candidate.name, candidates.len()) {
                    (Some(candidate), 2..) => format!("{candidate} @ {}", group.name),
                    _ => group.name.clone(),
                },
                workload: bound::add_missing_variables(workload, binding.as_ref()),
                place: group.place.clone(),
                same_as: Vec::new(),
                is_default: false,
                binding,
                settings: group.settings(),
            });
        }
    }
    Ok(())
}

/// Gives arms without a group one without limits. A group gets a share of the CPUs beside other
/// groups, and joining one takes time: arms must not differ by that.
pub(super) fn add_missing_groups(arms: &mut [ArmPlan]) {
    for arm in arms {
        if arm.settings.iter().all(|setting| setting.group().is_none()) {
            arm.settings.push(RunSetting::Group(OwnGroup::default()));
        }
    }
}

/// Adds after every limited or placed arm the same with as many threads as fit.
pub(super) fn add_fitting_threads(arms: Vec<ArmPlan>) -> anyhow::Result<Vec<ArmPlan>> {
    let before = arms.len();
    let all: Vec<ArmPlan> = arms
        .into_iter()
        .flat_map(|arm| {
            let fitting = count_fitting_threads(&arm).map(|threads| {
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

/// The number of threads for which a limit or a placement has CPUs; `None` for an arm with neither.
fn count_fitting_threads(arm: &ArmPlan) -> Option<usize> {
    let groups = arm.settings.iter().filter_map(RunSetting::group);
    let limits = groups.filter_map(|group| group.limit);
    let is_placed = arm.place.placement != Placement::os_default();
    let placed = is_placed.then(|| arm.place.cpus.len());
    limits.map(CpuLimit::threads).chain(placed).min()
}

/// Describes the groups by the settings with which systemd, Docker and Kubernetes make them.
pub(super) fn describe(
    args: &CompareArgs,
    arms: &[ArmPlan],
    topology: &Topology,
) -> Option<Finding> {
    if !args.groups.are_given() {
        return None;
    }
    let mut sentences = vec!["Each run had a cgroup of its own.".to_owned()];
    for limit in &args.groups.limits {
        let [of_systemd, of_kubelet] = match limit.custom_period_text() {
            None => [String::new(), String::new()],
            Some(period) => [
                format!(" CPUQuotaPeriodSec={period}"),
                format!(" with cpuCFSQuotaPeriod: {period} of the kubelet"),
            ],
        };
        sentences.push(format!(
            "limit={limit} is {}{of_systemd} of systemd, {} of Docker, limits.cpu: {} of Kubernetes{of_kubelet}.",
            limit.systemd_property(),
            limit.docker_options().join(" "),
            limit.kubernetes_quantity(),
        ));
    }
    for arm in arms {
        let groups = arm.settings.iter().filter_map(RunSetting::group);
        for group in groups {
            let Some(cpus) = &group.cpus else { continue };
            if group.is_isolated {
                sentences.push(describe_isolation(&arm.name, cpus, topology));
                continue;
            }
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

/// Describes how CPUs are isolated without pinwise, and what still runs on them.
fn describe_isolation(name: &str, cpus: &CpuSet, topology: &Topology) -> String {
    let (_, stuck) = move_interrupts_away(cpus, topology);
    let rest = match stuck.is_empty() {
        true => String::new(),
        false => format!(" The kernel lets nobody move interrupts {stuck}, which came there."),
    };
    format!(
        "{name} had a thread on each of CPUs {cpus} in a partition (cpuset.cpus.partition: isolated; for good, isolcpus={cpus} at boot).{rest} Kernel threads bound to a CPU and, before Linux 6.8, unbound kernel work stay there."
    )
}

/// Makes each group once, so that errors are reported before anything runs.
pub(super) fn check_groups(args: &GroupArgs, ledger: &mut Ledger) -> anyhow::Result<()> {
    let (topology, _) = discover()?;
    for group in parse_groups(args, &topology)? {
        let option = match group.name.strip_prefix("limit=") {
            Some(limit) => format!("--limit {limit}"),
            None => format!("--{}", group.name),
        };
        for setting in group.settings() {
            ledger.check_setting(&setting).context(option.clone())?;
        }
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
        CpuLimit::new(cpus, CpuLimit::DEFAULT_PERIOD).unwrap()
    }

    fn isolate(placement: &str) -> GroupArgs {
        GroupArgs {
            isolate: vec![placement.to_owned()],
            ..args(&[], &["compact*2"])
        }
    }

    fn args(limits: &[f64], exclusive: &[&str]) -> GroupArgs {
        GroupArgs {
            limits: limits.iter().map(|&cpus| limit(cpus)).collect(),
            exclusive: exclusive.iter().map(|&text| text.to_owned()).collect(),
            isolate: Vec::new(),
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
    fn groups_have_names_and_equal_ones_are_refused() {
        let names = |args: &GroupArgs| -> anyhow::Result<Vec<String>> {
            let found = parse_groups(args, &four_cpus())?;
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
            (
                isolate("compact*4"),
                "--isolate compact*4: a CPU must be left for all others",
            ),
        ] {
            let error = format!("{:#}", names(&args).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn threads_in_an_isolated_cpuset_are_bound() {
        let groups = parse_groups(&isolate("compact*2"), &four_cpus()).unwrap();
        let orders = groups.iter().map(|group| Some(group.binding()?.order));
        assert_eq!(orders.collect::<Vec<_>>(), [None, Some(vec![0, 1])]);
        let is_moved = |setting: &RunSetting| matches!(setting, RunSetting::Interrupts(_));
        let moved = groups
            .iter()
            .map(|group| group.settings().iter().any(is_moved));
        assert_eq!(moved.collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn limited_and_placed_arms_repeat_with_fitting_threads() {
        let limited = |cpus| {
            let limit = Some(limit(cpus));
            RunSetting::Group(OwnGroup {
                limit,
                ..OwnGroup::default()
            })
        };
        let arms = vec![
            arm("os-default", Vec::new()),
            arm("os-default", vec![limited(2.5)]),
            arm("os-default", vec![limited(0.5)]),
            arm("compact*3", Vec::new()),
        ];
        let all = add_fitting_threads(arms).unwrap();
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
        assert!(add_fitting_threads(vec![arm("os-default", Vec::new())]).is_err());
    }

    #[test]
    fn every_arm_has_a_group() {
        let mut arms = vec![arm("os-default", Vec::new()), arm("compact*2", Vec::new())];
        add_missing_groups(&mut arms);
        add_missing_groups(&mut arms);
        let plain = [RunSetting::Group(OwnGroup::default())];
        assert!(arms.iter().all(|arm| arm.settings == plain));
    }
}
