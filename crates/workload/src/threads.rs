//! Tells a program how many threads to start, in its arguments or in the environment that common
//! runtimes read.

use super::{Command, Workload};

/// Placeholder for the number of threads in a command's arguments.
const PLACEHOLDER: &str = "{threads}";

/// Variables whose value is the number of threads: OpenMP, Go, Rayon, Tokio,
/// `OpenBLAS`, MKL.
const VARIABLES: [&str; 6] = [
    "OMP_NUM_THREADS",
    "GOMAXPROCS",
    "RAYON_NUM_THREADS",
    "TOKIO_WORKER_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
];

/// Variables that tell common runtimes how many threads to start.
#[must_use]
pub fn thread_variables(threads: usize) -> Vec<(String, String)> {
    let names = VARIABLES.iter();
    let mut variables: Vec<(String, String)> = names
        .map(|name| ((*name).to_owned(), threads.to_string()))
        .collect();
    variables.push((
        "JAVA_TOOL_OPTIONS".to_owned(),
        format!("-XX:ActiveProcessorCount={threads}"),
    ));
    variables
}

/// Those of [`thread_variables`] that are not set already. A program whose first
/// thread is bound counts one CPU, and must learn how many it has.
#[must_use]
pub fn missing_thread_variables(
    threads: usize,
    is_set: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let mut variables = thread_variables(threads);
    variables.retain(|(name, _)| !is_set(name));
    variables
}

impl Command {
    /// A copy with the number in place of `{threads}`.
    #[must_use]
    pub fn with_threads(&self, threads: usize) -> Self {
        let arguments = self.argv().iter();
        let argv = arguments.map(|argument| insert_thread_count(argument, threads));
        Self {
            argv: argv.collect(),
        }
    }
}

fn insert_thread_count(text: &str, threads: usize) -> String {
    text.replace(PLACEHOLDER, &threads.to_string())
}

impl Workload {
    /// Does `{threads}` occur in the command, its helpers, its input or its environment?
    #[must_use]
    pub fn has_thread_placeholder(&self) -> bool {
        // A text that contains the placeholder differs for two numbers.
        self.with_threads(1, false) != self.with_threads(2, false)
    }

    /// With this many threads in place of `{threads}` and, if `sets_environment`, in the
    /// environment. Variables set by the user are kept.
    #[must_use]
    pub fn with_threads(&self, threads: usize, sets_environment: bool) -> Self {
        let variables = self.environment.iter();
        let mut environment: Vec<(String, String)> = variables
            .map(|(name, value)| (name.clone(), insert_thread_count(value, threads)))
            .collect();
        if sets_environment {
            let variables = thread_variables(threads).into_iter();
            let is_new = |name: &String| !self.environment.iter().any(|(other, _)| other == name);
            environment.extend(variables.filter(|(name, _)| is_new(name)));
        }
        let fill_helper =
            |command: &Option<Command>| command.as_ref().map(|c| c.with_threads(threads));
        let input = self.input.as_ref().map(|path| match path.to_str() {
            Some(text) => insert_thread_count(text, threads).into(),
            None => path.clone(),
        });
        Self {
            command: self.command.with_threads(threads),
            prepare: fill_helper(&self.prepare),
            conclude: fill_helper(&self.conclude),
            environment,
            input,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_are_set_are_not_missing() {
        let missing = missing_thread_variables(4, |name| name == "GOMAXPROCS");
        assert_eq!(missing.len(), thread_variables(4).len() - 1);
        assert!(missing.iter().all(|(name, _)| name != "GOMAXPROCS"));
        assert!(missing.contains(&("OMP_NUM_THREADS".to_owned(), "4".to_owned())));
        assert!(missing_thread_variables(4, |_| true).is_empty());
    }

    #[test]
    fn threads_replace_the_placeholder_and_set_the_environment() {
        let command = Command::from_line("prog -t{threads} --also {threads}").unwrap();
        let line = |text: &str| Command::from_line(text).ok();
        let workload = Workload {
            environment: vec![("GOMAXPROCS".to_owned(), "3".to_owned())],
            prepare: line("rm -rf out-{threads}"),
            conclude: line("mv out-{threads} kept"),
            input: Some("in-{threads}".into()),
            ..Workload::new(command)
        };
        let eight = workload.with_threads(8, true);
        assert_eq!(eight.prepare, line("rm -rf out-8"));
        assert_eq!(eight.conclude, line("mv out-8 kept"));
        assert_eq!(eight.input.as_deref(), Some("in-8".as_ref()));
        assert!(workload.has_thread_placeholder() && !eight.has_thread_placeholder());
        assert_eq!(eight.command.argv(), ["prog", "-t8", "--also", "8"]);
        let value = |name: &str| {
            let mut found = eight.environment.iter().filter(|(n, _)| n == name);
            let value = found.next().map(|(_, value)| value.as_str());
            assert_eq!(found.next(), None, "{name} is set twice");
            value
        };
        assert_eq!(value("OMP_NUM_THREADS"), Some("8"));
        assert_eq!(value("GOMAXPROCS"), Some("3"));
        assert_eq!(
            value("JAVA_TOOL_OPTIONS"),
            Some("-XX:ActiveProcessorCount=8")
        );
        let bare = workload.with_threads(8, false);
        assert_eq!(bare.environment, workload.environment);
    }
}
