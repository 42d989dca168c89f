//! A command line, and on the lines below it parameters such as
//! `threads=1..8`: quoting round-trips, and sweeps multiply as they say.

use pinwise_workload::{Command, Sweep};

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let mut lines = text.split('\n');
    let line = lines.next().unwrap_or_default();
    let sweeps: Vec<Sweep> = lines.filter_map(|text| text.parse().ok()).collect();
    check_line(line);
    let Ok(choices) = Sweep::combinations(&sweeps) else { return };
    let product: usize = sweeps.iter().map(|sweep| sweep.values.len()).product();
    assert_eq!(choices.len(), product);
    assert_eq!(Sweep::label(&choices[0]).is_empty(), sweeps.is_empty());
    let Ok(filled) = Sweep::fill(line, &choices[0]) else { return };
    if sweeps.is_empty() {
        assert_eq!(filled, line);
    }
    check_line(&filled);
}

fn check_line(line: &str) {
    let Ok(command) = Command::from_line(line) else { return };
    assert_eq!(
        Command::from_line(&command.to_string()).as_ref(),
        Ok(&command)
    );
    assert_eq!(
        Command::from_argv(command.argv().to_vec()).as_ref(),
        Ok(&command)
    );
    assert!(!command.program().is_empty());
    let _ = (command.program_name(), command.find_shell_syntax(Some(line)));
}
