//! Who makes the load that a finding is about.

use pinwise_format::count;
use pinwise_machine::BusyProcess;
use pinwise_record::Finding;

/// Processes that are named.
const NAMED: usize = 3;
/// Less of a CPU is not worth a name.
const WORTH: f64 = 0.05;

/// Does one of these say that other processes use the CPUs?
fn is_loaded(findings: &[Finding]) -> bool {
    findings.iter().any(is_of_load)
}

fn is_of_load(finding: &Finding) -> bool {
    matches!(
        finding.check.as_str(),
        "foreign_load" | "load" | "other_processes" | "queued"
    )
}

/// Names the processes that use the CPUs now in the advice of findings about load. `find` takes a
/// moment, and is called only if there is such a finding.
pub fn name_busiest(findings: &mut [Finding], find: impl FnOnce() -> Vec<BusyProcess>) {
    if !is_loaded(findings) {
        return;
    }
    let busy = find();
    let busy: Vec<&BusyProcess> = busy.iter().filter(|one| one.cpus >= WORTH).collect();
    let named = busy.iter().take(NAMED).map(|one| {
        let BusyProcess {
            name,
            process,
            cpus,
        } = one;
        format!("{name} ({process}) {:.0} %", 100.0 * cpus)
    });
    let mut named: Vec<String> = named.collect();
    if let Some(first) = named.first_mut() {
        first.push_str(" of a CPU");
    }
    if busy.len() > NAMED {
        named.push(count(busy.len() - NAMED, "other"));
    }
    if named.is_empty() {
        return;
    }
    let busiest = format!("Busiest now: {}.", named.join(", "));
    for finding in findings.iter_mut().filter(|finding| is_of_load(finding)) {
        let advice = format!("{} {busiest}", finding.advice);
        finding.advice = advice.trim_start().to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::Severity;

    #[test]
    fn what_every_system_does_is_no_load() {
        let is_load = |busy, cpus| crate::compare::find_load(busy, cpus, "", "").is_some();
        for (busy, cpus) in [(0.11, 2), (0.2, 2), (0.1, 1), (2.0, 64)] {
            assert!(!is_load(busy, cpus), "{busy} of {cpus}");
        }
        for (busy, cpus) in [(0.3, 2), (0.3, 1), (4.0, 64)] {
            assert!(is_load(busy, cpus), "{busy} of {cpus}");
        }
    }

    #[test]
    fn findings_of_load_name_who_makes_it() {
        let finding = |check: &'static str| Finding::new(check, Severity::Warning, "", "Stop it.");
        let mut findings = [finding("foreign_load"), finding("steal")];
        assert!(is_loaded(&findings));
        let busy = |process: i32, cpus| BusyProcess {
            process,
            name: "cc1plus".to_owned(),
            cpus,
        };
        let mut all = vec![busy(7, 0.984), busy(8, 0.5), busy(9, 0.01)];
        name_busiest(&mut findings, || all.clone());
        let advice = "Stop it. Busiest now: cc1plus (7) 98 % of a CPU, cc1plus (8) 50 %.";
        assert_eq!(findings[0].advice, advice);
        assert_eq!(findings[1].advice, "Stop it.");
        all.extend((10..14).map(|process| busy(process, 0.3)));
        let mut findings = [finding("other_processes")];
        name_busiest(&mut findings, || all.clone());
        assert!(findings[0].advice.ends_with("cc1plus (10) 30 %, 3 others."));
    }
}
