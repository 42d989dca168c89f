//! Judges synthetic samples of real machine code.

use std::collections::BTreeMap;

use super::*;
use pinwise_code::Arch;
use pinwise_code::Code;
use pinwise_profile::{Frame, Samples};
use pinwise_profile::{Module, Stack, Step, Symbol, Thread};
use pinwise_topology::Topology;

/// ```text
/// 1000: mov ecx, 30
/// 1005: pause            blind: counts 30 hints
/// 1007: dec ecx
/// 1009: jne 1005
/// 100b: cmp [rdi], 0     … and looks
/// 100e: jne 1000
/// 1010: ret
/// 1011: add rax, [rsi]   work: a sum
/// 1014: add rsi, 8
/// 1018: cmp rsi, rdx
/// 101b: jne 1011
/// 101d: ret
/// 1020: pause            a function that only hints
/// 1022: ret
/// 1030: call 1020        polls through it
/// 1035: cmp [rdi], 0
/// 1038: jne 1030
/// 103a: ret
/// ```
const BYTES: [(u64, &[u8]); 4] = [
    (
        0x1000,
        &[
            0xb9, 30, 0, 0, 0, 0xf3, 0x90, 0xff, 0xc9, 0x75, 0xfa, 0x83, 0x3f, 0, 0x75, 0xf0, 0xc3,
        ],
    ),
    (
        0x1011,
        &[
            0x48, 0x03, 0x06, 0x48, 0x83, 0xc6, 8, 0x48, 0x39, 0xd6, 0x75, 0xf4, 0xc3,
        ],
    ),
    (0x1020, &[0xf3, 0x90, 0xc3]),
    (
        0x1030,
        &[
            0xe8, 0xeb, 0xff, 0xff, 0xff, 0x83, 0x3f, 0, 0x75, 0xf6, 0xc3,
        ],
    ),
];

/// The blind loop, right behind its hint.
const BLIND: u64 = 0x1007;
/// The blind loop, elsewhere.
const DEC: u64 = 0x1009;
/// The loop that works.
const SUM: u64 = 0x1014;
/// The function that only hints, right behind its hint.
const HINT: u64 = 0x1022;
/// The polling loop, right behind its call of that function.
const AFTER_CALL: u64 = 0x1035;
/// CPU time between two samples.
const PERIOD_NS: u64 = 1_000_000;

fn code() -> Code {
    let mut bytes = vec![0xcc; 0x100];
    for (at, part) in BYTES {
        let at = usize::try_from(at - 0x1000).unwrap();
        bytes[at..at + part.len()].copy_from_slice(part);
    }
    Code {
        arch: Arch::X86_64,
        start: 0x1000,
        bytes,
    }
}

fn frame(address: u64, is_kernel: bool, name: Option<&str>) -> Frame {
    Frame {
        pid: if is_kernel { -1 } else { 7 },
        address,
        is_kernel,
        module: Some(0),
        file_address: None,
        symbol: name.map(|name| Symbol {
            name: name.to_owned(),
            offset: 0,
            source: None,
            inlined: Vec::new(),
        }),
    }
}

/// Samples of stacks, each given by its frames' addresses and its count. Addresses beyond 0xffff are
/// in the kernel function `kernel`.
fn sample_stacks(stacks: &[(&[u64], u64)], kernel: &str) -> SamplingResult {
    let mut frames = Vec::new();
    let mut sampled = Vec::new();
    for (addresses, count) in stacks {
        let first = frames.len();
        frames.extend(addresses.iter().map(|&address| {
            let is_kernel = address > 0xffff;
            frame(address, is_kernel, is_kernel.then_some(kernel))
        }));
        sampled.push(Stack {
            thread: 0,
            frames: (first..frames.len()).collect(),
            is_broken: false,
            count: *count,
            weight_ns: count * PERIOD_NS,
        });
    }
    SamplingResult {
        samples: Samples {
            event: Event::CpuClock,
            hz: 1000,
            stacks_by: Stacks::FramePointers,
            wall_s: 1.0,
            threads: vec![Thread {
                pid: 7,
                tid: 8,
                name: "prog".to_owned(),
                cpu_s: None,
            }],
            modules: vec![Module {
                path: "//anon".to_owned(),
            }],
            frames,
            stacks: sampled,
            code: vec![(7, code())],
            steps: Vec::new(),
            stack_pointers: BTreeMap::new(),
            lost: 0,
            has_kernel: true,
        },
        run: None,
        counted: None,
        own_cpu: Duration::ZERO,
        notes: Vec::new(),
    }
}

fn attach_to(sampled: &SamplingResult) -> SpinAttachRecord {
    let topology = Topology::from_synthetic("core:2 pu:1").unwrap();
    let origin = SampleOrigin {
        host: HostRecord::new("local".to_owned(), false, &topology),
        source: TraceSource::Process {
            pid: 7,
            name: "prog".to_owned(),
        },
        pause_ns: Some(40.0),
        tags: Vec::new(),
    };
    judge_samples(sampled, origin)
}

#[track_caller]
fn check_places(stacks: &[(&[u64], u64)], kernel: &str, expected: &[(&str, u64)], work: u64) {
    let record = attach_to(&sample_stacks(stacks, kernel));
    let places = record.places.iter();
    let found: Vec<(&str, u64)> = places.map(|p| (p.kind.as_str(), p.samples)).collect();
    assert_eq!(found, expected);
    let work_s = record.shares.unwrap().work_s;
    assert!((work_s - work as f64 * 1e-3).abs() < 1e-9, "{work_s}");
}

#[test]
fn time_goes_to_the_loop_it_was_seen_in() {
    let stacks: [(&[u64], u64); 3] = [(&[BLIND], 90), (&[DEC], 5), (&[SUM], 40)];
    check_places(&stacks, "", &[("blind_delay", 95)], 40);
    let record = attach_to(&sample_stacks(&stacks, ""));
    assert_eq!(record.places[0].gap_hints, Some(30));
    assert_eq!(record.places[0].address, 0x1005);
    assert_eq!(record.places[0].code.len(), 3);
    assert!((record.spin_share.unwrap() - 95.0 / 135.0).abs() < 1e-9);
    assert!((record.threads[0].spin_s.unwrap() - 0.095).abs() < 1e-9);
    // 90 ms at hints of 40 ns.
    assert!((record.pauses_per_s.unwrap() - 2.25e6).abs() < 1.0);
    assert_eq!(record.findings[0].check, "blind_delay");
}

/// `spin predict` prints known algorithms only.
#[test]
fn advice_on_a_delay_fits_the_own_lock_and_the_known_one() {
    let advice_with = |name: &str| {
        let mut sampled = sample_stacks(&[(&[BLIND], 90)], "");
        sampled.samples.frames[0].symbol = Some(Symbol {
            name: name.to_owned(),
            offset: 0,
            source: None,
            inlined: Vec::new(),
        });
        attach_to(&sampled).findings[0].advice.clone()
    };
    let own = advice_with("my_lock");
    assert!(own.starts_with("Check the value between fewer"), "{own}");
    let known = advice_with("ut_delay");
    assert!(
        known.contains("`pinwise spin predict --algorithm "),
        "{known}"
    );
}

/// Its neighbouring samples show a thread without progress, which alone would be a load without a
/// hint.
#[test]
fn a_loop_with_a_hint_has_one_kind_wherever_it_is_seen() {
    let mut waits = sample_stacks(&[(&[BLIND], 60), (&[DEC], 40)], "");
    add_neighbours(&mut waits, 1, &[0; 40]);
    let record = attach_to(&waits);
    let places: Vec<_> = record
        .places
        .iter()
        .map(|p| (p.kind.as_str(), p.samples))
        .collect();
    assert_eq!(places, [("blind_delay", 100)]);
}

#[test]
fn a_function_that_only_hints_belongs_to_its_caller() {
    check_places(&[(&[HINT, AFTER_CALL], 50)], "", &[("polling", 50)], 0);
    // Called outside of any loop it is not spinning.
    check_places(&[(&[HINT, 0x103a], 50)], "", &[], 50);
}

#[test]
fn a_loop_that_is_never_seen_waiting_does_not_wait() {
    check_places(&[(&[DEC], 90), (&[BLIND], 10)], "", &[], 100);
}

#[test]
fn a_stack_in_the_kernels_yield_function_yields() {
    let yields: [(&[u64], u64); 1] = [(&[0xfff1_0000, 0x1035], 30)];
    check_places(&yields, "__x64_sys_sched_yield", &[("yielding", 30)], 0);
    check_places(&yields, "do_page_fault", &[], 30);
}

/// Checks the time of a thread that spins and works. Each sample has functions from the innermost
/// outwards, first those of the kernel, then behind a bar those of the program, and its count.
#[track_caller]
fn check_calls(samples: &[(&str, u64)], expected_share: f64, expected_work_s: f64) {
    let mut stacks = Vec::new();
    let mut names = Vec::new();
    for (functions, count) in samples {
        let (kernel, user) = functions.split_once('|').unwrap();
        let kernel: Vec<&str> = kernel.split_whitespace().collect();
        let user: Vec<&str> = user.split_whitespace().collect();
        let addresses: Vec<u64> = (0..kernel.len() as u64)
            .map(|at| 0xfff1_0000 + at)
            .chain((0..user.len() as u64).map(|at| 0x1080 + 5 * at))
            .collect();
        names.extend(kernel.into_iter().chain(user).map(str::to_owned));
        stacks.push((addresses, *count));
    }
    let stacks: Vec<(&[u64], u64)> = stacks.iter().map(|(at, n)| (&at[..], *n)).collect();
    let mut sampled = sample_stacks(&stacks, "");
    for (frame, name) in sampled.samples.frames.iter_mut().zip(names) {
        frame.symbol = Some(Symbol {
            name,
            offset: 0,
            source: None,
            inlined: Vec::new(),
        });
    }
    let record = attach_to(&sampled);
    let share = record.spin_share.unwrap();
    assert!((share - expected_share).abs() < 1e-9, "{share}");
    let shares = record.shares.unwrap();
    assert!((shares.work_s - expected_work_s).abs() < 1e-9, "{shares:?}");
}

const EMPTY_POLLS: [(&str, u64); 4] = [
    (
        "do_epoll_wait __x64_sys_epoll_wait do_syscall_64 | epoll_wait main",
        40,
    ),
    ("do_syscall_64 | epoll_wait main", 45),
    (" | epoll_wait main", 10),
    (" | main", 5),
];

#[test]
fn a_thread_that_asks_the_kernel_and_gets_nothing_spins() {
    check_calls(&EMPTY_POLLS, 0.95, 0.005);
    // On some processors glibc's way into a call takes a fifth of it.
    let cancels = (" | __GI___pthread_disable_asynccancel main", 25);
    check_calls(&[&EMPTY_POLLS[..], &[cancels]].concat(), 0.96, 0.005);
}

#[test]
fn a_thread_that_gets_something_or_sleeps_works() {
    let also = [
        "ep_send_events do_epoll_wait __x64_sys_epoll_wait do_syscall_64 | epoll_wait main",
        "schedule do_epoll_wait __x64_sys_epoll_wait do_syscall_64 | epoll_wait main",
        "sock_write_iter ksys_write do_syscall_64 | write main",
    ];
    for one in also {
        let samples = [&EMPTY_POLLS[..], &[(one, 2)]].concat();
        check_calls(&samples, 0.0, 0.102);
    }
    // It works between its calls.
    let samples = [&EMPTY_POLLS[..], &[(" | main", 30)]].concat();
    check_calls(&samples, 0.0, 0.13);
}

#[test]
fn a_progress_loop_is_named_and_not_called_spinning() {
    let names = ["mca_btl_progress", "opal_progress", "PMPI_Recv"];
    let mut sampled = sample_stacks(&[(&[0x1015, 0x1016, 0x1017], 90), (&[SUM], 10)], "");
    for (frame, name) in sampled.samples.frames.iter_mut().zip(names) {
        frame.symbol = Some(Symbol {
            name: name.to_owned(),
            offset: 0,
            source: None,
            inlined: Vec::new(),
        });
    }
    let record = attach_to(&sampled);
    assert_eq!(record.spin_share, Some(0.0));
    let finding = &record.findings[0];
    assert_eq!(finding.check, "progress_loop");
    assert!(
        finding.sentence.starts_with("0.09 of 0.10 s") && finding.sentence.contains("Open MPI")
    );
}

/// Checks which function of a stack yields; `names` are its functions outside the kernel.
#[track_caller]
fn check_yielding(names: &[&str], expected: &str) {
    let addresses: Vec<u64> = (0..=names.len() as u64).map(|at| 0x1035 + at).collect();
    let mut stack = addresses.clone();
    stack[0] = 0xfff1_0000;
    let mut sampled = sample_stacks(&[(&stack, 30)], "__x64_sys_sched_yield");
    for (frame, name) in sampled.samples.frames[1..].iter_mut().zip(names) {
        frame.symbol = Some(Symbol {
            name: (*name).to_owned(),
            offset: 1,
            source: None,
            inlined: Vec::new(),
        });
    }
    let record = attach_to(&sampled);
    assert_eq!(record.places[0].function.as_deref(), Some(expected));
    assert_eq!(record.places[0].kind, SpinKind::Yielding);
}

#[test]
fn the_caller_of_a_yielding_function_yields() {
    check_yielding(&["__GI_sched_yield", "wait_turn", "main"], "wait_turn");
    let rust = [
        "sched_yield",
        "std::thread::yield_now",
        "spin::lock",
        "main",
    ];
    check_yielding(&rust, "spin::lock");
    check_yielding(&["runtime.osyield.abi0", "runtime.lock2"], "runtime.lock2");
    check_yielding(&["sched_yield"], "sched_yield");
}

#[test]
fn a_goroutine_that_yields_is_seen_on_both_stacks() {
    let mut sampled = sample_stacks(&[(&[SUM, 0x1015, 0x1016], 40), (&[DEC, 0x1017], 60)], "");
    let names = [
        "runtime.lock2",
        "runtime.gosched_m",
        "runtime.mcall",
        "runtime.Gosched",
        "main.waitFor",
    ];
    for (frame, name) in sampled.samples.frames.iter_mut().zip(names) {
        frame.symbol = Some(Symbol {
            name: name.to_owned(),
            offset: 4,
            source: None,
            inlined: Vec::new(),
        });
    }
    let record = attach_to(&sampled);
    let places = record.places.iter();
    let found: Vec<_> = places
        .map(|p| (p.function.as_deref().unwrap(), p.samples))
        .collect();
    assert_eq!(found, [("main.waitFor", 60), ("runtime.gosched_m", 40)]);
    assert!(
        record
            .places
            .iter()
            .all(|place| place.kind == SpinKind::Yielding)
    );
}

/// Adds pairs of neighbouring samples at one frame, each with the change of a register.
fn add_neighbours(sampled: &mut SamplingResult, frame: usize, changes: &[i64]) {
    let step = |change: i64| {
        let mut changes = vec![0; 16];
        changes[3] = change;
        Step {
            from: frame,
            to: frame,
            ns: PERIOD_NS,
            changes,
            recurs: false,
        }
    };
    let steps = changes.iter().map(|&change| step(change));
    sampled.samples.steps.extend(steps);
}

#[test]
fn a_thread_without_progress_waits() {
    // In functions without a loop: a call returns, and is made again.
    let calls: [(&[u64], u64); 1] = [(&[0x1038, 0x103a], 40)];
    let mut waits = sample_stacks(&calls, "");
    add_neighbours(&mut waits, 0, &[vec![0; 38], vec![1]].concat());
    assert_eq!(attach_to(&waits).spin_share, Some(1.0));
    assert_eq!(attach_to(&waits).places[0].kind, SpinKind::BareLoad);
    // One that only counts its iterations makes no progress either.
    let mut counts = sample_stacks(&calls, "");
    add_neighbours(&mut counts, 0, &[1000, 900, 1200, 1000].repeat(9));
    assert_eq!(attach_to(&counts).spin_share, Some(1.0));
    // A register that changes unevenly means progress; too few pairs show nothing.
    for (still, changed) in [(30, 9), (15, 0)] {
        let mut works = sample_stacks(&calls, "");
        let changes = [vec![0; still], vec![7; changed]].concat();
        add_neighbours(&mut works, 0, &changes);
        assert_eq!(attach_to(&works).spin_share, Some(0.0), "{still} {changed}");
    }
    let mut works = sample_stacks(&calls, "");
    add_neighbours(&mut works, 0, &[1000, -700, 30, 1_000_000].repeat(9));
    assert_eq!(attach_to(&works).spin_share, Some(0.0));
    // Unless values recur outside a loop: a function that is called from two places.
    let recurring = |address: u64| {
        let mut called = sample_stacks(&[(&[address], 40)], "");
        add_neighbours(&mut called, 0, &[1000, -700, 30, 1_000_000].repeat(9));
        for step in &mut called.samples.steps {
            step.recurs = true;
        }
        attach_to(&called).spin_share
    };
    assert_eq!(recurring(0x103a), Some(1.0));
    assert_eq!(recurring(0x1038), Some(0.0));
    // A register that memory is read through is no counter.
    let mut walks = sample_stacks(&[(&[0x1018], 20), (&[SUM, 0x103a], 20)], "");
    add_neighbours(&mut walks, 0, &[1000; 36]);
    for step in &mut walks.samples.steps {
        step.changes.swap(3, 4);
    }
    assert_eq!(attach_to(&walks).spin_share, Some(0.0));
    // Without the code, its effects are unknown.
    let mut unread = sample_stacks(&calls, "");
    add_neighbours(&mut unread, 0, &[0; 39]);
    unread.samples.code.clear();
    assert_eq!(attach_to(&unread).spin_share, Some(0.0));
}

/// Seen in a thread that increments a counter on a cache line that another thread writes, too.
#[test]
fn a_loop_that_stores_what_it_computes_works() {
    // 1050: mov rax, [rdi]; 1053: add rax, 1; 1057: mov [rdi], rax; 105a: jmp 1050
    let bytes = [
        0x48, 0x8b, 0x07, 0x48, 0x83, 0xc0, 0x01, 0x48, 0x89, 0x07, 0xeb, 0xf4,
    ];
    let mut counts = sample_stacks(&[(&[0x1053], 40)], "");
    counts.samples.code[0].1.bytes[0x50..0x5c].copy_from_slice(&bytes);
    add_neighbours(&mut counts, 0, &[90_000, 95_000, 88_000, 91_000].repeat(9));
    for step in &mut counts.samples.steps {
        step.changes.swap(3, 0);
    }
    assert_eq!(attach_to(&counts).spin_share, Some(0.0));
}

#[test]
fn results_on_the_own_stack_are_not_work() {
    // 1040: mov [r12], al; 1044: ret, in a function that is called again and again.
    let judged_share = |pointing: &[u16]| {
        let calls: [(&[u64], u64); 2] = [(&[0x1038, 0x103a], 90), (&[0x1040, 0x103a], 10)];
        let mut polls = sample_stacks(&calls, "");
        polls.samples.code[0].1.bytes[0x40..0x45].copy_from_slice(&[0x41, 0x88, 0x04, 0x24, 0xc3]);
        add_neighbours(&mut polls, 0, &[0; 40]);
        polls.samples.stack_pointers = pointing.iter().map(|&bits| (2, bits)).collect();
        attach_to(&polls).spin_share
    };
    assert_eq!(judged_share(&[1 << 12 | 1 << 7]), Some(1.0));
    // The register is not known to point to the stack.
    assert_eq!(judged_share(&[]), Some(0.0));
    assert_eq!(judged_share(&[1 << 11 | 1 << 7]), Some(0.0));
}

#[test]
fn a_thread_that_does_nothing_but_read_the_clock_waits() {
    let check = |reading: u64, working: u64, expected: f64| {
        let mut sampled = sample_stacks(&[(&[DEC], reading), (&[SUM], working)], "");
        sampled.samples.frames[0].symbol = Some(Symbol {
            name: "__vdso_clock_gettime".to_owned(),
            offset: 9,
            source: None,
            inlined: Vec::new(),
        });
        let share = attach_to(&sampled).spin_share.unwrap();
        assert!(
            (share - expected).abs() < 1e-9,
            "{reading} {working}: {share}"
        );
    };
    check(80, 20, 0.8);
    check(60, 40, 0.0);
    check(20, 0, 0.0);
}

/// Samples of the blind loop whose counter, rcx, goes down by each of these numbers in a time.
fn sample_counts(steps: impl IntoIterator<Item = (u64, i64)>) -> SamplingResult {
    let mut sampled = sample_stacks(&[(&[BLIND], 20), (&[DEC], 20)], "");
    let step = |(ns, counted): (u64, i64)| {
        let mut changes = vec![0; 16];
        changes[2] = -counted;
        // Another value that changes.
        changes[0] = 12_345;
        Step {
            from: 0,
            to: 1,
            ns,
            changes,
            recurs: false,
        }
    };
    sampled.samples.steps = steps.into_iter().map(step).collect();
    sampled
}

#[test]
fn a_counting_register_shows_the_cost_of_a_hint() {
    let even = (0..30).map(|n| (1_000_000 + n * 100, 20_000));
    // Counts that restarted, and a thread that was preempted.
    let others = [(1_000_000, -5000), (1_000_000, 17), (9_000_000, 20_000)];
    let record = attach_to(&sample_counts(even.chain(others)));
    let seen = record.places[0].hint_ns_seen.unwrap();
    assert!((seen - 50.07).abs() < 0.1, "{seen}");
    assert_eq!(record.places[0].hint_ns_pairs, 30);
    // A slow hint of a loop that does not restart: a hypervisor may do that.
    let slow = (0..60).map(|n| (1_000_000 + n * 100, 5000));
    let record = attach_to(&sample_counts(slow));
    assert!(record.places[0].hint_ns_seen.is_some_and(|ns| ns > 200.0));
}

/// Seen in a backoff that doubles up to 32,768 PAUSEs: each delay of 0.8 ms ends within a period.
#[test]
fn a_count_that_restarts_once_per_sample_shows_no_cost() {
    let length = 20_000;
    let per_period = 25_000;
    let phases = (0..100).map(|n| n * per_period % length);
    let changes = phases.clone().skip(1).zip(phases).map(|(b, a)| b - a);
    let record = attach_to(&sample_counts(changes.map(|by| (1_000_000, by))));
    assert_eq!(record.places[0].hint_ns_seen, None);
    // 20 ms at hints of 40 ns.
    assert!((record.pauses_per_s.unwrap() - 500_000.0).abs() < 1.0);
}

#[test]
fn unobserved_figures_are_null() {
    let mut sampled = sample_stacks(&[], "");
    sampled.samples.event = Event::Proc;
    sampled.samples.threads[0].cpu_s = Some(0.25);
    let record = attach_to(&sampled);
    assert_eq!(record.shares, None);
    assert_eq!(record.spin_share, None);
    assert_eq!(record.pauses_per_s, None);
    assert_eq!(record.threads[0].spin_s, None);
    assert!((record.cpu_s - 0.25).abs() < 1e-9);
    assert_eq!(record.findings[0].check, "unseen");
}
