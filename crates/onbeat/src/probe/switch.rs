//! `probe switch`: two threads on one CPU hand over to each other by a futex and back; a sample is
//! half of that time.
//!
//! From before the first wake of the partner to after the return from the wait: two system calls of
//! each thread (FUTEX_WAKE, FUTEX_WAIT), two switches, and the timestamp at the end.

use std::sync::Arc;

use super::pair::{Partner, Turns};
use crate::measure::task::{MeasuringTask, ThreadBody, ThreadEnd};
use crate::measure::wake::{Sleep, Wake};
use host::clock;
use host::ipc::FutexWord;
use model::units::Nanos;

/// Samples in sequence without a sleep. The first of them runs on a CPU in its state after a sleep.
pub const BURST: u32 = 32;

/// Values of the futex: the thread whose turn it is.
const OURS: u32 = 0;
const PARTNERS: u32 = 1;

/// Two threads on each CPU.
pub struct Switch;

impl ThreadBody for Switch {
    fn run(&self, task: MeasuringTask) -> ThreadEnd {
        let (turns, turn, cpu) = (Arc::default(), Arc::new(FutexWord::default()), task.own().cpu);
        let (its, last) = (turn.clone(), turn.clone());
        let body = move |turns: &Turns| hand_back(turns, &its);
        match Partner::start(task.plan, cpu, cpu, &turns, body, move || last.set(PARTNERS)) {
            Ok(partner) => {
                task.run_with_schedule(RoundTrip { turn, partner, left: 0, began: Nanos(0), ended: Nanos(0) })
            }
            Err(failure) => task.refuse(failure),
        }
    }
}

/// Body of the partner.
fn hand_back(turns: &Turns, turn: &FutexWord) {
    turns.set_ready();
    loop {
        // A signal may end a wait early.
        while turn.wait_while(OURS).is_err() {}
        if turns.over() {
            return;
        }
        turn.set(OURS);
    }
}

/// Round trip to the partner and back.
struct RoundTrip {
    turn: Arc<FutexWord>,
    partner: Partner,
    /// Remaining samples of the burst.
    left: u32,
    began: Nanos,
    ended: Nanos,
}

impl Wake for RoundTrip {
    const COUNTS_MISSED: bool = false;

    /// Sleeps until the instant before the first sample of a burst only: on average, the others are
    /// due by then.
    #[inline(always)]
    fn sleep_until(&mut self, instant: Nanos) -> Sleep {
        if self.left == 0 {
            if !clock::nanosleep_until(instant) {
                return Sleep::Interrupted;
            }
            self.left = BURST;
        }
        self.left -= 1;
        self.began = clock::monotonic();
        self.turn.set(PARTNERS);
        // A signal may end a wait early, and does not end the round trip.
        while self.turn.wait_while(PARTNERS).is_err() {}
        self.ended = clock::monotonic();
        Sleep::Full
    }

    #[inline(always)]
    fn now(&self, _expected: Nanos) -> Nanos {
        self.ended
    }

    #[inline(always)]
    fn latency(&self, _expected: Nanos, now: Nanos) -> Nanos {
        Nanos((now.0 - self.began.0) / 2)
    }

    fn used(&self) -> Nanos {
        clock::thread_cpu().unwrap_or_default() + self.partner.used()
    }
}
