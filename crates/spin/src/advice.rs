//! Suggests values for the spin settings of known runtimes, from the cost of blocking.
//!
//! The rule is competitive spinning: a waiter that spins for as long as blocking would cost, and
//! then blocks, spends at most twice what the best choice in hindsight would (Karlin, Li, Manasse
//! and Owicki, "Empirical studies of competitive spinning", SOSP 1991; bound of Karlin, Manasse,
//! `McGeoch` and Owicki, SODA 1990). Nothing here measures or sets anything.

use super::algorithm::{Case, Setting};
use super::table::{NETFX_AWARELOCK, find_algorithm};
use pinwise_format::{seconds, whole};

/// Costs of waiting on a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// One PAUSE, ns.
    pub pause_ns: f64,
    /// From a wake-up until the woken thread runs, ns.
    pub futex_wake_ns: f64,
    /// A switch from one thread to another, ns.
    pub context_switch_ns: f64,
    /// Number of CPUs that programs see.
    pub cpus: u64,
}

impl Costs {
    /// Cost of parking and waking up, ns: a switch away, and a wake-up. No waiter should spin for
    /// much longer.
    #[must_use]
    pub fn budget_ns(&self) -> f64 {
        self.context_switch_ns + self.futex_wake_ns
    }

    /// PAUSEs that fit into the budget, at least 1.
    #[must_use]
    pub fn budget_pauses(&self) -> u64 {
        whole(self.budget_ns() / self.pause_ns).max(1)
    }
}

/// A setting, how long its usual value spins, and a suggestion.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// Its runtime.
    pub runtime: &'static str,
    /// The algorithm's id in the table; `None` for a program's own.
    pub algorithm: Option<&'static str>,
    /// Versions of the runtime that accept the value; `None` if none does.
    pub versions: Option<&'static str>,
    /// The setting's name.
    pub setting: &'static str,
    /// How to set it.
    pub how: &'static str,
    /// Its usual value.
    pub usual: &'static str,
    /// How long the usual value spins on this chip, ns; `None` if it has no length.
    pub usual_ns: Option<f64>,
    /// The suggested value; `None` to leave the setting alone.
    pub suggested: Option<String>,
    /// How long the suggested value would spin, ns.
    pub suggested_ns: Option<f64>,
    /// Reasons for the suggestion, as sentences.
    pub reasoning: String,
    /// A command that shows whether it helps.
    pub verify: Option<String>,
}

/// Advice for all runtimes whose settings are known.
#[must_use]
pub fn advise(costs: &Costs) -> Vec<Advice> {
    let all = [
        advise_own_loop(costs),
        advise_count(costs, &GOMP),
        advise_count(costs, &GLIBC),
        advise_count(costs, &JEMALLOC),
        advise_innodb(costs),
        advise_mariadb(costs),
        advise_netfx(costs),
        advise_coreclr(),
        advise_thread_pool(),
        advise_blocktime(costs),
        advise_blocktime_in_ms(costs),
        advise_onnx(costs),
        advise_hotspot(costs),
    ];
    all.map(|advice| leave_alone_if_right(advice, costs.budget_ns()))
        .into()
}

/// Suggests nothing where the usual value spins about as long as parking costs.
fn leave_alone_if_right(advice: Advice, budget_ns: f64) -> Advice {
    match advice.usual_ns {
        Some(usual_ns) if is_about(usual_ns / budget_ns) => Advice {
            suggested: None,
            suggested_ns: None,
            verify: None,
            ..advice
        },
        _ => advice,
    }
}

/// Is a time about as long as another, by their ratio?
fn is_about(ratio: f64) -> bool {
    (0.67..=1.5).contains(&ratio)
}

/// A setting that counts PAUSEs, of a waiter that looks after each.
struct CountedSetting {
    id: &'static str,
    runtime: &'static str,
    versions: &'static str,
    setting: &'static str,
    how: &'static str,
    usual: &'static str,
    usual_pauses: u64,
    max: u64,
    command: &'static str,
    remark: &'static str,
}

const GOMP: CountedSetting = CountedSetting {
    id: "libgomp",
    runtime: "libgomp (GCC's OpenMP)",
    versions: "GCC 5 and later",
    setting: "GOMP_SPINCOUNT",
    how: "environment variable",
    usual: "300000",
    usual_pauses: 300_000,
    max: u64::MAX,
    command: "env GOMP_SPINCOUNT={spins}",
    remark: "Its source means 3 ms by that. A team that meets often on CPUs of its own may want more than the budget; one that shares them never does.",
};
const GLIBC: CountedSetting = CountedSetting {
    id: "glibc_adaptive",
    runtime: "glibc, adaptive mutexes",
    versions: "glibc 2.30 and later",
    setting: "glibc.pthread.mutex_spin_count",
    how: "GLIBC_TUNABLES",
    usual: "100",
    usual_pauses: 99,
    max: 32_767,
    command: "env GLIBC_TUNABLES=glibc.pthread.mutex_spin_count={spins}",
    remark: "Mutexes of the default type do not spin.",
};
const JEMALLOC: CountedSetting = CountedSetting {
    id: "jemalloc",
    runtime: "jemalloc",
    versions: "jemalloc 5.3 and later",
    setting: "mutex_max_spin",
    how: "MALLOC_CONF",
    usual: "600",
    usual_pauses: 600,
    max: 1_000_000,
    command: "env MALLOC_CONF=mutex_max_spin:{spins}",
    remark: "Its critical sections are short: much more than the budget is never repaid.",
};

fn advise_own_loop(costs: &Costs) -> Advice {
    let pauses = costs.budget_pauses();
    Advice {
        runtime: "a loop of your own",
        versions: None,
        algorithm: None,
        setting: "spin budget",
        how: "in the program",
        usual: "none",
        usual_ns: None,
        suggested: Some(format!("{pauses} PAUSEs, a look after each")),
        suggested_ns: Some(pauses as f64 * costs.pause_ns),
        reasoning: "Better count nanoseconds by the clock than PAUSEs: the next chip's differ by up to 70 times.".to_owned(),
        verify: None,
    }
}

fn advise_count(costs: &Costs, row: &CountedSetting) -> Advice {
    let suggested = costs.budget_pauses().min(row.max);
    let usual_ns = row.usual_pauses as f64 * costs.pause_ns;
    let compared = compare_with_budget(usual_ns, costs.budget_ns());
    Advice {
        runtime: row.runtime,
        versions: Some(row.versions),
        algorithm: Some(row.id),
        setting: row.setting,
        how: row.how,
        usual: row.usual,
        usual_ns: Some(usual_ns),
        suggested: Some(suggested.to_string()),
        suggested_ns: Some(suggested as f64 * costs.pause_ns),
        reasoning: format!("{compared} {}", row.remark),
        verify: Some(sweep_command(
            &[row.usual, &suggested.to_string()],
            row.command,
        )),
    }
}

/// `InnoDB` spins for 30 runs of 0 to 5 times the multiplier, 2.5 times on average.
fn advise_innodb(costs: &Costs) -> Advice {
    const MEAN_UNITS: f64 = 30.0 * 2.5;
    let unit_ns = MEAN_UNITS * costs.pause_ns;
    let multiplier = whole(costs.budget_ns() / unit_ns).clamp(1, 100);
    Advice {
        runtime: "MySQL InnoDB",
        versions: Some("MySQL 8.0.16 and later"),
        algorithm: Some("innodb_8"),
        setting: "innodb_spin_wait_pause_multiplier",
        how: "server variable",
        usual: "50",
        usual_ns: Some(50.0 * unit_ns),
        suggested: Some(multiplier.to_string()),
        suggested_ns: Some(multiplier as f64 * unit_ns),
        reasoning: format!(
            "{} The mean of 30 draws of 0 to 5 times the multiplier is meant.",
            compare_with_budget(50.0 * unit_ns, costs.budget_ns())
        ),
        verify: Some(sweep_command(
            &["50", &multiplier.to_string()],
            "./load-test --multiplier {spins}",
        )),
    }
}

/// `MariaDB` halves its delay by itself if PAUSE is long, but not the number of its rounds.
fn advise_mariadb(costs: &Costs) -> Advice {
    let setting = to_setting(costs);
    let wait = find_algorithm("mariadb_srw").ok();
    let wait = wait.and_then(|row| row.compute_wait(&setting, Case::Typical));
    let round = wait.map_or(100, |wait| wait.blind_gap_hints());
    let round_ns = round as f64 * costs.pause_ns;
    let loops = whole(costs.budget_ns() / round_ns).clamp(1, 30);
    Advice {
        runtime: "MariaDB InnoDB",
        versions: Some("MariaDB 10.6 and later"),
        algorithm: Some("mariadb_srw"),
        setting: "innodb_sync_spin_loops",
        how: "server variable",
        usual: "30",
        usual_ns: Some(30.0 * round_ns),
        suggested: Some(loops.to_string()),
        suggested_ns: Some(loops as f64 * round_ns),
        reasoning: format!(
            "{} It chooses {round} PAUSEs a round by itself here.",
            compare_with_budget(30.0 * round_ns, costs.budget_ns())
        ),
        verify: Some(sweep_command(
            &["30", &loops.to_string()],
            "./load-test --spin-loops {spins}",
        )),
    }
}

/// Suggests the largest limit whose rounds, ten times over, fit into the budget; at least one round,
/// since the lock does not spin at all without any.
fn advise_netfx(costs: &Costs) -> Advice {
    const FIRST_ROUND: u64 = 50;
    const REPETITIONS: f64 = 10.0;
    let usual_wait = NETFX_AWARELOCK.compute_wait(&to_setting(costs), Case::Typical);
    let mut last = FIRST_ROUND;
    let mut sum = FIRST_ROUND;
    while REPETITIONS * (sum + 3 * last) as f64 * costs.pause_ns <= costs.budget_ns() {
        last *= 3;
        sum += last;
    }
    // Rounds continue while below the factor times the CPUs: true for `last`, and false for three
    // times as much.
    let factor = (3 * last / costs.cpus.max(1)).max(1);
    let total = usual_wait.as_ref().and_then(|wait| wait.total_hints());
    let usual_ns = total.map(|pauses| pauses as f64 * costs.pause_ns);
    let gap_ns = usual_wait.map_or(0.0, |wait| wait.blind_gap_hints() as f64 * costs.pause_ns);
    Advice {
        runtime: ".NET Framework Monitor",
        versions: Some(".NET Framework 4"),
        algorithm: Some("netfx_awarelock"),
        setting: "COMPlus_SpinLimitProcFactor",
        how: "environment variable, hexadecimal",
        usual: "0x4E20",
        usual_ns,
        suggested: Some(format!("{factor:#X}").replacen("0X", "0x", 1)),
        suggested_ns: Some(REPETITIONS * sum as f64 * costs.pause_ns),
        reasoning: format!(
            "{} It does not look at the lock for up to {} of that. Rounds triple while below the factor times {} CPUs; one round is the least.",
            compare_with_budget(usual_ns.unwrap_or(0.0), costs.budget_ns()),
            seconds(gap_ns * 1e-9),
            costs.cpus
        ),
        verify: Some(sweep_command(
            &["4E20", &format!("{factor:X}")],
            "env COMPlus_SpinLimitProcFactor={spins}",
        )),
    }
}

fn advise_coreclr() -> Advice {
    Advice {
        runtime: "CoreCLR Monitor",
        algorithm: Some("coreclr_monitor"),
        versions: Some(".NET 6 and later"),
        setting: "DOTNET_Monitor_SpinCount",
        how: "environment variable (internal)",
        usual: "0x1e",
        usual_ns: Some(196.0 * 37.0),
        suggested: None,
        suggested_ns: None,
        reasoning: "It measures PAUSE at its start and spins about as long on any chip.".to_owned(),
        verify: None,
    }
}

fn advise_thread_pool() -> Advice {
    Advice {
        runtime: ".NET thread pool",
        algorithm: Some("dotnet_threadpool"),
        versions: Some(".NET 6 and later"),
        setting: "DOTNET_ThreadPool_UnfairSemaphoreSpinLimit",
        how: "environment variable, hexadecimal",
        usual: "0x46",
        usual_ns: Some(70.0 * 37.0),
        suggested: None,
        suggested_ns: None,
        reasoning: "It measures PAUSE, too. Where an idle service burns CPU (seen on arm64: 46 % against 3 %), 0 ends that at the price of a wake-up per burst.".to_owned(),
        verify: Some(sweep_command(
            &["46", "0"],
            "env DOTNET_ThreadPool_UnfairSemaphoreSpinLimit={spins}",
        )),
    }
}

/// libomp's default spinning time, ns.
const BLOCKTIME_NS: f64 = 200e6;

fn advise_blocktime(costs: &Costs) -> Advice {
    let us = whole(costs.budget_ns() / 1e3).max(1);
    Advice {
        runtime: "libomp (LLVM's OpenMP)",
        algorithm: Some("libomp"),
        versions: Some("LLVM 18 and later, which know units"),
        setting: "KMP_BLOCKTIME",
        how: "environment variable",
        usual: "200ms",
        usual_ns: Some(BLOCKTIME_NS),
        suggested: Some(format!("{us}us")),
        suggested_ns: Some(us as f64 * 1e3),
        reasoning: format!(
            "{} It goes by the clock, so PAUSE does not matter; between parallel regions that follow each other closely, on CPUs of its own, the usual value is right.",
            compare_with_budget(BLOCKTIME_NS, costs.budget_ns())
        ),
        verify: Some(sweep_command(
            &["200ms", &format!("{us}us")],
            "env KMP_BLOCKTIME={spins}",
        )),
    }
}

/// Versions of libomp without units accept only whole milliseconds.
fn advise_blocktime_in_ms(costs: &Costs) -> Advice {
    let ms = whole(costs.budget_ns() / 1e6).to_string();
    let reasoning = if ms == "0" {
        "It counts whole milliseconds, and one is longer than parking and waking costs: 0 parks at once."
    } else {
        "It counts whole milliseconds."
    };
    Advice {
        versions: Some("LLVM before 18, which count milliseconds"),
        usual: "200",
        suggested_ns: Some(whole(costs.budget_ns() / 1e6) as f64 * 1e6),
        reasoning: reasoning.to_owned(),
        verify: Some(sweep_command(&["200", &ms], "env KMP_BLOCKTIME={spins}")),
        suggested: Some(ms),
        ..advise_blocktime(costs)
    }
}

fn advise_onnx(costs: &Costs) -> Advice {
    let usual_ns = 1_048_576.0 * costs.pause_ns;
    Advice {
        runtime: "ONNX Runtime before 2026-03",
        versions: Some("ONNX Runtime 1.7 to 2026-02"),
        algorithm: Some("onnxruntime_pool"),
        setting: "session.intra_op.allow_spinning",
        how: "session option",
        usual: "1",
        usual_ns: Some(usual_ns),
        suggested: Some("0".to_owned()),
        suggested_ns: Some(0.0),
        reasoning: format!(
            "{} Its count cannot be set, only switched off; later versions go by the clock.",
            compare_with_budget(usual_ns, costs.budget_ns())
        ),
        verify: Some(sweep_command(
            &["1", "0"],
            "./inference --allow-spinning {spins}",
        )),
    }
}

fn advise_hotspot(costs: &Costs) -> Advice {
    Advice {
        runtime: "HotSpot's monitors (JVM)",
        algorithm: Some("hotspot_objectmonitor"),
        versions: Some("JDK 9 and later"),
        setting: "none on x86; -XX:OnSpinWaitInst on arm64",
        how: "JVM option",
        usual: "none",
        usual_ns: Some(30.0 * costs.pause_ns),
        suggested: None,
        suggested_ns: None,
        reasoning: "It hints 30 times among 5000 loads, and adapts by success: no setting is needed, and -XX:PreBlockSpin is gone. A loop with Thread.onSpinWait is the program's own.".to_owned(),
        verify: None,
    }
}

const fn to_setting(costs: &Costs) -> Setting {
    Setting {
        cpus: costs.cpus,
        hint_ns: costs.pause_ns,
    }
}

/// A command that compares values of a setting.
fn sweep_command(values: &[&str], command: &str) -> String {
    let program = if command.starts_with("env ") {
        " ./prog"
    } else {
        ""
    };
    format!(
        "pinwise compare --parameter spins={} '{command}{program}'",
        values.join(",")
    )
}

/// Compares the usual value's time with the budget, as a sentence.
fn compare_with_budget(usual_ns: f64, budget_ns: f64) -> String {
    let ratio = usual_ns / budget_ns;
    let time = seconds(usual_ns * 1e-9);
    if is_about(ratio) {
        return format!("The usual value spins {time} here, about what parking and waking costs.");
    }
    if ratio < 1.0 {
        return format!(
            "The usual value spins {time} here, less than what parking and waking costs: more may save wake-ups."
        );
    }
    let times = match ratio < 10.0 {
        true => format!("{ratio:.1}"),
        false => format!("{ratio:.0}"),
    };
    format!("The usual value spins {time} here, {times} times what parking and waking costs.")
}

#[cfg(test)]
mod tests;
