//! `--irq`: arms that move the interrupts of devices.

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

/// A value of `--irq`: where the interrupts of some devices go.
pub(super) struct Setting {
    /// The text on the command line.
    name: String,
    wishes: Vec<InterruptWish>,
}

impl Setting {
    fn moves_nothing(&self) -> bool {
        let mut places = self.wishes.iter().map(|wish| &wish.place);
        places.all(|place| *place == InterruptPlace::AsIs)
    }

    /// The CPUs of interrupts for a program on these CPUs; empty if none moves.
    fn realise(&self, topology: &Topology, program: &CpuSet) -> anyhow::Result<InterruptCpus> {
        let mut moved = InterruptCpus::default();
        for wish in &self.wishes {
            moved.extend(wish.realise(topology, program).context("--irq")?);
        }
        Ok(moved)
    }
}

/// Parses the values of `--irq`. One that moves nothing comes first, and is added if there is none:
/// it is the baseline. Empty without the option.
pub(super) fn parse_settings(arguments: &[String]) -> anyhow::Result<Vec<Setting>> {
    let mut found = Vec::new();
    for text in arguments {
        found.push(parse_setting(text).with_context(|| format!("--irq {text}"))?);
    }
    match found.iter().position(Setting::moves_nothing) {
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

/// Parses one value, in which commas separate devices, and also CPUs.
fn parse_setting(text: &str) -> anyhow::Result<Setting> {
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

/// The CPUs of interrupts that all values together set for a program on these CPUs.
pub(in crate::cli) fn realise_together(
    arguments: &[String],
    mut topology: Topology,
    program: &CpuSet,
) -> anyhow::Result<InterruptCpus> {
    let text = arguments.join(",");
    let setting = parse_setting(&text).with_context(|| format!("--irq {text}"))?;
    read_interrupts(&mut topology);
    setting.realise(&topology, program)
}

/// Opens the ledger for moving interrupts, before the machine is open, and tries it, so that errors
/// are reported before anything runs.
pub(super) fn open_ledger(
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
    let moved = combine_settings(settings, &topology)?;
    let mut ledger = Ledger::open(options).context("--irq")?;
    ledger
        .check_setting(&moved)
        .context("--irq (it needs root, and a host or container that lets interrupts be moved)")?;
    Ok(ledger)
}

/// Refuses to run beside a program that would move interrupts back.
pub(super) fn check_tuners(option: &str) -> anyhow::Result<()> {
    let tuners = read_tuners(Path::new("/"));
    if tuners.iter().any(|name| name == "irqbalance") {
        bail!(
            "{option}: irqbalance moves interrupts every few seconds; stop it meanwhile (systemctl stop irqbalance)"
        );
    }
    Ok(())
}

/// All interrupts that the settings may move.
fn combine_settings(settings: &[Setting], topology: &Topology) -> anyhow::Result<RunSetting> {
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

/// Repeats the arms with every value of `--irq`, if there is one.
pub(in crate::cli) fn add_interrupt_settings(
    arms: Vec<ArmPlan>,
    args: &CompareArgs,
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Vec<ArmPlan>> {
    let settings = parse_settings(&args.interrupts.irqs)?;
    match settings.is_empty() {
        true => Ok(arms),
        false => combine_arms(&arms, &settings, topology.clone(), terminal),
    }
}

/// Repeats every arm with every setting; equal ones are merged, with a note.
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
                // Also where none moves, so that all arms take the same steps.
                settings: arm.settings.iter().cloned().chain([host]).collect(),
                ..arm.clone()
            });
        }
    }
    make_unique(&mut arms);
    Ok(arms)
}

/// Describes which interrupts each arm moved to which CPUs; `None` if none moved.
pub(in crate::cli) fn describe_moved(arms: &[ArmPlan]) -> Option<Finding> {
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
        let found = parse_settings(&arguments).unwrap();
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
        let setting = parse_setting("eth0=0,2,nvme0=far").unwrap();
        let words: Vec<String> = setting.wishes.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["eth0=0,2", "nvme0=far"]);
        for text in ["", "eth0", "eth0=local,x", "0,eth0=local", "a=0,a=1"] {
            assert!(parse_setting(text).is_err(), "{text}");
        }
    }
}
