//! A control loop that is written well for real time: `onbeat check` finds nothing above low.
//!
//!     rustc --edition 2024 -O good.rs -o robot-good && sudo ./robot-good [SECONDS]
//!
//! README.md explains each step. It calls the C library itself, as the crates `libc`, `nix` and
//! `rustix` do for a program with dependencies; the types are those of 64-bit machines.

use std::ffi::{c_int, c_long};
use std::io::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const PERIOD_NS: c_long = 1_000_000;
const STACK_BYTES: usize = 256 * 1024;
const PRIORITY: c_int = 80;
/// A power of two.
const MESSAGES: usize = 1024;

#[repr(C)]
struct Timespec {
    seconds: c_long,
    nanoseconds: c_long,
}

const CLOCK_MONOTONIC: c_int = 1;
const TIMER_ABSTIME: c_int = 1;
const SCHED_FIFO: c_int = 1;
const MCL_CURRENT: c_int = 1;
const MCL_FUTURE: c_int = 2;
const CPU_WORDS: usize = 16;

unsafe extern "C" {
    fn clock_gettime(clock: c_int, now: *mut Timespec) -> c_int;
    fn clock_nanosleep(clock: c_int, flags: c_int, until: *const Timespec, left: *mut Timespec) -> c_int;
    fn mlockall(flags: c_int) -> c_int;
    fn sched_getaffinity(thread: c_int, size: usize, cpus: *mut u64) -> c_int;
    fn sched_setaffinity(thread: c_int, size: usize, cpus: *const u64) -> c_int;
    fn sched_setscheduler(thread: c_int, policy: c_int, priority: *const c_int) -> c_int;
}

/// What both threads use: no lock, so that neither ever waits for the other.
static TARGET: AtomicU64 = AtomicU64::new(0);
static RING: [[AtomicU64; 2]; MESSAGES] = [const { [const { AtomicU64::new(0) }; 2] }; MESSAGES];
static WRITTEN: AtomicUsize = AtomicUsize::new(0);
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static LOST: AtomicUsize = AtomicUsize::new(0);
static ENDING: AtomicBool = AtomicBool::new(false);

/// Ends the program where it does not get what it asks for.
fn or_end(what: &str, result: c_int) {
    if result < 0 {
        eprintln!("robot: {what}: {}", Error::last_os_error());
        std::process::exit(1);
    }
}

/// The last CPU that this program may use, for the loop alone.
fn become_real_time() {
    let mut cpus = [0u64; CPU_WORDS];
    or_end("sched_getaffinity", unsafe { sched_getaffinity(0, size_of_val(&cpus), cpus.as_mut_ptr()) });
    let last = (0..CPU_WORDS * 64).rev().find(|cpu| cpus[cpu / 64] >> (cpu % 64) & 1 == 1).unwrap_or(0);
    cpus = [0; CPU_WORDS];
    cpus[last / 64] = 1 << (last % 64);
    or_end("sched_setaffinity", unsafe { sched_setaffinity(0, size_of_val(&cpus), cpus.as_ptr()) });
    or_end("SCHED_FIFO (run it as root, or with an RTPRIO limit)", unsafe {
        sched_setscheduler(0, SCHED_FIFO, &PRIORITY)
    });
}

/// Never waits: a message for which there is no room is counted.
fn tell(cycle: u64, position: f64) {
    let next = WRITTEN.load(Ordering::Relaxed);
    if next - TAKEN.load(Ordering::Acquire) == MESSAGES {
        LOST.fetch_add(1, Ordering::Relaxed);
        return;
    }
    RING[next % MESSAGES][0].store(cycle, Ordering::Relaxed);
    RING[next % MESSAGES][1].store(position.to_bits(), Ordering::Relaxed);
    WRITTEN.store(next + 1, Ordering::Release);
}

fn control() {
    become_real_time();
    let mut release = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(CLOCK_MONOTONIC, &mut release) };
    let mut position = 0.0;
    let mut cycle = 0;
    while !ENDING.load(Ordering::Relaxed) {
        // The next release follows from the last one, whatever the cycle took.
        release.nanoseconds += PERIOD_NS;
        if release.nanoseconds >= 1_000_000_000 {
            release.nanoseconds -= 1_000_000_000;
            release.seconds += 1;
        }
        let sleep =
            || unsafe { clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &release, std::ptr::null_mut()) };
        while sleep() != 0 {}
        let wanted = f64::from_bits(TARGET.load(Ordering::Relaxed));
        position += 0.1 * (wanted - position);
        if cycle % 100 == 0 {
            tell(cycle, position);
        }
        cycle += 1;
    }
}

/// The thread without a real-time policy writes for the one that has it.
fn log() {
    while !ENDING.load(Ordering::Relaxed) {
        let mut next = TAKEN.load(Ordering::Relaxed);
        while next != WRITTEN.load(Ordering::Acquire) {
            let [cycle, position] = &RING[next % MESSAGES];
            let (cycle, position) = (cycle.load(Ordering::Relaxed), position.load(Ordering::Relaxed));
            next += 1;
            TAKEN.store(next, Ordering::Release);
            println!("cycle {cycle} at {:.3}", f64::from_bits(position));
        }
        let target = f64::from_bits(TARGET.load(Ordering::Relaxed));
        TARGET.store((-target).to_bits(), Ordering::Relaxed);
        thread::sleep(Duration::from_millis(100));
    }
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(60);
    TARGET.store(1f64.to_bits(), Ordering::Relaxed);
    // Before any thread: all memory there is, and all that comes, stacks included.
    or_end("mlockall", unsafe { mlockall(MCL_CURRENT | MCL_FUTURE) });
    let logger = thread::Builder::new().name("logger".into()).stack_size(STACK_BYTES);
    let loops = thread::Builder::new().name("control".into()).stack_size(STACK_BYTES);
    let logger = logger.spawn(log).expect("a thread for the logger");
    let control = loops.spawn(control).expect("a thread for the control loop");
    thread::sleep(Duration::from_secs(seconds));
    ENDING.store(true, Ordering::Relaxed);
    let _ = (control.join(), logger.join());
}
