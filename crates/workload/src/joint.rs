//! Joint plans: programs that share a machine, each with a figure, as TOML.
//!
//! ```toml
//! [[program]]
//! name = "web"
//! command = "redis-server --port 7001 --save ''"   # a service: kept running
//! ready = "redis-cli -p 7001 ping"                 # succeeds once the service is ready
//! load = "redis-benchmark -p 7001 -t get --csv"    # measures the service, then ends
//! metric = "regex:GET.*,\"([0-9.]+)\",\"[0-9.]+\"$ lower"
//! unit = "ms"
//! limit = "≤ 20 ms"
//!
//! [[program]]
//! name = "batch"
//! command = "xz -9 -k -c big.tar"                  # ends, and is judged by its time
//! weight = 2
//! ```
//!
//! Every mistake is reported with line and column. Nothing is started here.

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::framework::unit_s;
use super::study_file::check_name;
use super::toml_error::{self, Position, TomlError};
use super::{Better, Command, Metric};

/// Largest file, bytes.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;
/// Limits on the programs of a plan.
const MIN_PROGRAMS: usize = 2;
const MAX_PROGRAMS: usize = 6;

/// A program that shares a machine with others.
#[derive(Debug, Clone)]
pub struct JointProgram {
    /// Its name.
    pub name: String,
    /// What is placed.
    pub command: Command,
    /// Succeeds once the service can be used; `None` if it can be used at once.
    pub ready: Option<Command>,
    /// Uses the service, and ends; `None` if the program itself ends.
    pub load: Option<Command>,
    /// Its figure.
    pub metric: Metric,
    /// Unit of the figure; empty if unknown.
    pub unit: String,
    /// The weight of its figure in the mean over the programs.
    pub weight: f64,
    /// The worst figure that is acceptable, in its unit.
    pub limit: Option<f64>,
    /// The position of its command.
    pub position: Position,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlan {
    #[serde(default)]
    program: Vec<RawProgram>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProgram {
    name: Spanned<String>,
    command: Spanned<String>,
    ready: Option<Spanned<String>>,
    load: Option<Spanned<String>>,
    metric: Option<Spanned<String>>,
    unit: Option<Spanned<String>>,
    weight: Option<Spanned<f64>>,
    limit: Option<Spanned<String>>,
}

/// One round of all programs together, for the process that runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// The programs that take part.
    pub programs: Vec<RoundProgram>,
}

/// A program of a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundProgram {
    /// The program with its arguments.
    pub command: Vec<String>,
    /// Succeeds once it is ready.
    pub ready: Option<Vec<String>>,
    /// The command that uses it.
    pub load: Option<Vec<String>>,
    /// Its CPUs, as a list.
    pub cpus: String,
}

/// The result of a round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundReport {
    /// The figures of each program, in the plan's order; empty if a program failed.
    pub programs: Vec<RoundFigures>,
    /// The number of the program that failed, and why.
    pub failure: Option<(usize, String)>,
}

/// The figures of the first execution of a program, or of its load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundFigures {
    /// How long it took, seconds.
    pub wall_s: f64,
    /// Its standard output.
    pub output: String,
}

/// The programs of a joint plan.
///
/// # Errors
/// [`TomlError`] says what is wrong, and where.
pub fn parse(text: &str) -> Result<Vec<JointProgram>, TomlError> {
    let raw: RawPlan = toml_error::parse(text, MAX_FILE_BYTES, "this is not a joint plan")?;
    if raw.program.len() < MIN_PROGRAMS {
        let reason = format!(
            "a joint plan has {MIN_PROGRAMS} to {MAX_PROGRAMS} programs, this one {}: write [[program]] for each",
            raw.program.len()
        );
        return Err(TomlError::new(Position::START, reason));
    }
    let mut programs: Vec<JointProgram> = Vec::new();
    for value in &raw.program {
        let program = read_program(text, value)?;
        if programs.len() == MAX_PROGRAMS {
            let reason = format!("name: a joint plan has at most {MAX_PROGRAMS} programs");
            return Err(TomlError::mistake_in_value(text, &value.name, reason));
        }
        if programs.iter().any(|other| other.name == program.name) {
            let reason = format!("name: there is a program '{}' already", program.name);
            return Err(TomlError::mistake_in_value(text, &value.name, reason));
        }
        programs.push(program);
    }
    // If no program has a weight, because all have limits, all count alike.
    if programs.iter().all(|program| program.weight <= 0.0) {
        for program in &mut programs {
            program.weight = 1.0;
        }
    }
    Ok(programs)
}

fn read_program(text: &str, raw: &RawProgram) -> Result<JointProgram, TomlError> {
    check_name(raw.name.get_ref())
        .map_err(|reason| TomlError::mistake_in_value(text, &raw.name, reason))?;
    if raw.name.get_ref().starts_with('-') {
        let reason = "name: it is that of a unit and begins with no -";
        return Err(TomlError::mistake_in_value(text, &raw.name, reason));
    }
    if let (Some(ready), None) = (&raw.ready, &raw.load) {
        let reason = "ready: only a service, which has a load, becomes ready";
        return Err(TomlError::mistake_in_value(text, ready, reason));
    }
    let (metric, unit) = read_metric(text, raw)?;
    let weight = match &raw.weight {
        None if raw.limit.is_some() => 0.0,
        None => 1.0,
        Some(value) => {
            let weight = *value.get_ref();
            if !(0.0..=1e6).contains(&weight) {
                let reason = "weight: write a number from 0 to 1000000";
                return Err(TomlError::mistake_in_value(text, value, reason));
            }
            weight
        }
    };
    let limit = match &raw.limit {
        None => None,
        Some(value) => {
            let limit = read_limit(value.get_ref(), metric.better(), &unit);
            let mistake =
                |reason| TomlError::mistake_in_value(text, value, format!("limit: {reason}"));
            Some(limit.map_err(mistake)?)
        }
    };
    Ok(JointProgram {
        name: raw.name.get_ref().clone(),
        command: read_command(text, "command", &raw.command)?,
        ready: read_optional_command(text, "ready", raw.ready.as_ref())?,
        load: read_optional_command(text, "load", raw.load.as_ref())?,
        metric,
        unit,
        weight,
        limit,
        position: Position::find(text, raw.command.span().start),
    })
}

fn read_optional_command(
    text: &str,
    key: &str,
    value: Option<&Spanned<String>>,
) -> Result<Option<Command>, TomlError> {
    value
        .map(|value| read_command(text, key, value))
        .transpose()
}

fn read_command(text: &str, key: &str, value: &Spanned<String>) -> Result<Command, TomlError> {
    let mistake =
        |reason: String| TomlError::mistake_in_value(text, value, format!("{key}: {reason}"));
    let command = Command::from_line(value.get_ref()).map_err(|why| mistake(why.to_string()))?;
    match command.find_shell_syntax(Some(value.get_ref())) {
        Some(syntax) => Err(mistake(format!(
            "'{syntax}' is for a shell: write {key} = \"sh -c '…'\""
        ))),
        None => Ok(command),
    }
}

fn read_metric(text: &str, raw: &RawProgram) -> Result<(Metric, String), TomlError> {
    let metric = match &raw.metric {
        None => Metric::wall(),
        Some(value) => {
            let mistake =
                |reason| TomlError::mistake_in_value(text, value, format!("metric: {reason}"));
            let metric: Metric = value
                .get_ref()
                .parse()
                .map_err(|error: super::MetricError| mistake(error.to_string()))?;
            let is_from_output = metric.needs_output() && !metric.needs_two_readings();
            if !metric.is_wall() && !is_from_output {
                let reason = "a program of a joint plan has wall, 'regex:…' or 'json:…'";
                return Err(mistake(reason.to_owned()));
            }
            metric
        }
    };
    match (&raw.unit, metric.unit()) {
        (Some(value), own) if !own.is_empty() && value.get_ref() != own => {
            let reason = format!("unit: that of this metric is {own}");
            Err(TomlError::mistake_in_value(text, value, reason))
        }
        (Some(value), _) => Ok((metric, value.get_ref().trim().to_owned())),
        (None, own) => Ok((metric, own.to_owned())),
    }
}

/// Parses a limit and converts it to the unit of its metric: `≤ 20 ms`, `20ms`, `>= 5000`.
fn read_limit(text: &str, better: Better, unit: &str) -> Result<f64, String> {
    let (signs, wrong_signs) = match better {
        Better::Lower => (["≤", "<="], ["≥", ">="]),
        Better::Higher => (["≥", ">="], ["≤", "<="]),
    };
    let text = text.trim();
    if wrong_signs.iter().any(|sign| text.starts_with(sign)) {
        return Err(format!("of this metric it is '{} …'", signs[0]));
    }
    let bare = signs.iter().find_map(|sign| text.strip_prefix(sign));
    let bare = bare.unwrap_or(text).trim();
    let end = bare
        .find(|c: char| !c.is_ascii_digit() && !".,_".contains(c))
        .unwrap_or(bare.len());
    let (number, given) = (&bare[..end].replace(['_', ','], ""), bare[end..].trim());
    let number: f64 = number
        .parse()
        .ok()
        .filter(|number: &f64| *number > 0.0)
        .ok_or_else(|| "write a number above 0 with its unit, such as \"≤ 20 ms\"".to_owned())?;
    match (unit_s(given), unit_s(unit)) {
        _ if given.is_empty() || given == unit => Ok(number),
        (Some(given), Some(unit)) => Ok(number * given / unit),
        _ if unit.is_empty() => Err(format!(
            "its metric has no unit: write unit = \"{given}\" beside it, or the number alone"
        )),
        _ => Err(format!(
            "'{given}' is not a unit of its metric, which is in {unit}"
        )),
    }
}

impl JointProgram {
    /// Is a figure within the program's limit? Without a limit, every figure is.
    #[must_use]
    pub fn is_within_limit(&self, figure: f64) -> bool {
        self.limit
            .is_none_or(|limit| self.metric.cost(figure) <= self.metric.cost(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WEB: &str = "[[program]]\nname = \"web\"\ncommand = \"server\"\nload = \"load\"\n";
    const BATCH: &str = "[[program]]\nname = \"batch\"\ncommand = \"xz -9 big\"\n";

    fn parse_with_web(more: &str) -> Result<Vec<JointProgram>, TomlError> {
        parse(&format!("{WEB}{more}\n{BATCH}"))
    }

    #[test]
    fn programs_are_parsed() {
        let programs = parse_with_web(
            "ready = \"ping\"\nmetric = \"json:.p99_ms lower\"\nunit = \"ms\"\nlimit = \"≤ 0.02 s\"",
        )
        .unwrap();
        assert_eq!(programs[0].limit, Some(20.0));
        assert!(programs[0].is_within_limit(20.0) && !programs[0].is_within_limit(20.1));
        // A limit alone does not count in the mean.
        let weights: Vec<f64> = programs.iter().map(|program| program.weight).collect();
        assert_eq!(weights, [0.0, 1.0]);
        assert!(programs[1].metric.is_wall() && programs[1].load.is_none());
        let rate = parse_with_web("metric = \"json:.rps higher\"\nlimit = \">= 5_000\"").unwrap();
        assert!(rate[0].is_within_limit(5001.0) && !rate[0].is_within_limit(4999.0));
        let both = format!("{WEB}limit = \"1s\"\n{BATCH}limit = \"2 min\"\n");
        assert!(
            parse(&both)
                .unwrap()
                .iter()
                .all(|p| p.weight.to_bits() == 1.0_f64.to_bits())
        );
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        let check = |text: &str, place: &str, words: &str| {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(place) && error.contains(words), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        };
        let with = |more: &str| format!("{WEB}{more}\n{BATCH}");
        check("", "1:1", "2 to 6 programs");
        check(BATCH, "1:1", "2 to 6 programs, this one 1");
        check(&with("cpus = \"0\""), "5:1", "cpus");
        check(&format!("{WEB}{WEB}"), "6:8", "'web' already");
        let many: String = (0..7)
            .map(|n| BATCH.replace("batch", &format!("b{n}")))
            .collect();
        check(&many, "20:8", "at most 6");
        check(&with("limit = \"20 MB\""), "5:9", "'MB' is not a unit");
        let own = "metric = \"json:.p99 lower\"\nlimit = \"20 ms\"";
        check(&with(own), "6:9", "write unit = \"ms\"");
        check(&with("limit = \"≥ 1 s\""), "5:9", "'≤ …'");
        check(&with("limit = \"fast\""), "5:9", "above 0");
        check(&with("weight = -1.0"), "5:10", "weight");
        check(&with("metric = \"cycles\""), "5:10", "metric");
        check(&with("metric = \"nonsense\""), "5:10", "nonsense");
        check(&with("unit = \"ms\""), "5:8", "is s");
        check(&with("ready = \"a | b\""), "5:9", "shell");
        check(&format!("{WEB}{BATCH}ready = \"true\"\n"), "8:9", "service");
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "(\\[\\[program\\]\\]\n|name = \"[a-c/]{0,2}\"\n|command = \"\\PC{0,5}\"\n|load = \"x\"\n|limit = \"[≤≥<=0-9 mst]{0,6}\"\n|weight = [0-9.]{0,4}\n|\\PC{0,6}){0,12}") {
            if let Ok(programs) = parse(&text) {
                prop_assert!((MIN_PROGRAMS..=MAX_PROGRAMS).contains(&programs.len()));
                prop_assert!(programs.iter().any(|program| program.weight > 0.0));
                prop_assert!(programs.iter().all(|p| p.limit.is_none_or(|limit| limit > 0.0)));
            }
        }
    }
}
