//! CPUs that are really switched off come back, with the masks of others: on an
//! emulated machine, never on the host.
//!
//! One boot ends pinwise at several moments while CPUs are off, and reads every
//! online bit and the masks of threads that had lost their CPUs.

use crate::vm;

/// Fault, what-if.
const CASES: [(&str, &str); 12] = [
    ("none", "smt-off"),
    ("after-offline:kill", "smt-off"),
    ("running:kill", "smt-off"),
    ("running:int", "cpus=3"),
    ("running:term", "cpus=3"),
    ("running:panic", "cpus=3"),
    ("after-offline:kill:2", "cpus=3"),
    ("after-offline:panic:2", "cpus=3"),
    ("after-write:kill:3", "cpus=3"),
    ("between-restores:kill", "one-package"),
    ("between-restores:panic", "one-package"),
    ("running:full", "one-package"),
];

/// In the guest: a thread bound to CPUs that will be off, then every case.
fn script() -> String {
    let mut text = String::from(
        "export PINWISE_STORE=none\n\
         sleep 900 & a=$!; taskset -p 80 $a >/dev/null\n\
         sleep 900 & b=$!; taskset -p 22 $b >/dev/null\n\
         values() { cat /sys/devices/system/cpu/online; for t in $a $b; do grep Cpus_allowed_list /proc/$t/status; done; }\n\
         echo '@@ before'; values\n",
    );
    for (fault, machine) in CASES {
        let variable = match fault {
            "none" => String::new(),
            fault => format!("PINWISE_FAULT={fault} "),
        };
        text.push_str(&format!(
            "{variable}\"$0\" -q compare --real --what-if {machine} --max-runs 1 --warmup 0 -- \
             sh -c 'echo seen $(cat /sys/devices/system/cpu/online) >>/tmp/seen' >/tmp/out 2>&1\n\
             echo \"status $?\" >>/tmp/out\n\
             n=0; while ls /run/pinwise/*.journal >/dev/null 2>&1 && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done\n\
             echo '@@ {fault} {machine}'; values; sed 's/^/# /' /tmp/out /tmp/seen; rm -f /tmp/seen\n"
        ));
    }
    text
}

#[test]
fn cpus_and_masks_come_back() {
    let Some((out, err)) = vm::run(384, &script()) else {
        return;
    };
    let values = |case: &str| -> Vec<&str> {
        let rest = out.split_once(&format!("@@ {case}\n"));
        let rest = rest
            .unwrap_or_else(|| panic!("{case} is missing: {out}\n{err}"))
            .1;
        let until = rest.split("@@ ").next().unwrap();
        until
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect()
    };
    let before = values("before");
    assert_eq!(before[0], "0-7", "{out}");
    assert!(
        before[1].ends_with("\t7") && before[2].ends_with("\t1,5"),
        "{out}"
    );
    let mut table = String::new();
    let mut wrong = 0;
    for (fault, machine) in CASES {
        let is_whole = values(&format!("{fault} {machine}")) == before;
        wrong += usize::from(!is_whole);
        table.push_str(&format!(
            "{fault:<26}{machine:<14}{}\n",
            if is_whole { "ok" } else { "WRONG" }
        ));
    }
    println!("{table}");
    assert_eq!(wrong, 0, "{table}\n{out}");
    // The CPUs were really off while the command ran.
    for seen in ["# seen 0,2,4,6", "# seen 0-3", "# seen 0-7"] {
        assert!(out.contains(seen), "{seen}: {out}");
    }
}
