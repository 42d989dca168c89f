//! Invariants of all inputs: checks that several fuzz targets share.
//!
//! They do not concern the syntax of a text, only the parsed values and pinwise's outputs of them.

use std::io::Cursor;
use std::path::Path;

use pinwise_placement::{Placement, Realised, Wish};
use pinwise_record::{HostRecord, Record, TopologyRecord, TraceRecord, TraceSource, TraceTier};
use pinwise_report::{Palette, TraceCsv, TracePerfetto};
use pinwise_sched::import::{Import, ImportError, TraceSubject};
use pinwise_sched::{Event, EventKind};
use pinwise_study::trace::{TraceDetails, TraceRecorder};
use pinwise_topology::{CpuSet, Level, Node, NodeKind, Topology};

/// Larger machines are read, but not fully checked: a target should make thousands of runs per
/// second.
const LARGEST_MACHINE: usize = 256;

/// One placement of each kind, some with counts that small machines lack.
const PLACEMENTS: [&str; 16] = [
    "os-default",
    "compact*2",
    "spread*2",
    "balanced*3",
    "one-per-core",
    "one-per-llc",
    "one-per-numa",
    "one-core:1",
    "one-llc",
    "one-numa/mem=bind",
    "one-package/mem=interleave",
    "p-cores",
    "e-cores",
    "shape:core=2,smt=1",
    "shape:pkg=1,llc=1",
    "cpu:0",
];

/// A machine is consistent, and can be written, shown and placed on.
pub(crate) fn check_topology(topology: &Topology, warnings: &[String]) {
    if topology.cpus.len() > LARGEST_MACHINE {
        return;
    }
    check_sets(topology);
    check_cpus(topology);
    check_tree(topology);
    let record = TopologyRecord::new(topology, warnings);
    assert_eq!(round_trip_json(&record), record);
    check_topology_faces(topology, &record);
    for name in PLACEMENTS {
        let placement: Placement = name.parse().expect("a placement of the list above");
        check_placement(&placement, topology);
    }
}

/// Every output shows a machine without control characters, and hwloc's XML round-trips with the
/// same CPUs.
pub(crate) fn check_topology_faces(topology: &Topology, record: &TopologyRecord) {
    check_shown(&pinwise_report::render_topology(
        topology,
        record,
        Palette::default(),
    ));
    let xml = pinwise_report::render_topology_xml(topology, record);
    check_shown(&xml);
    if !topology.online.is_empty() {
        let (read, _) = Topology::from_hwloc_xml(&xml).expect("pinwise reads what it writes");
        assert_eq!(read.online, topology.online);
        assert_eq!(read.allowed, topology.allowed);
    }
}

/// If a placement is possible, its CPUs are allowed ones, or at least within the cpuset if it names
/// them, and as many as requested.
pub(crate) fn check_placement(placement: &Placement, topology: &Topology) -> Option<Realised> {
    let realised = match placement.realise(topology) {
        Ok(realised) => realised,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    let is_named = matches!(
        placement.wish,
        Wish::Cpus(_) | Wish::Mask(_) | Wish::Isolated
    );
    let most = match is_named {
        true => topology.reachable(),
        false => topology.allowed.clone(),
    };
    assert!(realised.cpus.is_subset(&most), "{placement}");
    if !topology.allowed.is_empty() {
        assert!(!realised.cpus.is_empty(), "{placement}");
    }
    if let Some(count) = placement.count {
        assert_eq!(realised.cpus.len(), count, "{placement}");
    }
    assert_eq!(realised.used.cpus, realised.cpus.len());
    check_shown(&pinwise_report::explain_placement(
        &realised,
        topology,
        topology.devices.first(),
        Palette::default(),
    ));
    Some(realised)
}

/// Text for a terminal contains no control characters: they could come from the file that was read,
/// and fool the reader.
pub(crate) fn check_shown(text: &str) {
    let bad = text.chars().find(|&c| c.is_control() && c != '\n');
    assert_eq!(bad, None, "{text:?}");
}

/// A refusal is a message of one line.
pub(crate) fn check_refusal(error: &impl std::fmt::Display) {
    let message = error.to_string();
    assert!(!message.is_empty() && !message.contains('\n'), "{message}");
}

/// Writes a record and reads it again.
pub(crate) fn round_trip_json<R: Record>(record: &R) -> R {
    let text = serde_json::to_string(record).expect("records are JSON");
    pinwise_record::read(&text).expect("pinwise reads what it writes")
}

/// A trace is refused in one line, or becomes events: not more than its bytes can hold, harmless in
/// every output, and readable for the first process in it.
pub(crate) fn check_import(bytes: &[u8]) {
    let mut csv = TraceCsv::new(Vec::new()).expect("memory");
    let mut perfetto = TracePerfetto::new(std::io::sink());
    let mut process = None;
    let mut count = 0;
    let topology = Topology::from_synthetic("core:2 pu:2").expect("a machine");
    let mut analysed = None;
    let read = Import::open(Cursor::new(bytes)).and_then(|import| {
        assert!(!import.facts().format.is_empty());
        let recorder = analysed.insert(TraceRecorder::new(&topology, import.facts().scope));
        import.read(TraceSubject::Default, &mut |events| {
            count += events.len();
            recorder.add(events);
            csv.write(events).expect("memory");
            perfetto.write(events).expect("nowhere");
            process = process.or_else(|| events.iter().find_map(find_process));
        })
    });
    // A record makes its event, names, processes, and an end.
    assert!(count <= 8 * bytes.len());
    match read {
        Ok(imported) => {
            imported.notes.iter().for_each(|note| check_shown(note));
            if let Some(recorder) = analysed {
                check_trace(&recorder.finish(describe_import(imported.notes, &topology)));
            }
        }
        Err(error) => check_refusal(&error),
    }
    if let Some(process) = process {
        let again = Import::open(Cursor::new(bytes))
            .and_then(|import| import.read(TraceSubject::Process(process), &mut |_| {}));
        assert!(!matches!(again, Err(ImportError::NoProcess(_))));
    }
}

fn describe_import(notes: Vec<String>, topology: &Topology) -> TraceDetails {
    TraceDetails {
        source: TraceSource::Import {
            path: "trace".to_owned(),
            pid: None,
        },
        tier: TraceTier::PerfData,
        host: HostRecord::new("local".to_owned(), false, topology),
        span_ns: None,
        throttled: None,
        notes,
        tags: Vec::new(),
    }
}

/// The analysis of a trace round-trips and is shown.
fn check_trace(record: &TraceRecord) {
    assert_eq!(&round_trip_json(record), record);
    check_shown(&pinwise_report::render_trace(record, Palette::default()));
}

fn find_process(event: &Event) -> Option<i32> {
    match event.what {
        EventKind::Known { process, .. } => Some(process),
        _ => None,
    }
}

/// Creates a folder for files that a target passes by path, in memory if possible.
pub(crate) fn create_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    folder.expect("a folder for temporary files")
}

fn check_sets(topology: &Topology) {
    assert!(topology.allowed.is_subset(&topology.online));
    for units in [&topology.cores, &topology.llcs, &topology.packages] {
        let union = units.iter().fold(CpuSet::new(), |all, set| all.union(set));
        let members: usize = units.iter().map(CpuSet::len).sum();
        assert_eq!(members, union.len(), "units of a level are disjoint");
        assert!(union.is_subset(&topology.online));
        assert!(units.iter().all(|unit| !unit.is_empty()));
    }
    let in_cores: usize = topology.cores.iter().map(CpuSet::len).sum();
    assert_eq!(in_cores, topology.online.len(), "every CPU has a core");
    let counts = topology.counts();
    assert!(counts.cores <= counts.cpus && counts.llcs <= counts.cpus);
}

fn check_cpus(topology: &Topology) {
    for cpu in &topology.cpus {
        assert_eq!(topology.cpu(cpu.id), Some(cpu));
        assert_eq!(cpu.online, topology.online.contains(cpu.id));
        assert_eq!(cpu.allowed, topology.allowed.contains(cpu.id));
        let units = [
            (cpu.core, &topology.cores),
            (cpu.llc, &topology.llcs),
            (cpu.package, &topology.packages),
        ];
        for (index, sets) in units {
            assert!(index.is_none_or(|index| sets[index].contains(cpu.id)));
        }
        assert!(cpu.online || (cpu.core, cpu.llc, cpu.package) == (None, None, None));
    }
}

/// Every node lies inside its parent and beside its siblings, and every CPU occurs in the tree
/// once.
fn check_tree(topology: &Topology) {
    for (tree, within) in [
        (topology.tree(), &topology.online),
        (topology.allowed_tree(), &topology.allowed),
    ] {
        let mut leaves = CpuSet::new();
        let mut count = 0;
        tree.walk(&mut |node: &Node, _| {
            let below: usize = node.children.iter().map(|child| child.cpus.len()).sum();
            let union = node
                .children
                .iter()
                .fold(CpuSet::new(), |all, child| all.union(&child.cpus));
            assert_eq!(below, union.len());
            assert!(union.is_subset(&node.cpus));
            if node.kind == NodeKind::Unit(Level::Cpu) {
                leaves = leaves.union(&node.cpus);
                count += 1;
            }
        });
        assert_eq!(&leaves, within);
        assert_eq!(count, within.len());
    }
}
