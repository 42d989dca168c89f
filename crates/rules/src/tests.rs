//! The loop on simulated processes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use super::*;
use pinwise_machine::processes::{Identity, Refused, RuledProcess, WatchEvents};
use pinwise_record::{RuleChange, RuleChangeKind};
use pinwise_topology::{CpuSet, Topology};
use pinwise_workload::rules;

#[derive(Debug, Clone)]
struct Someone {
    start: u64,
    parent: i32,
    executable: String,
    default: CpuSet,
    /// Mask and nice value by thread.
    threads: BTreeMap<i32, (CpuSet, i32)>,
}

#[derive(Debug, Default)]
struct World {
    all: BTreeMap<i32, Someone>,
    /// Who may not be changed.
    foreign: Vec<i32>,
    changes: usize,
    written: Vec<RuledProcess>,
    is_disk_full: bool,
}

#[derive(Debug, Clone, Default)]
struct Host(Rc<RefCell<World>>);

struct Facts(Option<String>);

impl rules::Process for Facts {
    fn executable(&mut self) -> Option<&[u8]> {
        self.0.as_deref().map(str::as_bytes)
    }
    fn cgroup(&mut self) -> Option<&[u8]> {
        None
    }
    fn user(&mut self) -> Option<u32> {
        Some(0)
    }
    fn command_line(&mut self) -> Option<&[u8]> {
        None
    }
}

fn cpus(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

impl Host {
    fn add(&self, process: i32, parent: i32, executable: &str, mask: &str) {
        let someone = Someone {
            start: 100,
            parent,
            executable: executable.to_owned(),
            default: cpus("0-7"),
            threads: BTreeMap::from([(process, (cpus(mask), 0))]),
        };
        self.0.borrow_mut().all.insert(process, someone);
    }

    fn on(&self, thread: i32) -> String {
        let world = self.0.borrow();
        let found = world.all.values().find_map(|one| one.threads.get(&thread));
        found.map_or("gone".to_owned(), |(mask, nice)| format!("{mask} {nice}"))
    }

    fn set(
        &self,
        thread: i32,
        set: impl FnOnce(&mut (CpuSet, i32), &CpuSet),
    ) -> Result<(), Refused> {
        let mut world = self.0.borrow_mut();
        if world.foreign.contains(&thread) {
            return Err(Refused::NotPermitted);
        }
        world.changes += 1;
        for one in world.all.values_mut() {
            if let Some(state) = one.threads.get_mut(&thread) {
                set(state, &one.default);
                return Ok(());
            }
        }
        Err(Refused::Gone)
    }
}

impl Processes for Host {
    type Facts = Facts;

    fn all(&mut self) -> Vec<i32> {
        self.0.borrow().all.keys().copied().collect()
    }
    fn facts(&mut self, process: i32) -> Facts {
        let world = self.0.borrow();
        Facts(world.all.get(&process).map(|one| one.executable.clone()))
    }
    fn identity(&mut self, process: i32) -> Option<Identity> {
        let world = self.0.borrow();
        let one = world.all.get(&process)?;
        Some(Identity {
            start: one.start,
            parent: one.parent,
            name: "x".to_owned(),
        })
    }
    fn threads(&mut self, process: i32) -> Vec<i32> {
        let world = self.0.borrow();
        let one = world.all.get(&process);
        one.map_or(Vec::new(), |one| one.threads.keys().copied().collect())
    }
    fn mask(&mut self, thread: i32) -> Option<CpuSet> {
        let world = self.0.borrow();
        let found = world.all.values().find_map(|one| one.threads.get(&thread));
        found.map(|(mask, _)| mask.clone())
    }
    fn set_mask(&mut self, thread: i32, cpus: &CpuSet) -> Result<(), Refused> {
        self.set(thread, |state, default| {
            state.0 = cpus.intersection(default)
        })
    }
    fn nice(&mut self, thread: i32) -> Option<i32> {
        let world = self.0.borrow();
        let found = world.all.values().find_map(|one| one.threads.get(&thread));
        found.map(|(_, nice)| *nice)
    }
    fn set_nice(&mut self, thread: i32, nice: i32) -> Result<(), Refused> {
        self.set(thread, |state, _| state.1 = nice)
    }
    fn default_mask(&mut self, process: i32) -> Option<CpuSet> {
        let world = self.0.borrow();
        world.all.get(&process).map(|one| one.default.clone())
    }
}

impl HeldJournal for Host {
    fn note(&mut self, held: &RuledProcess) -> io::Result<()> {
        let mut world = self.0.borrow_mut();
        if world.is_disk_full {
            return Err(io::Error::other("no space"));
        }
        world.written.retain(|one| one.process != held.process);
        world.written.push(held.clone());
        Ok(())
    }
    fn forget(&mut self, process: i32, _start: u64) -> io::Result<()> {
        let mut world = self.0.borrow_mut();
        world.written.retain(|one| one.process != process);
        Ok(())
    }
}

/// A plan with a rule for each executable and its action.
fn plan(lines: &[(&str, &str)]) -> RulesPlan {
    let rules = lines
        .iter()
        .enumerate()
        .map(|(index, (executable, action))| {
            format!("[[rule]]\nname = \"{index}\"\nexecutable = \"{executable}\"\n{action}\n")
        });
    let topology = Topology::from_synthetic("core:4 pu:2").unwrap();
    RulesPlan::read(&rules.collect::<String>(), &topology, |_| None).unwrap()
}

/// An enforcer that has applied its rules to every process, and what it reported.
fn start_enforcer(
    host: &Host,
    lines: &[(&str, &str)],
) -> (RuleEnforcer<Host, Host>, Vec<RuleChange>) {
    let before = host.0.borrow().written.clone();
    let mut enforcer = RuleEnforcer::new(host.clone(), Some(host.clone()), plan(lines), before, 1);
    let reported = collect(|notify| {
        enforcer.restore_unmatched(notify);
        enforcer.consider_all(notify);
    });
    (enforcer, reported)
}

/// The changes that an action reports.
fn collect(act: impl FnOnce(&mut dyn FnMut(RuleEvent))) -> Vec<RuleChange> {
    let mut all = Vec::new();
    act(&mut |reported| {
        if let RuleEvent::Change(change) = reported {
            all.push(change);
        }
    });
    all
}

const DB: (&str, &str) = ("db", "place = \"cpu:1\"\nnice = 5");

#[test]
fn processes_are_placed_and_given_back() {
    let host = Host::default();
    host.add(10, 1, "/bin/db", "0-7");
    host.add(11, 1, "/bin/other", "0-7");
    let (mut enforcer, reported) = start_enforcer(&host, &[DB]);
    assert_eq!((host.on(10), host.on(11)), ("1 5".into(), "0-7 0".into()));
    assert_eq!(
        (reported.len(), reported[0].change),
        (1, RuleChangeKind::Placed)
    );
    assert_eq!(
        (reported[0].from.as_deref(), reported[0].to.as_deref()),
        (Some("0-7"), Some("1"))
    );
    assert_eq!((reported[0].threads, reported[0].nice), (1, Some(5)));
    // It was recorded, and nothing is done twice.
    assert_eq!(host.0.borrow().written.len(), 1);
    let changes = host.0.borrow().changes;
    assert!(collect(|notify| enforcer.consider_all(notify)).is_empty());
    assert_eq!(host.0.borrow().changes, changes);
    let reported = collect(|notify| enforcer.restore_all(notify));
    assert_eq!((host.on(10), reported.len()), ("0-7 0".into(), 1));
    assert!(host.0.borrow().written.is_empty());
}

#[test]
fn settings_made_by_others_stay() {
    let host = Host::default();
    host.add(10, 1, "/bin/db", "3");
    host.add(12, 1, "/bin/db", "0-7");
    {
        let mut world = host.0.borrow_mut();
        let threads = &mut world.all.get_mut(&12).unwrap().threads;
        threads.insert(13, (cpus("2"), 0));
        threads.insert(14, (cpus("0-7"), -3));
    }
    let (mut enforcer, reported) = start_enforcer(&host, &[DB]);
    assert_eq!((host.on(10), host.on(13)), ("3 0".into(), "2 0".into()));
    assert_eq!((host.on(12), host.on(14)), ("1 5".into(), "1 -3".into()));
    assert_eq!(reported[0].change, RuleChangeKind::Refused);
    assert_eq!(
        reported[0].why.as_deref(),
        Some("somebody else set its CPUs or its nice value")
    );
    assert_eq!((reported[1].threads, reported[1].threads_left), (2, 2));
    // It is reported once; a process moved since is left alone in the end.
    assert!(collect(|notify| enforcer.consider_all(notify)).is_empty());
    host.set(12, |state, _| state.0 = cpus("6")).unwrap();
    collect(|notify| enforcer.restore_all(notify));
    assert_eq!((host.on(12), host.on(14)), ("6 0".into(), "0-7 -3".into()));
}

#[test]
fn a_thread_that_had_the_demanded_settings_keeps_them_at_the_end() {
    let host = Host::default();
    host.add(10, 1, "/bin/db", "0-7");
    {
        let mut world = host.0.borrow_mut();
        let threads = &mut world.all.get_mut(&10).unwrap().threads;
        threads.insert(11, (cpus("1"), 0));
        threads.insert(12, (cpus("0-7"), 5));
        threads.insert(13, (cpus("1"), 5));
    }
    let after = |host: &Host| [11, 12, 13].map(|thread| host.on(thread));
    let (mut enforcer, _) = start_enforcer(&host, &[DB]);
    assert_eq!(after(&host), ["1 5", "1 5", "1 5"]);
    // A later start and other rules know it as well.
    enforcer.consider_all(&mut |_| {});
    let (mut enforcer, _) = start_enforcer(&host, &[("db", "place = \"cpu:2\"")]);
    assert_eq!(after(&host), ["1 5", "2 5", "1 5"]);
    collect(|notify| enforcer.restore_all(notify));
    assert_eq!(host.on(10), "0-7 0");
    assert_eq!(after(&host), ["1 0", "0-7 5", "1 5"]);
}

#[test]
fn children_and_threads_inherit_and_are_given_back() {
    let host = Host::default();
    host.add(10, 1, "/bin/db", "0-7");
    let (mut enforcer, _) = start_enforcer(&host, &[DB, ("free", "place = \"os-default\"")]);
    host.add(20, 10, "/bin/child", "1");
    host.add(21, 20, "/bin/fork", "1");
    host.add(22, 10, "/bin/free", "1");
    host.add(23, 1, "/bin/stranger", "1");
    let threads = &mut host
        .0
        .borrow_mut()
        .all
        .get_mut(&10)
        .unwrap()
        .threads
        .clone();
    threads.insert(15, (cpus("1"), 5));
    host.0.borrow_mut().all.get_mut(&10).unwrap().threads = threads.clone();
    for process in [20, 22, 23] {
        enforcer.consider(process, &mut |_| {});
    }
    // A rule that leaves processes alone takes them out again.
    assert_eq!((host.on(20), host.on(22)), ("1 0".into(), "0-7 0".into()));
    // The parent of a forked process may end before.
    collect(|notify| enforcer.restore_all(notify));
    for thread in [10, 15, 20, 21] {
        assert_eq!(host.on(thread), "0-7 0", "{thread}");
    }
    assert_eq!(host.on(23), "1 0");
}

/// Makes a process run another program.
fn execute(host: &Host, process: i32, executable: &str) {
    let mut world = host.0.borrow_mut();
    executable.clone_into(&mut world.all.get_mut(&process).unwrap().executable);
}

#[test]
fn changes_for_a_program_end_with_it() {
    let host = Host::default();
    host.add(10, 1, "/bin/db", "0-7");
    let (mut enforcer, _) = start_enforcer(&host, &[("/bin/db", "place = \"cpu:1\"\nnice = -5")]);
    assert_eq!(host.on(10), "1 -5");
    execute(&host, 10, "/home/x/other");
    let reported = collect(|notify| enforcer.consider(10, notify));
    assert_eq!(host.on(10), "0-7 0");
    assert_eq!(reported[0].change, RuleChangeKind::Released);
    assert_eq!(
        reported[0].why.as_deref(),
        Some("it runs another program now")
    );
    assert!(host.0.borrow().written.is_empty());
}

#[test]
fn children_keep_their_cpus_after_the_parent_ended() {
    let host = Host::default();
    host.add(10, 1, "/bin/db", "0-7");
    let (mut enforcer, _) = start_enforcer(&host, &[("/bin/db", "place = \"cpu:1\"")]);
    host.add(20, 10, "/bin/child", "1");
    collect(|notify| enforcer.consider(20, notify));
    {
        let mut world = host.0.borrow_mut();
        world.all.remove(&10);
        world.all.get_mut(&20).unwrap().parent = 1;
    }
    assert!(collect(|notify| enforcer.consider_all(notify)).is_empty());
    assert_eq!(host.on(20), "1 0");
    collect(|notify| enforcer.restore_all(notify));
    assert_eq!(host.on(20), "0-7 0");
}

#[test]
fn a_raised_priority_is_not_inherited_by_other_programs() {
    let host = Host::default();
    host.add(10, 1, "/bin/db", "0-7");
    let (mut enforcer, _) = start_enforcer(&host, &[("/bin/db", "place = \"cpu:1\"\nnice = -5")]);
    // A fork, as it is seen before it begins another program.
    host.add(20, 10, "/bin/db", "1");
    host.set(20, |state, _| state.1 = -5).unwrap();
    collect(|notify| enforcer.consider(20, notify));
    assert_eq!(host.on(20), "1 -5");
    execute(&host, 20, "/home/x/other");
    let reported = collect(|notify| enforcer.consider(20, notify));
    assert_eq!(host.on(20), "1 0");
    let why = reported[0].why.as_deref();
    assert_eq!(why, Some("a raised priority is not inherited"));
    // It is reported once, and the CPUs come back in the end.
    assert!(collect(|notify| enforcer.consider(20, notify)).is_empty());
    collect(|notify| enforcer.restore_all(notify));
    assert_eq!((host.on(10), host.on(20)), ("0-7 0".into(), "0-7 0".into()));
}

#[test]
fn a_restart_recognises_the_processes_in_its_journal() {
    let host = Host::default();
    host.add(10, 1, "/bin/db", "0-7");
    host.add(11, 1, "/bin/web", "0-7");
    let (enforcer, _) = start_enforcer(&host, &[DB, ("web", "place = \"cpu:2\"")]);
    drop(enforcer);
    // Its number was reused, with a mask that looks the same.
    host.0.borrow_mut().all.get_mut(&11).unwrap().start = 200;
    let (_, reported) = start_enforcer(
        &host,
        &[("db", "place = \"cpu:4-5\""), ("web", "place = \"cpu:3\"")],
    );
    assert_eq!((host.on(10), host.on(11)), ("4-5 5".into(), "2 0".into()));
    assert_eq!(
        (reported[0].change, reported[1].change),
        (RuleChangeKind::Placed, RuleChangeKind::Refused)
    );
    // No rule asks for it any more.
    let (_, reported) = start_enforcer(&host, &[("nobody", "nice = 1")]);
    assert_eq!(
        (host.on(10), reported[0].change),
        ("0-7 0".into(), RuleChangeKind::Released)
    );
}

#[test]
fn new_rules_move_processes_that_the_old_ones_placed() {
    let host = Host::default();
    host.add(10, 1, "/bin/db", "0-7");
    let (mut enforcer, _) = start_enforcer(&host, &[DB]);
    let moved = plan(&[("db", "place = \"cpu:6\"\nnice = 5")]);
    collect(|notify| enforcer.change_plan(moved, notify));
    assert_eq!(host.on(10), "6 5");
    collect(|notify| enforcer.change_plan(plan(&[("x", "nice = 1")]), notify));
    assert_eq!(host.on(10), "0-7 0");
}

#[test]
fn nothing_is_changed_if_it_cannot_be_journaled_or_is_not_permitted() {
    let host = Host::default();
    host.add(10, 1, "/bin/db", "0-7");
    host.0.borrow_mut().is_disk_full = true;
    let (_, reported) = start_enforcer(&host, &[DB]);
    assert_eq!(host.on(10), "0-7 0");
    assert!(reported[0].why.as_ref().unwrap().contains("journaled"));
    host.0.borrow_mut().is_disk_full = false;
    host.0.borrow_mut().foreign.push(10);
    let (_, reported) = start_enforcer(&host, &[DB]);
    assert!(reported[0].why.as_ref().unwrap().contains("CAP_SYS_NICE"));
    assert!(host.0.borrow().written.is_empty());
}

#[test]
fn a_dry_run_changes_nothing_and_reports_once() {
    let host = Host::default();
    host.add(10, 1, "/bin/db", "0-7");
    let mut enforcer: RuleEnforcer<Host, Host> =
        RuleEnforcer::new(host.clone(), None, plan(&[DB]), Vec::new(), 1);
    let reported = collect(|notify| enforcer.consider_all(notify));
    assert_eq!((reported.len(), reported[0].to.as_deref()), (1, Some("1")));
    assert!(reported[0].dry_run);
    assert!(collect(|notify| enforcer.consider_all(notify)).is_empty());
    collect(|notify| enforcer.restore_all(notify));
    assert_eq!((host.on(10), host.0.borrow().changes), ("0-7 0".into(), 0));
}

#[test]
fn placements_stay_within_what_a_process_may_use() {
    let host = Host::default();
    host.add(10, 1, "/bin/db", "4-7");
    host.0.borrow_mut().all.get_mut(&10).unwrap().default = cpus("4-7");
    let (_, _) = start_enforcer(&host, &[("db", "place = \"one-per-core\"")]);
    assert_eq!(host.on(10), "4,6 0");
    let (_, reported) = start_enforcer(&host, &[("db", "place = \"cpu:1\"")]);
    let why = reported[0].why.as_ref().unwrap();
    assert!(
        why.contains("forbidden: the process's cpuset leaves only 4-7"),
        "{why}"
    );
}

#[test]
fn mistakes_in_placements_are_reported_with_their_line() {
    let topology = Topology::from_synthetic("core:4 pu:2").unwrap();
    for (place, why) in [
        ("one-cor", "did you mean"),
        ("cpu:99", "no CPU 99"),
        ("one-core/mem=bind", "memory policy"),
        ("compact*2/bound", "/bound"),
    ] {
        let text = format!("[[rule]]\nname = \"a\"\nexecutable = \"x\"\nplace = \"{place}\"");
        let error = RulesPlan::read(&text, &topology, |_| None).unwrap_err();
        assert_eq!(
            (error.position.line, error.position.column),
            (4, 9),
            "{error}"
        );
        assert!(error.reason.contains(why), "{error}");
    }
}

/// Plays back these events, in order.
struct Script(Vec<WatchEvents>);

impl Watch for Script {
    fn next(&mut self) -> io::Result<WatchEvents> {
        Ok(self.0.remove(0))
    }
    fn report_user_changes(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_bad_file_leaves_the_old_rules_in_force() {
    let host = Host::default();
    let (mut enforcer, _) = start_enforcer(&host, &[DB]);
    host.add(10, 1, "/bin/db", "0-7");
    let reload = WatchEvents {
        reload: true,
        ..WatchEvents::default()
    };
    let started = WatchEvents {
        started: vec![10],
        ..WatchEvents::default()
    };
    let stop = WatchEvents {
        stop: true,
        ..WatchEvents::default()
    };
    let mut script = Script(vec![reload, started, stop]);
    let mut reported = Vec::new();
    let mut load = || Err("rules.toml:1:1: no".to_owned());
    enforce(&mut enforcer, &mut script, &mut load, &mut |one| {
        reported.push(one)
    })
    .unwrap();
    assert!(matches!(&reported[0], RuleEvent::Warning(text) if text.contains("stay in force")));
    assert_eq!(host.on(10), "1 5");
}
