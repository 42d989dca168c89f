//! Tier T4: a BPF program at the scheduler's tracepoints.
//!
//! ```text
//! sched.bpf.c ─► a ring per CPU ─► rings ─► live (merge) ─► Event…
//!  (kernel)       (mapped)
//! ```
//!
//! `sched.bpf.o` is compiled from `sched.bpf.c` by `cargo xtask bpf` and committed, with
//! `sched.bpf.hash` to show that the two agree. Descriptors of this process hold everything that is
//! loaded, so nothing stays loaded when the process ends, in whatever way. The program reports all
//! threads of the machine without filtering, because a trace also needs to know which CPUs idle.

mod live;
mod permission;
mod rings;

pub(super) use live::open;

#[cfg(test)]
mod tests {
    /// The hash that `cargo xtask bpf` computes.
    fn fnv(bytes: &[u8]) -> String {
        format!("{:016x}", pinwise_topology::fnv1a(bytes.iter().copied()))
    }

    #[test]
    fn source_and_object_belong_together() {
        let noted = include_str!("bpf/sched.bpf.hash");
        let note = |key: &str| noted.lines().find_map(|line| line.strip_prefix(key));
        let advice = "run `cargo xtask bpf` and commit what it writes";
        let source = fnv(include_bytes!("bpf/sched.bpf.c"));
        assert_eq!(note("source "), Some(source.as_str()), "{advice}");
        let object = fnv(include_bytes!("bpf/sched.bpf.o"));
        assert_eq!(note("object "), Some(object.as_str()), "{advice}");
    }
}
