use super::*;
use crate::work::{Isa, KERNELS, find};
use proptest::prelude::*;

fn order_units(
    kernel: &'static Kernel,
    threads: usize,
    units: u64,
    split: Split,
    isa: Isa,
) -> Order {
    Order {
        kernel,
        setup: Setup {
            // Small, so that every kernel can be tried in every way.
            size: kernel.size.map_or(0, |size| size.least),
            threads,
            isa,
            folder: std::env::temp_dir(),
        },
        amount: Amount::Units(units),
        split,
        cpus: Vec::new(),
    }
}

/// The kernel's result for two units on one thread.
fn run_reference(kernel: &'static Kernel) -> KernelOutcome {
    run(&order_units(kernel, 1, 2, Split::Static, Isa::V1), None).unwrap()
}

#[test]
fn a_checksum_tells_the_units_and_not_how_they_were_run() {
    for kernel in KERNELS {
        let expected = run_reference(kernel);
        assert_eq!(expected.units, 2, "{}", kernel.name);
        for (threads, split) in [(1, Split::Dynamic), (2, Split::Static), (4, Split::Dynamic)] {
            let found = run(&order_units(kernel, threads, 2, split, Isa::V1), None).unwrap();
            assert_eq!(
                found.checksum, expected.checksum,
                "{} {threads} {split:?}",
                kernel.name
            );
            assert_eq!(found.operations, expected.operations, "{}", kernel.name);
        }
        for isa in Isa::list_supported()
            .into_iter()
            .filter(|_| kernel.has_versions)
        {
            let found = run(&order_units(kernel, 1, 2, Split::Static, isa), None).unwrap();
            assert_eq!(found.checksum, expected.checksum, "{} {isa}", kernel.name);
        }
        let more = run(&order_units(kernel, 1, 3, Split::Static, Isa::V1), None).unwrap();
        assert_ne!(more.checksum, expected.checksum, "{}", kernel.name);
    }
}

#[test]
fn a_time_is_kept() {
    let kernel = find("fibonacci").unwrap();
    let mut order = order_units(kernel, 2, 1, Split::Dynamic, Isa::V1);
    order.amount = Amount::Time(Duration::from_millis(30));
    let outcome = run(&order, None).unwrap();
    assert!(outcome.units >= 2 && outcome.elapsed >= Duration::from_millis(30));
}

#[test]
fn a_missing_cpu_is_reported_and_no_thread_waits() {
    let mut order = order_units(find("fibonacci").unwrap(), 4, 4, Split::Static, Isa::V1);
    order.cpus = vec![0, 9999];
    let error = run(&order, None).unwrap_err().to_string();
    assert!(error.contains("CPU 9999"), "{error}");
}

#[test]
fn impossible_orders_are_refused_before_allocation() {
    let kernel = Kernel {
        footprint_bytes: |_, threads| 1000 * (threads as u64),
        ..*find("fibonacci").unwrap()
    };
    let kernel: &'static Kernel = Box::leak(Box::new(kernel));
    let order = order_units(kernel, 3, 1, Split::Static, Isa::V1);
    assert!(run(&order, Some(3000)).is_ok());
    let error = run(&order, Some(2999)).unwrap_err().to_string();
    assert!(error.contains("--threads 3"), "{error}");
    assert!(kernel.size_or_default(Some(1)).is_err());
}

proptest! {
    #[test]
    fn every_unit_is_in_exactly_one_share(units in 0u64..10_000, parts in 1usize..300) {
        let shares: Vec<Range<u64>> = (0..parts).map(|part| share_units(units, part, parts)).collect();
        prop_assert_eq!(shares[0].start, 0);
        prop_assert_eq!(shares[parts - 1].end, units);
        for pair in shares.windows(2) {
            prop_assert_eq!(pair[0].end, pair[1].start);
        }
        let longest = shares.iter().map(|s| s.end - s.start).max().unwrap();
        let shortest = shares.iter().map(|s| s.end - s.start).min().unwrap();
        prop_assert!(longest - shortest <= 1);
    }
}
