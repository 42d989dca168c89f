//! Perf's records of samples, with code that they point into: whatever the bytes, reading ends, and
//! every output can show the resulting profile. The bytes are the code, too: their first address is
//! 0.

use std::collections::BTreeMap;

use pinwise_code::{Arch, Code};
use pinwise_machine::linux::{SampleRecord, SampleRecords};
use pinwise_profile::{
    Bounds, Event, Frame, Module, Profile, Samples, Stack, Stacks, Symbol, Thread, hint_before,
    waits_in_hint,
};

/// Reads any bytes.
pub(crate) fn run(bytes: &[u8]) {
    let mut builder = SamplesBuilder::new(bytes);
    for (_, record) in SampleRecords::new(bytes) {
        match record {
            SampleRecord::Sample {
                pid,
                tid,
                chain,
                registers,
                ..
            } => {
                assert!(chain.frames().count() <= bytes.len() / 8 + 1);
                assert!(registers.values().count() <= bytes.len() / 8);
                builder.add_sample(pid, tid, chain.frames());
            }
            SampleRecord::Mapped { path, .. } => builder.add_mapping(path),
            SampleRecord::Named { tid, name, .. } => {
                builder.names
                    .insert(tid, String::from_utf8_lossy(name).into_owned());
            }
            SampleRecord::Fork { .. } | SampleRecord::Lost(_) | SampleRecord::Damaged => {}
        }
    }
    check(&builder.finish());
}

struct SamplesBuilder {
    samples: Samples,
    tids: BTreeMap<(i32, i32), usize>,
    names: BTreeMap<i32, String>,
}

impl SamplesBuilder {
    fn new(bytes: &[u8]) -> Self {
        let samples = Samples {
            event: Event::CpuClock,
            hz: 1_000,
            stacks_by: Stacks::Dwarf,
            wall_s: 1.0,
            threads: Vec::new(),
            modules: Vec::new(),
            frames: Vec::new(),
            stacks: Vec::new(),
            code: vec![(
                1,
                Code {
                    arch: Arch::X86_64,
                    start: 0,
                    bytes: bytes.to_vec(),
                },
            )],
            steps: Vec::new(),
            stack_pointers: BTreeMap::new(),
            lost: 0,
            has_kernel: true,
        };
        Self {
            samples,
            tids: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    fn add_sample(&mut self, pid: i32, tid: i32, chain: impl Iterator<Item = (u64, bool)>) {
        let samples = &mut self.samples;
        let thread = *self.tids.entry((pid, tid)).or_insert_with(|| {
            samples.threads.push(Thread {
                tid,
                pid,
                name: String::new(),
                cpu_s: None,
            });
            samples.threads.len() - 1
        });
        let from = samples.frames.len();
        for (address, is_kernel) in chain {
            // Names and files repeat, as in programs.
            let modules = samples.modules.len();
            samples.frames.push(Frame {
                pid: if is_kernel { -1 } else { 1 },
                address,
                is_kernel,
                module: (modules > 0).then(|| address as usize % modules),
                file_address: (address % 3 == 0).then_some(address),
                symbol: (address % 5 != 0).then(|| Symbol {
                    name: format!("f{}", address % 7),
                    offset: address,
                    source: None,
                    inlined: Vec::new(),
                }),
            });
        }
        if samples.frames.len() > from {
            samples.stacks.push(Stack {
                thread,
                frames: (from..samples.frames.len()).collect(),
                is_broken: pid % 2 == 0,
                count: 1,
                weight_ns: 1_000_000,
            });
        }
    }

    fn add_mapping(&mut self, path: &[u8]) {
        let path = String::from_utf8_lossy(path).into_owned();
        self.samples.modules.push(Module { path });
    }

    fn finish(mut self) -> Samples {
        for thread in &mut self.samples.threads {
            if let Some(name) = self.names.remove(&thread.tid) {
                thread.name = name;
            }
        }
        self.samples
    }
}

fn check(samples: &Samples) {
    for frame in &samples.frames {
        if let Some(code) = samples.code_at(frame.pid, frame.address) {
            let is_wait = waits_in_hint(code, frame.address);
            assert!(!is_wait || code.holds(frame.address));
            let _ = hint_before(code, frame.address);
        }
    }
    let profile = Profile::from_samples(std::slice::from_ref(samples), &Bounds::default());
    assert_eq!(profile.total.samples, samples.total());
    assert!(profile.waits.samples <= profile.total.samples);
    for function in &profile.functions {
        assert!(function.own.samples <= profile.total.samples);
    }
}
