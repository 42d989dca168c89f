//! A node of a made-up fleet.

use std::collections::BTreeMap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::fault::{Effect, Fault};
use super::figures::{Condition, FIGURES, Figure};
use super::generation::Generation;
use super::{SimulationPlan, name};
use pinwise_record::{FleetNode, FleetRecord, Header, HostRecord, NodeFigure, NodeStep, StepState};
use pinwise_topology::Topology;

/// By how much processors of a kind differ, and their memory: standard
/// deviations of the logarithm.
const SILICON_SD: f64 = 0.006;
const MEMORY_SD: f64 = 0.005;
/// Degrees of freedom of the noise's Student distribution.
const NOISE_DF: f64 = 30.0;
/// How unlike the widths of intervals are, from few runs.
const WIDTH_SD: f64 = 0.15;
/// 97.5 % of a normal distribution lie below.
const Z: f64 = 1.959_964;
/// Kernels: of most nodes and of some.
const KERNELS: [&str; 2] = ["6.1.0-28-amd64", "6.1.0-31-amd64"];

/// What decides about a node's topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostShape {
    pub(super) has_smt: bool,
    pub(super) nodes_per_package: usize,
}

/// A node before it is measured.
#[derive(Debug)]
pub(super) struct Node<'a> {
    kind: &'a Generation,
    condition: Condition,
}

impl<'a> Node<'a> {
    pub(super) fn draw(
        kind: &'a Generation,
        fault: Option<Fault>,
        random: &mut ChaCha8Rng,
    ) -> Self {
        let (silicon, memory) = normals(random);
        Self {
            kind,
            condition: Condition {
                silicon: SILICON_SD * silicon,
                memory: MEMORY_SD * memory,
                effect: fault.map_or(Effect::NONE, |fault| Effect::from_fault(fault, random)),
            },
        }
    }

    pub(super) const fn shape(&self) -> HostShape {
        let effect = &self.condition.effect;
        let [right, wrong] = self.kind.nodes_per_package;
        HostShape {
            has_smt: effect.has_smt,
            nodes_per_package: if effect.has_wrong_nodes { wrong } else { right },
        }
    }

    /// What is stored of it.
    pub(super) fn record(
        &self,
        plan: &SimulationPlan,
        number: usize,
        host: Option<HostRecord>,
        random: &mut ChaCha8Rng,
    ) -> FleetNode {
        let node = name(number, plan.nodes);
        let settings = self.settings(number);
        let host = host.map(|mut host| {
            host.machine.hostname = Some(node.clone());
            host.machine.kernel = settings.get("kernel").cloned();
            host.machine.microcode = settings.get("microcode").cloned();
            host
        });
        let steps = super::steps().into_iter().map(|step| NodeStep {
            name: step.name,
            state: StepState::Done,
            record: None,
            attempt: 1,
            why: None,
            elapsed_s: None,
        });
        let ahead: f64 = random.random_range(-0.02..0.02);
        FleetNode {
            header: Header::new(
                FleetNode::join_id(&plan.id, &node),
                &plan.started,
                vec![FleetRecord::tag(&plan.id)],
            ),
            fleet: plan.id.clone(),
            node,
            ended: Some(plan.started.clone()),
            attempts: 1,
            host,
            settings,
            steps: steps.collect(),
            figures: self.figures(plan.noise, random),
            clock_ahead_s: Some((ahead * 1e3).round() / 1e3),
        }
    }

    fn figures(&self, noise: f64, random: &mut ChaCha8Rng) -> Vec<NodeFigure> {
        { FIGURES.iter() }
            .filter(|figure| self.condition.effect.has_smt || !figure.needs_smt())
            .map(|figure| self.figure(figure, noise, random))
            .collect()
    }

    fn figure(&self, figure: &Figure, noise: f64, random: &mut ChaCha8Rng) -> NodeFigure {
        let (error, width) = normals(random);
        let mut condition = self.condition;
        if condition.effect.is_unsteady && figure.is_work() {
            let share = random.random_range(0.6..1.4);
            condition.effect.work = condition.effect.work.map(|work| share * work);
        }
        let logarithm = figure.truth(self.kind, &condition) + noise * student(error);
        let half = Z * noise * condition.effect.width * (WIDTH_SD * width).exp();
        let at = |shift: f64| significant((logarithm + shift).exp());
        NodeFigure {
            step: figure.step.to_owned(),
            name: figure.name.to_owned(),
            unit: figure.unit.to_owned(),
            value: at(0.0),
            low: Some(at(-half)),
            high: Some(at(half)),
        }
    }

    /// Its settings, as real nodes report them.
    fn settings(&self, number: usize) -> BTreeMap<String, String> {
        let kind = self.kind;
        let effect = &self.condition.effect;
        let HostShape {
            has_smt,
            nodes_per_package,
        } = self.shape();
        let memory = kind.memory_gib - effect.dimms_missing * kind.dimm_gib;
        let microcode = kind.microcode[usize::from(effect.has_old_microcode)];
        // Two of five in every stretch of nodes: what was updated so far.
        let bios = kind.bios[usize::from(number % 20 >= 12)];
        let kernel = KERNELS[usize::from(number % 10 >= 7)];
        let texts = [
            ("bios", bios.to_owned()),
            ("board", kind.board.to_owned()),
            ("boost", "on".to_owned()),
            ("clocksource", "tsc".to_owned()),
            ("deepest-idle-state", "C2".to_owned()),
            ("frequency-driver", kind.governor_driver.to_owned()),
            ("governor", "performance".to_owned()),
            ("kernel", kernel.to_owned()),
            (
                "kernel-command-line",
                "console=ttyS0,115200 quiet ro".to_owned(),
            ),
            ("memory", format!("{memory} GiB")),
            ("microcode", microcode.to_owned()),
            ("mitigations", kind.mitigations.to_owned()),
            ("numa-balancing", "on".to_owned()),
            ("numa-nodes-per-package", nodes_per_package.to_string()),
            ("smt", if has_smt { "on" } else { "off" }.to_owned()),
            ("transparent-hugepages", "madvise".to_owned()),
        ];
        texts
            .into_iter()
            .map(|(name, text)| (name.to_owned(), text))
            .collect()
    }
}

/// A kind of server as records name it; `None` if its description is not understood, which a test
/// rules out.
pub(super) fn host(
    kind: &Generation,
    has_smt: bool,
    nodes_per_package: usize,
) -> Option<HostRecord> {
    let topology = Topology::from_synthetic(&kind.synthetic(has_smt, nodes_per_package)).ok()?;
    let mut host = HostRecord::new("sim:fleet".to_owned(), true, &topology);
    host.machine.cpu_model = Some(kind.cpu.to_owned());
    host.machine.vendor = Some(kind.vendor.to_owned());
    host.machine.arch = Some("x86_64".to_owned());
    host.machine.cpu_family = Some(kind.family);
    host.machine.cpu_model_number = Some(kind.model);
    host.machine.cpu_stepping = Some(kind.stepping);
    Some(host)
}

/// Two independent standard normal numbers (Box and Muller 1958).
fn normals(random: &mut ChaCha8Rng) -> (f64, f64) {
    let uniform: f64 = random.random();
    // 1 - u is in (0, 1].
    let radius = (-2.0 * (1.0 - uniform).ln()).sqrt();
    let angle = std::f64::consts::TAU * random.random::<f64>();
    (radius * angle.cos(), radius * angle.sin())
}

/// The number of Student's distribution, of standard deviation 1, that corresponds to `z` of the
/// normal one: three terms of Abramowitz and Stegun 26.7.5.
fn student(z: f64) -> f64 {
    let n = NOISE_DF;
    let first = (z.powi(3) + z) / (4.0 * n);
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n);
    (z + first + second) * ((n - 2.0) / n).sqrt()
}

/// Five significant digits, as measured figures have.
fn significant(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powf(4.0 - value.log10().floor());
    (value * scale).round() / scale
}
