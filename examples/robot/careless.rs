//! The same control loop with eight mistakes, each marked, each with the name by which `onbeat
//! check` knows it.
//!
//!     rustc --edition 2024 -O careless.rs -o robot-careless && sudo ./robot-careless [SECONDS]
//!
//! README.md explains each of them.

use std::ffi::c_int;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const RECORD_BYTES: usize = 2000;
const RECORDS: usize = 500;

/// Mistake 8, highest-priority: 99 belongs to the kernel.
const PRIORITY: c_int = 99;
const SCHED_FIFO: c_int = 1;

unsafe extern "C" {
    fn nice(increment: c_int) -> c_int;
    fn sched_setscheduler(thread: c_int, policy: c_int, priority: *const c_int) -> c_int;
}

/// Mistake 6, lock-without-inheritance: std's Mutex is a plain one, shared with the logger, which
/// is nice.
static TARGET: Mutex<f64> = Mutex::new(1.0);
static ENDING: AtomicBool = AtomicBool::new(false);

fn control() {
    // Mistake 7, no-affinity: the loop may run on any CPU.
    if unsafe { sched_setscheduler(0, SCHED_FIFO, &PRIORITY) } < 0 {
        eprintln!(
            "robot: SCHED_FIFO (run it as root, or with an RTPRIO limit): {}",
            std::io::Error::last_os_error()
        );
        std::process::exit(1);
    }
    let mut history: Vec<Vec<u8>> = Vec::new();
    let mut position = 0.0;
    let mut cycle = 0u64;
    while !ENDING.load(Ordering::Relaxed) {
        // Mistake 5, relative-sleep: the cycle's own time is added to each period.
        thread::sleep(Duration::from_millis(1));

        let wanted = *TARGET.lock().unwrap();
        position += 0.1 * (wanted - position);

        // Mistake 3, allocation-in-loop: the heap grows for 500 cycles, and is given back.
        if history.len() == RECORDS {
            history = Vec::new();
        }
        history.push(black_box(vec![cycle as u8 | 1; RECORD_BYTES]));

        // Mistake 4, writes-in-loop: the loop waits for the console.
        if cycle % 100 == 0 {
            println!("cycle {cycle} at {position:.3}");
        }
        cycle += 1;
    }
}

fn log() {
    unsafe { nice(10) };
    while !ENDING.load(Ordering::Relaxed) {
        let mut target = TARGET.lock().unwrap();
        // Six milliseconds of work with the lock held.
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(6) {}
        *target = -*target;
        drop(target);
        thread::sleep(Duration::from_millis(24));
    }
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(60);
    // Mistake 1, memory-unlocked: no mlockall.
    let logger = thread::Builder::new().name("logger".into()).spawn(log).expect("a thread for the logger");
    // Mistake 2, stack-untouched: two megabytes that come page by page.
    let loops = thread::Builder::new().name("control".into());
    let control = loops.spawn(control).expect("a thread for the control loop");
    thread::sleep(Duration::from_secs(seconds));
    ENDING.store(true, Ordering::Relaxed);
    let _ = (control.join(), logger.join());
}
