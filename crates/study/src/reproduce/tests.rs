use super::*;
use crate::compare::NoObserver;

fn settings(seed: u64) -> Settings {
    Settings {
        seed,
        budget: Duration::from_secs(60),
        program: "pinwise".to_owned(),
        id: "x".to_owned(),
        started: "2026-11-22T00:00:00Z".to_owned(),
        host: "h".to_owned(),
    }
}

fn all_reports() -> Vec<&'static Report> {
    REPORTS.iter().collect()
}

#[test]
fn simulations_contradict_no_claim() {
    for seed in 1..=3 {
        let record = simulate(&all_reports(), &settings(seed), &mut NoObserver).unwrap();
        let claims = record
            .reports
            .iter()
            .flat_map(|r| &r.experiments)
            .flat_map(|e| &e.claims);
        for claim in claims {
            assert_ne!(
                claim.verdict,
                ClaimVerdict::Contradicted,
                "{seed}: {claim:?}"
            );
        }
        let counts = record.counts;
        assert!(counts.reproduced + counts.consistent >= 20, "{counts:?}");
        assert!(record.counts.given >= 10 && record.counts.not_here == 0);
        assert_eq!(record.reports.len(), 5);
        for (report, described) in REPORTS.iter().zip(&record.reports) {
            let names: Vec<&str> = described
                .experiments
                .iter()
                .map(|e| e.name.as_str())
                .collect();
            assert_eq!(names, report.experiments, "{}", report.name);
        }
    }
}

/// Value of a key such as `workload.x.wait_s` in a description.
fn value(text: &str, key: &str) -> toml::Value {
    let table: toml::Value = toml::from_str(text).unwrap();
    let found = key
        .split('.')
        .try_fold(&table, |table, part| table.get(part));
    found
        .unwrap_or_else(|| panic!("the description has no {key}"))
        .clone()
}

#[test]
fn given_and_assumed_keys_exist_in_the_descriptions() {
    for report in &REPORTS {
        for text in report.descriptions {
            let machine = SimulatedMachine::from_text(report.name, text, 0).unwrap();
            for given in machine.given() {
                value(text, &given.sets);
            }
            for assumed in machine.assumed() {
                value(text, &assumed.key);
            }
            assert!(!machine.given().is_empty(), "{}", report.name);
        }
    }
}

/// Threads that compute and wait are a closed queueing network, whose throughput is known.
#[test]
fn the_encoders_parameters_give_its_two_given_figures() {
    let number = |key: &str| value(hyperthread_fill::MACHINE, key).as_float().unwrap();
    let threads = value(hyperthread_fill::MACHINE, "workload.encode-wme.threads");
    let threads = i32::try_from(threads.as_integer().unwrap()).unwrap();
    let ratio = number("workload.encode-wme.burst_s") / number("workload.encode-wme.wait_s");
    let smt = number("workload.encode-wme.smt_throughput");
    let throughput = |speed: &dyn Fn(i32) -> f64| {
        let mut weights = vec![1.0];
        for k in 1..=threads {
            let last = weights[weights.len() - 1];
            weights.push(last * f64::from(threads - k + 1) * ratio / speed(k));
        }
        let total: f64 = weights.iter().sum();
        (1..=threads)
            .zip(&weights[1..])
            .map(|(k, w)| speed(k) * w / total)
            .sum::<f64>()
    };
    let one = throughput(&|_| 1.0);
    let second = throughput(&|k| f64::from(k.min(2))) / one;
    let siblings = throughput(&|k| if k == 1 { 1.0 } else { smt }) / one;
    assert!((second - 1.65).abs() < 0.001, "{second}");
    assert!((siblings - 1.20).abs() < 0.001, "{siblings}");
}

#[test]
fn claims_that_cannot_be_tested_here_are_named() {
    let mut machine = SimulatedMachine::open("core:2 pu:1", 1).unwrap();
    let record = run_here(&all_reports(), &settings(1), &mut machine, &mut NoObserver).unwrap();
    let claims: Vec<_> = record
        .reports
        .iter()
        .flat_map(|r| &r.experiments)
        .flat_map(|e| &e.claims)
        .collect();
    let double = claims
        .iter()
        .find(|c| c.claim == "on two cores about double")
        .unwrap();
    assert_eq!(double.verdict, ClaimVerdict::Consistent, "{double:?}");
    let siblings = claims
        .iter()
        .find(|c| c.claim.starts_with("on siblings"))
        .unwrap();
    assert_eq!(siblings.verdict, ClaimVerdict::NotHere);
    assert!(siblings.why.contains("one CPU for each core"));
    // A modern scheduler keeps a thread in place.
    let pinned = claims.iter().find(|c| c.claim == "pinning saves").unwrap();
    assert_eq!(pinned.verdict, ClaimVerdict::Contradicted, "{pinned:?}");
    assert!(
        claims
            .iter()
            .all(|claim| claim.verdict != ClaimVerdict::Given)
    );
}
