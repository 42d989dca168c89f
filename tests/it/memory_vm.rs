//! Memory of a process that runs is moved to another NUMA node, and is back however
//! pinwise ends: on an emulated machine of two nodes with a real kernel.

use crate::vm;

/// Ends of `apply`. The second change is that of memory; it is undone first.
const FAULTS: [&str; 10] = [
    "before-write:kill:2",
    "after-write:kill:2",
    "after-change:kill:2",
    "after-change:term:2",
    "after-change:panic:2",
    "after-change:full:2",
    "after-change:bereft:2",
    "before-restore:kill",
    "after-value:kill",
    "between-restores:panic",
];

/// A buffer of 32 MiB that `dd` has filled, and cannot get rid of.
const PAGES: u64 = 8192;

/// In the guest: two processes on CPU 0, with memory on node 1 and on both; then
/// every case, with pages of anonymous memory on each node.
fn script() -> String {
    let mut text = String::from(
        "export PINWISE_STORE=none\n\
         start() {\n\
           mkfifo /tmp/$1; sleep 9000 </tmp/$1 &\n\
           \"$0\" run --place cpu:0/mem=$2 -- busybox dd bs=32M count=1 if=/dev/zero of=/tmp/$1 & p=$!\n\
           until [ $(($(pages 2>/dev/null | tr ' ' +))) -ge 8192 ]; do sleep 0.1; done\n\
         }\n\
         pages() { awk '/anon=/{for(i=1;i<=NF;i++){if($i~/^N0=/)a+=substr($i,4);if($i~/^N1=/)b+=substr($i,4)}}END{print a+0, b+0}' /proc/$p/numa_maps; }\n\
         show() { echo \"@@ $1\"; pages; }\n\
         node() { pages | cut -d' ' -f$1; }\n\
         apply() { rm -f /tmp/out; \"$0\" apply --pid $p --place one-numa:0 --memory --for $1 >/tmp/out 2>&1 & a=$!; until grep -q node /tmp/out 2>/dev/null; do sleep 0.1; done; }\n\
         start a bind:1; show before\n\
         apply 2s; show moved; wait $a; echo \"status $?\"; cat /tmp/out; show back\n\
         apply 900s; kill -9 $(pidof pinwise-ledger) $a; wait $a; show unguarded\n\
         \"$0\" apply restore --dry-run; show 'dry run'\n\
         \"$0\" apply restore; echo \"status $?\"; show restored\n",
    );
    for fault in FAULTS {
        text.push_str(&format!(
            "PINWISE_FAULT={fault} \"$0\" apply --pid $p --place one-numa:0 --memory --for 1ms >/tmp/out 2>&1\n\
             echo \"status $?\" >>/tmp/out\n\
             n=0; until [ $(node 2) -ge 8000 ] || [ $n -ge 6000 ]; do sleep 0.1; n=$((n+1)); done\n\
             show {fault}; sed 's/^/# /' /tmp/out\n"
        ));
    }
    text.push_str(
        "echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control; mkdir /sys/fs/cgroup/one\n\
         echo 1 >/sys/fs/cgroup/one/cpuset.mems; echo $p >/sys/fs/cgroup/one/cgroup.procs\n\
         \"$0\" apply --pid $p --place one-numa:0 --memory --for 1ms 2>&1; echo \"status $?\"; show cpuset\n\
         start b interleave:0-1; show spread\n\
         apply 2s; show gathered; wait $a; show 'spread again'\n",
    );
    text
}

/// Pages on each node after a case.
#[track_caller]
fn pages(out: &str, case: &str) -> [u64; 2] {
    let rest = out.split_once(&format!("@@ {case}\n"));
    let rest = rest.unwrap_or_else(|| panic!("{case} is missing: {out}")).1;
    let line = rest.lines().next().unwrap_or_default();
    let mut numbers = line.split(' ').map(|number| number.parse().unwrap());
    [numbers.next().unwrap(), numbers.next().unwrap()]
}

/// All of a buffer but what is in use just then.
fn is_all(pages: u64) -> bool {
    pages >= PAGES - 64
}

#[test]
fn memory_is_moved_and_comes_back() {
    let Some((out, err)) = vm::run(512, &script()) else {
        return;
    };
    let on = |case: &str| pages(&out, case);
    // Pages that it has beside its buffer, which may be anywhere.
    let few = 512;
    for case in ["moved", "unguarded", "dry run"] {
        let [first, second] = on(case);
        assert!(is_all(first) && second < few, "{case}: {out}\n{err}");
    }
    let mut table = String::new();
    let mut wrong = 0;
    for case in ["before", "back", "restored", "cpuset"]
        .iter()
        .chain(&FAULTS)
    {
        let [first, second] = on(case);
        let is_back = first < few && is_all(second);
        wrong += usize::from(!is_back);
        let word = if is_back { "ok" } else { "WRONG" };
        table.push_str(&format!("{case:<26}{word}\n"));
    }
    println!("{table}");
    assert_eq!(wrong, 0, "{table}\n{out}\n{err}");
    for words in [
        "memory    32",
        "moved to node 0",
        "memory back where it was: 32",
        "of memory back from node 0 (would be restored)",
        "of memory back from node 0 (restored)",
        "allows no memory of node 0 (only of 1)",
    ] {
        assert!(out.contains(words), "{words}: {out}\n{err}");
    }
    let halves = |pages: [u64; 2]| pages.iter().all(|&half| half.abs_diff(PAGES / 2) < few);
    assert!(halves(on("spread")) && halves(on("spread again")), "{out}");
    assert!(is_all(on("gathered")[0]), "{out}\n{err}");
}
