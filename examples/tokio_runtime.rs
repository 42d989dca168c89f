//! A tokio runtime whose workers bind themselves, one to a core, while threads
//! for blocking work stay with the scheduler.
//!
//! ```text
//! cargo run --example tokio_runtime [-- PLACEMENT [THREADS]]
//! ```
//!
//! It prints where tasks ran, and the mask that the kernel has for each worker.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example shows what happened"
)]

use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinwise_affinity::{Host, current_cpu, current_mask};

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
    let workers = places.threads();

    // Tokio starts its workers first and does not number its threads: those
    // beyond the workers do blocking work, and are left alone.
    let started = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&started);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .on_thread_start(move || {
            let thread = count.fetch_add(1, Ordering::Relaxed);
            if thread < workers {
                match places.bind(thread) {
                    Ok(bound) => bound.keep(),
                    Err(error) => eprintln!("worker {thread}: {error}"),
                }
            }
        })
        .build()?;
    // Nothing else runs before all of them are at their places.
    while started.load(Ordering::Relaxed) < workers {
        std::thread::yield_now();
    }

    let ran = runtime.block_on(async {
        let task = || async { (current_cpu(), current_mask().map(|mask| mask.to_string())) };
        let tasks: Vec<_> = (0..100 * workers).map(|_| tokio::spawn(task())).collect();
        let mut ran = BTreeSet::new();
        for task in tasks {
            let (cpu, mask) = task.await?;
            ran.insert((cpu, mask?));
        }
        Ok::<_, Box<dyn Error>>(ran)
    })?;
    println!("workers {workers}");
    for (cpu, mask) in ran {
        let cpu = cpu.map_or_else(|| "?".to_owned(), |cpu| cpu.to_string());
        println!("tasks ran on CPU {cpu}, mask {mask}");
    }
    Ok(())
}
