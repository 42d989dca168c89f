//! Whole outputs: each line of arguments, on simulated or captured machines, has the snapshot
//! `cli-NAME`.

use super::{Stage, check_text};

/// A test for each line.
macro_rules! lines {
    ($($name:ident: $line:literal,)*) => {
        $(#[test]
        fn $name() {
            check_line(stringify!($name), $line);
        })*
    };
}

#[track_caller]
fn check_line(name: &str, line: &str) {
    let twenty: String = (0..20).map(|cpu| format!(" --place cpu:{cpu}")).collect();
    let name = name.replace('_', "-");
    let line = line.replace(" TWENTY", &twenty);
    Stage::new().check_snapshot(&name, &line);
}

// Conclusions of `compare`, mostly with one machine each.
lines! {
    winner: "compare --machine sim:share.toml --seed 1 -- prog -t 2",
    same: "compare --machine sim:same.toml --seed 1 --place os-default --place cpu:0 -- prog",
    leave_alone: "compare --machine sim:slow.toml --seed 1 -- prog",
    undecided: "compare --machine sim:noisy.toml --seed 1 --place os-default --place cpu:0 --budget 30s -- prog",
    clearly_worse: "compare --machine sim:hopeless.toml --seed 1 --place os-default --place one-core --place one-package --budget 60s -- prog",
    one_run: "compare --machine sim:noisy.toml --seed 1 --place os-default --place cpu:0 --max-runs 1 -- prog",
    four_runs: "compare --machine sim:noisy.toml --seed 1 --place os-default --place cpu:0 --max-runs 4 -- prog",
    limit_undecided: "compare --machine sim:noisy.toml --seed 1 --place os-default --place cpu:0 --max-runs 20 --fail-if-slower 2% -- prog",
    baseline: "compare --machine sim:slow.toml --seed 1 --baseline cpu:0 --place os-default --place cpu:0 --max-runs 20 -- prog",
    // An undecided placebo is no gain that more runs could find.
    placebo: "compare --machine sim:slow.toml --seed 1 --place os-default --place cpu:0 --placebo --max-runs 12 -- prog",
    // A false alarm: at most one seed in twenty gives one.
    placebo_alarm: "compare --machine sim:slow.toml --seed 9 --place os-default --place cpu:0 --placebo --max-runs 12 -- prog",
    twenty_identical: "compare --machine sim:twenty.toml --seed 1 TWENTY --max-runs 15 -- prog",
    twenty_winner: "compare --machine sim:twenty.toml --seed 1 --place os-default TWENTY --max-runs 15 -- picky",
    long_command: "compare --machine sim:share.toml --seed 1 --place os-default --place one-llc -- prog --input '/srv/data/a file with a long name.dat' --output /dev/null --threads 2",
    hostile_names: "compare --machine sim:programs.toml --seed 3 --max-runs 8 --command \"old '\u{1b}[31mred'\" --command new --name \"a\u{7}b\" --name 'one\ntwo'",
    merged: "compare --machine sim:share.toml --seed 1 --place os-default --place compact --place one-llc --place one-numa --place cpu:0-3 --max-runs 20 -- prog",
    shell_characters: "compare --machine sim:same.toml --seed 1 --max-runs 8 --place os-default --place cpu:0 'prog > out'",
    aa: "compare --self --machine sim:same.toml --seed 1 -- prog",
    aa_noisy: "compare --self --machine sim:noisy.toml --seed 1 --arms 4 --max-runs 50 -- prog",
    aa_false_alarm: "compare --self --machine sim:same.toml --seed 141 -- prog",
    trace_compared: "compare --machine sim:blind.toml --seed 5 --max-runs 12 --place os-default --place cpu:0,2 --place one-core --trace -- prog",
}

// Commands, parameters and figures; gates; commands that fail.
lines! {
    commands: "compare --machine sim:programs.toml --seed 3 --max-runs 30 --command './old -x' --command './new -x' --name before --name after",
    parameters: "compare --machine sim:programs.toml --seed 3 --max-runs 30 --parameter threads=1,2,4 'old -t {threads}'",
    parameters_and_places: "compare --machine sim:programs.toml --seed 3 --max-runs 30 -P t=1..2 --place os-default --place one-core -- old -t {t} 'a b{t}'",
    metric_regex_lower: "compare --machine sim:programs.toml --seed 3 --max-runs 30 --command old --command new --metric 'regex:([0-9.]+) s lower'",
    metric_regex_higher: "compare --machine sim:programs.toml --seed 3 --max-runs 30 --command old --command new --metric 'regex:([0-9.]+) s higher'",
    metric_max_rss: "compare --machine sim:programs.toml --seed 3 --max-runs 30 --command old --command new --metric 'max-rss'",
    metric_cpu: "compare --machine sim:programs.toml --seed 3 --max-runs 30 --command old --command new --metric 'cpu'",
    gate: "compare --machine sim:programs.toml --seed 3 --max-runs 30 --command old --command new --fail-if-slower 2%",
    gate_passed: "compare --machine sim:programs.toml --seed 3 --max-runs 30 --command old --command new --fail-if-slower 10%",
    one_fails: "compare --machine sim:programs.toml --seed 3 --max-runs 30 --command old --command new --command broken",
    one_fails_sometimes: "compare --machine sim:programs.toml --seed 3 --max-runs 30 --command old --command flaky",
    baseline_fails: "compare --machine sim:programs.toml --seed 3 --max-runs 30 --command broken --command old",
    all_fail: "compare --machine sim:programs.toml --seed 3 --max-runs 30 --command broken --command broken",
    first_run_fails: "compare --machine sim:programs.toml --seed 3 --max-runs 30 -- broken",
    too_late: "compare --machine sim:programs.toml --seed 3 --max-runs 30 --timeout 103ms --command old --command new",
}

// Machines, and what is measured on them.
lines! {
    topology_one_cpu: "topology --machine 'sim:pu:1'",
    topology_smt: "topology --machine 'sim:package:1 core:4 pu:2'",
    topology_llcs: "topology --machine 'sim:package:1 l3:2(size=32MB) core:4 pu:1'",
    topology_two_packages: "topology --machine 'sim:package:2 [numa(memory=64GB)] l3:2(size=32MB) l2:4(size=1MB) l1d:1(size=32KB) core:1 pu:2'",
    topology_numa_in_package: "topology --machine 'sim:package:2 numa:2 core:2 pu:1'",
    topology_1536_cpus: "topology --machine 'sim:package:2 [numa(memory=768GB)] l3:24(size=32MB) core:16 pu:2'",
    topology_from_2s2c2t: "topology --from 2s2c2t.capture",
    topology_from_2s2c2t_interleaved: "topology --from 2s2c2t-interleaved.capture",
    topology_from_2s2c2t_nosmt: "topology --from 2s2c2t-nosmt.capture",
    topology_from_1s2d4c2t: "topology --from 1s2d4c2t.capture",
    topology_from_64: "topology --from 64.capture",
    topology_hybrid: "topology --from hybrid.xml",
    topology_confined: "topology --from confined.capture",
    topology_json: "topology --machine 'sim:core:2 pu:2' --format json",
    explain_forbidden: "topology --from confined.capture --explain cpu:0-1",
    explain_offline: "topology --from confined.capture --explain cpu:4",
    placements_16: "--machine 'sim:package:2 l3:2 core:4 pu:2' topology --placements 16",
    placements_table: "--machine 'sim:package:2 l3:8 core:8 pu:2' topology --placements",
    placements_one: "--machine sim:pu:1 topology --placements 1",
    placements_hybrid: "topology --from hybrid.xml --placements 2",
    placements_confined: "topology --from confined.capture --placements 3",
    placements_json: "--machine 'sim:package:2 core:2 pu:2' --format json topology --placements 3",
    bench_smt: "bench fibonacci --machine sim:smt.toml --seed 1",
    bench_no_smt: "bench --suite smt --machine sim:plain.toml --seed 1",
    bench_scaling: "bench fibonacci --machine sim:plain.toml --seed 1 --place spread --place cpu:0 --threads 1,2,4 --max-runs 10",
    compare_kernel: "compare --machine sim:smt.toml --seed 3 --kernel 'fibonacci --threads 4' --max-runs 15",
    bench_jitter: "bench jitter --machine sim:jitter.toml --seed 1",
    what_ifs: "compare --machine 'sim:package:2 core:2 pu:2' --seed 1 --max-runs 12 --what-if smt-off --what-if cpus=2 -- true",
    apply_text: "apply --place one-per-core*2/mem=bind --as taskset,docker --machine 'sim:package:2 [numa] core:2 pu:2' -- './my prog'",
    reproduce_list: "reproduce --list",
}

// Waiting: chips, algorithms and advice.
lines! {
    spin_pause: "--machine sim:levels.toml spin pause --seed 3",
    spin_pause_check_fine: "--machine sim:levels.toml spin pause --check --seed 3",
    spin_pause_check_long: "--machine sim:long-pause.toml spin pause --check --seed 3",
    spin_predict_chip: "spin predict --chip skylake-sp --cpu-count 24",
    spin_predict_one: "spin predict --algorithm netfx_awarelock --chip Skylake_SP --cpu-count 24",
    spin_predict_curve: "spin predict -a netfx_awarelock -a go_mutex --chip skylake-sp --cpu-count 1..128",
    spin_predict_move: "spin predict --from broadwell --to skylake-sp --cpu-count 24",
    spin_replay: "--machine 'sim:core:2 pu:1' spin replay --algorithm netfx_awarelock --algorithm coreclr_monitor --pause-ns 43 --cpu-count 24 --seed 1",
    spin_advise: "--machine sim:long-pause.toml spin advise --chip skylake-sp --seed 3",
}

/// Placement names of every kind.
const NAMES: &str = "os-default compact compact*3 one-per-core one-per-llc one-per-numa spread \
    spread*4 balanced balanced*3 p-cores e-cores one-core one-core:5 \
    one-llc one-llc:3 one-numa/mem=bind one-numa:1/mem=interleave one-package one-core/mem=local spread*4/mem=weighted \
    one-numa/mem=preferred:1 cpu:0,2-4 cpu:7 mask:0x55 shape:pkg=1,llc=2,core=8,smt=1";

#[test]
fn every_placement_is_explained() {
    let stage = Stage::new();
    let machine = "--machine 'sim:package:2 [numa] l3:2 core:4 pu:2'";
    let run = |line: String| {
        let ran = stage.run(&line);
        ran.check_form();
        ran.to_string()
    };
    let explain = |name| run(format!("topology {machine} --explain '{name}'")) + "\n";
    let all: String = NAMES.split(' ').map(explain).collect();
    check_text("explain", &all);
    let kinds = ["p-cores", "e-cores", "e-cores*1"];
    let kinds = kinds.map(|name| run(format!("topology --from hybrid.xml --explain {name}")));
    check_text("explain-hybrid", &kinds.concat());
}
