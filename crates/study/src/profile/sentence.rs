//! The sentence and the notes of a profile.

use std::collections::BTreeMap;

use super::upkeep::{Collection, FEWER_FAULTS, WORTH_NAMING, sum_page_faults};
use pinwise_format::{percent, seconds};
use pinwise_profile::{Amount, Event, Function, FunctionTime, Kind, Profile, REGION};
use pinwise_record::{TraceSource, WorkRecord};

/// Smallest share of the CPU time in spin hints that is reported.
const MIN_WAITING_SHARE: f64 = 0.05;
/// A program that uses fewer CPUs waits for most of the time.
const MOSTLY_WAITING: f64 = 0.5;
/// Fewer samples are called few: with 100, a share of 10 % has a standard error of 3 %.
const MIN_SAMPLES: u64 = 100;
/// From this share of the CPU time on, code without symbols is explained.
const MIN_NAMELESS_SHARE: f64 = 0.2;
/// From this share of the CPU time on, time in kernel functions that enable interrupts is explained.
const MIN_DELAYED_SHARE: f64 = 0.1;
/// The functions in which a runtime shows.
const HOTTEST: usize = 5;
/// Fewer samples in the hottest function do not show that it is the hottest.
const MIN_TELLING: u64 = 5;
/// Kernel functions at whose end interrupts are enabled again.
const ENABLING: [&str; 3] = [
    "finish_task_switch",
    "_raw_spin_unlock_irq",
    "_raw_write_unlock_irq",
];

/// Where most of the CPU time is spent, as a sentence.
pub(super) fn summarise(profile: &Profile, event: Event) -> String {
    let total = profile.total;
    if total.samples == 0 && total.cpu_ns == 0 {
        return "No sample fell into its CPU time.".to_owned();
    }
    let Some(first) = profile.functions.first() else {
        return format!("{} of CPU time, in unknown functions.", format_time(total));
    };
    let collection = Collection::of_profile(profile);
    let collecting = collection.as_ref().map_or_else(String::new, |collection| {
        format!("; in all, {}", collection.describe(total))
    });
    if spins(profile, collection.as_ref()) {
        let spinning = profile
            .functions
            .iter()
            .max_by_key(|time| time.waits.cpu_ns);
        let spinning = spinning.unwrap_or(first);
        return format!(
            "{} waits in spin hints, most of it in {} ({}){collecting}.",
            describe_share(profile.waits, total),
            describe_function(spinning),
            format_time(spinning.waits),
        );
    }
    // The kernel's own clock sees there what ran before with interrupts disabled.
    let is_delayed = |time: &&FunctionTime| event == Event::CpuClock && is_enabling(time);
    let most = profile.functions.iter().find(|time| !is_delayed(time));
    let most = most.unwrap_or(first);
    let beside = match most.function == first.function {
        true => String::new(),
        false => format!(
            "; {} is seen where the kernel enables interrupts after its own work",
            percent(first.own.share_of(total).unwrap_or_default())
        ),
    };
    if most.own.samples < MIN_TELLING {
        return format!(
            "It hardly ran: {} of CPU time, {} of {} samples in {}.",
            format_time(total),
            most.own.samples,
            total.samples,
            describe_function(most)
        );
    }
    let faults = sum_page_faults(profile);
    let fault_share = faults.share_of(total).unwrap_or_default();
    if fault_share >= WORTH_NAMING && faults.cpu_ns > most.own.cpu_ns {
        return format!(
            "{} is spent in page faults, at the first use of pages ({FEWER_FAULTS}); the hottest \
             function is {}, with {}{beside}{collecting}.",
            describe_share(faults, total),
            describe_function(most),
            percent(most.own.share_of(total).unwrap_or_default())
        );
    }
    let faulting = match fault_share >= WORTH_NAMING {
        true => format!(
            "; in all, page faults take {} ({FEWER_FAULTS})",
            percent(fault_share)
        ),
        false => String::new(),
    };
    let called = find_caller(profile, most)
        .map_or_else(String::new, |caller| format!(", called by {}", caller.name));
    format!(
        "{} is spent in {}{called}{beside}{faulting}{collecting}.",
        describe_share(most.own, total),
        describe_function(most)
    )
}

/// Functions that begin a program or a thread: as callers they tell nothing.
const BEGINS: [&str; 6] = [
    "_start",
    "start_thread",
    "clone",
    "clone3",
    "runtime.main",
    "runtime.goexit",
];

/// The function that called another for more than half of its own time, unless it begins a program
/// or a thread.
fn find_caller<'p>(profile: &'p Profile, called: &FunctionTime) -> Option<&'p Function> {
    let nodes = profile.tree.nodes();
    let mut times: BTreeMap<&Function, u64> = BTreeMap::new();
    let calls = nodes.iter().filter(|node| node.function == called.function);
    for (parent, own) in calls.filter_map(|node| Some((node.parent?, node.own))) {
        *times.entry(&nodes[parent].function).or_default() += own.cpu_ns;
    }
    let (caller, time_ns) = times.into_iter().max_by_key(|(_, time_ns)| *time_ns)?;
    let is_named = matches!(caller.kind, Kind::User | Kind::Kernel)
        && !caller.is_nameless()
        && !caller.name.starts_with("__libc_start")
        && !BEGINS.contains(&&*caller.name);
    (is_named && *caller != called.function && 2 * time_ns > called.own.cpu_ns).then_some(caller)
}

/// Does the program spin, other than in the collector of its runtime?
fn spins(profile: &Profile, collection: Option<&Collection>) -> bool {
    let of_collector = collection.map_or(0, |collection| collection.waits.cpu_ns);
    let own = Amount {
        cpu_ns: profile.waits.cpu_ns.saturating_sub(of_collector),
        ..profile.waits
    };
    own.share_of(profile.total)
        .is_some_and(|share| share >= MIN_WAITING_SHARE)
}

/// Is it a function of the kernel at whose end interrupts are enabled again?
fn is_enabling(time: &FunctionTime) -> bool {
    let function = &time.function;
    let mut names = ENABLING.iter();
    function.kind == Kind::Kernel && names.any(|name| function.name.starts_with(*name))
}

/// `81.9 % of the CPU time (2.62 s of 3.20 s, 2610 of 3190 samples)`.
fn describe_share(amount: Amount, total: Amount) -> String {
    let share = percent(amount.share_of(total).unwrap_or_default());
    format!(
        "{share} of the CPU time ({} of {}, {} of {} samples)",
        format_time(amount),
        format_time(total),
        amount.samples,
        total.samples
    )
}

fn format_time(amount: Amount) -> String {
    seconds(amount.cpu_s())
}

fn describe_function(time: &FunctionTime) -> String {
    let function = &time.function;
    match (function.kind, function.file_name()) {
        (Kind::Kernel, _) if function.name != "[kernel]" => format!("{} [kernel]", function.name),
        (Kind::User, file) if !file.is_empty() && function.name.starts_with("0x") => {
            format!("{file} at {}", function.name.trim_end_matches('+'))
        }
        _ => function.name.clone(),
    }
}

/// Notes that are needed to read the profile correctly.
pub(super) fn list_cautions(
    profile: &Profile,
    event: Event,
    work: &WorkRecord,
    runs: usize,
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
    if runs < planned {
        notes.push(format!(
            "{runs} of {planned} runs done: the last one failed."
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

/// What to do next with a program that used this many CPUs on average: a profile shows nothing of
/// the time in which it waits, and little of why it spins.
pub(super) fn advise(profile: &Profile, cpus: f64, source: &TraceSource) -> String {
    let spins = spins(profile, Collection::of_profile(profile).as_ref());
    match source.target() {
        Some(target) if cpus < MOSTLY_WAITING => format!(
            "It used {cpus:.2} CPUs on average; what it waits for otherwise: pinwise trace {target}"
        ),
        Some(target) if runs_python(profile) => {
            format!(
                "Its functions are Python's, which native code does not show: py-spy record {target}"
            )
        }
        Some(target) if spins => {
            format!("See what spins, and what would end it: pinwise spin attach {target}")
        }
        _ => "After a change, profile again and subtract: pinwise profile diff last~1 last"
            .to_owned(),
    }
}

/// Is the loop of Python's interpreter among its hottest functions?
fn runs_python(profile: &Profile) -> bool {
    let mut hottest = profile.functions.iter().take(HOTTEST);
    hottest.any(|time| time.function.name.starts_with("_PyEval_EvalFrame"))
}

/// Samples by the kernel's clock are delayed while interrupts are disabled, so they show the function
/// that enables them again.
fn describe_delayed_samples(profile: &Profile) -> Option<String> {
    let functions = profile.functions.iter();
    let delayed: Vec<&FunctionTime> = functions.filter(|time| is_enabling(time)).collect();
    let share = delayed.iter().map(|time| time.own.cpu_s()).sum::<f64>() / profile.total.cpu_s();
    let most = delayed
        .into_iter()
        .max_by_key(|time| time.own.cpu_ns)
        .filter(|_| share >= MIN_DELAYED_SHARE)?;
    Some(format!(
        "{} of the CPU time is seen in kernel functions that enable interrupts, most of it in {}. \
         Samples by cpu-clock are interrupts and wait until then: this time was spent in the code \
         before, which ran with interrupts disabled.",
        percent(share),
        most.function.name
    ))
}

/// Explains rows without a name if they have a large share.
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
    (nameless >= MIN_NAMELESS_SHARE * total).then(|| {
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
        let profile = Profile::from_samples(&[scene.samples], &Bounds::default());
        summarise(&profile, Event::CpuClock)
    }

    #[test]
    fn spin_waiting_is_reported_before_the_hottest_function() {
        let scene = Scene::new("/bin/prog").waiting(&["main", "spin"], 900);
        assert_eq!(
            profile_sentence(scene.stack(&["main", "work"], 100)),
            "90.0 % of the CPU time (900 ms of 1.00 s, 900 of 1000 samples) waits in spin hints, \
             most of it in spin (900 ms)."
        );
    }

    #[test]
    fn the_hottest_function_is_named_with_its_main_caller() {
        let scene = Scene::new("/bin/prog").stack(&["main", "add", "strcmp"], 60);
        let scene = scene.stack(&["main", "find", "strcmp"], 20);
        let mixed = profile_sentence(scene.stack(&["main", "find", "strcmp"], 60));
        assert!(
            mixed.ends_with(" is spent in strcmp, called by find."),
            "{mixed}"
        );
        for stack in [["__libc_start_main", "main"], ["start_thread", "main"]] {
            let started = profile_sentence(Scene::new("/bin/prog").stack(&stack, 100));
            assert!(started.ends_with(" is spent in main."), "{started}");
        }
    }

    #[test]
    fn a_large_share_without_symbols_is_explained() {
        let explain = |scene: Scene| {
            explain_missing_symbols(&Profile::from_samples(&[scene.samples], &Bounds::default()))
        };
        let stripped = || Scene::new("/bin/prog").stack(&["main", "0x1104"], 60);
        let note = explain(stripped().stack(&["main"], 40)).unwrap();
        assert!(
            note.starts_with(
                "60.0 % of the CPU time is in code without symbols, most of it in prog: "
            ),
            "{note}"
        );
        assert_eq!(explain(stripped().stack(&["main"], 900)), None);
        assert_eq!(explain(Scene::new("/bin/prog")), None);
    }

    #[test]
    fn a_program_that_mostly_waits_is_better_traced() {
        let source = TraceSource::Process {
            pid: 7,
            name: "service".to_owned(),
        };
        let scene = Scene::new("/bin/prog").stack(&["main"], 40);
        let computes = Profile::from_samples(&[scene.samples], &Bounds::default());
        assert_eq!(
            advise(&computes, 0.08, &source),
            "It used 0.08 CPUs on average; what it waits for otherwise: pinwise trace --pid 7"
        );
        assert!(advise(&computes, 0.52, &source).ends_with("pinwise profile diff last~1 last"));
        let scene = Scene::new("/usr/bin/python3").stack(&["main", "_PyEval_EvalFrameDefault"], 40);
        let python = Profile::from_samples(&[scene.samples], &Bounds::default());
        assert!(advise(&python, 0.9, &source).ends_with("py-spy record --pid 7"));
    }

    #[test]
    fn time_seen_where_interrupts_are_enabled_is_explained() {
        let describe = |delayed: u64, kind: Kind| {
            let scene = Scene::new("/bin/prog").stack(&["main"], 100 - delayed);
            let scene = scene.stack(&["main", "finish_task_switch.isra.0"], delayed);
            let mut profile = Profile::from_samples(&[scene.samples], &Bounds::default());
            for time in &mut profile.functions {
                if time.function.name != "main" {
                    time.function.kind = kind;
                }
            }
            (
                describe_delayed_samples(&profile),
                summarise(&profile, Event::CpuClock),
            )
        };
        let (note, sentence) = describe(58, Kind::Kernel);
        let note = note.unwrap();
        let start = "58.0 % of the CPU time is seen in kernel functions that enable interrupts, most of it in finish_task_switch";
        assert!(note.starts_with(start), "{note}");
        // Nor is it the headline.
        assert!(
            sentence.contains("is spent in main; 58.0 % is seen where"),
            "{sentence}"
        );
        assert_eq!(describe(5, Kind::Kernel).0, None);
        assert_eq!(describe(58, Kind::User).0, None);
    }

    #[test]
    fn without_spin_waiting_the_hottest_function_is_reported() {
        let scene = Scene::new("/bin/prog").stack(&["main", "0x1104"], 60);
        assert_eq!(
            profile_sentence(scene.stack(&["main"], 40)),
            "60.0 % of the CPU time (60.0 ms of 100 ms, 60 of 100 samples) is spent in prog at 0x1100, called by main."
        );
        assert_eq!(
            profile_sentence(Scene::new("/bin/prog")),
            "No sample fell into its CPU time."
        );
    }

    #[test]
    fn a_function_with_few_samples_is_no_headline() {
        let scene = Scene::new("/bin/prog").stack(&["main", "one"], 2);
        assert_eq!(
            profile_sentence(scene.stack(&["main", "other"], 1)),
            "It hardly ran: 3.00 ms of CPU time, 2 of 3 samples in one."
        );
    }

    #[test]
    fn garbage_collection_of_go_is_summed_up() {
        let scene = Scene::new("/bin/prog")
            .stack(&["runtime.gcBgMarkWorker", "runtime.scanobject"], 20)
            .stack(
                &["runtime.gcBgMarkWorker", "runtime.spanClass.sizeclass"],
                15,
            )
            .stack(&["main.main", "runtime.mallocgc"], 25);
        let sentence = profile_sentence(scene.stack(&["main.main"], 40));
        let end = "is spent in main.main; in all, Go's garbage collection takes 35.0 % (a larger GOGC or GOMEMLIMIT takes less).";
        assert!(sentence.ends_with(end), "{sentence}");
    }

    #[test]
    fn garbage_collection_of_a_jvm_is_summed_up_by_its_threads() {
        let mut scene = Scene::new("/bin/java")
            .waiting(&["thread_native_entry", "SpinPause"], 7)
            .stack(&["thread_native_entry", "G1ParScanThreadState::trim"], 23)
            .stack(&["Gc.main"], 70);
        let mut collector = scene.samples.threads[0].clone();
        (collector.tid, collector.name) = (8, "GC Thread#0".to_owned());
        scene.samples.threads.push(collector);
        for stack in &mut scene.samples.stacks[..2] {
            stack.thread = 1;
        }
        let profile = Profile::from_samples(&[scene.samples], &Bounds::default());
        let sentence = summarise(&profile, Event::CpuClock);
        let end = "is spent in Gc.main; in all, the JVM's garbage collection takes 30.0 % (a larger heap, -Xmx, takes less).";
        assert!(sentence.ends_with(end), "{sentence}");
        let source = TraceSource::Process {
            pid: 7,
            name: "java".to_owned(),
        };
        assert!(!advise(&profile, 1.0, &source).contains("spin attach"));
    }

    #[test]
    fn spinning_beside_garbage_collection_leads() {
        let scene = Scene::new("/bin/prog")
            .stack(&["runtime.gcBgMarkWorker", "runtime.scanobject"], 20)
            .waiting(&["main.main", "spin"], 30);
        let sentence = profile_sentence(scene.stack(&["main.main"], 50));
        assert!(sentence.contains("waits in spin hints, most of it in spin"));
        assert!(
            sentence.contains("; in all, Go's garbage collection takes 20.0 %"),
            "{sentence}"
        );
    }

    #[test]
    fn garbage_collection_of_v8_is_summed_up() {
        let major = "v8::internal::ConcurrentMarking::RunMajor(v8::JobDelegate*)";
        let scavenge = "v8::internal::ScavengerCollector::JobTask::Run(v8::JobDelegate*)";
        let sweep = "v8::internal::Sweeper::RawSweep(v8::internal::Page*)";
        let scene = Scene::new("/bin/node")
            .stack(&["start_thread", major], 22)
            .stack(&["start_thread", scavenge], 10)
            .stack(&["start_thread", sweep], 8)
            .stack(&["main", "v8::internal::Runtime_SetKeyedProperty"], 20);
        let sentence = profile_sentence(scene.stack(&["main"], 40));
        let end = "in all, V8's garbage collection takes 40.0 % (--max-semi-space-size and --max-old-space-size set the room that it has).";
        assert!(sentence.ends_with(end), "{sentence}");
    }

    #[test]
    fn page_faults_are_summed_up() {
        let fault = ["main", "touch", "k:asm_exc_page_fault", "k:exc_page_fault"];
        let under = |inner: &'static str| [&fault[..], &["k:handle_mm_fault", inner]].concat();
        let scene = Scene::new("/bin/prog")
            .stack(&under("k:clear_page_erms"), 30)
            .stack(&under("k:get_page_from_freelist"), 25)
            .stack(&under("k:try_charge_memcg"), 24);
        let sentence = profile_sentence(scene.stack(&["main", "touch"], 21));
        assert_eq!(
            sentence,
            "79.0 % of the CPU time (79.0 ms of 100 ms, 79 of 100 samples) is spent in page faults, \
             at the first use of pages (memory that is reused, or huge pages, take fewer); the \
             hottest function is clear_page_erms [kernel], with 30.0 %."
        );
        let scene = Scene::new("/bin/prog").stack(&under("k:clear_page_erms"), 15);
        let sentence = profile_sentence(scene.stack(&["main"], 85));
        let end = "is spent in main; in all, page faults take 15.0 % (memory that is reused, or huge pages, take fewer).";
        assert!(sentence.ends_with(end), "{sentence}");
    }
}
