//! The cost of a hint in a running program: if a loop counts its iterations in a register, two
//! neighbouring samples show how many iterations took how much time.

use pinwise_code::disassemble;
use pinwise_profile::{REGISTERS, Samples, Step};
use pinwise_spin::loops::SpinLoop;
use pinwise_stats::describe::quantile;

/// Fewer pairs of samples give no result.
const MIN_PAIRS: usize = 8;
/// Pairs with fewer iterations between them are ignored: a counter that restarts at every check of
/// the awaited value hardly moves.
const MIN_ITERATIONS: f64 = 16.0;
/// The quartiles of the pairs' times lie within this share of their median.
const MAX_QUARTILE_DISTANCE: f64 = 0.1;
/// A time that differs by more than this factor from a PAUSE measured on the machine is not the
/// cost of a hint.
const MAX_RATIO: f64 = 20.0;
/// A count that restarts between any two samples makes a hint look more than twice as long as it
/// is; below this factor it did not restart.
const MAX_RATIO_WITHOUT_RESTARTS: f64 = 1.7;

/// How fast a loop iterates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    /// Duration of an iteration divided by its hints, ns.
    pub(super) hint_ns: f64,
    /// Pairs of samples that it is based on.
    pub(super) pairs: usize,
    /// Share of the pairs between which the count restarted, 0 to 1.
    restarting: f64,
}

impl Pace {
    /// Can it be the cost of a hint that takes `pause_ns` alone?
    ///
    /// A delay that ends a little before the next sample restarts its count once between any two
    /// samples, by nearly the same phase each time. The pairs then agree on a time that is too long:
    /// if a delay takes 0.8 ms, samples 1 ms apart see 0.2 ms of counting, and a hint that looks five
    /// times as long. But one pair in four goes backwards. In general a hint that looks R times too
    /// long comes with at least one such pair in R.
    fn is_plausible(&self, pause_ns: Option<f64>) -> bool {
        let ratio = pause_ns.map_or(MAX_RATIO, |ns| self.hint_ns / ns);
        if ratio <= MAX_RATIO_WITHOUT_RESTARTS {
            return ratio >= 1.0 / MAX_RATIO;
        }
        let shows_restarts = self.pairs as f64 >= 3.0 * ratio;
        ratio <= MAX_RATIO && shows_restarts && self.restarting < 0.5 / ratio
    }
}

/// Measures the pace of a loop; `None` if no register counts its iterations.
pub(super) fn measure_pace(
    samples: &Samples,
    pid: i32,
    found: &SpinLoop,
    pause_ns: Option<f64>,
) -> Option<Pace> {
    if found.hints == 0 || found.has_deadline {
        return None;
    }
    let within = |frame: usize| {
        let frame = &samples.frames[frame];
        frame.pid == pid && (found.start..found.end).contains(&frame.address)
    };
    let steps: Vec<&Step> = samples
        .steps
        .iter()
        .filter(|step| within(step.from) && within(step.to))
        .collect();
    let code = samples.code_at(pid, found.start)?;
    let texts: Vec<String> = disassemble(code, found.start, found.end)
        .into_iter()
        .map(|instruction| instruction.text)
        .collect();
    let paces = (0..REGISTERS.len()).filter_map(|register| {
        let stride = find_stride(&texts, REGISTERS[register])?;
        measure_pace_by(&steps, register, stride, found.hints)
    });
    let best = paces.max_by_key(|pace| pace.pairs)?;
    best.is_plausible(pause_ns).then_some(best)
}

/// The pace according to one register: the median over the pairs between which it advanced.
fn measure_pace_by(steps: &[&Step], register: usize, stride: i64, hints: u32) -> Option<Pace> {
    let stride = stride as f64;
    let times = steps.iter().filter_map(|step| {
        let iterations = *step.changes.get(register)? as f64 / stride;
        (iterations >= MIN_ITERATIONS).then(|| step.ns as f64 / (iterations * f64::from(hints)))
    });
    let times: Vec<f64> = times.collect();
    if times.len() < MIN_PAIRS {
        return None;
    }
    // If the counter restarted between two samples, or the thread was preempted, the time per
    // iteration comes out too high: only values near the low end are used.
    let low = quantile(&times, 0.25);
    let near: Vec<f64> = times.iter().copied().filter(|t| *t <= low * 1.5).collect();
    let median = quantile(&near, 0.5);
    let quartile_distance = quantile(&near, 0.75) - quantile(&near, 0.25);
    let is_close = quartile_distance <= 2.0 * MAX_QUARTILE_DISTANCE * median;
    (is_close && near.len() >= MIN_PAIRS).then_some(Pace {
        hint_ns: median,
        pairs: near.len(),
        restarting: 1.0 - times.len() as f64 / steps.len() as f64,
    })
}

/// By how much an iteration changes a register; `None` unless exactly one instruction changes it,
/// by a constant.
fn find_stride(texts: &[String], register: &str) -> Option<i64> {
    let mut strides = texts.iter().filter_map(|text| {
        let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
        let mut operands = operands.split(',').map(str::trim);
        if !is_part_of(operands.next()?, register) {
            return None;
        }
        let constant = operands.next().and_then(parse_constant);
        match name {
            "inc" => Some(1),
            "dec" => Some(-1),
            "add" => constant,
            "sub" => constant.map(|constant| -constant),
            _ => None,
        }
    });
    let stride = strides.next()?;
    (strides.next().is_none() && stride != 0).then_some(stride)
}

/// Is this the register or its lower half?
fn is_part_of(operand: &str, register: &str) -> bool {
    let half = match register.strip_prefix('r') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => format!("{register}d"),
        Some(rest) => format!("e{rest}"),
        None => return false,
    };
    operand == register || operand == half
}

/// Parses a constant as disassemblers write it: `0FFh`, `0xff` or `255`.
fn parse_constant(text: &str) -> Option<i64> {
    let hexadecimal = text
        .strip_suffix('h')
        .or_else(|| text.strip_prefix("0x"))
        .and_then(|digits| i64::from_str_radix(digits, 16).ok());
    // Small negative numbers in 32-bit code appear as large unsigned ones.
    let wrapped = hexadecimal.map(|value| match i32::try_from(value - (1 << 32)) {
        Ok(negative) if value > i64::from(i32::MAX) => i64::from(negative),
        _ => value,
    });
    wrapped.or_else(|| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stride_is_found_if_one_instruction_adds_a_constant() {
        let texts =
            |lines: &[&str]| -> Vec<String> { lines.iter().map(|l| (*l).to_owned()).collect() };
        let stride_of = |lines: &[&str]| find_stride(&texts(lines), "rcx");
        assert_eq!(stride_of(&["pause", "dec ecx", "jne 1000h"]), Some(-1));
        assert_eq!(stride_of(&["pause", "add rcx, 2"]), Some(2));
        assert_eq!(stride_of(&["sub rcx,1"]), Some(-1));
        assert_eq!(stride_of(&["add ecx,0FFFFFFFFh"]), Some(-1));
        assert_eq!(stride_of(&["inc rdx"]), None);
        // Several instructions change it.
        assert_eq!(stride_of(&["inc rcx", "add rcx,rdx", "inc rcx"]), None);
        assert_eq!(find_stride(&texts(&["inc r9d"]), "r9"), Some(1));
    }
}
