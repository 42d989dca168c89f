//! Every reader of outside text or files in pinwise, as functions that take any bytes and panic if
//! an invariant fails. The tests feed them seeds and random variations of these; `libfuzzer` feeds
//! them guided input.

mod invariants;
mod targets;

/// Calls a macro with the names of all targets.
#[macro_export]
macro_rules! with_targets {
    ($macro:ident) => {
        $macro! {
            arguments
            capture
            command
            cpuset
            elf_scan
            emitted
            fleet_record
            fleet_template
            framework
            ftrace
            host_files
            hostlist
            hwloc_xml
            joint_plan
            journal
            latency_matrix
            ledger
            loop_decode
            metric
            perf_data
            perf_records
            placement
            prometheus
            recipe
            record
            rules
            sample_records
            series
            simulated_machine
            store_location
            study_file
            suite
            synthetic
            topology_diff
        }
    };
}

macro_rules! table {
    ($($name:ident)+) => {
        /// All targets by name.
        pub const TARGETS: &[(&str, fn(&[u8]))] =
            &[$((stringify!($name), targets::$name::run)),+];
    };
}

with_targets!(table);
