//! A rayon pool whose threads bind themselves, one to a core.
//!
//! ```text
//! cargo run --example rayon_pool [-- PLACEMENT [THREADS]]
//! ```
//!
//! It prints where each thread ran, and the mask that the kernel has for it.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example shows what happened"
)]

use std::error::Error;
use std::process::ExitCode;

use pinwise_affinity::{Host, current_cpu, current_mask};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let placement = arguments.next();
    let threads = arguments.next().map_or(Ok(0), |text| text.parse())?;

    // Discovered once, before any thread is bound.
    let host = Host::shared()?;
    let places = match placement {
        Some(name) => host.place_as(&name.parse()?, threads)?,
        None => host.place(threads),
    };
    let wanted = places.threads();

    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(wanted)
        .start_handler(move |thread| match places.bind(thread) {
            // Bound for as long as the thread lives.
            Ok(bound) => bound.keep(),
            // The work is done anyway, wherever the scheduler puts it.
            Err(error) => eprintln!("thread {thread}: {error}"),
        })
        .build()?;

    let sum: u64 = pool.install(|| (0..1_000_000u64).into_par_iter().map(|n| n % 7).sum());
    println!("sum {sum}");
    let ran = pool.broadcast(|thread| (thread.index(), current_cpu(), current_mask()));
    for (thread, cpu, mask) in ran {
        let cpu = cpu.map_or_else(|| "?".to_owned(), |cpu| cpu.to_string());
        println!("thread {thread} ran on CPU {cpu}, mask {}", mask?);
    }
    Ok(())
}
