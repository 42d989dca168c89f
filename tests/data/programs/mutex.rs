//! Two threads that rarely meet at a `std::sync::Mutex`. Usage: mutex SECONDS

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn main() {
    let seconds: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let shared = Arc::new(Mutex::new(0u64));
    let threads: Vec<_> = (0..2u64)
        .map(|seed| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                let mut sum = seed;
                while Instant::now() < until {
                    for _ in 0..20_000 {
                        sum = sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    }
                    *shared.lock().unwrap() ^= sum;
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    println!("{}", shared.lock().unwrap());
}
