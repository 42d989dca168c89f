//! Ways to wait in Rust. Usage: waits WAY SECONDS
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant};

static OVER: AtomicBool = AtomicBool::new(false);
static TAKEN: AtomicU32 = AtomicU32::new(1);
static HELD: Mutex<u32> = Mutex::new(0);
static WRITTEN: RwLock<u32> = RwLock::new(0);
static LATER: OnceLock<u32> = OnceLock::new();

fn is_over() -> bool {
    OVER.load(Ordering::Acquire)
}

fn wait(way: &str) {
    match way {
        "hint" => while !is_over() { spin_loop() },
        "yield_now" => while !is_over() { std::thread::yield_now() },
        "exchange" => while TAKEN.compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed).is_err() && !is_over() {},
        "try_lock" => while HELD.try_lock().is_err() && !is_over() {},
        "try_read" => while WRITTEN.try_read().is_err() && !is_over() {},
        "once" => while LATER.get().is_none() && !is_over() {},
        "deadline" => {
            let end = Instant::now() + Duration::from_secs(3600);
            while Instant::now() < end && !is_over() {}
        }
        "timeout" => {
            let (own, told) = (Mutex::new(()), Condvar::new());
            while !is_over() {
                let _ = told.wait_timeout(own.lock().unwrap(), Duration::ZERO).unwrap();
            }
        }
        _ => panic!("{way} is not known"),
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let (_held, _written) = (HELD.lock().unwrap(), WRITTEN.write().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| wait(&words[1]));
        std::thread::sleep(Duration::from_secs_f64(words[2].parse().unwrap()));
        OVER.store(true, Ordering::Release);
    });
}
