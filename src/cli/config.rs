//! The user's own defaults, from `pinwise/config.toml` in the folder of
//! configurations.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context;
use clap::builder::ArgPredicate;
use serde::Deserialize;
use toml::Spanned;

use super::input::read_text;
use super::surroundings::find_named_folder;
use super::values::{parse_duration, parse_margin};
use pinwise_placement::Placement;
use pinwise_store::Location;

/// The contents of the file; all keys are optional.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Config {
    /// `--store`
    store: Option<Spanned<String>>,
    /// `--color`
    color: Option<Spanned<String>>,
    /// `--budget` of `compare` and `search`
    budget: Option<Spanned<String>>,
    /// `--min-effect` of `compare` and `bench`
    #[serde(alias = "min_effect")]
    min_effect: Option<Spanned<String>>,
    /// What `compare` tries for one command if no `--place` is given
    #[serde(default)]
    places: Vec<Spanned<String>>,
}

impl Config {
    /// Reads the file; a missing one counts as empty.
    ///
    /// # Errors
    /// `FILE:LINE: reason` if it cannot be read or a value is invalid.
    pub(super) fn load() -> anyhow::Result<Self> {
        let Some((path, is_explicit)) = find_config_path() else {
            return Ok(Self::default());
        };
        let text = match read_text(&path, MAX_FILE_BYTES) {
            Ok(text) => text,
            Err(error) if !is_explicit && is_out_of_reach(&error) => return Ok(Self::default()),
            Err(error) => return Err(error).context(path.display().to_string()),
        };
        Self::parse(&text)
            .map_err(|(line, reason)| anyhow::anyhow!("{}:{line}: {reason}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        let locate_error = |error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start);
            (line(at), error.message().to_owned())
        };
        let values: BTreeMap<String, Spanned<toml::Value>> =
            toml::from_str(text).map_err(locate_error)?;
        for (key, value) in &values {
            if let Some(example) = find_example(key, value.get_ref()) {
                let got = value.get_ref().type_str();
                let reason = format!("{key}: expected {example}, got {got}");
                return Err((line(value.span().start), reason));
            }
        }
        let config: Self = toml::from_str(text).map_err(locate_error)?;
        let checks = [
            ("store", &config.store, check_store as Check),
            ("color", &config.color, check_color),
            ("budget", &config.budget, |text| {
                parse_duration(text).map(drop)
            }),
            ("min-effect", &config.min_effect, |text| {
                parse_margin(text).map(drop)
            }),
        ];
        let places = config.places.iter();
        let places = places.map(|place| ("places", place, check_place as Check));
        let values = checks.into_iter();
        let values = values.filter_map(|(key, value, check)| Some((key, value.as_ref()?, check)));
        for (key, value, check) in values.chain(places) {
            let text = value.get_ref();
            let refused = |why| (line(value.span().start), format!("{key}: '{text}': {why}"));
            check(text).map_err(refused)?;
        }
        Ok(config)
    }

    /// Sets these defaults in the command line.
    pub(super) fn apply(&self, mut command: clap::Command) -> clap::Command {
        let default = |value: &Option<Spanned<String>>| {
            let value = value.as_ref()?.get_ref();
            Some(value.clone())
        };
        for (name, value) in [("store", &self.store), ("color", &self.color)] {
            if let Some(value) = default(value) {
                command = command.mut_arg(name, |arg| arg.default_value(value));
            }
        }
        if let Some(budget) = default(&self.budget) {
            for name in ["compare", "search"] {
                // A number of runs is a limit of its own.
                let unless = ("max_runs", ArgPredicate::IsPresent, None::<&'static str>);
                command = command.mut_subcommand(name, |command| {
                    command.mut_arg("budget", |arg| {
                        arg.default_value_ifs([unless])
                            .default_value(budget.clone())
                    })
                });
            }
        }
        if let Some(effect) = default(&self.min_effect) {
            for name in ["compare", "bench"] {
                command = command.mut_subcommand(name, |command| {
                    command.mut_arg("min_effect", |arg| arg.default_value(effect.clone()))
                });
            }
        }
        command
    }

    /// Does it change options of single commands?
    pub(super) const fn changes_commands(&self) -> bool {
        self.budget.is_some() || self.min_effect.is_some()
    }

    /// The default placements.
    pub(super) fn places(&self) -> Vec<String> {
        self.places
            .iter()
            .map(|place| place.get_ref().clone())
            .collect()
    }
}

/// Bytes of the largest file.
const MAX_FILE_BYTES: u64 = 1 << 16;

/// Is there no file that this user can read? HOME can be another's, as with sudo.
fn is_out_of_reach(error: &anyhow::Error) -> bool {
    let kind = error
        .downcast_ref::<std::io::Error>()
        .map(std::io::Error::kind);
    matches!(
        kind,
        Some(ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
    )
}

/// An example of the expected value if this one has the wrong type.
fn find_example(key: &str, value: &toml::Value) -> Option<&'static str> {
    let (is_fine, example) = match key {
        "store" => (value.is_str(), "text in quotes, such as \"none\""),
        "color" => (value.is_str(), "text in quotes, such as \"never\""),
        "budget" => (value.is_str(), "text in quotes, such as \"30s\""),
        "min-effect" | "min_effect" => (value.is_str(), "text in quotes, such as \"2%\""),
        "places" => (
            value
                .as_array()
                .is_some_and(|all| all.iter().all(toml::Value::is_str)),
            "a list of texts, such as [\"os-default\", \"one-core\"]",
        ),
        _ => return None,
    };
    (!is_fine).then_some(example)
}

/// Returns what is wrong with a value.
type Check = fn(&str) -> Result<(), String>;

fn check_store(text: &str) -> Result<(), String> {
    Location::parse(text)
        .map(drop)
        .map_err(|error| error.to_string())
}

fn check_color(text: &str) -> Result<(), String> {
    match text {
        "auto" | "always" | "never" => Ok(()),
        _ => Err("write auto, always or never".to_owned()),
    }
}

fn check_place(text: &str) -> Result<(), String> {
    let place: Result<Placement, _> = text.parse();
    place.map(drop).map_err(|error| error.to_string())
}

/// The file, and whether `PINWISE_CONFIG` names it (empty: no file); else that in the user's
/// folder.
#[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
fn find_config_path() -> Option<(PathBuf, bool)> {
    if let Some(path) = std::env::var_os("PINWISE_CONFIG") {
        return Some((PathBuf::from(path), true)).filter(|(path, _)| !path.as_os_str().is_empty());
    }
    let folder = find_named_folder("XDG_CONFIG_HOME")
        .or_else(|| find_named_folder("HOME").map(|home| home.join(".config")))?;
    Some((folder.join("pinwise/config.toml"), false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args;

    fn parse_error(text: &str) -> String {
        let (line, reason) = Config::parse(text).unwrap_err();
        format!("{line}: {reason}")
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        assert_eq!(
            parse_error("# mine\nbudget = \"5\"\n"),
            "2: budget: '5': write a time with its unit, such as 500ms, 30s or 2m"
        );
        assert!(
            parse_error("store = \"sqlite:x\"\nbudgets = \"5s\"\n")
                .starts_with("2: unknown field `budgets`")
        );
        assert_eq!(
            parse_error("color = \"pink\""),
            "1: color: 'pink': write auto, always or never"
        );
        assert!(
            parse_error("places = [\"os-default\",\n  \"everywhere\"]")
                .starts_with("2: places: 'everywhere'")
        );
        assert_eq!(
            parse_error("min-effect = 2"),
            "1: min-effect: expected text in quotes, such as \"2%\", got integer"
        );
        let list = "a list of texts, such as [\"os-default\", \"one-core\"]";
        for (value, got) in [("\"spread\"", "string"), ("[1]", "array")] {
            assert_eq!(
                parse_error(&format!("\nplaces = {value}")),
                format!("2: places: expected {list}, got {got}")
            );
        }
    }

    #[test]
    fn options_override_defaults() {
        let text =
            "budget = \"2m\"\nmin_effect = \"3%\"\nstore = \"sqlite:mine.db\"\ncolor = \"never\"";
        let config = Config::parse(text).unwrap();
        let budget = |line: &str| {
            let command = config.apply(args::build_command(args::HelpExtent::Brief));
            let matches = command.try_get_matches_from(line.split(' ')).unwrap();
            let (_, compare) = matches.subcommand().unwrap();
            let budget: Option<&std::time::Duration> = compare.get_one("budget");
            let effect: Option<&f64> = compare.get_one("min_effect");
            (budget.map(std::time::Duration::as_secs), effect.copied())
        };
        assert_eq!(budget("pinwise compare prog"), (Some(120), Some(0.03)));
        assert_eq!(
            budget("pinwise compare --budget 5s prog"),
            (Some(5), Some(0.03))
        );
        assert_eq!(
            budget("pinwise compare --max-runs 9 --min-effect 1% prog"),
            (None, Some(0.01))
        );
    }
}
