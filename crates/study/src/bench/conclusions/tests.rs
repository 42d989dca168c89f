//! Conclusions from tables of figures.

use super::*;
use pinwise_record::{CountsRecord, Header, HostRecord, MachineRecord, SmtRecord, Stopped};

fn estimate(low: f64, high: f64) -> Estimate {
    Estimate {
        value: 0.5 * (low + high),
        low: Some(low),
        high: Some(high),
    }
}

/// Threads, placement, instruction set, ends of the speed-up.
type Row<'a> = (usize, &'a str, &'a str, f64, f64);

fn kernel(name: &str, question: Question, rows: &[Row<'_>]) -> BenchKernel {
    let first = rows[0].0 as f64;
    let cells: Vec<BenchCell> = rows
        .iter()
        .map(|(threads, place, isa, low, high)| {
            let speed_up = estimate(*low, *high);
            BenchCell {
                name: format!("{isa} {threads} @ {place}"),
                threads: *threads,
                family: (*place).to_owned(),
                placement: (*place).to_owned(),
                cpus: "0".to_owned(),
                same_as: Vec::new(),
                isa: (*isa).to_owned(),
                size: None,
                seconds: None,
                rate: None,
                bytes_per_s: None,
                speed_up: Some(speed_up),
                efficiency: Some(speed_up.value * first / *threads as f64),
                invalid: None,
            }
        })
        .collect();
    let yields = matches!(question, Question::SmtCore | Question::SmtMachine);
    BenchKernel {
        kernel: name.to_owned(),
        group: "float".to_owned(),
        question,
        comparison: "id".to_owned(),
        work: 10,
        operation: "calls".to_owned(),
        working_set_bytes: None,
        cache_fit: String::new(),
        baseline: cells[0].name.clone(),
        smt_yield: yields.then(|| estimate(rows[1].3 - 1.0, rows[1].4 - 1.0)),
        placement_difference: widest_difference(&cells),
        cells,
        confidence: 0.95,
        blocks: 12,
        stopped: Some(Stopped::Precision),
    }
}

fn core(name: &str, low: f64, high: f64) -> BenchKernel {
    let rows = [
        (1, "cpu:0", "native", 1.0, 1.0),
        (2, "cpu:0-1", "native", low, high),
    ];
    kernel(name, Question::SmtCore, &rows)
}

fn bench(kernels: Vec<BenchKernel>, state: SmtState) -> Bench {
    Bench {
        header: Header::new("id", "", Vec::new()),
        ended: String::new(),
        host: HostRecord {
            machine_spec: "sim:".to_owned(),
            simulated: true,
            machine: MachineRecord::default(),
            counts: CountsRecord {
                cpus: 2,
                cores: 1,
                llcs: 0,
                numa_nodes: 1,
                packages: 1,
            },
            allowed: "0-1".to_owned(),
            layout: Vec::new(),
            restricted: None,
            shape_hash: String::new(),
        },
        seed: 1,
        suite: Some("smt".to_owned()),
        budget_s: None,
        min_effect: 0.01,
        smt: SmtRecord {
            state,
            sentence: "What the machine is.".to_owned(),
            advice: "What follows.".to_owned(),
        },
        planned: kernels.len(),
        kernels,
        scores: Vec::new(),
        conclusions: Vec::new(),
        advice: String::new(),
        stopped: None,
        elapsed_s: 0.0,
    }
}

#[track_caller]
fn check(kernels: Vec<BenchKernel>, expected: &[&str]) {
    let mut record = bench(kernels, SmtState::Reported);
    draw_conclusions(&mut record);
    assert_eq!(record.conclusions, expected);
}

#[test]
fn smt_effects_are_listed_per_kernel_with_advice() {
    check(
        vec![
            core("whetstone", 1.16, 1.20),
            core("fft", 0.92, 0.96),
            core("pi", 0.995, 1.005),
            core("chase", 0.9, 1.2),
        ],
        &[
            "On one core, SMT adds 18.0 % (16.0–20.0 %) to whetstone, costs 6.0 % (4.0–8.0 %) in fft, changes pi by less than 1.0 %, is undecided for chase.",
        ],
    );
}

#[test]
fn more_than_four_kernels_are_summed_up_as_a_range() {
    let names = ["integer", "fft", "pi", "triad", "mean-sd"];
    let kernels = || -> Vec<BenchKernel> {
        let all = names.iter().zip(0_u8..);
        all.map(|(name, at)| core(name, 1.2, 1.22 + 0.02 * f64::from(at)))
            .collect()
    };
    check(
        kernels(),
        &["On one core, SMT adds 21.0–25.0 % to all 5 kernels."],
    );
    let mut with_open = kernels();
    with_open.push(core("chase", 0.9, 1.2));
    let mut record = bench(with_open, SmtState::Reported);
    draw_conclusions(&mut record);
    assert_eq!(
        record.conclusions[0],
        "On one core, SMT adds 21.0–25.0 % to 5 kernels, is undecided for chase."
    );
}

#[test]
fn smt_advice_depends_on_whether_it_adds_or_costs() {
    let advice = |low: f64, high: f64| {
        let mut record = bench(vec![core("fft", low, high)], SmtState::Reported);
        draw_conclusions(&mut record);
        record.advice
    };
    assert_eq!(advice(1.1, 1.2), "Leave SMT on.");
    assert!(advice(0.8, 0.9).starts_with("Run one thread per core"));
    assert!(advice(0.995, 1.005).starts_with("Leave SMT as it is"));
    assert!(advice(0.9, 1.1).starts_with("Whether SMT pays is undecided"));
}

#[test]
fn without_smt_the_best_placement_is_advised_against_today_s_or_the_worst() {
    let check_places = |middle: &str, places: &str| {
        let rows = [
            (1, "cpu:0", "native", 1.0, 1.0),
            (2, "one-llc", "native", 1.9, 1.9),
            (2, middle, "native", 1.5, 1.5),
            (2, "spread", "native", 1.2, 1.2),
        ];
        let kernel = kernel("fft", Question::Scaling, &rows);
        let mut record = bench(vec![kernel], SmtState::Reported);
        record.suite = None;
        draw_conclusions(&mut record);
        let end = format!("pinwise compare {places} -- PROGRAM");
        assert!(record.advice.ends_with(&end), "{}", record.advice);
    };
    check_places("os-default", "--place os-default --place one-llc");
    check_places("compact", "--place one-llc --place spread");
}

#[test]
fn smt_advice_follows_the_whole_machine_if_it_was_measured() {
    let mut machine = core("fft", 0.92, 0.96);
    machine.question = Question::SmtMachine;
    let mut record = bench(vec![core("fft", 1.2, 1.3), machine], SmtState::Reported);
    draw_conclusions(&mut record);
    assert!(record.conclusions[0].starts_with("On one core, SMT adds"));
    assert!(record.conclusions[1].starts_with("On all cores, SMT costs"));
    assert!(record.advice.starts_with("Run one thread per core"));
}

#[test]
fn the_state_of_smt_is_explained() {
    for state in [SmtState::Absent, SmtState::Unstable] {
        let mut record = bench(Vec::new(), state);
        draw_conclusions(&mut record);
        assert_eq!(record.conclusions, ["What the machine is."]);
        assert_eq!(record.advice, "What follows.");
    }
    let mut record = bench(vec![core("fft", 1.2, 1.3)], SmtState::Measured);
    draw_conclusions(&mut record);
    assert_eq!(record.conclusions[0], "What the machine is. What follows.");
}

#[test]
fn the_thread_count_beyond_which_more_do_not_pay_is_named() {
    let scaling = |rows: &[Row<'_>]| vec![kernel("fft", Question::Scaling, rows)];
    check(
        scaling(&[
            (1, "os-default", "native", 1.0, 1.0),
            (2, "os-default", "native", 1.9, 2.0),
            (4, "os-default", "native", 3.6, 3.8),
        ]),
        &[
            "fft: 4 threads do 3.70 (3.60–3.80) times the work of 1, 92 % of linear; the last step still pays.",
        ],
    );
    check(
        scaling(&[
            (1, "os-default", "native", 1.0, 1.0),
            (2, "os-default", "native", 1.9, 2.0),
            (4, "os-default", "native", 1.8, 1.9),
        ]),
        &[
            "fft: 2 threads do 1.95 (1.90–2.00) times the work of 1, 98 % of linear; more than 2 do not pay.",
        ],
    );
    check(
        scaling(&[
            (1, "os-default", "native", 1.0, 1.0),
            (2, "os-default", "native", 0.8, 1.4),
        ]),
        &[
            "fft: 2 threads do 1.10 (0.80–1.40) times the work of 1, 55 % of linear; whether 2 pay is undecided.",
        ],
    );
}

#[test]
fn many_kernels_that_scale_are_summed_up_first() {
    let names = ["integer", "fft", "pi", "triad", "mean-sd"];
    let kernels = names.iter().zip(0_u8..).map(|(name, at)| {
        let most = 1.2 + 0.1 * f64::from(at);
        let rows = [
            (1, "os-default", "native", 1.0, 1.0),
            (2, "os-default", "native", most, most),
        ];
        kernel(name, Question::Scaling, &rows)
    });
    let mut record = bench(kernels.collect(), SmtState::Reported);
    draw_conclusions(&mut record);
    assert_eq!(
        record.conclusions[0],
        "5 kernels: 2 threads do 1.20 (integer) to 1.60 (mean-sd) times the work of 1."
    );
}

#[test]
fn the_largest_certain_difference_between_placements_is_named() {
    check(
        vec![kernel(
            "read",
            Question::Scaling,
            &[
                (1, "os-default", "native", 1.0, 1.0),
                (2, "spread", "native", 1.9, 1.9),
                (2, "compact", "native", 1.2, 1.3),
            ],
        )],
        &[
            "read with 2 threads: spread does 52.0 % (46.2–58.3 %) more work than compact.",
            "read: 2 threads at spread do 1.90 (1.90–1.90) times the work of 1, 95 % of linear.",
        ],
    );
}

#[test]
fn the_best_placement_is_compared_with_the_default() {
    let conclude = |low: f64, high: f64| {
        let rows = [
            (1, "os-default", "native", 1.0, 1.0),
            (2, "os-default", "native", low, high),
            (2, "spread", "native", 1.9, 1.9),
            (2, "compact", "native", 1.2, 1.3),
        ];
        let mut record = bench(
            vec![kernel("read", Question::Scaling, &rows)],
            SmtState::Reported,
        );
        draw_conclusions(&mut record);
        record.conclusions.swap_remove(0)
    };
    assert_eq!(
        conclude(1.7, 1.8),
        "read with 2 threads: spread does 8.6 % (5.6–11.8 %) more work than os-default, 52.0 % (46.2–58.3 %) more than compact."
    );
    assert_eq!(
        conclude(1.8, 1.95),
        "read with 2 threads: spread does 52.0 % (46.2–58.3 %) more work than compact; against os-default it is undecided (−2.6 to +5.6 %)."
    );
}

#[test]
fn the_gain_of_a_build_is_reported() {
    let builds = |low: f64, high: f64| {
        vec![kernel(
            "mandelbrot",
            Question::Builds,
            &[
                (1, "os-default", "v1", 1.0, 1.0),
                (1, "os-default", "native", low, high),
            ],
        )]
    };
    check(
        builds(1.4, 1.6),
        &["A build for this processor gains 50.0 % (40.0–60.0 %) for mandelbrot, against v1."],
    );
    check(
        builds(0.995, 1.005),
        &["A build for this processor gains nothing for mandelbrot: within ±1.0 %, against v1."],
    );
}

#[test]
fn scores_are_geometric_means_over_kernels() {
    let rows = |high: f64| {
        [
            (1, "os-default", "native", 1.0, 1.0),
            (4, "os-default", "native", high, high),
        ]
    };
    let mut record = bench(
        vec![
            kernel("fft", Question::Scaling, &rows(4.0)),
            kernel("pi", Question::Scaling, &rows(1.0)),
        ],
        SmtState::Absent,
    );
    draw_conclusions(&mut record);
    assert_eq!(record.scores.len(), 1);
    assert!((record.scores[0].score - 2.0).abs() < 1e-12);
    assert_eq!(record.scores[0].kernels, ["fft", "pi"]);
    assert_eq!(record.scores[0].reference, "native 1 @ os-default");
}
