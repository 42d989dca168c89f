//! Rules and their changes as text, and a systemd unit that runs rules.

use std::fmt::Write;

use super::Palette;
use super::style::{paragraph, visible};
use pinwise_format::{count, count_of};
use pinwise_record::{RuleChange, RuleChangeKind, RuleRecord, RulesRecord};

/// The most processes that are listed for a rule.
const MAX_PROCESSES: usize = 12;

/// The rules with their CPUs and the processes that they affect.
#[must_use]
pub fn render_rules(record: &RulesRecord, palette: Palette) -> String {
    let mut text = String::new();
    for rule in &record.rules {
        let name = palette.strong(&visible(&rule.name));
        let _ = writeln!(text, "{name} (line {})", rule.line);
        for pattern in &rule.patterns {
            text += &paragraph("  if    ", "        ", &visible(pattern));
            text.push('\n');
        }
        let _ = writeln!(text, "  then  {}", list_actions(rule));
        text += &paragraph("  now   ", "        ", &list_processes(rule));
        text.push_str("\n\n");
    }
    let processes: usize = record.rules.iter().map(|rule| rule.processes.len()).sum();
    let (rules, processes) = (
        count(record.rules.len(), "rule"),
        count_of(processes as u64, "process", "processes"),
    );
    let _ = writeln!(text, "{rules}; {processes} would be affected now.");
    text
}

fn list_actions(rule: &RuleRecord) -> String {
    let place = rule.place.as_ref().map(|place| match &rule.cpus {
        Some(cpus) => format!("{} (CPUs {cpus})", visible(place)),
        None => format!("{} (not moved)", visible(place)),
    });
    let nice = rule.nice.map(|nice| format!("nice {nice}"));
    let all: Vec<String> = place.into_iter().chain(nice).collect();
    all.join(", ")
}

fn list_processes(rule: &RuleRecord) -> String {
    if rule.processes.is_empty() {
        return "no process".to_owned();
    }
    let named = rule.processes.iter().take(MAX_PROCESSES).map(|process| {
        let cpus = process.cpus.as_deref().unwrap_or("?");
        format!(
            "{} ({}, on {cpus})",
            visible(&process.name),
            process.process
        )
    });
    let named: Vec<String> = named.collect();
    let more = rule.processes.len().saturating_sub(MAX_PROCESSES);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}

/// A change in one line.
#[must_use]
pub fn render_rule_change(change: &RuleChange, palette: Palette) -> String {
    let word = match (change.change, change.dry_run) {
        (RuleChangeKind::Placed, false) => palette.good("placed"),
        (RuleChangeKind::Placed, true) => palette.good("would place"),
        (RuleChangeKind::Released, _) => palette.faint("released"),
        (RuleChangeKind::Refused, _) => palette.warn("left"),
    };
    let name = change.name.as_deref().map_or("?".to_owned(), visible);
    let mut line = format!("{word} {name} ({})", change.process);
    if let Some(rule) = &change.rule {
        let _ = write!(line, " by '{}'", visible(rule));
    }
    match (&change.from, &change.to) {
        (Some(from), Some(to)) => {
            let _ = write!(line, ": CPUs {from} → {to}");
        }
        (Some(from), None) => {
            let _ = write!(line, ": CPUs {from}");
        }
        _ => {}
    }
    if let Some(nice) = change.nice {
        let _ = write!(line, ", nice {nice}");
    }
    if change.threads > 0 {
        let _ = write!(line, ", {}", count(change.threads, "thread"));
    }
    if change.threads_left > 0 {
        let _ = write!(line, ", {} left to others", change.threads_left);
    }
    if let Some(why) = &change.why {
        let _ = write!(line, ": {}", visible(why));
    }
    line
}

/// A systemd unit that runs rules; `program` and `file` are absolute paths.
///
/// The sandbox permits what rules need: setting CPUs and priorities of other users' processes
/// (`CAP_SYS_NICE`), the kernel's reports of new processes (`CAP_NET_ADMIN`, in the host's network
/// namespace: the connector works in no other), the paths of executables (`CAP_SYS_PTRACE`), and
/// `/run/pinwise-rules`, which survives a restart of the unit. systemd removes that folder when the
/// unit stops, so it must not be the one with root's other journals.
#[must_use]
pub fn render_systemd_unit(program: &str, file: &str) -> String {
    let (command, file_shown) = (quote_for_unit(program), quote_for_unit(file));
    format!(
        "\
[Unit]
Description=pinwise: processes kept where rules say
Documentation=man:pinwise-rules-run(1)

[Service]
Type=exec
ExecStartPre={command} apply rules check {file_shown}
ExecStart={command} apply rules run {file_shown}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5s
RuntimeDirectory=pinwise-rules
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=restart

CapabilityBoundingSet=CAP_SYS_NICE CAP_NET_ADMIN CAP_SYS_PTRACE
AmbientCapabilities=
NoNewPrivileges=yes
RestrictAddressFamilies=AF_NETLINK AF_UNIX
SystemCallArchitectures=native
SystemCallFilter=@system-service
ProtectSystem=strict
ProtectHome=read-only
ProtectControlGroups=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectClock=yes
ProtectHostname=yes
PrivateDevices=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
UMask=0077

[Install]
WantedBy=multi-user.target
"
    )
}

/// Quotes a word for a unit's command line if necessary, with `%` and `$` doubled
/// (`systemd.service(5)`, "Command lines").
fn quote_for_unit(word: &str) -> String {
    let mut escaped = String::new();
    for c in word.chars() {
        match c {
            '%' => escaped.push_str("%%"),
            '$' => escaped.push_str("$$"),
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            c if c.is_control() => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(escaped, "\\x{byte:02x}");
                }
            }
            c => escaped.push(c),
        }
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    if escaped.chars().all(is_plain) {
        escaped
    } else {
        format!("\"{escaped}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_units_are_quoted() {
        for (word, written) in [
            ("/usr/bin/pinwise", "/usr/bin/pinwise"),
            ("/a b/c", "\"/a b/c\""),
            ("/a%n$x", "\"/a%%n$$x\""),
            ("/a\"b\\c", "\"/a\\\"b\\\\c\""),
            ("/a\nb", "\"/a\\x0ab\""),
            ("/a;b", "\"/a;b\""),
        ] {
            assert_eq!(quote_for_unit(word), written);
        }
    }

    #[test]
    fn a_change_is_one_line_whatever_the_name_of_the_process() {
        let change = RuleChange {
            time: String::new(),
            change: RuleChangeKind::Placed,
            dry_run: true,
            rule: Some("r\u{1b}[2J".to_owned()),
            process: 7,
            name: Some("a\nb\u{7}".to_owned()),
            threads: 2,
            threads_left: 1,
            from: Some("0-3".to_owned()),
            to: Some("1".to_owned()),
            nice: Some(5),
            why: None,
        };
        assert_eq!(
            render_rule_change(&change, Palette::default()),
            "would place a\\nb\\u{7} (7) by 'r\\u{1b}[2J': CPUs 0-3 → 1, nice 5, 2 threads, 1 left to others"
        );
    }
}
