//! A node of a simulated fleet.

use std::collections::BTreeMap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::fault::{Effect, Fault};
use super::figures::{Condition, FIGURES, Figure};
use super::generation::Generation;
use super::{SimulationPlan, format_node_name};
use pinwise_record::{
    Answer, FleetNode, FleetRecord, Header, HostRecord, NodeFigure, NodeStep, StepState,
};
use pinwise_topology::Topology;

/// Differences between processors of a kind, and between their memory: standard deviations of the
/// logarithm.
const SILICON_SD: f64 = 0.006;
const MEMORY_SD: f64 = 0.005;
/// Degrees of freedom of the noise's Student distribution.
const NOISE_DF: f64 = 30.0;
/// Differences between the widths of intervals, which come from few runs: standard deviation of the
/// logarithm.
const WIDTH_SD: f64 = 0.15;
/// Half-width of a 95 % interval, in standard errors.
const NORMAL: f64 = 1.959_964;
/// Linux kernels of most nodes, and of the others.
const KERNELS: [&str; 2] = ["6.1.0-28-amd64", "6.1.0-31-amd64"];

/// What determines a node's topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostShape {
    pub(super) has_smt: bool,
    pub(super) nodes_per_package: usize,
}

/// A node without its measured figures.
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
        let (silicon, memory) = draw_two_normals(random);
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

    /// Simulates a measurement of the node.
    pub(super) fn make_record(
        &self,
        plan: &SimulationPlan,
        number: usize,
        host: Option<HostRecord>,
        random: &mut ChaCha8Rng,
    ) -> FleetNode {
        let node = format_node_name(number, plan.nodes);
        let settings = self.make_settings(number);
        let host = host.map(|mut host| {
            host.machine.hostname = Some(node.clone());
            host.machine.kernel = settings.get("kernel").cloned();
            host.machine.microcode = settings.get("microcode").cloned();
            host
        });
        let steps = super::list_steps().into_iter().map(|step| NodeStep {
            name: step.name,
            state: StepState::Done,
            record: None,
            verdict: None,
            changes: Vec::new(),
            attempt: 1,
            why: None,
            elapsed_s: None,
        });
        let ahead: f64 = random.random_range(-0.02..0.02);
        let mut record = FleetNode {
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
            figures: self.measure_all(plan.noise, random),
            clock_ahead_s: Some((ahead * 1e3).round() / 1e3),
            answer: Answer::default(),
        };
        record.conclude();
        record
    }

    fn measure_all(&self, noise: f64, random: &mut ChaCha8Rng) -> Vec<NodeFigure> {
        { FIGURES.iter() }
            .filter(|figure| self.condition.effect.has_smt || !figure.needs_smt())
            .map(|figure| self.measure(figure, noise, random))
            .collect()
    }

    fn measure(&self, figure: &Figure, noise: f64, random: &mut ChaCha8Rng) -> NodeFigure {
        let (error, width) = draw_two_normals(random);
        let mut condition = self.condition;
        if condition.effect.is_unsteady && figure.is_work() {
            let share = random.random_range(0.6..1.4);
            condition.effect.work = condition.effect.work.map(|work| share * work);
        }
        let logarithm = figure.true_log(self.kind, &condition) + noise * normal_to_student(error);
        let half_width = NORMAL * noise * condition.effect.width * (WIDTH_SD * width).exp();
        let shifted = |shift: f64| round_to_five_digits((logarithm + shift).exp());
        NodeFigure {
            step: figure.step.to_owned(),
            name: figure.name.to_owned(),
            unit: figure.unit.to_owned(),
            value: shifted(0.0),
            low: Some(shifted(-half_width)),
            high: Some(shifted(half_width)),
        }
    }

    /// Its settings, as real nodes report them.
    fn make_settings(&self, number: usize) -> BTreeMap<String, String> {
        let kind = self.kind;
        let effect = &self.condition.effect;
        let HostShape {
            has_smt,
            nodes_per_package,
        } = self.shape();
        let memory = kind.memory_gib - effect.dimms_missing * kind.dimm_gib;
        let microcode = kind.microcode[usize::from(effect.has_old_microcode)];
        // Two of five nodes have the second BIOS, and three of ten the second kernel, as in an
        // unfinished update.
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

/// The host record of a kind of server; `None` if its synthetic topology is invalid, which a test
/// rules out.
pub(super) fn make_host(
    kind: &Generation,
    has_smt: bool,
    nodes_per_package: usize,
) -> Option<HostRecord> {
    let topology = Topology::from_synthetic(&kind.to_synthetic(has_smt, nodes_per_package)).ok()?;
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
fn draw_two_normals(random: &mut ChaCha8Rng) -> (f64, f64) {
    let uniform: f64 = random.random();
    // 1 - u is in (0, 1].
    let radius = (-2.0 * (1.0 - uniform).ln()).sqrt();
    let angle = std::f64::consts::TAU * random.random::<f64>();
    (radius * angle.cos(), radius * angle.sin())
}

/// The number of Student's distribution, of standard deviation 1, that corresponds to `z` of the
/// normal one: three terms of Abramowitz and Stegun 26.7.5.
fn normal_to_student(z: f64) -> f64 {
    let n = NOISE_DF;
    let first = (z.powi(3) + z) / (4.0 * n);
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n);
    (z + first + second) * ((n - 2.0) / n).sqrt()
}

/// Five significant digits, as measured figures have.
fn round_to_five_digits(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powf(4.0 - value.log10().floor());
    (value * scale).round() / scale
}
