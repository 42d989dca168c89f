//! Journals as text, and ledgers on a folder that represents a host.

use std::collections::BTreeMap;

use pinwise_placement::InterruptCpus;
use pinwise_topology::interrupts::Queue;
use proptest::prelude::*;

use super::folder::write_journal;
use super::writer::LONG;
use super::*;
use crate::RunSetting;
use crate::linux::sys;
use crate::linux::{tree, write_test_file};
use crate::processes::RuledProcess;

/// A ledger in its own folder, without a guardian: unit tests have many threads, and such a process
/// must not fork.
pub(in crate::linux) fn ledger_without_guardian() -> (Ledger, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (open_ledger(&folder, true), folder)
}

fn open_ledger(folder: &tempfile::TempDir, is_for_host: bool) -> Ledger {
    let journals = folder.path().join("journals");
    folder::make_private(&journals).unwrap();
    let path = JournalPath {
        path: journals.join("test.journal"),
        is_named: false,
    };
    Ledger {
        system: System::at(folder.path()),
        writer: JournalWriter::without_guardian(path, ChangeJournal::new("boot".to_owned(), 1)),
        host_lock: is_for_host.then(|| file::lock_host(&journals).unwrap()),
        next: 1,
        fault: None,
    }
}

/// Writes the files of four CPUs, of which all but the first can be switched.
fn write_cpu_files(folder: &tempfile::TempDir) {
    let cpus = folder.path().join("sys/devices/system/cpu");
    for cpu in 0..4 {
        std::fs::create_dir_all(cpus.join(format!("cpu{cpu}"))).unwrap();
        if cpu > 0 {
            write_cpu_file(folder, &format!("cpu{cpu}/online"), "1\n");
        }
    }
    write_cpu_file(folder, "online", "0-3\n");
    write_cpu_file(folder, "present", "0-3\n");
}

fn write_cpu_file(folder: &tempfile::TempDir, name: &str, text: &str) {
    let cpus = folder.path().join("sys/devices/system/cpu");
    write_test_file(&cpus.join(name), text);
}

fn read_online(folder: &tempfile::TempDir, cpu: usize) -> String {
    let file = folder
        .path()
        .join(format!("sys/devices/system/cpu/cpu{cpu}/online"));
    System::read(&file).unwrap()
}

fn set(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

#[track_caller]
fn check(journal_lines: &str, in_force: &[&str], are_kept: bool) {
    let journal =
        ChangeJournal::parse(&format!("pinwise journal 1 b-00t 7\n{journal_lines}")).unwrap();
    assert_eq!((journal.boot.as_str(), journal.pid), ("b-00t", 7));
    let undone = journal.undo_order().into_iter();
    let texts: Vec<String> = undone.map(|id| journal.entries[&id].to_string()).collect();
    assert_eq!(texts, in_force, "{journal_lines}");
    assert_eq!(journal.are_kept, are_kept);
}

#[test]
fn the_journal_lists_the_changes_in_force() {
    check("", &[], false);
    let made = "made 1 mask 5 17 0-3 1\n";
    check(made, &["thread 5: CPUs 0-3"], false);
    check(&format!("{made}gone 1\n"), &[], false);
    check(&format!("{made}kept true\n"), &["thread 5: CPUs 0-3"], true);
    check("kept true\nkept false\n", &[], false);
    // An incomplete or malformed line means not done.
    check("made 1 mask 5 17 0-3 1", &[], false);
    check(
        "made x mask 5 17 0-3 1\nmade 5 17 0-3\ngone\n\u{fffd}\n",
        &[],
        false,
    );
    check("made 1 mask 0 17 0-3 1\nmade 1 nice 5 1 0 99\n", &[], false);
    check(
        "made 5 held 5 17 nice=10,-5 own_nice=5 own=5,6 0-3,7 1\nmade 6 held 6 1 nice= own_nice= own=\ngone 6\nmade 7 held 7 1",
        &["process 5: placed by rules"],
        false,
    );
    check(
        "made 1 held 5 17 nice=x own_nice= own= 1\nmade 2 held -5 1 nice= own_nice= own= 1\nmade 3 held 5\n\
         made 4 held 5 1 nice= own_nice= own= 0-\n\
         made 5 held 5 1 nice= own_nice= own=x 1\n",
        &[],
        false,
    );
    check(
        "made 1 memory 5 17 0 1000-5000:1=4 9000-b000:0=1+1=1\nmade 2 memory 6 1 0-1\n",
        &[
            "process 6: 0 B of memory back from node 0-1",
            "process 5: 20 KiB of memory back from node 0",
        ],
        false,
    );
    check(
        "made 1 memory 5 17 - 1000-5000:1=4\nmade 2 memory 5 17 0 1000-5000\n",
        &[],
        false,
    );
    check("made 1 folder /a/../etc\nmade 2 folder etc\n", &[], false);
    for text in ["", "pinwise journal 1", "pinwise journal 2 b 7\n", "x\n"] {
        assert_eq!(ChangeJournal::parse(text), None, "{text}");
    }
}

#[test]
fn cpus_are_restored_before_cpusets_and_cpusets_before_masks() {
    check(
        "made 1 folder /c/g\nmade 2 cpuset /c/f%20x - 1\nmade 3 move 9 1 /c /c/g\n\
         made 4 mask 5 17 0-3 1\nmade 5 saved 6 17 2\nmade 6 nice 5 17 -3 5\n\
         made 7 online 2 false\nmade 8 smt-off\nmade 9 cpuset /d 0-3 0-1\n",
        &[
            "SMT: on",
            "CPU 2: on",
            "/d: CPUs 0-3",
            "/c/f x: as its parent",
            "task 9: cgroup /c",
            "thread 5: niceness -3",
            "thread 6: CPUs 2",
            "thread 5: CPUs 0-3",
            "/c/g: removed",
        ],
        false,
    );
}

/// All pages are on the target already, so this works on any machine.
#[test]
fn memory_on_its_target_is_left_alone() {
    let own = i32::try_from(std::process::id()).unwrap();
    let nodes: CpuSet = crate::linux::numa_maps::read_bytes_by_node(own)
        .into_keys()
        .collect();
    if nodes.is_empty() {
        eprintln!("SKIPPED memory_on_its_target_is_left_alone: no /proc/self/numa_maps");
        return;
    }
    let (mut ledger, _folder) = ledger_without_guardian();
    let change = |nodes: &CpuSet| Change::Memory {
        process: own,
        nodes: nodes.clone(),
    };
    let id = ledger.change(&change(&nodes)).unwrap();
    let Some(Entry::Memory(moved)) = ledger.entry(id) else {
        panic!("no entry");
    };
    assert_eq!(moved.before, []);
    assert_eq!(ledger.undo(id), Some(UndoOutcome::AsBefore));
    let beyond = CpuSet::single(CpuSet::MAX_CPU);
    let error = ledger.change(&change(&beyond)).unwrap_err();
    assert!(matches!(error, LedgerError::Nodes(..)), "{error}");
    assert_eq!(ledger.count(), 0);
}

#[test]
fn cpus_go_offline_and_are_restored() {
    let folder = tempfile::tempdir().unwrap();
    write_cpu_files(&folder);
    let mut ledger = open_ledger(&folder, true);
    ledger
        .apply_settings(&[RunSetting::Offline(set("2-3"))])
        .unwrap();
    assert_eq!(
        (read_online(&folder, 1), read_online(&folder, 2)),
        ("1".into(), "0".into())
    );
    // Somebody else has switched one on meanwhile.
    write_cpu_file(&folder, "cpu3/online", "1\n");
    let outcomes: Vec<UndoOutcome> = ledger.undo_all().into_iter().map(|(_, o)| o).collect();
    assert_eq!(outcomes, [UndoOutcome::AsBefore, UndoOutcome::Restored]);
    for cpu in 1..4 {
        assert_eq!(read_online(&folder, cpu), "1");
    }
    let path = ledger.path().to_owned();
    drop(ledger);
    assert!(!path.exists());
}

fn interrupt_setting<const N: usize>(interrupts: [(u32, &str); N]) -> RunSetting {
    RunSetting::Interrupts(InterruptCpus {
        interrupts: interrupts.map(|(number, cpus)| (number, set(cpus))).into(),
        queues: BTreeMap::new(),
    })
}

#[test]
fn queues_are_moved_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let queue = |name| Queue::from_name("eth0", name).unwrap();
    let file = |name| System::at(folder.path()).queue_file(&queue(name));
    write_test_file(&file("rx-0"), "00000000,0000000c\n");
    write_test_file(&file("rx-1"), "00000001\n");
    write_test_file(&file("tx-0"), "00000000\n");
    let mut ledger = open_ledger(&folder, true);
    let asked = [("rx-0", "0,40"), ("rx-1", "0-2"), ("tx-0", "3")];
    let queues = asked.map(|(name, cpus)| (queue(name), set(cpus)));
    let wanted = RunSetting::Interrupts(InterruptCpus {
        interrupts: BTreeMap::new(),
        queues: queues.into(),
    });
    ledger
        .apply_settings(std::slice::from_ref(&wanted))
        .unwrap();
    let read = |name| System::read(&file(name)).unwrap();
    assert_eq!(read("rx-0"), "00000100,00000001");
    assert_eq!(
        (read("rx-1"), read("tx-0")),
        ("00000007".into(), "00000008".into())
    );
    let text = ledger.writer.journal.to_text();
    assert_eq!(
        ChangeJournal::parse(&text).unwrap().entries,
        ledger.writer.journal.entries
    );
    // The kernel dropped an isolated CPU from one; somebody changed the other.
    write_test_file(&file("rx-1"), "00000003\n");
    write_test_file(&file("rx-0"), "00000000,00000002\n");
    let outcomes: Vec<UndoOutcome> = ledger.undo_all().into_iter().map(|(_, o)| o).collect();
    let changed = UndoOutcome::Changed("1".to_owned());
    assert_eq!(
        outcomes,
        [UndoOutcome::Restored, UndoOutcome::Restored, changed]
    );
    let now =
        ["rx-0", "rx-1", "tx-0"].map(|name| ledger.system.read_queue_cpus(&queue(name)).unwrap());
    assert_eq!(now, [set("1"), set("0"), CpuSet::new()]);
}

#[test]
fn interrupts_are_moved_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let file = |number: u32| System::at(folder.path()).interrupt_file(number);
    let put = |number: u32, text: &str| {
        write_test_file(&file(number), text);
    };
    put(30, "0\n");
    put(31, "2\n");
    let mut ledger = open_ledger(&folder, true);
    let wanted = interrupt_setting([(30, "1"), (31, "0")]);
    ledger
        .apply_settings(std::slice::from_ref(&wanted))
        .unwrap();
    let read = |number| System::read(&file(number)).unwrap();
    assert_eq!((read(30), read(31)), ("1".into(), "0".into()));
    // Somebody else has moved one meanwhile.
    put(31, "3\n");
    let outcomes: Vec<UndoOutcome> = ledger.undo_all().into_iter().map(|(_, o)| o).collect();
    let expected = [UndoOutcome::Changed("3".to_owned()), UndoOutcome::Restored];
    assert_eq!(outcomes, expected);
    assert_eq!((read(30), read(31)), ("0".into(), "3".into()));
    // The writer ended halfway through restoring: it had set only the CPU that took it.
    put(32, "3\n");
    write_test_file(&file(32).with_file_name("effective_affinity_list"), "2\n");
    ledger
        .apply_settings(&[interrupt_setting([(32, "1")])])
        .unwrap();
    put(32, "2\n");
    let outcomes: Vec<UndoOutcome> = ledger.undo_all().into_iter().map(|(_, o)| o).collect();
    assert_eq!(
        (outcomes, read(32)),
        (vec![UndoOutcome::Restored], "3".into())
    );
    // One does not exist: the first is not moved, either.
    let missing = interrupt_setting([(30, "1"), (99, "0")]);
    let error = ledger.apply_settings(&[missing]).unwrap_err().to_string();
    assert!(error.contains("irq/99/"), "{error}");
    assert_eq!((read(30), ledger.count()), ("0".into(), 0));
    drop(ledger);
    let error = open_ledger(&folder, false)
        .apply_settings(&[wanted])
        .unwrap_err();
    assert!(matches!(error, LedgerError::NotForHost), "{error}");
}

#[test]
fn the_first_cpu_all_cpus_and_absent_cpus_cannot_be_switched_off() {
    let folder = tempfile::tempdir().unwrap();
    write_cpu_files(&folder);
    let refused = |ledger: &mut Ledger, cpus: &str| {
        let error = ledger
            .apply_settings(&[RunSetting::Offline(set(cpus))])
            .unwrap_err();
        assert_eq!(ledger.count(), 0);
        error.to_string()
    };
    let mut ledger = open_ledger(&folder, true);
    assert!(refused(&mut ledger, "0-1").contains("CPU 0 cannot be switched off"));
    assert!(refused(&mut ledger, "0-3").contains("no CPU would be left"));
    assert_eq!(refused(&mut ledger, "7"), "CPU 7: off already");
    drop(ledger);
    let mut ledger = open_ledger(&folder, false);
    assert!(refused(&mut ledger, "1").contains("that has its lock"));
    let change = Change::Online {
        cpu: 1,
        is_on: false,
    };
    assert!(matches!(
        ledger.change(&change),
        Err(LedgerError::NotForHost)
    ));
}

#[test]
fn nothing_is_changed_without_a_guardian() {
    let (read, write) = sys::pipe(0).unwrap();
    drop(read);
    let (mut ledger, _folder) = ledger_without_guardian();
    ledger.writer.death_pipe = File::from(write);
    let own = i32::try_from(std::process::id()).unwrap();
    let before = sys::affinity_of(own).unwrap();
    let cpus = CpuSet::single(before.first().unwrap());
    let refused = ledger.change(&Change::Mask { thread: own, cpus });
    assert!(matches!(refused, Err(LedgerError::Unguarded(_))));
    assert_eq!(sys::affinity_of(own).unwrap(), before);
    assert_eq!(ledger.count(), 0);
}

#[test]
fn nothing_is_changed_if_the_journal_is_full() {
    let (mut ledger, _folder) = ledger_without_guardian();
    // Writing to this file fails.
    ledger.writer.file.file = open_read_only(ledger.path());
    let own = i32::try_from(std::process::id()).unwrap();
    let before = sys::nice_of(own).unwrap();
    let refused = ledger.change(&Change::Nice {
        thread: own,
        nice: 19,
    });
    assert!(
        matches!(refused, Err(LedgerError::Unwritten { .. })),
        "{refused:?}"
    );
    assert_eq!(sys::nice_of(own).unwrap(), before);
    assert_eq!(ledger.count(), 0);
}

#[expect(clippy::disallowed_methods, reason = "tests arrange files")]
fn open_read_only(path: &Path) -> File {
    File::open(path).unwrap()
}

/// Checks that the file has all entries, and how many they are.
#[track_caller]
fn check_file(ledger: &Ledger, count: usize) {
    let text = System::read(ledger.path()).unwrap() + "\n";
    let written = ChangeJournal::parse(&text).unwrap().entries;
    assert_eq!(written, ledger.writer.journal.entries);
    assert_eq!(written.len(), count);
}

#[test]
fn a_journal_is_rewritten_before_a_change_if_its_folder_was_removed() {
    let (mut ledger, _folder) = ledger_without_guardian();
    let folder = ledger.path().parent().unwrap().to_owned();
    ledger.save(Entry::SmtOff).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    ledger.save(Entry::SmtOff).unwrap();
    check_file(&ledger, 2);
    // The same name, but not the same file.
    folder::remove_file(ledger.path());
    drop(write_journal(ledger.path(), "pinwise journal 1 boot 1\n").unwrap());
    ledger.save(Entry::SmtOff).unwrap();
    check_file(&ledger, 3);
    drop(ledger);
    assert!(folder.exists());
    assert_eq!(folder::list_journals(&[folder]), Vec::<PathBuf>::new());
}

#[test]
fn nothing_is_changed_if_the_journal_cannot_be_rewritten() {
    let (mut ledger, _folder) = ledger_without_guardian();
    let folder = ledger.path().parent().unwrap().to_owned();
    std::fs::remove_dir_all(&folder).unwrap();
    // Somebody who may make folders there took the name.
    std::os::unix::fs::symlink("/", &folder).unwrap();
    let own = i32::try_from(std::process::id()).unwrap();
    let before = sys::affinity_of(own).unwrap();
    let cpus = CpuSet::single(before.first().unwrap());
    let refused = ledger.change(&Change::Mask { thread: own, cpus });
    assert!(
        matches!(refused, Err(LedgerError::Unwritten { .. })),
        "{refused:?}"
    );
    assert_eq!(sys::affinity_of(own).unwrap(), before);
    assert_eq!(ledger.count(), 0);
}

#[test]
fn no_cpu_is_switched_if_the_lock_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    write_cpu_files(&folder);
    let mut ledger = open_ledger(&folder, true);
    std::fs::remove_dir_all(ledger.path().parent().unwrap()).unwrap();
    let refused = ledger.apply_settings(&[RunSetting::Offline(set("2-3"))]);
    assert!(
        matches!(refused, Err(LedgerError::Unlocked(_))),
        "{refused:?}"
    );
    assert_eq!(read_online(&folder, 2), "1");
}

/// What the guardian does after SIGKILL.
#[test]
fn the_guardian_restores_without_the_journal_file() {
    let folder = tempfile::tempdir().unwrap();
    write_cpu_files(&folder);
    let mut ledger = open_ledger(&folder, true);
    ledger
        .apply_settings(&[RunSetting::Offline(set("2-3"))])
        .unwrap();
    let journal_path = ledger.writer.file.path.clone();
    let (path, journal) = (journal_path.path.clone(), ledger.writer.journal.clone());
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    leftover::undo_and_remove(&journal_path, &journal, &System::at(folder.path()));
    assert_eq!(
        (read_online(&folder, 2), read_online(&folder, 3)),
        ("1".into(), "1".into())
    );
    assert!(!path.exists());
}

#[test]
fn changes_that_the_guardian_cannot_undo_are_recorded_again() {
    let (mut ledger, folder) = ledger_without_guardian();
    let group = folder.path().join("group");
    ledger
        .change(&Change::Folder {
            path: group.clone(),
        })
        .unwrap();
    // A folder that is not empty is not removed.
    std::fs::create_dir(group.join("inside")).unwrap();
    let journal_path = ledger.writer.file.path.clone();
    let (path, journal) = (journal_path.path.clone(), ledger.writer.journal.clone());
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    leftover::undo_and_remove(&journal_path, &journal, &System::at(folder.path()));
    let text = System::read(&path).unwrap() + "\n";
    assert_eq!(ChangeJournal::parse(&text), Some(journal));
}

#[test]
fn a_taken_name_among_temporary_files_is_replaced_by_a_random_one() {
    let temporary = tempfile::tempdir().unwrap();
    let taken = temporary.path().join(folder::own_folder_name());
    std::os::unix::fs::symlink("/nowhere", &taken).unwrap();
    assert!(folder::make_private(&taken).is_err());
    let random = folder::make_random_folder(temporary.path()).unwrap();
    // A foreign entry with such a name does not count.
    let name = format!("{}-0", folder::own_folder_name());
    std::os::unix::fs::symlink(&random, temporary.path().join(name)).unwrap();
    assert_eq!(folder::find_random_folders(temporary.path()), [random]);
}

#[test]
fn another_thread_with_the_same_id_is_left_alone() {
    let own = i32::try_from(std::process::id()).unwrap();
    let now = sys::affinity_of(own).unwrap();
    let entry = Entry::Mask {
        thread: own,
        start: tree::read_start(own).unwrap() + 1,
        before: CpuSet::single(now.first().unwrap()),
        asked: now.clone(),
        granted: None,
    };
    let (ledger, _folder) = ledger_without_guardian();
    assert_eq!(ledger.system.restore(&entry), UndoOutcome::Ended);
    assert_eq!(sys::affinity_of(own).unwrap(), now);
}

#[test]
fn a_long_journal_is_rewritten() {
    let (mut ledger, _folder) = ledger_without_guardian();
    ledger.save(Entry::SmtOff).unwrap();
    for _ in 0..LONG {
        let id = ChangeId(ledger.next);
        ledger
            .save(Entry::Online {
                cpu: 1,
                is_on: false,
            })
            .unwrap();
        ledger.forget(id);
    }
    assert!(
        ledger.writer.file.lines < LONG,
        "{}",
        ledger.writer.file.lines
    );
    check_file(&ledger, 1);
}

#[test]
fn the_state_of_leftover_journals_is_found() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let boot = boot_id().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(format!("{name}.journal"));
        drop(write_journal(&path, text).unwrap());
        path
    };
    let own = std::process::id();
    file(
        "a",
        &format!("pinwise journal 1 {boot} {own}\nmade 1 mask {own} 1 0 0\n"),
    );
    file("b", &format!("pinwise journal 1 {boot} {own}\nkept true\n"));
    file("c", "pinwise journal 1 other 5\nmade 1 smt-off\n");
    let odd = file("d", "odd\n");
    let held = folder.path().join("e.journal");
    let lock = write_journal(&held, "pinwise journal 1 x 5\n").unwrap();
    let folders = [folder.path().to_owned()];
    let states = |undo: bool| {
        let found = find_leftovers(&folders, None, undo).into_iter();
        found.map(|left| left.state).collect::<Vec<_>>()
    };
    for undo in [false, true] {
        let found = states(undo);
        let LeftoverState::Left(outcomes) = &found[0] else {
            panic!("{found:?}");
        };
        assert_eq!(outcomes[0].1, UndoOutcome::Ended);
        assert_eq!(
            found[1..3],
            [LeftoverState::Kept, LeftoverState::EarlierBoot]
        );
        assert!(matches!(found[3], LeftoverState::Unreadable(_)));
        assert_eq!(found[4], LeftoverState::InUse);
    }
    assert_eq!(states(false).len(), 2);
    assert!(odd.exists() && held.exists());
    drop(lock);
    // A folder that others may enter may hold their files.
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(find_leftovers(&folders, None, true), []);
}

proptest! {
    #[test]
    fn journals_round_trip(thread in 1i32.., start in 0u64.., cpus in prop::collection::btree_set(0usize..300, 1..9), path in "/[^\0/]{1,20}") {
        let cpus: CpuSet = cpus.into_iter().collect();
        let path = PathBuf::from(path);
        prop_assume!(path.components().all(|part| part.as_os_str() != ".."));
        let mut journal = ChangeJournal::new("b".to_owned(), 1);
        let entries = [
            Entry::Mask { thread, start, before: cpus.clone(), asked: cpus.clone(), granted: Some(cpus.clone()) },
            Entry::Saved { thread, start, before: cpus.clone() },
            Entry::Nice { thread, start, before: -20, asked: 19 },
            Entry::Held(RuledProcess { masks: vec![cpus.clone(), CpuSet::single(1)], nices: vec![-20, 19], own_masks: vec![thread, 7], own_nices: vec![thread], ..RuledProcess::new(thread, start) }),
            Entry::Held(RuledProcess::new(thread, start)),
            Entry::Memory(MovedMemory { process: thread, start, nodes: cpus.clone(), before: vec![PageRange { start: 0x1000, end: 0x5000, nodes: [(0, start.max(1)), (3, 1)].into() }] }),
            Entry::Memory(MovedMemory { process: thread, start, nodes: cpus.clone(), before: Vec::new() }),
            Entry::Cpuset { file: path.clone(), before: CpuSet::new(), asked: cpus },
            Entry::Move { task: thread, start, before: path.clone(), to: path.clone() },
            Entry::Folder { path },
        ];
        journal.entries = (1..).zip(entries).collect();
        prop_assert_eq!(ChangeJournal::parse(&journal.to_text()), Some(journal));
    }
}
