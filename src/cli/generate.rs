//! Documents made from the command line's own definition, so that they cannot
//! disagree with it.

use std::fmt::Write;

use clap_complete::Shell;
use clap_complete_nushell::Nushell;

use super::Exit;
use super::args::{self, CompletionsArgs, GenerateArgs, Generated, HelpExtent};
use super::files::write_file;
use super::terminal::Terminal;

pub(super) fn completions(args: &CompletionsArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut args::command(HelpExtent::Full),
        "pinwise",
        &mut text,
    );
    terminal.print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}

pub(super) fn generate(args: &GenerateArgs) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(&args.folder)?;
    let command = || args::command(HelpExtent::Full);
    match args.what {
        Generated::Man => clap_mangen::generate_to(command(), &args.folder)?,
        Generated::Completions => {
            for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
                clap_complete::generate_to(shell, &mut command(), "pinwise", &args.folder)?;
            }
            clap_complete::generate_to(Nushell, &mut command(), "pinwise", &args.folder)?;
        }
        Generated::Reference => {
            write_file(&args.folder.join("cli.md"), &reference())?;
        }
    }
    Ok(Exit::Done)
}

fn reference() -> String {
    let mut command = args::command(HelpExtent::Full).term_width(80);
    command.build();
    let mut text = String::from(
        "# Command line\n\nMade by `cargo xtask gen` from the definition of the command line.\n",
    );
    let mut section = |name: &str, help: &str| {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    };
    section("pinwise", &command.render_help().to_string());
    for sub in command.get_subcommands_mut().filter(|s| !s.is_hide_set()) {
        let name = format!("pinwise {}", sub.get_name());
        section(&name, &sub.render_help().to_string());
        for inner in sub.get_subcommands_mut().filter(|s| !s.is_hide_set()) {
            let name = format!("{name} {}", inner.get_name());
            section(&name, &inner.render_help().to_string());
        }
    }
    text
}
