//! Threads that write down the mask with which they begin, as their first
//! action.

use std::os::raw::{c_int, c_ulong};

unsafe extern "C" {
    fn sched_getaffinity(thread: c_int, bytes: usize, mask: *mut c_ulong) -> c_int;
}

fn own() -> String {
    let mut words = [0 as c_ulong; 16];
    // SAFETY: the buffer is as long as said.
    unsafe { sched_getaffinity(0, size_of_val(&words), words.as_mut_ptr()) };
    words.iter().rev().map(|word| format!("{word:016x}")).collect()
}

fn main() {
    let first = own();
    let many: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let threads: Vec<_> = (0..many).map(|_| std::thread::spawn(own)).collect();
    println!("0 {first}");
    for (number, thread) in threads.into_iter().enumerate() {
        println!("{} {}", number + 1, thread.join().unwrap());
    }
}
