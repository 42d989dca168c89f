//! How well threads that were bound, one CPU each, stayed there.

use serde::{Deserialize, Serialize};

/// Shares from here to below 1 are written "more than 99.9 %": rounding would give 100.0 %.
const ALMOST_ALL: f64 = 0.9995;

/// Threads that were bound before their first instruction, and how much CPU time they spent there.
/// A thread that moved itself counts as moved from the start, so that the share is a lower bound.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoverageRecord {
    /// Threads that were bound and whose end, or the end of binding, was seen.
    pub threads: u64,
    /// How many of them had another mask in between.
    pub moved_threads: u64,
    /// CPU time of all of them, seconds.
    pub cpu_s: f64,
    /// CPU time of the threads that had not moved, seconds.
    pub where_asked_s: f64,
    /// Programs whose threads had moved; the first few.
    pub movers: Vec<MoverRecord>,
}

/// A program that places its own threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MoverRecord {
    /// Name of its executable file.
    pub program: String,
    /// The setting through which it does so; `null` if unknown.
    pub knob: Option<String>,
}

impl CoverageRecord {
    /// Share of the CPU time that ran where asked; `None` if there was none.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.cpu_s > 0.0).then(|| self.where_asked_s / self.cpu_s)
    }

    /// Adds another run.
    pub fn add(&mut self, other: &Self) {
        self.threads += other.threads;
        self.moved_threads += other.moved_threads;
        self.cpu_s += other.cpu_s;
        self.where_asked_s += other.where_asked_s;
        for mover in &other.movers {
            if !self.movers.contains(mover) {
                self.movers.push(mover.clone());
            }
        }
    }

    /// The figures as a full sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Some(share) = self.share() else {
            return "No bound thread used CPU time.".to_owned();
        };
        let share = if (ALMOST_ALL..1.0).contains(&share) {
            "More than 99.9 %".to_owned()
        } else {
            format!("{:.1} %", 100.0 * share)
        };
        let threads = match self.threads {
            1 => "1 thread was".to_owned(),
            threads => format!("{threads} threads were"),
        };
        let moved = match (self.moved_threads, self.threads) {
            (0, _) => String::new(),
            (moved, all) if moved == all => " and moved away".to_owned(),
            (1, _) => ", of which 1 moved away".to_owned(),
            (moved, _) => format!(", of which {moved} moved away"),
        };
        format!("{share} of CPU time ran where asked; {threads} bound{moved}.")
    }

    /// What to do if threads moved; empty if none did.
    #[must_use]
    pub fn advice(&self) -> String {
        if self.moved_threads == 0 {
            return String::new();
        }
        let known = self.movers.iter().filter_map(|mover| {
            let knob = mover.knob.as_ref()?;
            Some(format!("{} by {knob}", mover.program))
        });
        let known: Vec<String> = known.collect();
        if !known.is_empty() {
            return format!(
                "The program places its own threads: {}. Set their CPUs there, and place without /bound.",
                known.join("; ")
            );
        }
        let names: Vec<&str> = self.movers.iter().map(|m| m.program.as_str()).collect();
        match names.as_slice() {
            [] => "The program, or somebody else, sets the affinity of its threads: place without /bound."
                .to_owned(),
            names => format!(
                "{} set its own affinity masks; look for its CPU affinity setting, and place without /bound.",
                names.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(threads: u64, moved: u64, where_asked_s: f64) -> CoverageRecord {
        CoverageRecord {
            threads,
            moved_threads: moved,
            cpu_s: 2.0,
            where_asked_s,
            movers: Vec::new(),
        }
    }

    #[test]
    fn share_is_never_rounded_up_to_all() {
        let sentence = |threads, moved, s| coverage(threads, moved, s).sentence();
        assert_eq!(
            sentence(4, 0, 2.0),
            "100.0 % of CPU time ran where asked; 4 threads were bound."
        );
        assert_eq!(
            sentence(4, 1, 1.956),
            "97.8 % of CPU time ran where asked; 4 threads were bound, of which 1 moved away."
        );
        assert!(sentence(4, 1, 1.9999).starts_with("More than 99.9 %"));
        assert_eq!(
            sentence(1, 1, 0.0),
            "0.0 % of CPU time ran where asked; 1 thread was bound and moved away."
        );
        let nothing = CoverageRecord::default();
        assert_eq!(nothing.share(), None);
        assert!(nothing.sentence().starts_with("No bound thread"));
    }

    #[test]
    fn a_known_knob_is_named() {
        let mover = |program: &str, knob: Option<&str>| MoverRecord {
            program: program.to_owned(),
            knob: knob.map(str::to_owned),
        };
        assert_eq!(coverage(4, 0, 2.0).advice(), "");
        let mut moved = coverage(4, 2, 1.0);
        assert!(moved.advice().contains("somebody else"));
        moved.movers.push(mover("prog", None));
        assert!(moved.advice().starts_with("prog set its own"));
        moved
            .movers
            .push(mover("nginx", Some("worker_cpu_affinity")));
        assert!(moved.advice().contains("nginx by worker_cpu_affinity"));
    }

    #[test]
    fn runs_add_up() {
        let mut sum = coverage(2, 1, 1.0);
        let mut other = coverage(3, 0, 2.0);
        other.movers.push(MoverRecord {
            program: "a".to_owned(),
            knob: None,
        });
        sum.add(&other);
        sum.add(&other);
        assert_eq!((sum.threads, sum.moved_threads), (8, 1));
        assert_eq!(sum.share(), Some(5.0 / 6.0));
        assert_eq!(sum.movers.len(), 1);
    }
}
