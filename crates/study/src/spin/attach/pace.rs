//! The cost of a hint, seen from outside: loops count in registers, and neighbouring samples show
//! how far the count went in how much time.

use pinwise_code::disassemble;
use pinwise_profile::{REGISTERS, Samples, Step};
use pinwise_spin::loops::SpinLoop;
use pinwise_stats::describe::quantile;

/// Pairs that are needed at least.
const MIN_PAIRS: usize = 8;
/// Iterations between two samples at least: a count that restarts at every
/// look hardly moves.
const MIN_ITERATIONS: f64 = 16.0;
/// Half of the pairs agree within this part of their median.
const CLOSE: f64 = 0.1;
/// Beyond this many times the machine's own figure it is not the cost of a hint.
const FAR: f64 = 20.0;

/// How fast a loop goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    /// One hint with its share of the loop, ns.
    pub(super) hint_ns: f64,
    /// Pairs of samples that it is based on.
    pub(super) pairs: usize,
}

/// The pace of a loop, if a register counts its iterations.
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
        let stride = stride(&texts, REGISTERS[register])?;
        pace_of_register(&steps, register, stride, found.hints)
    });
    let best = paces.max_by_key(|pace| pace.pairs)?;
    let is_near = pause_ns.is_none_or(|own| (own / FAR..own * FAR).contains(&best.hint_ns));
    is_near.then_some(best)
}

/// The pace by one register: the median over pairs that count in the usual
/// direction.
fn pace_of_register(steps: &[&Step], register: usize, stride: i64, hints: u32) -> Option<Pace> {
    let stride = stride as f64;
    let times = steps.iter().filter_map(|step| {
        let iterations = *step.changes.get(register)? as f64 / stride;
        (iterations >= MIN_ITERATIONS).then(|| step.ns as f64 / (iterations * f64::from(hints)))
    });
    let times: Vec<f64> = times.collect();
    if times.len() < MIN_PAIRS {
        return None;
    }
    // A count that restarted in between went less far than the time says, as did a preempted
    // thread: both give higher values.
    let low = quantile(&times, 0.25);
    let near: Vec<f64> = times.iter().copied().filter(|t| *t <= low * 1.5).collect();
    let median = quantile(&near, 0.5);
    let is_close = quantile(&near, 0.75) - quantile(&near, 0.25) <= 2.0 * CLOSE * median;
    (is_close && near.len() >= MIN_PAIRS).then_some(Pace {
        hint_ns: median,
        pairs: near.len(),
    })
}

/// By how much one iteration changes a register, if a single instruction changes it by a constant.
fn stride(texts: &[String], register: &str) -> Option<i64> {
    let mut strides = texts.iter().filter_map(|text| {
        let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
        let mut operands = operands.split(',').map(str::trim);
        if !is_part_of(operands.next()?, register) {
            return None;
        }
        let constant = operands.next().and_then(parse);
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

/// A constant as the disassembler writes it.
fn parse(text: &str) -> Option<i64> {
    let hexadecimal = text
        .strip_suffix('h')
        .or_else(|| text.strip_prefix("0x"))
        .and_then(|digits| i64::from_str_radix(digits, 16).ok());
    // As 32-bit code has small negative numbers.
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
    fn strides_of_counters() {
        let texts =
            |lines: &[&str]| -> Vec<String> { lines.iter().map(|l| (*l).to_owned()).collect() };
        let stride_of = |lines: &[&str]| stride(&texts(lines), "rcx");
        assert_eq!(stride_of(&["pause", "dec ecx", "jne 1000h"]), Some(-1));
        assert_eq!(stride_of(&["pause", "add rcx, 2"]), Some(2));
        assert_eq!(stride_of(&["sub rcx,1"]), Some(-1));
        assert_eq!(stride_of(&["add ecx,0FFFFFFFFh"]), Some(-1));
        assert_eq!(stride_of(&["inc rdx"]), None);
        // Changed twice, or by an unknown instruction.
        assert_eq!(stride_of(&["inc rcx", "add rcx,rdx", "inc rcx"]), None);
        assert_eq!(stride(&texts(&["inc r9d"]), "r9"), Some(1));
    }
}
