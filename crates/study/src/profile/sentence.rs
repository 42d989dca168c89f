//! A profile in words.

use std::collections::BTreeMap;

use pinwise_format::{percent, seconds};
use pinwise_profile::{Amount, Event, FunctionTime, Kind, Profile, REGION};
use pinwise_record::WorkRecord;

/// Less of the CPU time in spin hints is not worth mentioning.
const WORTH_SAYING: f64 = 0.05;
/// Fewer samples than this show little: the share of a tenth of them is known
/// to a third of itself.
const MIN_SAMPLES: u64 = 100;
/// Less than this of the CPU time in code without symbols hides no function that
/// matters.
const NAMELESS: f64 = 0.2;

/// From this share of the CPU time in kernel functions that enable interrupts, a note says what
/// their time may be.
const DELAYED: f64 = 0.1;
/// Kernel functions at whose end interrupts are enabled again.
const ENABLING: [&str; 3] = [
    "finish_task_switch",
    "_raw_spin_unlock_irq",
    "_raw_write_unlock_irq",
];

/// What came out.
pub(super) fn summary(profile: &Profile) -> String {
    let total = profile.total;
    if total.samples == 0 && total.cpu_ns == 0 {
        return "No sample fell into its CPU time.".to_owned();
    }
    let Some(first) = profile.functions.first() else {
        return format!("{} of CPU time, in unknown functions.", time(total));
    };
    if profile
        .waiting_share()
        .is_some_and(|share| share >= WORTH_SAYING)
    {
        let spinning = profile
            .functions
            .iter()
            .max_by_key(|time| time.waits.cpu_ns);
        let spinning = spinning.unwrap_or(first);
        return format!(
            "{} waits in spin hints, most of it in {} ({}).",
            part(profile.waits, total),
            name(spinning),
            time(spinning.waits),
        );
    }
    format!("{} is spent in {}.", part(first.own, total), name(first))
}

/// `81.9 % of the CPU time (2.62 s of 3.20 s, 2610 of 3190 samples)`.
fn part(amount: Amount, total: Amount) -> String {
    let share = percent(amount.share_of(total).unwrap_or_default());
    format!(
        "{share} of the CPU time ({} of {}, {} of {} samples)",
        time(amount),
        time(total),
        amount.samples,
        total.samples
    )
}

fn time(amount: Amount) -> String {
    seconds(amount.cpu_s())
}

fn name(time: &FunctionTime) -> String {
    let function = &time.function;
    match (function.kind, function.file_name()) {
        (Kind::Kernel, _) if function.name != "[kernel]" => format!("{} [kernel]", function.name),
        (Kind::User, file) if !file.is_empty() && function.name.starts_with("0x") => {
            format!("{file} at {}", function.name.trim_end_matches('+'))
        }
        _ => function.name.clone(),
    }
}

/// Notes that are needed to read it correctly.
pub(super) fn cautions(
    profile: &Profile,
    event: Event,
    work: &WorkRecord,
    made: usize,
    planned: usize,
) -> Vec<String> {
    let mut notes = Vec::new();
    let samples = profile.total.samples;
    if (1..MIN_SAMPLES).contains(&samples) {
        let are = if samples == 1 {
            "sample is"
        } else {
            "samples are"
        };
        notes.push(format!(
            "{samples} {are} few: run it longer, more often (--runs) or sample faster (--hz)."
        ));
    }
    if made < planned {
        notes.push(format!(
            "{made} of {planned} runs done: the last one failed."
        ));
    }
    if work.count <= 0.0 {
        notes.push("The amount of work is unknown: no time per unit.".to_owned());
    }
    notes.extend(explain_missing_symbols(profile));
    if event == Event::CpuClock {
        notes.extend(describe_delayed_samples(profile));
    }
    notes
}

/// Samples by the kernel's clock are delayed while interrupts are disabled, and so are seen where
/// they are enabled again.
fn describe_delayed_samples(profile: &Profile) -> Option<String> {
    let is_enabling = |time: &&FunctionTime| {
        let function = &time.function;
        let mut names = ENABLING.iter();
        function.kind == Kind::Kernel && names.any(|name| function.name.starts_with(*name))
    };
    let functions = profile.functions.iter();
    let delayed: Vec<&FunctionTime> = functions.filter(is_enabling).collect();
    let share = delayed.iter().map(|time| time.own.cpu_s()).sum::<f64>() / profile.total.cpu_s();
    let most = delayed
        .into_iter()
        .max_by_key(|time| time.own.cpu_ns)
        .filter(|_| share >= DELAYED)?;
    Some(format!(
        "{} of the CPU time is seen in kernel functions that enable interrupts, most of it in {}. \
         Samples by cpu-clock are interrupts and wait until then: this time was spent in the code \
         before, which ran with interrupts disabled.",
        percent(share),
        most.function.name
    ))
}

/// Says what rows without a name are, if they matter.
fn explain_missing_symbols(profile: &Profile) -> Option<String> {
    let total = profile.total.cpu_s();
    let mut by_module: BTreeMap<&str, f64> = BTreeMap::new();
    for time in &profile.functions {
        if time.function.is_nameless() {
            *by_module.entry(time.function.file_name()).or_default() += time.own.cpu_s();
        }
    }
    let nameless: f64 = by_module.values().sum();
    let (module, _) = by_module.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (nameless >= NAMELESS * total).then(|| {
        let module = match module {
            "" => "unknown code",
            module => module,
        };
        format!(
            "{} of the CPU time is in code without symbols, most of it in {module}: a row such \
             as 0x1100+ is {REGION} bytes of code, not a function. A build that is not stripped, or a \
             package of its debug symbols, names them.",
            percent(nameless / total)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_profile::Bounds;
    use pinwise_profile::examples::Scene;

    fn profile_sentence(scene: Scene) -> String {
        summary(&Profile::from_samples(&[scene.samples], &Bounds::default()))
    }

    #[test]
    fn spinning_comes_first() {
        let scene = Scene::new("/bin/prog").waiting(&["main", "spin"], 900);
        assert_eq!(
            profile_sentence(scene.stack(&["main", "work"], 100)),
            "90.0 % of the CPU time (900 ms of 1.00 s, 900 of 1000 samples) waits in spin hints, \
             most of it in spin (900 ms)."
        );
    }

    #[test]
    fn rows_without_a_name_are_explained() {
        let noted = |scene: Scene| {
            explain_missing_symbols(&Profile::from_samples(&[scene.samples], &Bounds::default()))
        };
        let stripped = || Scene::new("/bin/prog").stack(&["main", "0x1104"], 60);
        let note = noted(stripped().stack(&["main"], 40)).unwrap();
        assert!(
            note.starts_with(
                "60.0 % of the CPU time is in code without symbols, most of it in prog: "
            ),
            "{note}"
        );
        assert_eq!(noted(stripped().stack(&["main"], 900)), None);
        assert_eq!(noted(Scene::new("/bin/prog")), None);
    }

    #[test]
    fn time_seen_where_interrupts_are_enabled_is_explained() {
        let noted = |delayed: u64, kind: Kind| {
            let scene = Scene::new("/bin/prog").stack(&["main"], 100 - delayed);
            let scene = scene.stack(&["main", "finish_task_switch.isra.0"], delayed);
            let mut profile = Profile::from_samples(&[scene.samples], &Bounds::default());
            for time in &mut profile.functions {
                if time.function.name != "main" {
                    time.function.kind = kind;
                }
            }
            describe_delayed_samples(&profile)
        };
        let note = noted(58, Kind::Kernel).unwrap();
        let start = "58.0 % of the CPU time is seen in kernel functions that enable interrupts, most of it in finish_task_switch";
        assert!(note.starts_with(start), "{note}");
        assert_eq!(noted(5, Kind::Kernel), None);
        assert_eq!(noted(58, Kind::User), None);
    }

    #[test]
    fn else_the_hottest_function_does() {
        let scene = Scene::new("/bin/prog").stack(&["main", "0x1104"], 60);
        assert_eq!(
            profile_sentence(scene.stack(&["main"], 40)),
            "60.0 % of the CPU time (60.0 ms of 100 ms, 60 of 100 samples) is spent in prog at 0x1100."
        );
        assert_eq!(
            profile_sentence(Scene::new("/bin/prog")),
            "No sample fell into its CPU time."
        );
    }
}
