//! Recorded series as CSV. The first byte selects: `p` plain, `a` only the rows of arm 1, `x`
//! packed by xz.

use pinwise_sim::SimulatedMachine;
use pinwise_machine::{CommandRunner, Host, Request};
use pinwise_topology::CpuSet;
use pinwise_workload::{Command, Workload};

thread_local! {
    static FOLDER: tempfile::TempDir = crate::invariants::create_folder();
}

/// Reads any bytes.
pub(crate) fn run(bytes: &[u8]) {
    let Some((&kind, csv)) = bytes.split_first() else { return };
    let (name, arm) = match kind {
        b'p' => ("s.csv", ""),
        b'a' => ("s.csv", "arm = 1"),
        b'x' => ("s.csv.xz", ""),
        _ => return,
    };
    FOLDER.with(|folder| {
        let description = folder.path().join("m.toml");
        let toml = format!("topology = \"pu:1\"\n[noise]\nseries = \"{name}\"\n{arm}\n");
        std::fs::write(&description, toml).expect("a file");
        std::fs::write(folder.path().join(name), csv).expect("a file");
        match SimulatedMachine::open(description.to_str().expect("a path in UTF-8"), 1) {
            Ok(mut machine) => check(&mut machine),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}

fn check(machine: &mut SimulatedMachine) {
    let workload = Workload::new(Command::from_line("prog").expect("a command"));
    let cpus = CpuSet::single(0);
    let request = Request::new(&workload, &cpus);
    for _ in 0..16 {
        let before = machine.now();
        machine.run(&request).expect("simulated runs do not break");
        assert!(machine.now() >= before);
    }
}
