//! Output of real benchmarks, shortened, and output that is not a report.

use super::*;
use crate::{Better, Metric, RunFigures};
use proptest::prelude::*;

const CRITERION: &str = "fib/rec/10              time:   [105.74 ns 109.68 ns 115.86 ns]\n\
    \u{20}                       thrpt:  [86.309 Melem/s 91.176 Melem/s 94.570 Melem/s]\n\
    Found 15 outliers among 100 measurements (15.00%)\n\n\
    a very long name of a benchmark that will not fit the column\n\
    \u{20}                       time:   [103.12 µs 104.17 µs 105.48 µs]\n\
    add                     time:   [365.20 ps 374.72 ps 385.53 ps]\n\
    \u{20}                       change: [-3.0000% -1.2000% +1.0000%] (p = 0.1 > 0.05)\n\
    add (two) words.x       time:   [357.59 ms 360.47 ms 365.11 ms]\n\
    cycles                  time:   [10.000 cycles 11.000 cycles 12.000 cycles]\n\
    zero                    time:   [0.0000 ps 0.0000 ps 0.0000 ps]\n\
    odd                     time:   [1 ns - ns 2 ns]\nshort                   time:   [1 ns]\n\
    Gnuplot not found, using plotters backend\nBenchmarking gone: Analyzing\n";

const GOOGLE: &str = r#"{
  "context": { "date": "2026-11-25T16:50:40+00:00", "num_cpus": 2, "load_avg": [8.6,6.9,4.5] },
  "benchmarks": [
    { "name": "BM_str/8", "run_name": "BM_str/8", "run_type": "iteration", "repetitions": 1,
      "iterations": 210112524, "real_time": 3.3281371318966079e-03,
      "cpu_time": 3.2296151180402745e-03, "time_unit": "us", "inf": Infinity, "minus": -Infinity },
    { "name": "BM_err", "run_name": "BM_err", "run_type": "iteration", "error_occurred": true,
      "error_message": "no input", "real_time": 0.0, "time_unit": "ns" },
    { "name": "BM_new", "skipped": true, "real_time": 0.0, "time_unit": "ns" },
    { "name": "cap (x) [y]/repeats:3", "run_name": "cap (x) [y]/repeats:3",
      "run_type": "iteration", "real_time": 3.5, "time_unit": "ns" },
    { "name": "cap (x) [y]/repeats:3_mean", "run_name": "cap (x) [y]/repeats:3",
      "run_type": "aggregate", "aggregate_name": "mean", "aggregate_unit": "time",
      "real_time": 2.9, "time_unit": "ns", "zero": NaN },
    { "name": "cap (x) [y]/repeats:3_median", "run_name": "cap (x) [y]/repeats:3",
      "run_type": "aggregate", "aggregate_name": "median", "aggregate_unit": "time",
      "real_time": 2.75, "time_unit": "ns", "label": "a \"NaN\" {" },
    { "name": "twice", "real_time": 1, "time_unit": "ms" },
    { "name": "twice", "real_time": 2, "time_unit": "ms" },
    { "name": "nan", "real_time": NaN, "time_unit": "ns" },
    { "name": "unit", "real_time": 1, "time_unit": "ticks" },
    { "name": "zero", "real_time": 0, "time_unit": "ns" }
  ]
}
***WARNING*** Library was built as DEBUG. Timings may be affected.
"#;

const GO: &str = "goos: linux\ncpu: AMD EPYC\nBenchmarkFib10-2   \t 5646202\t       204.3 ns/op\n\
    BenchmarkFib10 \t 5440177\t       213.8 ns/op\n\
    BenchmarkFib/n_=_1-2         \t1000000000\t         2.000 ns/op\t4000.00 MB/s\t       0 B/op\n\
    --- BENCH: BenchmarkFib/n_=_1-2\n    a_test.go:7: hello\n\
    BenchmarkFib/n_=_5-2         \t65919016\t        8.000 ns/op\n\
    BenchmarkSlow-2   \t       1\t2000096776 ns/op\n\
    BenchmarkLoud-2   \tloud 100 1 ns/op\nloud 10000 1 ns/op\n1000000000\t         0.4221 ns/op\n\
    BenchmarkMetric-2   \t1000000000\t         3.000 widgets/op\n\
    BenchmarkZero-2   \t1000000000\t         0 ns/op\nBenchmarkNan-2\t1\tNaN ns/op\nPASS\n";

const JMH: &str = r##"

[
    {
        "jmhVersion" : "1.37",
        "benchmark" : "p.B.both",
        "mode" : "thrpt",
        "params" : { "n" : "10 x" },
        "primaryMetric" : {
            "score" : 250.0,
            "scoreError" : "NaN",
            "scorePercentiles" : { "0.0" : 888138.9528658264 },
            "scoreUnit" : "ops/ms",
            "rawData" : [ [ 250.0 ] ]
        },
        "secondaryMetrics" : { }
    },
    {
        "jmhVersion" : "1.37",
        "benchmark" : "p.B.both",
        "mode" : "avgt",
        "primaryMetric" : { "score" : 1.0E-3, "scoreUnit" : "ms/op" }
    },
    {
        "benchmark" : "p.B.sample",
        "primaryMetric" : { "score" : 1.7646744533732015, "scoreUnit" : "us/op" }
    },
    { "benchmark" : "p.B.nan", "primaryMetric" : { "score" : "NaN", "scoreUnit" : "ops/s" } },
    { "benchmark" : "p.B.zero", "primaryMetric" : { "score" : 0.0, "scoreUnit" : "ops/s" } },
    { "benchmark" : "p.B.size", "primaryMetric" : { "score" : 1.0, "scoreUnit" : "B/op" } },
    { "benchmark" : "p.B.odd", "primaryMetric" : { "score" : 1.0, "scoreUnit" : "#" } },
    { "benchmark" : "p.B.list", "primaryMetric" : { "score" : [ 1 ], "scoreUnit" : "s/op" } }
]

"##;

const PYTEST: &str = r#".                     [100%]{
    "machine_info": { "node": "vm", "cpu": { "arch": "X86_64" } },
    "commit_info": { "id": "unversioned", "dirty": false },
    "benchmarks": [
        {
            "group": null,
            "name": "test_p[a b/c(d)::e]",
            "fullname": "tests/bench.py::test_p[a b/c(d)::e]",
            "params": { "n": "a b/c(d)::e" },
            "stats": {
                "min": 4.577e-08, "mean": 7.7329e-08, "rounds": 188751,
                "median": 4.7879984776955097e-08, "ops": 12931694.3, "data": [ 4.5e-08, 4.6e-08 ]
            }
        }
    ],
    "datetime": "2026-11-25T16:56:56.677966+00:00",
    "version": "5.3.1"
}
Wrote benchmark data in: /dev/stdout

1 passed in 1.53s
"#;

const PLAN: &str = "s\n        SETUP    F benchmark\n\
    \u{20}       tests/bench.py::test_sum (fixtures used: benchmark, request)\n\
    \u{20}       TEARDOWN F benchmark\n        SETUP    F n['a b/c(d)::e']\n\
    \u{20}       tests/bench.py::test_p[a b/c(d)::e] (fixtures used: benchmark, n, request)\n\
    \u{20}       tests/bench.py::test_plain\n        ::test_above (fixtures used: benchmark)\n\
    \u{20}       tests/bench.py::test_file (fixtures used: tmp_path, benchmarks)\n\
    1 skipped in 0.01s\n";

#[track_caller]
fn check(framework: Framework, output: &str, benchmark: &str, expected: Result<f64, &str>) {
    match (framework.parse_seconds(benchmark, output), expected) {
        (Ok(value), Ok(wanted)) => assert!((value / wanted - 1.0).abs() < 1e-9, "{value}"),
        (Err(error), Err(part)) => {
            let line = error.to_string();
            assert!(line.contains(part), "{line}");
            assert!(!line.contains('\n'), "{line}");
        }
        (got, wanted) => panic!("{framework} {benchmark}: {got:?} instead of {wanted:?}"),
    }
}

#[test]
fn criterion_gives_the_middle_of_the_interval() {
    let check = |name, expected| check(Framework::Criterion, CRITERION, name, expected);
    check("fib/rec/10", Ok(109.68e-9));
    check("add", Ok(374.72e-12));
    check("add (two) words.x", Ok(360.47e-3));
    let long = "a very long name of a benchmark that will not fit the column";
    check(long, Ok(104.17e-6));
    check("fib/rec/1", Err("no result for the benchmark 'fib/rec/1'"));
    check("gone", Err("no result"));
    check("cycles", Err("'cycles', which is not a time"));
    check("zero", Err("took 0.0 s; it must be above 0"));
    check("odd", Err("'-' of the benchmark 'odd' is not a number"));
    check("short", Err("'1 ns'"));
}

#[test]
fn google_benchmark_gives_real_time_or_its_median() {
    let check = |name, expected| check(Framework::GoogleBenchmark, GOOGLE, name, expected);
    check("BM_str/8", Ok(3.328_137_131_896_608e-9));
    check("cap (x) [y]/repeats:3", Ok(2.75e-9));
    check("twice", Ok(1.5e-3));
    check("BM_str", Err("no result"));
    check("BM_err", Err("'BM_err' failed: no input"));
    check("BM_new", Err("it was skipped"));
    check("nan", Err("'null' of the benchmark 'nan' is not a number"));
    check("unit", Err("'ticks'"));
    check("zero", Err("above 0"));
    let failed = "Failed to match any benchmarks against regex: ^nope$\n";
    self::check(
        Framework::GoogleBenchmark,
        failed,
        "nope",
        Err("no google-benchmark report"),
    );
}

#[test]
fn go_gives_the_geometric_mean_of_sub_benchmarks() {
    let check = |name, expected| check(Framework::Go, GO, name, expected);
    check("BenchmarkFib", Ok(4e-9));
    check("BenchmarkFib/n_=_5", Ok(8e-9));
    check("BenchmarkFib10", Ok((204.3_f64 * 213.8).sqrt() * 1e-9));
    check("BenchmarkSlow", Ok(2.000_096_776));
    check("BenchmarkLoud", Ok(0.4221e-9));
    check("BenchmarkMetric", Err("no result"));
    check("BenchmarkF", Err("no result"));
    check("BenchmarkZero", Err("above 0"));
    check("BenchmarkNan", Err("'NaN'"));
}

#[test]
fn jmh_gives_the_geometric_mean_of_modes_with_rates_inverted() {
    let check = |name, expected| check(Framework::Jmh, JMH, name, expected);
    check("p.B.both", Ok(2e-6));
    check("p.B.sample", Ok(1.764_674_453_373_201_5e-6));
    check("p.B", Err("no result"));
    check("p.B.nan", Err("'NaN' of the benchmark 'p.B.nan'"));
    check("p.B.zero", Err("took inf s"));
    check("p.B.size", Err("'B'"));
    check("p.B.odd", Err("'#'"));
    check("p.B.list", Err("'[…]'"));
    self::check(Framework::Jmh, "[\n]\n\n", "p.B.boom", Err("no jmh report"));
}

#[test]
fn pytest_gives_the_median_round() {
    let id = "tests/bench.py::test_p[a b/c(d)::e]";
    let check = |output: &str, expected| check(Framework::Pytest, output, id, expected);
    check(PYTEST, Ok(4.787_998_477_695_51e-8));
    check(
        &PYTEST.replace("4.7879984776955097e-08", "0"),
        Err("above 0"),
    );
    check(
        &PYTEST.replace("\"median\"", "\"other\""),
        Err("not a number"),
    );
    check(&PYTEST.replace("(d)::e]", "]"), Err("no result"));
    let more = PYTEST.replace("\n        }\n    ]", "},{\"fullname\":\"b\",\"stats\":{}}]");
    check(&more, Err("did not run alone, but with 1 more"));
    let (cut, _) = PYTEST.split_once("\"rounds\"").unwrap();
    check(cut, Err("report of pytest-benchmark cannot be read: EOF"));
    check(".   [100%]\n1 passed", Err("no pytest-benchmark report"));
}

#[test]
fn benchmarks_are_listed_in_order_and_once() {
    let check = |framework: Framework, output: &str, expected: &[&str]| {
        assert_eq!(framework.parse_list(output).unwrap(), expected);
    };
    let criterion = "add: benchmark\n\nslow: benchmark: benchmark\n\nadd: benchmark\n: benchmark\n\
        method/w3!rd: bench\n0 tests, 0 benchmarks\n";
    let names = ["add", "slow: benchmark", "method/w3!rd"];
    check(Framework::Criterion, criterion, &names);
    let google = "BM_str/8\nBM_t<std::pair<int,int>*>/real_time/threads:2\r\n\ncap (x) [y]/3\n";
    let names = [
        "BM_str/8",
        "BM_t<std::pair<int,int>*>/real_time/threads:2",
        "cap (x) [y]/3",
    ];
    check(Framework::GoogleBenchmark, google, &names);
    let go = "BenchmarkFib10\nBenchmarkÜber\nok  \tx\t0.002s\n";
    check(Framework::Go, go, &["BenchmarkFib10", "BenchmarkÜber"]);
    let jmh =
        "OpenJDK 64-Bit Server VM warning: p.x\np.not\nBenchmarks: \np.B.both\np.B.avg\np.B.both\n";
    check(Framework::Jmh, jmh, &["p.B.both", "p.B.avg"]);
    let ids = [
        "tests/bench.py::test_sum",
        "tests/bench.py::test_p[a b/c(d)::e]",
    ];
    check(Framework::Pytest, PLAN, &ids);
    for framework in Framework::ALL {
        let error = framework.parse_list("\n \n").unwrap_err().to_string();
        assert_eq!(
            error,
            format!("the command listed no benchmarks of {framework}")
        );
    }
}

#[test]
fn names_are_matched_exactly() {
    let argument = |framework: Framework, name: &str| framework.run_arguments(name).join(" ");
    let criterion = argument(Framework::Criterion, "-add (two)");
    assert!(criterion.ends_with(r" ^-add \(two\)$"), "{criterion}");
    let google = argument(Framework::GoogleBenchmark, "a (x) [y] {z} b*c.\\|$");
    assert!(google.contains(r"--benchmark_filter=^a \(x\) \[y] \{z} b\*c\.\\\|\$$ "));
    let go = argument(Framework::Go, "BenchmarkX/n=1.5/a b");
    assert!(go.contains(r"-test.bench=^BenchmarkX$/^n=1\.5$/^a b$ "));
    let jmh = argument(Framework::Jmh, "p.B.add");
    assert!(jmh.starts_with(r"^p\.B\.add$ "));
    assert!(argument(Framework::Pytest, "a.py::b[c d]").ends_with(" a.py::b[c d]"));
}

#[test]
fn pytest_paths_are_replaced_by_the_benchmark() {
    let check = |command: &str, id: &str, kept: &str| {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let command_line = Framework::Pytest.command(&words(command), id);
        let expected = [words(kept), Framework::Pytest.run_arguments(id)].concat();
        assert_eq!(command_line, expected, "{command}");
    };
    let id = "tests/sub/bench.py::TestK::test_m[1]";
    let plain = "python3 -m pytest -x";
    for selection in [
        "tests/sub/bench.py",
        "./tests/sub/bench.py",
        "tests/",
        "tests/sub",
        ".",
        "/home/me/tests",
        "/home/me/tests/sub/bench.py",
        "tests/other.py",
        "/home/me/tests/other.py::test_x",
        "tests/sub/bench.py::TestK",
        "tests/sub/bench.py::TestK::test_m",
        "tests/sub/bench.py::TestK::test_m[1]",
    ] {
        check(&format!("{plain} {selection}"), id, plain);
    }
    for other in ["-ctests/x.py", "test", "/mytests"] {
        let command = format!("{plain} {other}");
        check(&command, id, &command);
    }
    check("tests/pytest -q tests", id, "tests/pytest -q");
    check("tests -q tests", id, "tests -q");
    check("python3 run.py tests/x.py", id, "python3 run.py tests/x.py");
    check(
        "run tests/sub/bench.py::TestK::test",
        id,
        "run tests/sub/bench.py::TestK::test",
    );
    let words = ["./bench".to_owned()];
    assert_eq!(Framework::Go.command(&words, "BenchmarkX")[0], "./bench");
}

#[test]
fn names_of_frameworks_round_trip() {
    for framework in Framework::ALL {
        assert_eq!(framework.to_string().parse(), Ok(framework));
    }
    let error = "divan\n".parse::<Framework>().unwrap_err().to_string();
    assert_eq!(
        error,
        "'divan ' is not a benchmark framework (known: criterion, google-benchmark, go, jmh, pytest)"
    );
}

#[test]
fn a_benchmark_is_a_metric_in_seconds() {
    let metric = Metric::Framework(Framework::Go, "BenchmarkSlow".to_owned());
    assert!(metric.needs_output() && metric.is_time() && !metric.needs_two_readings());
    assert_eq!((metric.better(), metric.unit()), (Better::Lower, "s"));
    assert_eq!(metric.to_string(), "go:BenchmarkSlow");
    let read = |output: Option<&str>| {
        metric.read(&RunFigures {
            output: output.map(str::as_bytes),
            ..RunFigures::default()
        })
    };
    assert_eq!(read(Some(GO)), Ok(2.000_096_776));
    let error = |output| read(output).unwrap_err().to_string();
    let absent = "go: the output has no result for the benchmark 'BenchmarkSlow'";
    assert_eq!(error(Some("PASS\n")), absent);
    assert!(error(None).starts_with("go:BenchmarkSlow is not available"));
}

#[test]
fn long_names_are_cut_in_messages() {
    let name = "x".repeat(5000);
    let error = Framework::Go
        .parse_seconds(&name, "")
        .unwrap_err()
        .to_string();
    assert!(error.chars().count() < 200, "{error}");
}

proptest! {
    #[test]
    fn the_pattern_of_a_name_matches_nothing_else(name in "[ -~]{1,20}", other in "[ -~]{1,20}") {
        let regex = regex_lite::Regex::new(&pattern::exact_pattern(&name)).unwrap();
        prop_assert!(regex.is_match(&name));
        prop_assert_eq!(regex.is_match(&other), name == other);
    }

    #[test]
    fn any_pytest_command_keeps_its_program(argument in "\\PC{0,12}", id in "\\PC{0,12}") {
        let command = ["pytest".to_owned(), argument];
        let command_line = Framework::Pytest.command(&command, &id);
        prop_assert_eq!(&command_line[0], "pytest");
        prop_assert_eq!(command_line.last(), Some(&id));
    }
}
