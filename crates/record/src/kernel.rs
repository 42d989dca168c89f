//! A run of a built-in workload as a record.

use serde::{Deserialize, Serialize};

use super::Answer;
use super::named::open_enum;
use pinwise_format::{count, quantity, seconds};

open_enum! {
    /// How work is shared out.
    KernelSplit {
        /// Equal shares, fixed before the start.
        Static = "static",
        /// Small pieces, each taken by the next idle thread.
        Dynamic = "dynamic",
    }
}

/// One run of a built-in workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.kernel/1")]
pub struct KernelRecord {
    /// Its name.
    pub kernel: String,
    /// Threads that shared the work.
    pub threads: usize,
    /// Operations done by all threads together.
    pub operations: u64,
    /// The unit of operations, such as `calls`.
    pub operation: String,
    /// Time from the start of the first thread's work to the end of the last one's, without
    /// preparation, seconds.
    pub seconds: f64,
    /// Operations per second.
    pub rate: f64,
    /// Proof of the work, 16 hexadecimal digits: the same for the same work,
    /// however it was run.
    pub checksum: String,
    /// Units of work done.
    pub work: u64,
    /// Bytes moved, counted as STREAM does; `null` if not measured.
    pub bytes: Option<u64>,
    /// Bytes per second; `null` if not measured.
    pub bytes_per_s: Option<f64>,
    /// Value of `--size`; `null` if the kernel has none.
    pub size: Option<u64>,
    /// Bytes in the working set of each thread's loop.
    pub working_set_bytes: u64,
    /// Requested instruction set.
    pub isa: String,
    /// The compiled variant of the code that was run.
    pub isa_version: String,
    /// The loop, out of several, that the threads chose; `null` if there was no choice.
    pub chosen: Option<String>,
    /// How the work was shared out.
    pub split: KernelSplit,
    /// CPUs that threads were bound to, in order; `null` if not bound.
    pub cpus: Option<Vec<usize>>,
    /// How fast it was, and what to do next.
    #[serde(default)]
    pub answer: Answer,
}

impl KernelRecord {
    /// Fills in the answer from its figures.
    pub fn conclude(&mut self) {
        let rate = match self.bytes_per_s {
            Some(moved) => quantity(moved / 1e9, "GB/s"),
            None => quantity(self.rate, &format!("{}/s", self.operation)),
        };
        self.answer = Answer {
            sentence: format!(
                "{}: {rate} with {}, in one run of {}.",
                self.kernel,
                count(self.threads, "thread"),
                seconds(self.seconds)
            ),
            advice: format!(
                "Repeat it for intervals, and see how it scales: pinwise bench {}",
                self.kernel
            ),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_says_that_it_is_one_run() {
        let text = include_str!("../../../tests/data/records/kernel.json");
        let mut record: KernelRecord = serde_json::from_str(text).unwrap();
        (record.rate, record.seconds) = (2_225_753.0, 0.7189);
        record.conclude();
        assert_eq!(
            record.answer.sentence,
            "pi: 2.23M digits/s with 2 threads, in one run of 719 ms."
        );
        (record.threads, record.bytes_per_s) = (1, Some(3.2e9));
        record.conclude();
        assert_eq!(
            record.answer.sentence,
            "pi: 3.20 GB/s with 1 thread, in one run of 719 ms."
        );
    }
}
