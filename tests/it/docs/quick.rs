//! Changes examples so that they run quickly, and on any machine.

/// An example that runs quickly, without its comment.
pub(super) fn shorten(line: &str) -> String {
    let line = line.split("  #").next().unwrap().trim();
    let line = line.split("   #").next().unwrap().trim();
    let line = line.split(" > ").next().unwrap().trim();
    // Only the command that git would run.
    let line = line.trim_start_matches("git bisect run ");
    // The builds do not exist: the simulated machine takes their names.
    if line.starts_with("pinwise gate ") && !line.contains("--machine") {
        let line = line.replace(" --bisect", "");
        return format!("{line} --machine sim:builds.toml --undecided pass --max-pairs 7");
    }
    if line.contains("--measure") && !line.contains("--machine") {
        let line = line.replace("--watch 3m", "--watch 500ms");
        return format!("{line} --wiring-only --budget 200ms");
    }
    if line.contains(" bench jitter") {
        // This machine may have fewer CPUs.
        let line = line.replace(" --cpus 2-3", " --cpus 0");
        return line.replace(" --for 1m", "") + " --for 100ms";
    }
    let is_bench = line.starts_with("pinwise bench ") && !line.contains("bench recipes");
    if is_bench && !line.contains("bench kernel") && !line.contains("--machine") {
        // One kernel of each suite. Examples on simulated machines run whole suites.
        let line = line
            .replace("--suite memory", "triad")
            .replace("--suite smt", "whetstone");
        return format!("{line} --max-runs 1 --warmup 0 --work 1");
    }
    match line.split(' ').nth(1).unwrap_or_default() {
        "trace" | "top" => return shorten_trace(line),
        "spin" | "profile" => return shorten_spin(line),
        // Without --dry-run rules would run until they are ended, with a journal in /run.
        "apply" if line.contains(" rules run ") => {
            let line = line.replace(" --dry-run", "").replace(" --once", "");
            return format!("{line} --dry-run --once");
        }
        // Without --dry-run it could undo changes of other tests.
        "apply" if line.contains(" restore") && !line.contains("--dry-run") => {
            return format!("{line} --dry-run");
        }
        _ => {}
    }
    // The file and the CPUs of these examples may not exist here.
    let line = &line
        .replace("./my.toml", "compile")
        .replace(
            "--recipe compile",
            "--recipe compile --parameter functions=30",
        )
        .replace("--bind 0,1", "");
    let line = &line
        .replace("--size 1GiB", "--size 16MiB")
        .replace("--seconds 2s", "--seconds 100ms");
    // Each field report has its own tests.
    let line = &line.replace("reproduce --all", "reproduce hyperthread-fill");
    if line.starts_with("pinwise reproduce ") && !line.contains("--simulated") {
        return format!("{} --budget 1s", line.replace(" --budget 2m", ""));
    }
    // This machine may have fewer CPUs.
    let line = &line
        .replace("search --threads 16 --budget 2m", "search --threads 1 -r 4")
        .replace(
            "--joint plan.toml",
            "--joint plan.toml -r 24 --confirm 6 --store none",
        )
        .replace("search --threads 2 ", "search --threads 1 ")
        .replace("--threads 16", "--threads 1");
    // The last record is of the simulated machine.
    let line = &line.replace("apply last", "apply last --machine sim:machine.toml");
    // A record cannot be compared with itself.
    let line = &line.replace("diff last last", "diff before.json after.json");
    match line.strip_prefix("pinwise compare ") {
        Some(rest) if !line.contains("--machine") => {
            // After one run the comparison is undecided.
            let rest = rest.replace("--fail-if-slower", "--undecided pass --fail-if-slower");
            format!("pinwise compare --max-runs 1 --warmup 0 {rest}")
        }
        _ => line.to_owned(),
    }
}

/// Shortens a trace, and `top` to one frame.
fn shorten_trace(line: &str) -> String {
    let line = line
        .replace("--for 10s", "--for 100ms")
        .replace("--for 5s", "--for 100ms");
    // Without the right to read tracepoints, --interrupts is refused.
    let format = "/sys/kernel/tracing/events/irq/softirq_entry/format";
    let line = match std::fs::read(format) {
        Ok(_) => line,
        Err(_) => line.replace(" --interrupts", ""),
    };
    if line == "pinwise trace tiers" {
        return format!("{line} --for 100ms");
    }
    // The recording has no process with this id.
    if line.contains(" import ") {
        return line.replace("--pid 4711 ", "");
    }
    if line.starts_with("pinwise top") && !line.contains("--once") {
        return format!("{line} --once");
    }
    line
}

/// Shortens `spin` and `profile`.
fn shorten_spin(line: &str) -> String {
    let line = line
        .replace("--for 10s", "--for 100ms")
        .replace("--for 5s", "--for 100ms")
        .replace("req higher", "req/s higher");
    let words: Vec<&str> = line.split(' ').collect();
    match words[2] {
        "pause" if !line.contains("--for") => format!("{line} --for 200ms"),
        "replay" if line.contains("contend") => format!("{line} --items 3"),
        "replay" => {
            let line = line.replace("1..9ms", "8..9ms").replace(" --items 10", "");
            let is_short = line.contains("--delays");
            let delays = if is_short { "" } else { " --delays 8..9ms" };
            format!("{line}{delays} --items 2")
        }
        // The examples' binaries do not exist here.
        "scan" => {
            let (options, _) = line.rsplit_once(' ').unwrap();
            format!("{options} /bin/sh")
        }
        "diff" => line
            .replace("before.json", "old.json")
            .replace("after.json", "new.json"),
        _ => line,
    }
}
