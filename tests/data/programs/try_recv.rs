//! Polls, and work on a channel that looks alike. Usage: try_recv WHAT SECONDS
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::time::Duration;

fn main() {
    let mut words = std::env::args().skip(1);
    let what = words.next().unwrap();
    let seconds: f64 = words.next().unwrap().parse().unwrap();
    let (sender, receiver) = channel::<u64>();
    let (bounded_sender, bounded) = sync_channel::<u64>(4);
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs_f64(seconds));
        sender.send(7).unwrap();
        bounded_sender.send(7).unwrap();
        raised.store(true, Ordering::Release);
        // The receivers see a value, not that the sender is gone.
        (sender, bounded_sender)
    });
    let mut sum = 0;
    match what.as_str() {
        "channel" => {
            while sum == 0 {
                if let Ok(value) = receiver.try_recv() {
                    sum += value;
                }
            }
        }
        "sync_channel" => {
            while sum == 0 {
                if let Ok(value) = bounded.try_recv() {
                    sum += value;
                }
            }
        }
        "flag" => while !flag.load(Ordering::Acquire) {},
        "queue" => {
            let (to, from) = sync_channel::<u64>(8);
            while !flag.load(Ordering::Acquire) {
                to.send(1).unwrap();
                sum += from.recv().unwrap();
            }
        }
        _ => panic!("{what} is not known"),
    }
    other.join().unwrap();
    println!("{sum}");
}
