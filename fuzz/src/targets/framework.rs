//! Output of benchmark frameworks: runnable names, times, or a one-line error.

use pinwise_workload::Framework;

/// Maximum number of benchmarks of a list that are tried.
const TRIED: usize = 8;

/// Reads any bytes; the first chooses the framework.
pub(crate) fn run(input: &[u8]) {
    let Some((first, text)) = input.split_first() else { return };
    let framework = Framework::ALL[usize::from(*first) % Framework::ALL.len()];
    let text = String::from_utf8_lossy(text);
    let names = match framework.parse_list(&text) {
        Ok(names) => names,
        Err(error) => return assert!(!error.to_string().contains('\n')),
    };
    assert!(!names.is_empty());
    for name in names.iter().take(TRIED) {
        let command = framework.command(&["bench".to_owned()], name);
        assert!(command.len() > 1, "{command:?}");
        match framework.parse_seconds(name, &text) {
            Ok(seconds) => assert!(seconds > 0.0 && seconds.is_normal(), "{seconds}"),
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
}
