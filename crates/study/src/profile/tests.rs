//! Attribution of a difference between two simulated machines whose properties are known: probes
//! measure them; samples and elapsed times are drawn at random around the truth.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use pinwise_machine::{End, Host};
use pinwise_profile::Stacks;
use pinwise_profile::examples::Scene;
use pinwise_record::{AttributionRecord, PartRecord, ProfileDiff};
use pinwise_sim::SimulatedMachine;

const RUNS: usize = 5;

/// The properties of a machine, and how long its program sleeps in a run.
#[derive(Clone, Copy)]
pub(super) struct Truth {
    pub(super) pause_ns: f64,
    pub(super) ghz: f64,
    pub(super) memory_ns: f64,
    pub(super) sleeps_s: f64,
}

pub(super) const A: Truth = Truth {
    pause_ns: 3.6,
    ghz: 2.5,
    memory_ns: 90.0,
    sleeps_s: 0.3,
};

impl Truth {
    /// Seconds that a run spends in 10 million loads from memory, 5e9 cycles, 50 million hints and
    /// sleep.
    pub(super) fn times(self) -> [f64; 4] {
        let loads_s = 0.01 * self.memory_ns;
        [loads_s, 5.0 / self.ghz, 0.05 * self.pause_ns, self.sleeps_s]
    }
}

pub(super) fn simulate_profile(truth: Truth, seed: u64) -> ProfileRecord {
    let text = format!(
        "topology = \"l3:1(size=32MB) core:2 pu:1\"\n[wiring]\npause_ns = {:?}\nghz = {:?}\nmemory_ns = {:?}\n",
        truth.pause_ns, truth.ghz, truth.memory_ns
    );
    let mut machine = SimulatedMachine::from_text("truth", &text, seed).unwrap();
    let (topology, _) = machine.topology().unwrap();
    let (pause, facts) = measure_machine(&mut machine, &topology, 0).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sampled_runs = SampledRuns::default();
    for _ in 0..RUNS {
        let [loads_s, cycles_s, hints_s, sleeps_s] = truth.times();
        let cpu_s = loads_s + cycles_s + hints_s;
        let mut counts = [0; 3];
        for _ in 0..Duration::from_secs_f64(cpu_s).as_millis() {
            let at = cpu_s * rng.random::<f64>();
            let place = usize::from(at > loads_s) + usize::from(at > loads_s + cycles_s);
            counts[place] += 1;
        }
        // The load and the end of a loop that polls, and the wait in its PAUSE.
        let mut scene = Scene::new("/bin/prog")
            .stack(&["0x2000"], counts[0])
            .stack(&["0x200a"], counts[1])
            .waiting(&["spin"], counts[2]);
        let noise = 1.0 + 0.01 * (rng.random::<f64>() - 0.5);
        scene.samples.wall_s = noise * (cpu_s + sleeps_s);
        let run = Run {
            user: Some(Duration::from_secs_f64(noise * cpu_s)),
            system: Some(Duration::ZERO),
            ..Run::ended(Duration::ZERO, End::Status(0))
        };
        let sampled = SamplingResult {
            samples: scene.samples,
            run: Some(run),
            counted: None,
            own_cpu: Duration::ZERO,
            notes: Vec::new(),
        };
        sampled_runs.add(sampled, &Units::Runs).unwrap();
    }
    let plan = ProfilePlan {
        subject: Subject::Everything,
        source: TraceSource::Command {
            command: vec!["prog".to_owned()],
            placement: "os-default".to_owned(),
            cpus: "0-1".to_owned(),
        },
        thread: None,
        event: None,
        stacks: Stacks::FramePointers,
        hz: 1000,
        limit: None,
        runs: RUNS,
        units: Units::Runs,
        pause_cpu: Some(0),
        tags: Vec::new(),
    };
    let host = host_record(&machine, &topology);
    sampled_runs
        .into_record(&plan, host, pause, Some(facts))
        .unwrap()
}

fn compare_with_a(b: Truth) -> Vec<AttributionRecord> {
    let diff = ProfileDiff::between(&simulate_profile(A, 1), &simulate_profile(b, 2)).unwrap();
    assert_eq!(diff.attributions.len(), 2);
    diff.attributions
}

fn part<'a>(found: &'a AttributionRecord, name: &str) -> &'a PartRecord {
    found
        .parts
        .iter()
        .find(|part| part.part.as_str() == name)
        .unwrap()
}

/// Checks that the interval of the named part contains the planted share of the difference in elapsed
/// time, that it is most of it, and that all parts add up to 1. `place`: index of the planted time.
#[track_caller]
fn check(b: Truth, name: &str, place: usize) {
    let found = compare_with_a(b).remove(0);
    let (before, after) = (A.times(), b.times());
    let whole = after.iter().sum::<f64>() - before.iter().sum::<f64>();
    let truth = (after[place] - before[place]) / whole;
    let share = part(&found, name).share.unwrap();
    let holds = (share.low..=share.high).contains(&truth);
    assert!(holds && share.value > 0.6, "{truth}: {}", found.sentence);
    let shares = found.parts.iter().filter_map(|part| part.share);
    let sum: f64 = shares.map(|share| share.value).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
}

#[test]
fn a_difference_is_attributed_to_the_planted_cause() {
    let slow_pause = Truth {
        pause_ns: 43.0,
        sleeps_s: 0.4,
        ..A
    };
    check(slow_pause, "spin-wait-length", 2);
    let slow_memory = Truth {
        memory_ns: 200.0,
        ..A
    };
    check(slow_memory, "memory", 0);
    let slow_clock = Truth { ghz: 1.6, ..A };
    check(slow_clock, "frequency", 1);
    let sleepy = Truth { sleeps_s: 2.0, ..A };
    check(sleepy, "waiting", 3);
}

#[test]
fn equal_machines_have_no_difference_to_explain() {
    for found in compare_with_a(A) {
        let sentence = &found.sentence;
        assert!(sentence.contains("no difference to explain"), "{sentence}");
        assert!(found.parts.iter().all(|part| part.share.is_none()));
    }
}

#[test]
fn older_profiles_without_machine_figures_are_still_attributed() {
    let strip = |record: ProfileRecord| -> ProfileRecord {
        let mut json = serde_json::to_value(record).unwrap();
        for field in ["machine", "accesses", "unread"] {
            json.as_object_mut().unwrap().remove(field);
        }
        for run in json["runs"].as_array_mut().unwrap() {
            for field in ["used_cpu_s", "waits_s", "accesses_s", "unread_s"] {
                run.as_object_mut().unwrap().remove(field);
            }
        }
        serde_json::from_value(json).unwrap()
    };
    let b = Truth {
        pause_ns: 43.0,
        ..A
    };
    let old = strip(simulate_profile(A, 1));
    let diff = ProfileDiff::between(&old, &simulate_profile(b, 2)).unwrap();
    assert_eq!(diff.attributions.len(), 1, "CPU time only");
    let found = &diff.attributions[0];
    assert!(part(found, "spin-wait-length").share.unwrap().value > 0.9);
    let unknown = part(found, "frequency");
    assert!(unknown.delta_s.is_none() && unknown.detail.is_some());
}
