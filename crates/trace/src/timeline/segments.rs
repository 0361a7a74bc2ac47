//! A cycle of a thread in segments: from switch to switch, and from sleep to waking.

use crate::event::{Named, What};
use crate::window::Window;
use model::units::Cpu;

/// What the thread did from one of its events to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Released or woken, it did not run yet.
    Waiting,
    Running,
    /// Another thread was switched to.
    Preempted,
    Sleeping,
}

/// Time between two events of the thread.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CycleSegment<'w> {
    pub start: i64,
    pub end: i64,
    pub doing: Doing,
    /// Where it ran, or was to run in the end.
    pub cpu: Cpu,
    /// Of a sleep, the switch that began it, and the waking that ended it.
    pub slept: Option<&'w Named>,
    pub woken: Option<&'w Named>,
}

/// The segments from the release to the end, without a gap.
pub(super) fn segments(window: &Window) -> Vec<CycleSegment<'_>> {
    let (from, to, victim) = (window.expected_ns.0, window.actual_ns.0, window.victim.pid);
    let mut events: Vec<&Named> = window.events.iter().filter(|event| concerns(event, victim)).collect();
    events.sort_by_key(|event| event.time);
    // A thread that was still at its last cycle goes to sleep for this release after it was due.
    let armed = |event: &&&Named| {
        let own = event.pid == victim && !event.context.hard_irq() && !event.context.soft_irq();
        own && matches!(event.what, What::TimerStart { expires, .. } if expires == window.expected_ns)
    };
    let asleep = events.iter().find(armed).map_or(from, |event| event.time.0.max(from));
    let mut walk = Walk {
        made: Vec::new(),
        start: from,
        doing: Doing::Waiting,
        runs: runs_at(&events, victim, asleep),
        released: false,
        slept: None,
        woken: None,
    };
    for event in events.iter().filter(|event| (asleep..to).contains(&event.time.0)) {
        walk.step(event, victim);
    }
    walk.close(to, window.cpu);
    walk.made
}

fn concerns(event: &Named, victim: i32) -> bool {
    match &event.what {
        What::Switch { prev, next, .. } => prev.pid == victim || next.pid == victim,
        What::Waking { task, .. } => task.pid == victim,
        What::TimerStart { .. } => event.pid == victim,
        _ => false,
    }
}

/// Whether the thread was on a CPU at a time, by the last switch before it.
fn runs_at(events: &[&Named], victim: i32, time: i64) -> bool {
    let before = events.iter().rev().filter(|event| event.time.0 < time);
    let mut switches = before.filter_map(|event| match &event.what {
        What::Switch { next, .. } => Some(next.pid == victim),
        _ => None,
    });
    switches.next().unwrap_or(false)
}

struct Walk<'w> {
    made: Vec<CycleSegment<'w>>,
    start: i64,
    doing: Doing,
    /// Whether it is on a CPU, before its release too.
    runs: bool,
    /// The waking of its release has come.
    released: bool,
    slept: Option<&'w Named>,
    woken: Option<&'w Named>,
}

impl<'w> Walk<'w> {
    fn step(&mut self, event: &'w Named, victim: i32) {
        let time = event.time.0;
        match &event.what {
            What::Waking { .. } if !self.released => {
                self.released = true;
                if self.runs {
                    self.turn(time, event.cpu, Doing::Running);
                }
            }
            What::Waking { .. } if self.doing == Doing::Sleeping => {
                self.woken = Some(event);
                self.turn(time, event.cpu, Doing::Waiting);
            }
            What::Switch { next, .. } if next.pid == victim => {
                self.runs = true;
                // The release may have no waking: it was lost, or came before the window.
                if self.released || self.doing != Doing::Waiting || self.made.is_empty() {
                    self.released = true;
                    self.turn(time, event.cpu, Doing::Running);
                }
            }
            What::Switch { prev, state, .. } if prev.pid == victim => {
                self.runs = false;
                if self.released && self.doing == Doing::Running {
                    let stays = matches!(state, 0 | 256);
                    let next = if stays { Doing::Preempted } else { Doing::Sleeping };
                    self.turn(time, event.cpu, next);
                    self.slept = (!stays).then_some(event);
                }
            }
            _ => {}
        }
    }

    fn turn(&mut self, time: i64, cpu: Cpu, next: Doing) {
        self.close(time, cpu);
        (self.start, self.doing) = (time, next);
    }

    fn close(&mut self, end: i64, cpu: Cpu) {
        let slept = self.slept.take_if(|_| self.doing == Doing::Sleeping);
        let woken = self.woken.take();
        if end > self.start {
            self.made.push(CycleSegment { start: self.start, end, doing: self.doing, cpu, slept, woken });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{E, window};
    use super::*;

    fn told(events: &str, end: f64) -> Vec<String> {
        let window = window(end, events);
        let all = segments(&window);
        let mut cursor = E;
        for segment in &all {
            assert_eq!((segment.start, segment.end > segment.start), (cursor, true));
            cursor = segment.end;
        }
        assert_eq!(cursor, window.actual_ns.0);
        all.iter().map(|one| format!("{:?} {}", one.doing, (one.end - one.start) / 1_000)).collect()
    }

    #[test]
    fn a_cycle_is_walked_without_a_gap() {
        let events = "
            -50 1 50 d switch rt/50/19 S swapper/1/0/120
            2  1 0  dh waking rt/50/19
            5  1 0  d  switch swapper/1/0/120 R rt/50/19
            20 1 50 d  switch rt/50/19 P hog/60/9
            30 1 60 d  switch hog/60/9 S rt/50/19
            35 1 50 d  switch rt/50/19 S low/61/120
            55 1 61 .  waking rt/50/19
            58 1 61 d  switch low/61/120 R rt/50/19";
        let all = [
            "Waiting 5",
            "Running 15",
            "Preempted 10",
            "Running 5",
            "Sleeping 20",
            "Waiting 3",
            "Running 12",
        ];
        assert_eq!(told(events, 70.0), all);
    }

    #[test]
    fn what_the_last_cycle_still_does_is_waiting() {
        // Due at 0, it runs and is preempted until it asks for its timer at 40, which is over.
        let events = "
            -50 1 0  d  switch swapper/1/0/120 R rt/50/19
            10  1 50 d  switch rt/50/19 P hog/60/9
            20  1 60 d  switch hog/60/9 S rt/50/19
            40  1 50 .  start 1 hrtimer_wakeup 0
            42  1 50 dh waking rt/50/19";
        assert_eq!(told(events, 70.0), ["Waiting 42", "Running 28"]);
        assert_eq!(told("", 10.0), ["Waiting 10"]);
    }
}
