//! Timer functions of sleeping threads, learned: timers with expiries that no other program uses
//! are set, and a program looks for them.
//!
//! Never by thread: other timers are started while a thread runs.

use std::sync::atomic::Ordering::Relaxed;

use host::bpf::{Link, MapView, Program};
use host::clock;
use host::rt::SignalTimer;
use model::error::Failure;
use model::units::Nanos;

use crate::fields::{EVENTS, EventFields, START};
use crate::layout::config;
use crate::programs::{Functions, Maps, TimerKind, timers};
use crate::refusals;

/// Ways in which threads sleep, and the kinds of their timers.
pub const KINDS: [(&str, TimerKind); 4] = [
    ("nanosleep", TimerKind::Sleep),
    ("futex", TimerKind::Sleep),
    ("timerfd", TimerKind::Standing),
    ("POSIX timer", TimerKind::Standing),
];

/// Result of learning.
pub struct Learned {
    pub functions: Functions,
    /// Ways to sleep whose timers were not seen: these wake-ups have no T.
    pub unknown: Vec<&'static str>,
    /// Number of this thread in the kernel.
    pub tid: Option<u32>,
}

/// Timers that are set and deleted, never to fire.
const FAR: i64 = 3_600_000_000_000;
/// A sleep that shows its timer.
const NEAR: i64 = 2_000_000;
/// Another program at the event may make the kernel skip ours.
pub const TRIES: usize = 3;

/// Sets timers of all kinds and reads their functions.
pub fn learn(fields: &EventFields, maps: &Maps, shared: &MapView, cpu: u32) -> Result<Learned, Failure> {
    let mut functions = [0u64; 4];
    for _ in 0..TRIES {
        let expiries = unusual_expiries();
        ask(fields, maps, cpu, expiries)?;
        for (nth, function) in functions.iter_mut().enumerate() {
            let found = shared.u64(0, config::LEARNED + 8 * nth as i16).load(Relaxed);
            *function = if found == 0 { *function } else { found };
        }
        if functions.iter().all(|function| *function != 0) {
            break;
        }
    }
    let tids = shared.u32s(0, config::LEARNED_TIDS, KINDS.len());
    let tid = tids.iter().map(|tid| tid.load(Relaxed)).find(|tid| *tid != 0);
    Ok(Learned::of(functions, tid))
}

/// Expiries for all kinds, to the nanosecond, that no other program uses.
pub fn unusual_expiries() -> [Nanos; 4] {
    let now = clock::monotonic().0;
    [now + NEAR + 1_237, now + 2 * NEAR + 2_371, now + FAR + 3_713, now + FAR + 7_919].map(Nanos)
}

impl Learned {
    /// Result for the functions of all kinds, 0 if unknown.
    pub fn of(functions: [u64; 4], tid: Option<u32>) -> Learned {
        let mut learned = Learned { functions: Vec::new(), unknown: Vec::new(), tid };
        for (function, (name, kind)) in functions.into_iter().zip(KINDS) {
            if function == 0 {
                learned.unknown.push(name);
            } else if learned.functions.iter().all(|known| known.0 != function) {
                learned.functions.push((function, kind));
            }
        }
        learned
    }
}

fn ask(fields: &EventFields, maps: &Maps, cpu: u32, expiries: [Nanos; 4]) -> Result<(), Failure> {
    let name = EVENTS[START].1;
    let words = expiries.map(|expiry| expiry.0 as u64);
    let code = timers::learning(fields, maps, &words)
        .map_err(|bad| Failure::internal(format!("invalid program for {name} ({bad}): report this")))?;
    let attached =
        fields.attached(START).ok_or_else(|| Failure::not_supported(format!("this kernel has no {name}")))?;
    let program = Program::load("onbeat_learn", attached, &code)
        .map_err(|refused| refusals::no_program("learn", &refused))?;
    let _link = Link::new(&program, cpu).map_err(|error| refusals::no_link(name, &error))?;
    ask_for(expiries);
    Ok(())
}

/// Sets a timer of each kind, with these expiries.
pub fn ask_for(expiries: [Nanos; 4]) {
    // A timer that cannot be set is not learned, and reported as unknown.
    clock::nanosleep_until(expiries[0]);
    clock::futex_until(&clock::futex_word(), expiries[1]);
    if let Ok(timer) = clock::TimerFd::new() {
        timer.arm(expiries[2]);
    }
    let _ = SignalTimer::set_and_delete(expiries[3]);
}
