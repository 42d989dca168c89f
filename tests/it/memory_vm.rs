//! Memory of a running process is moved to another NUMA node, and back however pinwise ends: on an
//! emulated machine of two nodes with a real kernel.

use crate::vm::{self, check_restored, find_case};

/// Faults that end `apply`. Its second change is that of memory, which is undone first.
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

/// Pages of a buffer of 32 MiB that `dd` has filled. Its output blocks, so that it keeps them.
const PAGES: u64 = 8192;

/// The script of the guest: a process on CPU 0 with memory on node 1, and later one with memory on
/// both nodes. For every case it prints the pages of anonymous memory on each node.
fn build_script() -> String {
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
fn parse_pages(out: &str, case: &str) -> [u64; 2] {
    let line = find_case(out, case).lines().next().unwrap_or_default();
    let mut numbers = line.split(' ').map(|number| number.parse().unwrap());
    [numbers.next().unwrap(), numbers.next().unwrap()]
}

/// Whether these are all pages of the buffer; a few in use may not be moved.
fn is_all(pages: u64) -> bool {
    pages >= PAGES - 64
}

#[test]
fn memory_is_moved_and_back_however_pinwise_ends() {
    let Some(out) = vm::run(512, &build_script()) else {
        return;
    };
    let pages_after = |case: &str| parse_pages(&out, case);
    // Other pages of the process may be on either node.
    let few = 512;
    for case in ["moved", "unguarded", "dry run"] {
        let [first, second] = pages_after(case);
        assert!(is_all(first) && second < few, "{case}: {out}");
    }
    let cases = [&["before", "back", "restored", "cpuset"][..], &FAULTS].concat();
    check_restored(&cases, |case| {
        let [first, second] = pages_after(case);
        first < few && is_all(second)
    });
    for words in [
        "memory    32",
        "moved to node 0",
        "memory back where it was: 32",
        "of memory back from node 0 (would be restored)",
        "of memory back from node 0 (restored)",
        "allows no memory of node 0 (only of 1)",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    for case in ["spread", "spread again"] {
        let pages = pages_after(case);
        let is_half = |pages: u64| pages.abs_diff(PAGES / 2) < few;
        assert!(pages.into_iter().all(is_half), "{case}: {out}");
    }
    assert!(is_all(pages_after("gathered")[0]), "{out}");
}
