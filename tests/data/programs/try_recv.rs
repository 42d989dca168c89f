//! A receiver that asks a channel again and again. Usage: try_recv SECONDS
use std::sync::mpsc::channel;
use std::time::Duration;

fn main() {
    let seconds: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let (sender, receiver) = channel::<u64>();
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs_f64(seconds));
        sender.send(7).unwrap();
    });
    let mut sum = 0;
    while sum == 0 {
        if let Ok(value) = receiver.try_recv() {
            sum += value;
        }
    }
    other.join().unwrap();
    println!("{sum}");
}
