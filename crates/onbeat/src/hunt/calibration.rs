//! Cost of recording per cycle of a followed thread and per system call, measured on a thread of
//! onbeat that sleeps and wakes as the followed ones do.
//!
//! A cycle lasts from its timer to its next sleep: the stack recorded at that sleep comes after its
//! end, and delays the next thread. An ordinary thread keeps the CPU busy: the exit from idle takes
//! longer than the measured time, and varies.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use super::explainer::Explainer;
use super::source::RecordingLevel;
use crate::measure::call_time::call_time;
use crate::probe::hog::Hogs;
use host::{clock, rt};
use model::error::Result;
use model::run::Run;
use model::units::{Cpu, CpuSet, Nanos};
use model::vocabulary::Policy;

/// Turns of a measurement, each with one median; their spread is the noise.
const TURNS: usize = 5;

/// Sleeps of a turn and the length of each; all turns together take a tenth of a second.
const SLEEPS: usize = 80;
const SLEEP: Nanos = Nanos(250_000);

/// Time limit; a measurement takes a twentieth of it on a machine that is not overloaded.
const LONGEST: Nanos = Nanos(2_000_000_000);

/// Student's t for 95 % and 4 degrees of freedom, the minimum of Welch's test for five and five.
const T: f64 = 2.776;

/// Median cycle of each turn, and the duration of one system call.
#[derive(Clone, Debug, PartialEq)]
struct Turns {
    cycles: Vec<Nanos>,
    call: Nanos,
}

/// Cost of recording; `noise` is that of the cycle (95 %).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Added {
    cycle: Nanos,
    noise: Nanos,
    call: Nanos,
}

/// Arms the recording for these threads, and measures its cost.
pub fn arm(explainer: &mut Explainer, level: RecordingLevel, threads: Vec<i32>, run: &mut Run) -> Result<()> {
    let thread = CalibratingThread::start();
    let before = thread.as_ref().and_then(CalibratingThread::measure);
    explainer.arm(level, run)?;
    let (Some(thread), Some(before)) = (thread, before) else { return Ok(()) };
    explainer.record_too(threads.iter().copied().chain([thread.id]).collect());
    let added = thread.measure().map(|after| after.added_to(&before));
    explainer.record_too(threads);
    run.overhead.recorder_ns_per_cycle = added.map(|added| added.cycle);
    explainer.account.set_cost_noise(added.map(|added| added.noise));
    if matches!(level, RecordingLevel::Victims { syscalls: true, .. }) {
        // For a thread that is not followed, the filter drops both events of a call.
        let others = thread.measure().map(|after| after.added_to(&before));
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

/// The calibrating thread; it ends when this is dropped.
struct CalibratingThread {
    id: i32,
    cpu: Cpu,
    /// Dropping it ends the thread.
    ask: Option<Sender<()>>,
    answers: Receiver<Option<Turns>>,
    thread: Option<JoinHandle<()>>,
}

impl CalibratingThread {
    /// Starts it pinned to one of the permitted CPUs, under SCHED_FIFO if possible; none if no
    /// thread can be created.
    fn start() -> Option<CalibratingThread> {
        let ((ask, asked), (answer, answers), (tell, told)) = (channel(), channel(), channel());
        let body = move || {
            // The lowest priority preempts no other real-time thread.
            let _ = rt::set_policy(Policy::Fifo, 1);
            let _ = rt::set_minimum_timer_slack();
            let cpu = rt::current_cpu();
            let _ = rt::pin(&[cpu].into_iter().collect::<CpuSet>());
            let _ = tell.send((rt::thread_id(), cpu));
            while asked.recv().is_ok() {
                let _ = answer.send(measured());
            }
        };
        let thread = Builder::new().name("onbeat/cost".to_owned()).spawn(body).ok()?;
        let (id, cpu) = told.recv().ok()?;
        Some(CalibratingThread { id, cpu, ask: Some(ask), answers, thread: Some(thread) })
    }

    /// Duration of a cycle and of a call now; none if a clock cannot be read.
    fn measure(&self) -> Option<Turns> {
        let _busy = Hogs::start([self.cpu].into_iter(), clock::monotonic() + LONGEST).ok()?;
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

impl Turns {
    /// Increase since `before`; a decrease is chance and counts as 0.
    fn added_to(&self, before: &Turns) -> Added {
        let (after_mean, after_error) = self.mean();
        let (before_mean, before_error) = before.mean();
        let noise = T * after_error.hypot(before_error);
        Added {
            cycle: Nanos((after_mean - before_mean).max(0.0).round() as i64),
            noise: Nanos(noise.round() as i64),
            call: (self.call - before.call).max(Nanos(0)),
        }
    }

    /// Mean of the turns' medians, and its standard error.
    fn mean(&self) -> (f64, f64) {
        let turns = self.cycles.len() as f64;
        let mean = self.cycles.iter().map(|cycle| cycle.0 as f64).sum::<f64>() / turns;
        let squares: f64 = self.cycles.iter().map(|cycle| (cycle.0 as f64 - mean).powi(2)).sum();
        (mean, (squares / (turns - 1.0) / turns).sqrt())
    }
}

fn measured() -> Option<Turns> {
    let cycles = (0..TURNS).map(|_| median_cycle()).collect::<Option<_>>()?;
    Some(Turns { cycles, call: call_time()? })
}

/// Median time from the timer to the next sleep, with no work between them.
fn median_cycle() -> Option<Nanos> {
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
    cycles.get(cycles.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_and_a_call_have_a_cost() {
        let thread = CalibratingThread::start().expect("a thread");
        assert!(thread.id > 0);
        let Some(cost) = thread.measure() else { return };
        assert!(cost.cycles.iter().all(|cycle| cycle.0 > 0) && cost.call.0 > 0, "{cost:?}");
        assert!(thread.measure().is_some(), "again");
    }

    #[test]
    fn less_than_before_is_none_and_what_chance_may_add_is_said() {
        let of = |cycles: [i64; TURNS], call| Turns { cycles: cycles.map(Nanos).to_vec(), call: Nanos(call) };
        let before = of([40, 50, 60, 50, 50], 7);
        let after = of([90, 90, 90, 90, 90], 5);
        // Standard error of the mean of the turns before: sqrt(50 / 5) = 3.16.
        assert_eq!(after.added_to(&before), Added { cycle: Nanos(40), noise: Nanos(9), call: Nanos(0) });
        assert_eq!(before.added_to(&after), Added { cycle: Nanos(0), noise: Nanos(9), call: Nanos(2) });
    }
}
