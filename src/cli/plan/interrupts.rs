//! `--irq`: places of a device's interrupts as arms.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, bail};

use super::make_unique;
use crate::cli::args::CompareArgs;
use crate::cli::terminal::Terminal;
use crate::cli::values::MachineSpec;
use pinwise_machine::RunSetting;
use pinwise_machine::linux::{Ledger, LedgerOptions, discover, read_interrupts, read_tuners};
use pinwise_placement::{InterruptCpus, InterruptPlace, InterruptWish};
use pinwise_record::{Finding, Severity};
use pinwise_study::compare::ArmPlan;
use pinwise_topology::{CpuSet, Topology};

/// The CPUs that take the interrupts of some devices.
pub(super) struct Setting {
    /// As on the command line.
    name: String,
    wishes: Vec<InterruptWish>,
}

impl Setting {
    fn is_as_is(&self) -> bool {
        let mut places = self.wishes.iter().map(|wish| &wish.place);
        places.all(|place| *place == InterruptPlace::AsIs)
    }

    /// What is set for a program on these CPUs; empty: nothing.
    fn realise(&self, topology: &Topology, program: &CpuSet) -> anyhow::Result<InterruptCpus> {
        let mut moved = InterruptCpus::default();
        for wish in &self.wishes {
            moved.extend(wish.realise(topology, program).context("--irq")?);
        }
        Ok(moved)
    }
}

/// The requested settings, preceded by the baseline's: the present one. Empty if none is requested.
pub(super) fn settings(arguments: &[String]) -> anyhow::Result<Vec<Setting>> {
    let mut found = Vec::new();
    for text in arguments {
        found.push(parse(text).with_context(|| format!("--irq {text}"))?);
    }
    match found.iter().position(Setting::is_as_is) {
        Some(at) => found[..=at].rotate_right(1),
        None if found.is_empty() => {}
        None => found.insert(
            0,
            Setting {
                name: "as-is".to_owned(),
                wishes: Vec::new(),
            },
        ),
    }
    Ok(found)
}

/// Commas join devices, and also CPUs.
fn parse(text: &str) -> anyhow::Result<Setting> {
    let mut parts: Vec<String> = Vec::new();
    for part in text.split(',') {
        match parts.last_mut() {
            Some(last) if !part.contains('=') => *last = format!("{last},{part}"),
            _ => parts.push(part.to_owned()),
        }
    }
    let wishes = parts.iter().map(|part| part.parse());
    let wishes: Vec<InterruptWish> = wishes.collect::<Result<_, _>>()?;
    let mut devices = BTreeSet::new();
    if let Some(again) = wishes.iter().find(|wish| !devices.insert(&wish.device)) {
        bail!("{} is given twice", again.device);
    }
    Ok(Setting {
        name: text.to_owned(),
        wishes,
    })
}

/// What all arguments together set for a program on these CPUs.
pub(in crate::cli) fn together(
    arguments: &[String],
    mut topology: Topology,
    program: &CpuSet,
) -> anyhow::Result<InterruptCpus> {
    let text = arguments.join(",");
    let setting = parse(&text).with_context(|| format!("--irq {text}"))?;
    read_interrupts(&mut topology);
    setting.realise(&topology, program)
}

/// The ledger by which they are moved, opened before the machine is. Any obstacle
/// is reported before anything runs.
pub(super) fn ledger(
    settings: &[Setting],
    machine: &MachineSpec,
    options: LedgerOptions,
) -> anyhow::Result<Ledger> {
    if !machine.is_local() {
        bail!("--irq moves interrupts of this host: omit it with --machine {machine}");
    }
    check_tuners("--irq")?;
    let (mut topology, _) = discover()?;
    read_interrupts(&mut topology);
    let moved = all(settings, &topology)?;
    let mut ledger = Ledger::open(options).context("--irq")?;
    ledger
        .check_setting(&moved)
        .context("--irq (it needs root, and a host or container that lets interrupts be moved)")?;
    Ok(ledger)
}

/// Is there a program that would move interrupts back?
pub(super) fn check_tuners(option: &str) -> anyhow::Result<()> {
    let tuners = read_tuners(Path::new("/"));
    if tuners.iter().any(|name| name == "irqbalance") {
        bail!(
            "{option}: irqbalance moves interrupts every few seconds; stop it meanwhile (systemctl stop irqbalance)"
        );
    }
    Ok(())
}

/// Everything that may be moved.
fn all(settings: &[Setting], topology: &Topology) -> anyhow::Result<RunSetting> {
    let mut moved = InterruptCpus::default();
    for wish in settings.iter().flat_map(|setting| &setting.wishes) {
        let anywhere = InterruptWish {
            place: match wish.place {
                InterruptPlace::Away => InterruptPlace::Spread,
                ref other => other.clone(),
            },
            ..wish.clone()
        };
        let found = anywhere.realise(topology, &topology.online);
        moved.extend(found.with_context(|| format!("--irq {wish}"))?);
    }
    Ok(RunSetting::Interrupts(moved))
}

/// The arms with every setting of `--irq`, if there is one.
pub(in crate::cli) fn add_interrupt_settings(
    arms: Vec<ArmPlan>,
    args: &CompareArgs,
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Vec<ArmPlan>> {
    let settings = settings(&args.interrupts.irqs)?;
    match settings.is_empty() {
        true => Ok(arms),
        false => combine_arms(&arms, &settings, topology.clone(), terminal),
    }
}

/// Every arm with every setting.
fn combine_arms(
    plain: &[ArmPlan],
    settings: &[Setting],
    mut topology: Topology,
    terminal: &Terminal,
) -> anyhow::Result<Vec<ArmPlan>> {
    read_interrupts(&mut topology);
    let mut arms: Vec<ArmPlan> = Vec::new();
    for arm in plain {
        let first = arms.len();
        for setting in settings {
            let moved = setting.realise(&topology, &arm.place.cpus)?;
            let host = RunSetting::Interrupts(moved.clone());
            if let Some(same) = arms[first..]
                .iter_mut()
                .find(|other| other.settings.last() == Some(&host))
            {
                terminal.note(&format!(
                    "{} moves interrupts as {} does here: merged.",
                    setting.name, same.name
                ));
                same.same_as.push(setting.name.clone());
                continue;
            }
            arms.push(ArmPlan {
                name: match plain {
                    [_] => setting.name.clone(),
                    _ => format!("{}, {}", arm.name, setting.name),
                },
                is_default: arm.is_default && moved.is_empty(),
                // Every arm goes the same way, those that move none, too.
                settings: arm.settings.iter().cloned().chain([host]).collect(),
                ..arm.clone()
            });
        }
    }
    make_unique(&mut arms);
    Ok(arms)
}

/// Which CPUs take which interrupts in which arm; `None` if none is moved.
pub(in crate::cli) fn find_moved(arms: &[ArmPlan]) -> Option<Finding> {
    let mut words = Vec::new();
    for arm in arms {
        for setting in &arm.settings {
            if let RunSetting::Interrupts(moved) = setting
                && !moved.is_empty()
            {
                words.push(format!("{}: {moved}", arm.name));
            }
        }
    }
    let words = (!words.is_empty()).then(|| words.join("; "))?;
    Some(Finding::new(
        "interrupts",
        Severity::Note,
        format!(
            "Interrupts were moved for the whole host during an arm's runs, and back after each ({words})."
        ),
        "To keep a place while a service runs: pinwise apply --pid PID --irq …; for good, write its CPU to /proc/irq/NUMBER/smp_affinity_list at every boot.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(arguments: &[&str]) -> Vec<String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        let found = settings(&arguments).unwrap();
        found.into_iter().map(|setting| setting.name).collect()
    }

    #[test]
    fn the_present_setting_is_first() {
        assert_eq!(names(&[]), [""; 0]);
        assert_eq!(names(&["eth0=local"]), ["as-is", "eth0=local"]);
        assert_eq!(
            names(&["eth0=local", "eth0=0-1", "eth0=as-is"]),
            ["eth0=as-is", "eth0=local", "eth0=0-1"]
        );
    }

    #[test]
    fn commas_join_devices_and_cpus() {
        let setting = parse("eth0=0,2,nvme0=far").unwrap();
        let words: Vec<String> = setting.wishes.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["eth0=0,2", "nvme0=far"]);
        for text in ["", "eth0", "eth0=local,x", "0,eth0=local", "a=0,a=1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
