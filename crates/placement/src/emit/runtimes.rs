//! Runtimes that choose a number of threads themselves, and llama.cpp.
//!
//! Runtimes do not name CPUs: the mask comes from the process, and the number of threads must
//! be set to fit it.

use super::{Emission, Piece, Request, SHOW_PID_MASK};
use pinwise_format::shell;

pub(super) fn emit_jvm(request: &Request<'_>) -> Emission {
    let count = format!("-XX:ActiveProcessorCount={}", request.threads());
    let mut emission = emit_variable(request, "JAVA_TOOL_OPTIONS", count);
    emission.notes.push(
        "Threads of the collector and the compiler run on these CPUs, too; with memory on several \
         nodes consider -XX:+UseNUMA."
            .to_owned(),
    );
    emission
}

pub(super) fn emit_go(request: &Request<'_>) -> Emission {
    let mut emission = emit_variable(request, "GOMAXPROCS", request.threads().to_string());
    emission.notes.push(
        "GOMAXPROCS counts threads that run Go code; those in system calls come on top.".to_owned(),
    );
    emission
}

pub(super) fn emit_tokio(request: &Request<'_>) -> Emission {
    let mut emission = emit_variable(
        request,
        "TOKIO_WORKER_THREADS",
        request.threads().to_string(),
    );
    emission.notes.push(
        "The variable applies unless the program sets worker_threads itself; threads for blocking calls come on top."
            .to_owned(),
    );
    emission
}

pub(super) fn emit_rayon(request: &Request<'_>) -> Emission {
    let mut emission = emit_variable(request, "RAYON_NUM_THREADS", request.threads().to_string());
    emission.notes.push(
        "The variable applies to the global pool, and to pools without num_threads.".to_owned(),
    );
    emission
}

fn emit_variable(request: &Request<'_>, name: &'static str, value: String) -> Emission {
    let pieces = vec![
        Piece::Variable { name, value },
        Piece::Command(request.start_line()),
    ];
    let mut emission = request.emit_one_mask(pieces, request.pid_mask_command());
    emission
        .notes
        .push("The runtime does not choose CPUs: the process's affinity mask does.".to_owned());
    emission
}

/// llama.cpp's `GGML_MAX_N_THREADS`, the size of its masks.
const LLAMA_MASK_CPUS: usize = 512;

pub(super) fn emit_llama_cpp(request: &Request<'_>) -> Emission {
    let threads = request.threads().to_string();
    let mask = request.cpu_mask();
    let strict = if request.is_bound() { "1" } else { "0" };
    let options = [
        "--threads",
        &threads,
        "--cpu-mask",
        &mask,
        "--cpu-strict",
        strict,
    ];
    let mut words = request.command_words();
    words.extend(options.map(str::to_owned));
    let pieces = vec![Piece::Command(shell::line(words))];
    let mut emission =
        request.note_missing_memory(request.emit_pieces(pieces, SHOW_PID_MASK.to_owned()));
    let is_ascending = request.realised.order.is_sorted();
    if request.is_bound() && !is_ascending {
        emission.unsupported.push(
            "--cpu-strict binds in ascending order of CPUs, not in this placement's order."
                .to_owned(),
        );
    }
    if request.realised.cpus.last() >= Some(LLAMA_MASK_CPUS) {
        emission
            .unsupported
            .push(format!("Masks end at CPU {}.", LLAMA_MASK_CPUS - 1));
    }
    emission.notes.push(
        "Batch threads (--threads-batch, --cpu-mask-batch) use the same unless set otherwise."
            .to_owned(),
    );
    emission
}
