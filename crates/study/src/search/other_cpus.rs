//! Tries the best shape on other CPUs. A shape is an arrangement, not a set of CPUs: if one core is
//! slower than the others (interrupts, other programs, heat), every shape may use it, and only the
//! same shape on other CPUs shows that.

use std::collections::BTreeSet;

use super::Candidate;
use super::candidates::name_candidate;
use super::choice::DEFAULT;
use super::pairs::Pairs;
use super::state::{Engine, Halt, Others};
use super::words::SearchOutcome;
use pinwise_format::percent;
use pinwise_placement::Placement;
use pinwise_record::{Finding, OtherCpusRecord, SearchStep, Severity};
use pinwise_topology::{Cpu, CpuSet};

/// Maximum number of other sets of CPUs.
const MAX_TRIES: usize = 3;
/// Maximum number of pairs for each set.
const MAX_PAIRS: usize = 12;
/// Two-sided error rate of all tries together.
const ALPHA: f64 = 0.05;
/// Two-sided error rate of the comparison with `os-default`.
const DEFAULT_ALPHA: f64 = 0.05;
/// A try ends after this many pairs if their mean is close to 0: most machines have no slow core, and
/// a large difference shows at once …
const FIRST_PAIRS: usize = 2;
/// … close: within this many standard errors.
const MAX_STANDARD_ERRORS: f64 = 2.0;

impl Engine<'_> {
    /// Compares the best shape with itself on other CPUs: first on as many different ones as possible,
    /// then without the CPUs that all tries so far had in common. If `os-default` is best, a slow CPU
    /// may be the reason: then other CPUs that are faster are also compared with `os-default`.
    pub(super) fn try_other_cpus(&mut self) -> Result<(), Halt> {
        let most = self.plan.confirmation_pairs.min(MAX_PAIRS);
        let best = SearchOutcome::from_engine(self, None).best;
        let leads_default = best == Some(DEFAULT);
        let best = match leads_default {
            true => self.best_bound_arm(),
            false => best,
        };
        let Some(best) = best.filter(|_| most > 0) else {
            return Ok(());
        };
        let mut common = self.add_siblings(&self.arms[best].place.cpus);
        self.others = Some(Others {
            against: best,
            tried: Vec::new(),
            over_default: None,
        });
        for _ in 0..MAX_TRIES {
            let Some(other) = self.place_elsewhere(best, &common) else {
                break;
            };
            common = common.intersection(&self.add_siblings(&other.place.cpus));
            if self.compare_elsewhere(best, other, most)? {
                break;
            }
        }
        match self.faster_elsewhere().filter(|_| leads_default) {
            Some(arm) => self.compare_with_default(arm),
            None => Ok(()),
        }
    }

    /// The measured shape with the lowest expected cost.
    fn best_bound_arm(&self) -> Option<usize> {
        let belief = self.belief.as_ref()?;
        let runs = self.runs_of_arms();
        let bound = self.open_arms().into_iter().filter(|&arm| arm != DEFAULT);
        let known = bound.filter(|&arm| arm < belief.arms() && runs[arm] > 0);
        known.min_by(|&a, &b| belief.arm(a).mean.total_cmp(&belief.arm(b).mean))
    }

    fn compare_with_default(&mut self, arm: usize) -> Result<(), Halt> {
        let most = self.plan.confirmation_pairs;
        let noise = self.pair_noise(self.others.as_ref().map_or(DEFAULT, |o| o.against), DEFAULT);
        if let Some(others) = &mut self.others {
            others.over_default = Some(Pairs::new(arm, DEFAULT_ALPHA, noise, most));
        }
        for _ in 0..most {
            let interval = self.pairs_with_default().and_then(Pairs::interval);
            let is_decided = interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
            if is_decided || self.check_time_left(2, 1.0).is_err() || self.invalid[arm].is_some() {
                break;
            }
            self.run_block(SearchStep::OtherCpus, &[DEFAULT, arm])?;
        }
        Ok(())
    }

    pub(super) fn pairs_with_default(&self) -> Option<&Pairs> {
        self.others.as_ref()?.over_default.as_ref()
    }

    /// If `os-default` led, the arm that beats it on other CPUs.
    pub(super) fn find_better_than_default(&self) -> Option<&Pairs> {
        let pairs = self.pairs_with_default()?;
        let is_faster = pairs.interval().is_some_and(|(_, high)| high < 0.0);
        (is_faster && self.invalid[pairs.arm].is_none()).then_some(pairs)
    }

    /// The CPUs with all siblings: what slows one CPU mostly slows its core.
    fn add_siblings(&self, cpus: &CpuSet) -> CpuSet {
        let core = |cpu: usize| self.topology.cpu(cpu).and_then(|cpu| cpu.core);
        let cores: BTreeSet<Option<usize>> = cpus.iter().map(core).collect();
        let is_added =
            |cpu: &&Cpu| cpus.contains(cpu.id) || (cpu.core.is_some() && cores.contains(&cpu.core));
        let all = self.topology.cpus.iter();
        all.filter(is_added).map(|cpu| cpu.id).collect()
    }

    /// The arm's shape on other CPUs, without some of the `common` ones; `None` if that is impossible.
    fn place_elsewhere(&self, arm: usize, common: &CpuSet) -> Option<Candidate> {
        let arm = &self.arms[arm];
        let cpus = self.space.choose_beside(&arm.occupancy, common);
        if common.is_subset(&self.add_siblings(&cpus)) {
            return None;
        }
        let placement: Placement = format!("cpu:{cpus}").parse().ok()?;
        Some(Candidate {
            name: name_candidate(self.plan, &placement, arm.threads),
            place: placement.realise(self.topology).ok()?,
            ..arm.clone()
        })
    }

    /// Compares the best arm with the same shape on other CPUs. Returns whether nothing more is to be
    /// tried, because they differ or the time is used up.
    fn compare_elsewhere(
        &mut self,
        best: usize,
        other: Candidate,
        most: usize,
    ) -> Result<bool, Halt> {
        let arm = self.add(other, None);
        // The arm cannot lead; it is only compared with the best.
        self.dropped.push(arm);
        let noise = self.pair_noise(best, best);
        let pairs = Pairs::new(arm, ALPHA / MAX_TRIES as f64, noise, most);
        if let Some(others) = &mut self.others {
            others.tried.push(pairs);
        }
        let zone = self.zone();
        for _ in 0..most {
            if self.check_time_left(2, 1.0).is_err() {
                return Ok(true);
            }
            self.run_block(SearchStep::OtherCpus, &[best, arm])?;
            if self.invalid[arm].is_some() || self.invalid[best].is_some() {
                return Ok(true);
            }
            let latest = self.latest_pairs();
            // To prove equality takes many more pairs.
            let seems_equal = |pairs: &Pairs| {
                let error = noise / (pairs.count() as f64).sqrt();
                pairs.count() == FIRST_PAIRS && pairs.estimate().abs() < MAX_STANDARD_ERRORS * error
            };
            if latest.is_some_and(seems_equal) {
                break;
            }
            match latest.and_then(Pairs::interval) {
                Some((low, high)) if low > 0.0 || high < 0.0 => return Ok(true),
                Some((low, high)) if low > -zone && high < zone => break,
                _ => {}
            }
        }
        Ok(false)
    }

    fn latest_pairs(&self) -> Option<&Pairs> {
        self.others.as_ref()?.tried.last()
    }

    /// Is this arm the best shape on other CPUs than chosen at first?
    pub(super) fn is_elsewhere(&self, arm: usize) -> bool {
        let tried = self.others.as_ref().map_or(&[][..], |others| &others.tried);
        tried.iter().any(|pairs| pairs.arm == arm)
    }

    /// The arm on other CPUs that is faster than the best shape on the CPUs chosen at first.
    pub(super) fn faster_elsewhere(&self) -> Option<usize> {
        let pairs = self.latest_pairs()?;
        let is_faster = pairs.interval().is_some_and(|(_, high)| high < 0.0);
        (is_faster && self.invalid[pairs.arm].is_none()).then_some(pairs.arm)
    }

    pub(super) fn other_cpus_records(&self) -> Vec<OtherCpusRecord> {
        let Some(others) = &self.others else {
            return Vec::new();
        };
        let against = &self.arms[others.against];
        let tried = others.tried.iter();
        tried
            .filter(|pairs| pairs.count() > 0)
            .map(|pairs| {
                let interval = pairs.interval();
                OtherCpusRecord {
                    arm: self.arms[pairs.arm].name.clone(),
                    against: against.name.clone(),
                    pairs: pairs.count(),
                    ratio: pairs.estimate().exp(),
                    low: interval.map(|(low, _)| low.exp()),
                    high: interval.map(|(_, high)| high.exp()),
                    confidence: 1.0 - ALPHA / MAX_TRIES as f64,
                    verdict: pairs.verdict(self.zone()),
                    sentence: self.describe_pairs(against, pairs),
                }
            })
            .collect()
    }

    fn describe_pairs(&self, against: &Candidate, pairs: &Pairs) -> String {
        let (here, there) = (&against.place.cpus, &self.arms[pairs.arm].place.cpus);
        let count = match pairs.count() {
            1 => "1 pair".to_owned(),
            n => format!("{n} pairs"),
        };
        let share = |y: f64| percent(y.exp_m1().abs());
        match pairs.interval() {
            Some((low, high)) if low > 0.0 || high < 0.0 => {
                let (word, from, to) = match high < 0.0 {
                    true => ("faster", share(high), share(low)),
                    false => ("slower", share(low), share(high)),
                };
                format!(
                    "CPUs differ: on {there} the same shape is {word} than on {here} by {from} to \
                     {to} ({count})."
                )
            }
            Some((low, high)) if low > -self.zone() && high < self.zone() => format!(
                "On CPUs {there} the same shape takes as long as on {here} within {} ({count}).",
                percent(self.zone().exp_m1())
            ),
            _ => format!(
                "On CPUs {there} the same shape took {} {} than on {here}: no difference \
                 detectable in {count}.",
                share(pairs.estimate()),
                if pairs.estimate() < 0.0 {
                    "less"
                } else {
                    "more"
                }
            ),
        }
    }

    /// A warning if some CPUs of the shape are slower than others.
    pub(super) fn check_cpu_differences(&self) -> Option<Finding> {
        let (others, pairs) = (self.others.as_ref()?, self.latest_pairs()?);
        let (low, high) = pairs.interval()?;
        let against = &self.arms[others.against];
        let (here, there) = (&against.place.cpus, &self.arms[pairs.arm].place.cpus);
        let suspects = match (low > 0.0, high < 0.0) {
            (false, false) => return None,
            (true, _) => there.difference(here),
            (_, true) => here.difference(there),
        };
        Some(Finding::new(
            "unlike_cpus",
            Severity::Warning,
            self.describe_pairs(against, pairs),
            format!(
                "Look for interrupts, other programs, a noisy neighbour VM or heat on CPUs {suspects}; search again without them: taskset -c LIST pinwise search."
            ),
        ))
    }
}
