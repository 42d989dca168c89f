//! `--what-if`: arms on smaller machines, simulated by masks or with CPUs offline.

use anyhow::{Context, bail};

use super::candidates::Candidate;
use crate::cli::args::WhatIfArgs;
use crate::cli::values::MachineSpec;
use pinwise_machine::RunSetting;
use pinwise_machine::linux::{Ledger, LedgerOptions, discover};
use pinwise_placement::{Placement, Realised, Wish};
use pinwise_record::{Finding, Severity};
use pinwise_study::compare::ArmPlan;
use pinwise_topology::{CpuSet, Level, Topology};
use pinwise_workload::Workload;

/// A smaller machine.
pub(super) struct SmallerMachine {
    /// The name on the command line, with `(real)` if CPUs are switched off.
    pub(super) name: String,
    /// Its CPUs.
    pub(super) place: Realised,
    /// CPUs that are switched off during its runs.
    pub(super) offline: Option<CpuSet>,
}

/// Parses the requested smaller machines.
pub(super) fn parse_machines(
    args: &WhatIfArgs,
    topology: &Topology,
) -> anyhow::Result<Vec<SmallerMachine>> {
    let mut found: Vec<SmallerMachine> = Vec::new();
    for text in &args.machines {
        let about = || format!("--what-if {text}");
        let placement = parse_machine(text).with_context(about)?;
        let place = placement.realise(topology).with_context(about)?;
        if place.cpus == topology.allowed {
            bail!(
                "--what-if {text}: this machine is not larger than that (CPUs {})",
                topology.allowed
            );
        }
        if let Some(same) = found.iter().find(|other| other.place.cpus == place.cpus) {
            bail!("--what-if {text}: the same CPUs as {}", same.name);
        }
        found.push(SmallerMachine {
            name: match args.real {
                true => format!("{text} (real)"),
                false => text.clone(),
            },
            offline: args.real.then(|| topology.online.difference(&place.cpus)),
            place,
        });
    }
    Ok(found)
}

fn parse_machine(text: &str) -> anyhow::Result<Placement> {
    if let Some(number) = text.strip_prefix("cpus=") {
        let count = number.parse().ok().filter(|&count: &usize| count > 0);
        let count = count.with_context(|| format!("'{number}' is not a number of CPUs"))?;
        return Ok(Placement::with_count(Wish::Spread, count));
    }
    Ok(Placement::new(match text {
        "smt-off" => Wish::OnePerCore,
        "one-node" => Wish::One(Level::Numa, 0),
        "one-package" => Wish::One(Level::Package, 0),
        _ => bail!("no such machine; known are smt-off, cpus=N, one-node, one-package"),
    }))
}

/// Makes an arm of every command on every smaller machine.
pub(super) fn make_arms(
    candidates: &[Candidate],
    workloads: &[Workload],
    machines: &[SmallerMachine],
) -> Vec<ArmPlan> {
    let mut arms = Vec::new();
    for (candidate, workload) in candidates.iter().zip(workloads) {
        for machine in machines {
            arms.push(ArmPlan {
                name: match (&candidate.name, candidates.len()) {
                    (Some(name), 2..) => format!("{name} @ {}", machine.name),
                    _ => machine.name.clone(),
                },
                workload: workload.clone(),
                place: machine.place.clone(),
                same_as: Vec::new(),
                is_default: false,
                binding: None,
                settings: machine
                    .offline
                    .clone()
                    .map(RunSetting::Offline)
                    .into_iter()
                    .collect(),
            });
        }
    }
    arms
}

/// Describes what a smaller machine was, and what it does not change.
pub(super) fn describe(machines: &[SmallerMachine], topology: &Topology) -> Option<Finding> {
    let first = machines.first()?;
    let is_real = first.offline.is_some();
    let mut finding = if is_real {
        Finding::new(
            "what-if",
            Severity::Note,
            "CPUs were switched off for the whole host during each run of a smaller machine, and on again after it.",
            "",
        )
    } else {
        Finding::new(
            "what-if",
            Severity::Note,
            "The smaller machines were masks: /proc/cpuinfo and sysfs still show every CPU, and the CPUs left out still run others' threads.",
            "A program that counts CPUs by /proc or sysfs starts threads for all of them; --real (root) switches CPUs off.",
        )
    };
    for each in machines {
        let off = match &each.offline {
            Some(off) => off.clone(),
            None => topology.allowed.difference(&each.place.cpus),
        };
        let key = if is_real { "offline" } else { "left out" };
        finding = finding.with_evidence(&format!("{}, CPUs {key}", each.name), off.to_string());
    }
    Some(finding)
}

/// Opens the ledger for `--real`, before the machine is open, and tries it, so that errors are
/// reported before anything runs.
pub(super) fn open_ledger(
    args: &WhatIfArgs,
    machine: &MachineSpec,
    is_traced: bool,
    options: LedgerOptions,
) -> anyhow::Result<Ledger> {
    if !machine.is_local() {
        bail!("--real switches CPUs of this host: omit it with --machine {machine}");
    }
    if is_traced {
        bail!("--real: its runs cannot be traced; omit --trace");
    }
    let (topology, _) = discover()?;
    if topology.allowed != topology.online {
        bail!(
            "--real: this process may use only CPUs {} of {}: run it where all are allowed, or omit --real",
            topology.allowed,
            topology.online
        );
    }
    let machines = parse_machines(args, &topology)?;
    let mut ledger = Ledger::open(options).context("--real")?;
    for machine in machines {
        let off = RunSetting::Offline(machine.offline.unwrap_or_default());
        ledger.check_setting(&off).with_context(|| {
            format!(
                "--real, {} (it needs root, and a host or container that lets CPUs be switched)",
                machine.name
            )
        })?;
    }
    Ok(ledger)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(machines: &[&str], real: bool) -> WhatIfArgs {
        WhatIfArgs {
            machines: machines.iter().map(|&name| name.to_owned()).collect(),
            real,
        }
    }

    #[track_caller]
    fn check(machine: &str, cpus: &str, off: &str) {
        let topology = Topology::from_synthetic("package:2 core:2 pu:2").unwrap();
        let found = parse_machines(&args(&[machine], true), &topology).unwrap();
        assert_eq!(found[0].place.cpus.to_string(), cpus);
        assert_eq!(found[0].offline.as_ref().unwrap().to_string(), off);
        let masks = parse_machines(&args(&[machine], false), &topology).unwrap();
        assert_eq!(
            (masks[0].name.as_str(), &masks[0].offline),
            (machine, &None)
        );
    }

    #[test]
    fn smaller_machines_lack_cpus() {
        check("smt-off", "0,2,4,6", "1,3,5,7");
        check("cpus=2", "0,4", "1-3,5-7");
        check("one-package", "0-3", "4-7");
    }

    #[test]
    fn invalid_smaller_machines_are_refused() {
        let topology = Topology::from_synthetic("package:1 core:4 pu:1").unwrap();
        let refused = |machines: &[&str]| {
            let refused = parse_machines(&args(machines, false), &topology);
            format!("{:#}", refused.err().unwrap())
        };
        for (machine, words) in [
            ("smt-off", "not larger"),
            ("cpus=4", "not larger"),
            ("cpus=0", "not a number of CPUs"),
            ("cpus=9", "9 CPUs"),
            ("two-nodes", "smt-off, cpus=N"),
        ] {
            let message = refused(&[machine]);
            assert!(
                message.contains(words) && message.contains(machine),
                "{message}"
            );
        }
        assert!(refused(&["cpus=2", "cpus=2"]).contains("the same CPUs as cpus=2"));
    }
}
