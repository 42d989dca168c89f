//! Two records of the same kind: what changed from one to the other.
//!
//! The two were measured at different times: runs cannot be paired, and anything that changed on the
//! machine in between looks like a change of the program. Comparisons are therefore compared by
//! their arms' ratios to a baseline that both have.

mod sessions;
mod words;

use serde::Deserialize;

use pinwise_format::{percent, signed_percent};
use pinwise_record::{
    ChangeVerdict, ComparedRecord, Comparison, DiffRecord, Entry, Figure, FigureChange, Kind,
    MachineChange, MachineFact, RecordError, SchemaName, Summary, read,
};
use pinwise_stats::normal;

/// Smallest effect of interest, relative, of records whose plan names none.
const DEFAULT_MIN_EFFECT: f64 = 0.01;
/// Confidence of a headline figure's own interval.
const CONFIDENCE: f64 = 0.95;

/// A record as it is stored or exported.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Its entry in the history.
    pub entry: &'a Entry,
    /// Its summary in lists.
    pub summary: &'a Summary,
    /// The record as JSON.
    pub record: &'a str,
}

/// Why two records cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// They are of different kinds.
    #[error(
        "{a} is a {of_a} and {b} a {of_b}: only records of the same kind can be compared (pinwise record history lists records with their kinds)"
    )]
    Kinds {
        /// Id of A.
        a: String,
        /// Its kind.
        of_a: String,
        /// Id of B.
        b: String,
        /// Its kind.
        of_b: String,
    },
    /// They measured different things.
    #[error(
        "A compares {of_a}, B {of_b}: figures of different metrics have no ratio (measure again with the same --metric)"
    )]
    Metrics {
        /// Metric of A.
        of_a: String,
        /// Metric of B.
        of_b: String,
    },
    /// They answer different questions.
    #[error(
        "A and B answer different questions: {what} is '{of_a}' in A, '{of_b}' in B (measure B again as A was measured, or compare both in one experiment: pinwise compare --command '…' --command '…')"
    )]
    Questions {
        /// What differs.
        what: String,
        /// In A.
        of_a: String,
        /// In B.
        of_b: String,
    },
    /// They have nothing in common.
    #[error("nothing has the same name in both: A has {of_a}, B has {of_b}")]
    Names {
        /// Names in A.
        of_a: String,
        /// Names in B.
        of_b: String,
    },
    /// One of them cannot be read.
    #[error("{id}: {reason}")]
    Record {
        /// Its id.
        id: String,
        /// Why.
        reason: RecordError,
    },
}

/// What changed from `a` to `b`.
///
/// # Errors
/// [`ChangeError`] if they have nothing to compare, or cannot be read.
pub fn compare_records(a: Side<'_>, b: Side<'_>) -> Result<DiffRecord, ChangeError> {
    let (of_a, of_b) = (kind_name(a.entry), kind_name(b.entry));
    if of_a != of_b {
        return Err(ChangeError::Kinds {
            a: a.entry.id.clone(),
            of_a,
            b: b.entry.id.clone(),
            of_b,
        });
    }
    let mut caveats = Vec::new();
    let mut metric = None;
    let (figures, conclusion) = if a.entry.schema == Kind::Comparison.schema() {
        let [in_a, in_b] = [parse_comparison(a)?, parse_comparison(b)?];
        let figures = sessions::compare_arms(&in_a, &in_b, &mut caveats)?;
        let programs = a.summary.program.as_ref().zip(b.summary.program.as_ref());
        let is_other_program = programs.is_some_and(|(of_a, of_b)| of_a != of_b);
        let conclusion = words::conclude_arms([&in_a, &in_b], &figures, is_other_program);
        metric = Some(in_b.metric);
        (figures, conclusion)
    } else {
        let figures = compare_summaries(a, b, &mut caveats);
        let conclusion = match a.entry.schema == Kind::Gate.schema() {
            true => words::conclude_gates(&figures),
            false => words::conclude_figures(&figures),
        };
        (figures, conclusion)
    };
    if figures.iter().all(|f| f.a.is_none() || f.b.is_none()) {
        let list_names = |is_in: fn(&FigureChange) -> bool| {
            let names = figures.iter().filter(|f| is_in(f));
            let names: Vec<&str> = names.map(|f| f.name.as_str()).collect();
            if names.is_empty() {
                "no figure".to_owned()
            } else {
                names.join(", ")
            }
        };
        return Err(ChangeError::Names {
            of_a: list_names(|f| f.a.is_some()),
            of_b: list_names(|f| f.b.is_some()),
        });
    }
    for side in [a, b] {
        if !side.entry.is_complete {
            caveats.push(format!(
                "{} did not finish: its partial results are compared.",
                side.entry.id
            ));
        }
    }
    Ok(DiffRecord {
        a: describe_side(a),
        b: describe_side(b),
        metric,
        machine_changes: find_machine_changes(a, b),
        sentence: conclusion.sentence,
        advice: conclusion.advice,
        commands: conclusion.commands,
        figures,
        caveats,
    })
}

fn kind_name(entry: &Entry) -> String {
    let name = SchemaName::parse(&entry.schema).map_or(entry.schema.as_str(), |s| s.name);
    name.trim_start_matches("pinwise.").to_owned()
}

fn parse_comparison(side: Side<'_>) -> Result<Comparison, ChangeError> {
    read(side.record).map_err(|reason| ChangeError::Record {
        id: side.entry.id.clone(),
        reason,
    })
}

fn describe_side(side: Side<'_>) -> ComparedRecord {
    let Entry {
        id,
        schema,
        time,
        host,
        title,
        ..
    } = side.entry.clone();
    ComparedRecord {
        id,
        schema,
        time,
        host,
        title,
        machine: side.summary.machine.clone(),
    }
}

/// The fields of any record that describe the machine. Kinds of records differ in where they have
/// them.
#[derive(Default, Deserialize)]
struct RecordMachine {
    host: Option<MachineField>,
    machine: Option<MachineField>,
    shape_hash: Option<String>,
    pinwise_version: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum MachineField {
    Machine(Box<Machine>),
    #[default]
    Other,
}

#[derive(Default, Deserialize)]
struct Machine {
    cpu_model: Option<String>,
    shape_hash: Option<String>,
    kernel: Option<String>,
    microcode: Option<String>,
    hypervisor: Option<String>,
}

fn find_machine_changes(a: Side<'_>, b: Side<'_>) -> Vec<MachineChange> {
    let facts = |side: Side<'_>| {
        let read: RecordMachine = serde_json::from_str(side.record).unwrap_or_default();
        let machine = match (read.host, read.machine) {
            (Some(MachineField::Machine(machine)), _)
            | (_, Some(MachineField::Machine(machine))) => *machine,
            _ => Machine::default(),
        };
        [
            (MachineFact::Host, Some(side.entry.host.clone())),
            (MachineFact::CpuModel, machine.cpu_model),
            (MachineFact::Shape, machine.shape_hash.or(read.shape_hash)),
            (MachineFact::Kernel, machine.kernel),
            (MachineFact::Microcode, machine.microcode),
            (MachineFact::Hypervisor, machine.hypervisor),
            (MachineFact::Pinwise, read.pinwise_version),
        ]
    };
    let pairs = facts(a).into_iter().zip(facts(b));
    pairs
        .filter(|((_, in_a), (_, in_b))| in_a != in_b)
        .map(|((what, a), (_, b))| MachineChange { what, a, b })
        .collect()
}

fn empty_figure(name: &str, unit: &str) -> FigureChange {
    FigureChange {
        name: name.to_owned(),
        over: None,
        unit: unit.to_owned(),
        a: None,
        a_low: None,
        a_high: None,
        b: None,
        b_low: None,
        b_high: None,
        ratio: None,
        low: None,
        high: None,
        verdict: ChangeVerdict::CannotTell,
        shift: None,
        arm_a: None,
        arm_b: None,
        sentence: String::new(),
    }
}

/// Compares the headline figures of records that are not comparisons, by name.
fn compare_summaries(a: Side<'_>, b: Side<'_>, caveats: &mut Vec<String>) -> Vec<FigureChange> {
    if a.summary.subject != b.summary.subject {
        let subject = |side: Side<'_>| side.summary.subject.clone().unwrap_or_default();
        caveats.push(format!(
            "A and B are about different things: {} and {}.",
            subject(a),
            subject(b)
        ));
    }
    let has_intervals = a.entry.schema == Kind::Bench.schema();
    caveats.push(match has_intervals {
        true => "A and B ran at different times, and each figure has an interval of its own: a change is reported only where the two do not overlap. pinwise record diff of the bench's comparisons shows more.".to_owned(),
        false => "Figures of such records have no interval between records: a change may be chance.".to_owned(),
    });
    let find = |figures: &[Figure], name: &str| figures.iter().find(|f| f.name == name).cloned();
    let mut names: Vec<&str> = Vec::new();
    for figure in a.summary.figures.iter().chain(&b.summary.figures) {
        if !names.contains(&figure.name.as_str()) {
            names.push(&figure.name);
        }
    }
    let widening = has_intervals.then(|| widening_for_all(names.len()));
    let compare_by_name = |name: &str| {
        let (in_a, in_b) = (
            find(&a.summary.figures, name),
            find(&b.summary.figures, name),
        );
        let figure = compare_figure(name, in_a.as_ref(), in_b.as_ref(), widening);
        match a.entry.schema == Kind::Gate.schema() {
            true => without_ratio(figure),
            false => figure,
        }
    };
    names.iter().map(|name| compare_by_name(name)).collect()
}

/// A figure of two gates. Each is a change between two builds of its own: both are shown, and their
/// ratio means nothing.
fn without_ratio(figure: FigureChange) -> FigureChange {
    let Some((a, b)) = figure.a.zip(figure.b) else {
        return figure;
    };
    let [in_a, in_b] = [a, b].map(|change| signed_percent(change / 100.0));
    FigureChange {
        ratio: None,
        verdict: ChangeVerdict::CannotTell,
        sentence: format!(
            "{}: {in_a} in A, {in_b} in B, each of its own two builds.",
            figure.name
        ),
        ..figure
    }
}

/// Factor by which to widen intervals so that all hold at once (Bonferroni, for normal estimates).
fn widening_for_all(figures: usize) -> f64 {
    let tail = 0.5 * (1.0 - CONFIDENCE);
    normal::upper_quantile(tail / figures.max(1) as f64) / normal::upper_quantile(tail)
}

fn compare_figure(
    name: &str,
    a: Option<&Figure>,
    b: Option<&Figure>,
    widening: Option<f64>,
) -> FigureChange {
    let unit = a.or(b).map_or("", |figure| &figure.unit);
    let mut figure = empty_figure(name, unit);
    if let Some(a) = a {
        (figure.a, figure.a_low, figure.a_high) = (Some(a.value), a.low, a.high);
    }
    if let Some(b) = b {
        (figure.b, figure.b_low, figure.b_high) = (Some(b.value), b.low, b.high);
    }
    let positive = |value: Option<f64>| value.filter(|value| *value > 0.0);
    let divide = |above: Option<f64>, below: Option<f64>| Some(positive(above)? / positive(below)?);
    figure.ratio = divide(figure.b, figure.a);
    if let (Some(ratio), Some(widening)) = (figure.ratio, widening) {
        let widen = |end: f64| ratio * (end / ratio).powf(widening);
        let low = divide(figure.b_low, figure.a_high).map(widen);
        let high = divide(figure.b_high, figure.a_low).map(widen);
        (figure.low, figure.high) = low.zip(high).unzip();
    }
    judge_figure(figure, DEFAULT_MIN_EFFECT)
}

/// The figure with its verdict and sentence.
fn judge_figure(mut figure: FigureChange, delta: f64) -> FigureChange {
    figure.verdict = match (figure.low, figure.high) {
        (Some(low), Some(high)) if low >= 1.0 / (1.0 + delta) && high <= 1.0 + delta => {
            ChangeVerdict::Same
        }
        // Two states of one machine often differ slightly for longer than an experiment lasts: only
        // larger differences are reported.
        (_, Some(high)) if high < 1.0 / (1.0 + delta) => ChangeVerdict::Lower,
        (Some(low), _) if low > 1.0 + delta => ChangeVerdict::Higher,
        _ => ChangeVerdict::CannotTell,
    };
    figure.sentence = describe_figure(&figure, delta);
    figure
}

fn describe_figure(figure: &FigureChange, delta: f64) -> String {
    let name = match &figure.over {
        Some(baseline) => format!("{} against {baseline}", figure.name),
        None => figure.name.clone(),
    };
    let Some(ratio) = figure.ratio else {
        return match (figure.a, figure.b) {
            (Some(_), None) => format!("{name}: only in A."),
            (None, Some(_)) => format!("{name}: only in B."),
            (None, None) => format!("{name}: neither has a figure."),
            (Some(_), Some(_)) => {
                format!("{name}: no ratio to a figure that is not above 0.")
            }
        };
    };
    let (Some(low), Some(high)) = (figure.low, figure.high) else {
        return format!("{name}: {} in B.", describe_change(ratio));
    };
    let between = format!(
        "between {} and {}",
        describe_change(low),
        describe_change(high)
    );
    match figure.verdict {
        ChangeVerdict::Same => {
            let within = percent(delta);
            format!("{name}: the same in B within {within} ({between}).")
        }
        ChangeVerdict::CannotTell => {
            format!(
                "{name}: inconclusive; {} in B, and {between} is possible.",
                describe_change(ratio)
            )
        }
        ChangeVerdict::Lower | ChangeVerdict::Higher => {
            format!("{name}: {} in B ({between}).", describe_change(ratio))
        }
    }
}

/// `3.1 % lower`.
fn describe_change(ratio: f64) -> String {
    let word = if ratio < 1.0 { "lower" } else { "higher" };
    format!("{} {word}", percent((ratio - 1.0).abs()))
}
