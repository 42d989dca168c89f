//! `/proc/PID/stat`: the kernel's line about a process, or about a thread by its id.

use std::path::Path;
use std::str::FromStr;

use super::capture::read_file;

/// A flag of Linux's `sched.h`: a kernel thread.
pub(super) const PF_KTHREAD: u64 = 0x0020_0000;
/// A flag of Linux's `sched.h`: the thread's CPUs are fixed.
pub(super) const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

/// The fields of the line, numbered as in `proc_pid_stat(5)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessStat<'a> {
    /// Field 2 as the kernel writes it: up to 15 bytes chosen by the program.
    pub(super) name: &'a str,
    /// Fields from the third on.
    rest: &'a str,
}

impl<'a> ProcessStat<'a> {
    /// Parses a line. The name is in parentheses and may itself contain any character, including
    /// parentheses.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let (_, rest) = line.split_once('(')?;
        let (name, rest) = rest.rsplit_once(')')?;
        Some(Self { name, rest })
    }

    /// The field with this number; `None` if missing or malformed.
    fn field<T: FromStr>(&self, number: usize) -> Option<T> {
        let mut fields = self.rest.split_ascii_whitespace();
        fields.nth(number.checked_sub(3)?)?.parse().ok()
    }

    /// Its state: `R` for running or ready, `Z` and `X` for ended.
    pub(super) fn state(&self) -> Option<char> {
        self.field(3)
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state(), Some('Z' | 'X'))
    }

    pub(super) fn parent(&self) -> Option<i32> {
        self.field(4)
    }

    /// Is a flag set?
    pub(super) fn has_flag(&self, flag: u64) -> Option<bool> {
        self.field(9).map(|flags: u64| flags & flag != 0)
    }

    /// CPU time in user mode and in kernel mode, ticks.
    pub(super) fn ticks(&self) -> Option<(u64, u64)> {
        Some((self.field(14)?, self.field(15)?))
    }

    /// Its start time, ticks since boot.
    pub(super) fn start(&self) -> Option<u64> {
        self.field(22)
    }

    /// Its niceness, −20 to 19.
    pub(super) fn nice(&self) -> Option<i32> {
        self.field(19)
    }

    /// The CPU on which it last ran.
    pub(super) fn cpu(&self) -> Option<u32> {
        self.field(39)
    }

    /// Its scheduling policy, as in `sched_setscheduler`.
    pub(super) fn policy(&self) -> Option<i32> {
        self.field(41)
    }
}

/// Reads the line of a process or thread; `None` if it does not exist.
pub(super) fn read_line(id: i32) -> Option<String> {
    if id <= 0 {
        return None;
    }
    let line = read_file(Path::new(&format!("/proc/{id}/stat")))?;
    Some(String::from_utf8_lossy(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIELDS: &str = "S 7 5 5 0 -1 4194560 1 2 3 4 50 60 0 0 20 0 1 0 4711 9 9 9 9 9 9 9 9 9 9 9 9 0 0 0 17 3 0 0";

    #[test]
    fn hostile_names_do_not_shift_the_fields() {
        for name in [
            "redis",
            ") S 1 (",
            "a b",
            "",
            "((",
            "a) R 1 (b",
            "\u{1b}[2J",
        ] {
            let line = format!("12 ({name}) {FIELDS}\n");
            let stat = ProcessStat::parse(&line).unwrap();
            assert_eq!((stat.name, stat.parent()), (name, Some(7)));
            assert_eq!((stat.state(), stat.has_ended()), (Some('S'), false));
            assert_eq!((stat.ticks(), stat.start()), (Some((50, 60)), Some(4711)));
            assert_eq!(
                (stat.cpu(), stat.has_flag(PF_KTHREAD)),
                (Some(3), Some(false))
            );
            assert_eq!(stat.policy(), Some(0));
        }
        let kernel = format!("2 (kthreadd) {}", FIELDS.replace("4194560", "2129984"));
        assert_eq!(
            ProcessStat::parse(&kernel).unwrap().has_flag(PF_KTHREAD),
            Some(true)
        );
        let ended = format!("2 (x) {}", FIELDS.replace('S', "Z"));
        assert!(ProcessStat::parse(&ended).unwrap().has_ended());
    }

    #[test]
    fn missing_fields_are_unknown() {
        for line in ["", ")(", "12 x S 7"] {
            assert_eq!(ProcessStat::parse(line), None, "{line}");
        }
        let short = ProcessStat::parse("12 (x) S x").unwrap();
        assert_eq!((short.parent(), short.start()), (None, None));
        assert_eq!((read_line(0), read_line(-1)), (None, None));
        assert!(read_line(1).is_some());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,40}", tail in "[()S0-9 -]{0,80}") {
            for line in [text, format!("1 (x{tail}")] {
                if let Some(stat) = ProcessStat::parse(&line) {
                    let _ = (stat.state(), stat.ticks(), stat.cpu(), stat.has_flag(PF_KTHREAD));
                }
            }
        }
    }
}
