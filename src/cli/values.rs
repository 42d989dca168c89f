//! Parses values of the command line: the machine, and numbers with units.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};

use pinwise_machine::linux::{find_processes, find_program};
use pinwise_placement::CpuLimit;
use pinwise_topology::{CpuSet, Topology};

/// The machine that a command works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineSpec {
    /// This host.
    Local,
    /// A simulated machine, by its description or a file that contains one.
    Simulated(String),
}

impl MachineSpec {
    /// Is it this host?
    pub(super) const fn is_local(&self) -> bool {
        matches!(self, Self::Local)
    }
}

impl FromStr for MachineSpec {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.strip_prefix("sim:")) {
            ("local", _) => Ok(Self::Local),
            (_, Some(description)) => Ok(Self::Simulated(description.to_owned())),
            _ => Err("it is neither local nor sim:… (such as 'sim:core:4 pu:2' or sim:FILE.toml)"),
        }
    }
}

impl fmt::Display for MachineSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => out.write_str("local"),
            Self::Simulated(description) => write!(out, "sim:{description}"),
        }
    }
}

/// Reads `500ms`, `1.5s`, `2m`, `1h30m`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(&shorten_fractions(text))
        .ok()
        .ok_or("write a time with its unit, such as 500ms, 30s or 2m")?;
    if duration.is_zero() {
        return Err("the time must be above 0".to_owned());
    }
    Ok(duration)
}

/// Cuts each fraction to nine digits, the most that the parser accepts: scripts print values such
/// as `0.7086614173228347s`.
fn shorten_fractions(text: &str) -> String {
    let mut digits = None;
    let is_kept = |letter: &char| {
        digits = match (letter, digits) {
            ('.', _) => Some(0),
            ('0'..='9', Some(before)) => Some(before + 1),
            _ => None,
        };
        digits <= Some(9)
    };
    text.chars().filter(is_kept).collect()
}

/// Reads a limit on CPU time: `2`, `0.5/20ms`.
pub(super) fn parse_limit(text: &str) -> Result<CpuLimit, String> {
    let (cpus, period) = match text.split_once('/') {
        Some((cpus, period)) => (cpus, parse_duration(period)?),
        None => (text, CpuLimit::DEFAULT_PERIOD),
    };
    let cpus = cpus.parse().unwrap_or(f64::NAN);
    CpuLimit::new(cpus, period).map_err(|error| error.to_string())
}

/// Parses `--cpus`, whose CPUs may be outside of this process's mask; without it, the allowed CPUs.
pub(super) fn parse_cpus(list: Option<&str>, topology: &Topology) -> anyhow::Result<CpuSet> {
    let Some(list) = list else {
        return Ok(topology.allowed.clone());
    };
    let cpus = CpuSet::parse_list(list).with_context(|| format!("--cpus '{list}'"))?;
    if cpus.is_empty() {
        bail!("--cpus '{list}': no CPU given");
    }
    let reachable = topology.reachable();
    if !cpus.is_subset(&reachable) {
        let others = cpus.difference(&reachable);
        bail!("--cpus '{list}': {others} may not be used here; allowed are {reachable}");
    }
    Ok(cpus)
}

/// Reads the shortest gap that counts.
pub(super) fn parse_threshold(text: &str) -> Result<Duration, String> {
    let threshold = parse_duration(text)?;
    if threshold < Duration::from_micros(1) {
        return Err(
            "the threshold must be at least 1us: noting a gap takes half of that".to_owned(),
        );
    }
    Ok(threshold)
}

/// Reads how old a record is: `36h`, `90d`, `12w`.
pub(super) fn parse_age(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|_| "write an age such as 36h, 90d or 12w".to_owned())
}

/// Reads a label of records.
pub(super) fn parse_tag(text: &str) -> Result<String, String> {
    pinwise_record::check_tag(text).map(|()| text.to_owned())
}

/// Reads `2%`, `0.5 %` or `0.02` as a share.
pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    let bad = || "write a share such as 2% or 0.02".to_owned();
    let text = text.trim();
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let value: f64 = number.parse().map_err(|_| bad())?;
    if !value.is_finite() || value < 0.0 {
        return Err(bad());
    }
    if scale < 2.0 && value >= 1.0 {
        return Err(format!("write {text}% for {text} per cent"));
    }
    Ok(value / scale)
}

/// From this share on, one that is written without `%` may be meant as per cent.
const MAY_BE_PERCENT: f64 = 0.1;

/// Reads a share that an effect or an interval can have: above 0, below 1.
pub(super) fn parse_margin(text: &str) -> Result<f64, String> {
    let share = parse_share(text)?;
    if share >= MAY_BE_PERCENT && !text.trim_end().ends_with('%') {
        let text = text.trim();
        return Err(format!("write {}% or {text}%", 100.0 * share));
    }
    if share > 0.0 && share < 1.0 {
        return Ok(share);
    }
    Err("it must lie between 0 and 100 %".to_owned())
}

/// Reads a shell with its options, `default` or `none`. A program must exist: if the user forgets
/// the shell, the option takes the command instead.
pub(super) fn parse_shell(text: &str) -> Result<String, String> {
    let words = shell_words::split(text).unwrap_or_default();
    let is_there = || find_program(words.get(..1).unwrap_or_default(), &[]).is_some();
    match matches!(text, "default" | "none") || is_there() {
        true => Ok(text.to_owned()),
        false => Err("no such shell; name one before the command: --shell sh 'COMMAND'".to_owned()),
    }
}

/// Reads a whole number from 1.
pub(super) fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("write a whole number, at least 1".to_owned()),
    }
}

/// Reads a whole number from 0.
pub(super) fn parse_whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| "write a whole number, not below 0".to_owned())
}

/// Reads the number of a process, or the name of the only one that has it.
pub(super) fn parse_process(text: &str) -> Result<i32, String> {
    const MAX_LISTED: usize = 8;
    let is_number = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-');
    if is_number || text.is_empty() {
        return parse_whole(text);
    }
    match find_processes(text)[..] {
        [] => Err("no process has this name; write its number or its name".to_owned()),
        [pid] => Ok(pid),
        ref pids => {
            let listed: Vec<String> = pids.iter().take(MAX_LISTED).map(i32::to_string).collect();
            let more = match pids.len().saturating_sub(MAX_LISTED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            Err(format!(
                "{} processes have this name: choose one of {}{more}",
                pids.len(),
                listed.join(", ")
            ))
        }
    }
}

/// Reads `1000000`, `64KiB`, `1GiB` or `34MB`. `K`, `Ki` and `KiB` are 1024, `KB` is 1000.
pub(super) fn parse_number_or_bytes(text: &str) -> Result<u64, String> {
    let bad = || "write a number or a size such as 64KiB, 1GiB or 34MB".to_owned();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| bad())?;
    let exponent = match unit.chars().next().map(|c| c.to_ascii_uppercase()) {
        None => return Ok(number),
        Some('K') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        Some(_) => return Err(bad()),
    };
    let base: u64 = match &unit[1..] {
        "" | "i" | "iB" => 1024,
        "B" => 1000,
        _ => return Err(bad()),
    };
    let scale = base.pow(exponent);
    number
        .checked_mul(scale)
        .ok_or_else(|| format!("{text} is too large"))
}

/// Reads `NAME=VALUE`.
pub(super) fn parse_variable(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let is_good = !name.is_empty() && !text.contains('\0');
    is_good.then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check_share(text: &str, expected: f64) {
        assert!(
            (parse_share(text).unwrap() - expected).abs() < 1e-12,
            "{text}"
        );
    }

    #[test]
    fn a_process_is_found_by_its_name_if_no_other_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("pw-{}-longer-than-15", std::process::id());
        let program = folder.path().join(&name);
        std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        let start = || {
            std::process::Command::new(&program)
                .arg("1000")
                .spawn()
                .unwrap()
        };
        let none = parse_process(&name).unwrap_err();
        assert!(none.starts_with("no process has this name"), "{none}");
        let mut first = start();
        let found = parse_process(&name);
        let mut second = start();
        let both = parse_process(&name).unwrap_err();
        for child in [&mut first, &mut second] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found, Ok(first.id().cast_signed()));
        for child in [first, second] {
            assert!(both.contains(&child.id().to_string()), "{both}");
        }
        assert_eq!(parse_process("12"), Ok(12));
    }

    #[test]
    fn a_parent_stands_for_its_children_of_the_same_name() {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("pp-{}", std::process::id());
        let program = folder.path().join(&name);
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        let script = "(read line) <&3 & echo; wait";
        let mut parent = std::process::Command::new("/bin/sh")
            .args(["-c", "exec 3<&0; exec \"$0\" -c \"$1\""])
            .args([program.to_str().unwrap(), script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0];
        std::io::Read::read_exact(&mut parent.stdout.take().unwrap(), &mut line).unwrap();
        let found = parse_process(&name);
        // The child ends at the end of its input.
        drop(parent.stdin.take());
        parent.wait().unwrap();
        assert_eq!(found, Ok(parent.id().cast_signed()));
    }

    #[test]
    fn times_may_have_the_digits_that_a_script_prints() {
        let seconds = parse_duration("0.7086614173228347s").unwrap();
        assert_eq!(seconds, Duration::from_nanos(708_661_417));
        let both = parse_duration("1h 1.00000000000000005m").unwrap();
        assert_eq!(both, Duration::from_secs(3660));
        assert!(parse_duration("0.00000000000000001s").is_err());
    }

    #[test]
    fn shares_are_percentages_or_fractions() {
        check_share("2%", 0.02);
        check_share("0.5 %", 0.005);
        check_share("0.02", 0.02);
        for bad in ["", "x", "-1%", "2", "nan", "inf%"] {
            assert!(parse_share(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_share("2").unwrap_err(), "write 2% for 2 per cent");
    }

    #[test]
    fn margins_and_whole_numbers_have_bounds() {
        assert!(parse_margin("1%").is_ok());
        assert!(parse_margin("0.02").is_ok());
        assert_eq!(parse_margin("0.5").unwrap_err(), "write 50% or 0.5%");
        for bad in ["0%", "0", "100%", "250 %"] {
            assert!(parse_margin(bad).unwrap_err().contains("between"), "{bad}");
        }
        assert_eq!(parse_whole::<usize>("20"), Ok(20));
        assert_eq!(parse_count("20"), Ok(20));
        assert!(parse_count("0").is_err());
        for bad in ["", "x", "1.5", "-1", "99999999999999999999999"] {
            assert!(parse_whole::<usize>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        let size = parse_number_or_bytes;
        assert_eq!(size("1048576"), Ok(1 << 20));
        assert_eq!(size("64KiB"), Ok(64 << 10));
        assert_eq!(size("64k"), Ok(64 << 10));
        assert_eq!(size("34MB"), Ok(34_000_000));
        for bad in [
            "",
            "x",
            "-1",
            "1X",
            "1KiBB",
            "1.5M",
            "99999999999G",
            "K",
            "1é",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_need_a_unit_and_are_above_zero() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("0.25 ms"), Ok(Duration::from_micros(250)));
        for bad in [
            "",
            "5",
            "1.5",
            "0s",
            "0.0s",
            "-1s",
            "-1.5s",
            "1e999s",
            "5 parsecs",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,20}") {
            let _ = parse_duration(&text);
            let _ = parse_share(&text);
            let _ = parse_variable(&text);
            let _ = parse_number_or_bytes(&text);
            let _ = (parse_margin(&text), parse_whole::<usize>(&text));
        }

        #[test]
        fn printed_values_are_read(millis in 1u64..10_000_000, share in 0.0f64..1.0, name in "[A-Z_]{1,8}", value in "[ -~]{0,8}") {
            let time = Duration::from_millis(millis);
            prop_assert_eq!(parse_duration(&humantime::format_duration(time).to_string()), Ok(time));
            prop_assert_eq!(parse_share(&share.to_string()), Ok(share));
            let percent = format!("{} %", 100.0 * share);
            prop_assert!((parse_share(&percent).unwrap() - share).abs() < 1e-12);
            prop_assert_eq!(parse_variable(&format!("{name}={value}")), Some((name, value)));
        }
    }
}
