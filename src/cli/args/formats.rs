//! Which formats each command prints. Its help lists only these, and others are refused.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgMatches, Command, ValueEnum};

use super::Format;

/// The formats of the command with these words, such as `record show`.
fn formats_of(words: &[&str]) -> &'static [Format] {
    match words {
        ["topology"] => &[Format::Text, Format::Json, Format::Xml],
        ["bench", "jitter"] => &[Format::Text, Format::Json, Format::Csv],
        ["record", "show"] => Format::value_variants(),
        _ => &[Format::Text, Format::Json],
    }
}

/// For help: makes each command list only the formats that it prints.
pub(super) fn list_own_formats(command: Command) -> Command {
    let format = command.get_arguments().find(|arg| arg.get_id() == "format");
    match format.cloned() {
        Some(format) => command.mut_subcommands(|sub| list_formats_of_command(sub, &format, &[])),
        None => command,
    }
}

fn list_formats_of_command(command: Command, format: &Arg, parents: &[&str]) -> Command {
    let name = command.get_name().to_owned();
    let words: Vec<&str> = parents.iter().copied().chain([name.as_str()]).collect();
    let supported = formats_of(&words).iter();
    let parser = PossibleValuesParser::new(supported.filter_map(Format::to_possible_value))
        .try_map(|name| Format::from_str(&name, false));
    command
        .arg(format.clone().value_parser(parser))
        .mut_subcommands(|sub| list_formats_of_command(sub, format, &words))
}

/// The error if the called command does not print the requested format.
pub(in crate::cli) fn refuse_format(matches: &ArgMatches) -> Option<String> {
    let format = *matches.get_one::<Format>("format")?;
    let mut words = Vec::new();
    let mut inner = matches;
    while let Some((name, deeper)) = inner.subcommand() {
        words.push(name);
        inner = deeper;
    }
    let supported = formats_of(&words);
    if supported.contains(&format) {
        return None;
    }
    let name = |format: &Format| {
        let value = format.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    };
    let (format, supported): (_, Vec<String>) =
        (name(&format), supported.iter().map(name).collect());
    Some(format!(
        "--format {format}: pinwise {} prints {}; a stored record: pinwise record show ID --format {format}",
        words.join(" "),
        supported.join(" or "),
    ))
}
