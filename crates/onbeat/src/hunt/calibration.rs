//! What recording adds to a followed thread's cycle and to any system call, measured on a thread of
//! onbeat's own that sleeps and wakes as the followed ones do.
//!
//! A cycle is taken from its timer to its next sleep: the stack that is taken at that sleep comes
//! after its end, and delays whoever runs next.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use super::explainer::Explainer;
use super::source::RecordingLevel;
use crate::measure::call_time::call_time;
use host::{clock, rt};
use model::error::Result;
use model::run::Run;
use model::units::Nanos;
use model::vocabulary::Policy;

/// Sleeps of a measurement, and how long each is: as a whole a tenth of a person's reaction.
const SLEEPS: usize = 80;
const SLEEP: Nanos = Nanos(250_000);

/// What one cycle and one system call take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallCost {
    cycle: Nanos,
    call: Nanos,
}

/// Arms for these threads, and measures what that adds.
pub fn arm(explainer: &mut Explainer, level: RecordingLevel, threads: Vec<i32>, run: &mut Run) -> Result<()> {
    let thread = CalibratingThread::start();
    let before = thread.as_ref().and_then(CalibratingThread::measure);
    explainer.arm(level, run)?;
    let (Some(thread), Some(before)) = (thread, before) else { return Ok(()) };
    explainer.record_too(threads.iter().copied().chain([thread.id]).collect());
    let added = thread.measure().map(|after| after.added_to(before));
    explainer.record_too(threads);
    run.overhead.recorder_ns_per_cycle = added.map(|added| added.cycle);
    if matches!(level, RecordingLevel::Victims { syscalls: true, .. }) {
        // Of a thread that is not followed the filter drops both events of a call.
        let others = thread.measure().map(|after| after.added_to(before));
        run.plan.notes.extend(others.zip(added).map(|(others, followed)| {
            format!(
                "--syscalls adds {} to each system call of every process on the machine, and {} to those of \
                 followed threads",
                others.call.spaced(),
                followed.call.spaced()
            )
        }));
    }
    Ok(())
}

/// The thread, until it is dropped.
struct CalibratingThread {
    id: i32,
    /// Without it the thread ends.
    ask: Option<Sender<()>>,
    answers: Receiver<Option<CallCost>>,
    thread: Option<JoinHandle<()>>,
}

impl CalibratingThread {
    /// On the CPUs of the calling thread, under SCHED_FIFO if that is permitted; none where there
    /// is no room for a thread.
    fn start() -> Option<CalibratingThread> {
        let ((ask, asked), (answer, answers), (tell, told)) = (channel(), channel(), channel());
        let body = move || {
            // The lowest: it stands in nobody's way.
            let _ = rt::set_policy(Policy::Fifo, 1);
            let _ = rt::set_minimum_timer_slack();
            let _ = tell.send(rt::thread_id());
            while asked.recv().is_ok() {
                let _ = answer.send(measured());
            }
        };
        let thread = Builder::new().name("onbeat/cost".to_owned()).spawn(body).ok()?;
        let id = told.recv().ok()?;
        Some(CalibratingThread { id, ask: Some(ask), answers, thread: Some(thread) })
    }

    /// What a cycle and a call take now; none where a clock is refused.
    fn measure(&self) -> Option<CallCost> {
        self.ask.as_ref()?.send(()).ok()?;
        self.answers.recv().ok()?
    }
}

impl Drop for CalibratingThread {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl CallCost {
    /// What is more than before; less is chance.
    fn added_to(self, before: CallCost) -> CallCost {
        let more = |after: Nanos, before: Nanos| (after - before).max(Nanos(0));
        CallCost { cycle: more(self.cycle, before.cycle), call: more(self.call, before.call) }
    }
}

fn measured() -> Option<CallCost> {
    let mut cycles = Vec::with_capacity(SLEEPS);
    for _ in 0..SLEEPS {
        let before = clock::thread_cpu()?;
        let due = clock::monotonic() + SLEEP;
        if clock::nanosleep_until(due) {
            let late = clock::monotonic() - due;
            cycles.push(late + (clock::thread_cpu()? - before));
        }
    }
    cycles.sort_unstable();
    Some(CallCost { cycle: *cycles.get(cycles.len() / 2)?, call: call_time()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_and_a_call_have_a_cost_and_less_than_before_is_none() {
        let thread = CalibratingThread::start().expect("a thread");
        assert!(thread.id > 0);
        let Some(cost) = thread.measure() else { return };
        assert!(cost.cycle.0 > 0 && cost.call.0 > 0, "{cost:?}");
        assert!(thread.measure().is_some(), "again");
        let of = |cycle, call| CallCost { cycle: Nanos(cycle), call: Nanos(call) };
        assert_eq!(of(9, 5).added_to(of(4, 7)), of(5, 0));
    }
}
