//! Segments of a thread's cycle: from switch to switch, and from sleep to waking.

use crate::event::{Named, What};
use crate::window::Window;
use model::sort::CompactSort;
use model::units::Cpu;

/// Activity of the thread between two of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Released or woken, but not running yet.
    Waiting,
    Running,
    /// Another thread was switched to.
    Preempted,
    Sleeping,
    /// Waiting or running: the switch to it was not recorded, so its time is unknown.
    Unseen,
}

/// Time between two events of the thread.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CycleSegment<'w> {
    pub start: i64,
    pub end: i64,
    pub doing: Doing,
    /// CPU on which it ran, or was to run in the end.
    pub cpu: Cpu,
    /// True if the thread was still in its last cycle.
    pub last_cycle: bool,
    /// Switch at the start of a sleep; `woken` is the waking at its end.
    pub slept: Option<&'w Named>,
    pub woken: Option<&'w Named>,
}

/// Segments from the release to the end, without a gap.
pub(super) fn segments(window: &Window) -> Vec<CycleSegment<'_>> {
    let (from, to, victim) = (window.expected_ns.0, window.actual_ns.0, window.victim.pid);
    let mut all: Vec<&Named> = window.events.iter().collect();
    all.compact_sort_by_key(|event| event.time);
    let events: Vec<&Named> = all.iter().copied().filter(|event| concerns(event, victim)).collect();
    // A thread still in its last cycle goes to sleep for this release after that was due.
    let armed = |event: &&&Named| {
        let own = event.pid == victim && !event.context.hard_irq() && !event.context.soft_irq();
        own && matches!(event.what, What::TimerStart { expires, .. } if expires == window.expected_ns)
    };
    let asleep = events.iter().find(armed).map_or(from, |event| event.time.0.max(from));
    let mut walk = Walk {
        all: &all,
        segments: Vec::new(),
        start: from,
        doing: Doing::Waiting,
        runs: runs_at(&events, victim, asleep),
        released: false,
        last_cycle: false,
        slept: None,
        woken: None,
        left: None,
    };
    walk.last_cycle(&events, victim, from, asleep);
    let steps = || all.iter().filter(|event| concerns(event, victim) || is_own(event, victim));
    for event in steps().filter(|event| (asleep..to).contains(&event.time.0)) {
        walk.step(event, victim);
    }
    walk.close(to, window.cpu);
    walk.segments
}

fn concerns(event: &Named, victim: i32) -> bool {
    match &event.what {
        What::Switch { prev, next, .. } => prev.pid == victim || next.pid == victim,
        What::Waking { task, .. } => task.pid == victim,
        What::TimerStart { .. } | What::TimerStartExpired { .. } => event.pid == victim,
        _ => false,
    }
}

/// True if the thread had the CPU at an event. A stack is written after its switch.
fn is_own(event: &Named, victim: i32) -> bool {
    event.pid == victim && !matches!(event.what, What::Stack { .. })
}

/// True if the thread was on a CPU at a time, by the last switch before it.
fn runs_at(events: &[&Named], victim: i32, time: i64) -> bool {
    let before = events.iter().rev().filter(|event| event.time.0 < time);
    let mut switches = before.filter_map(|event| match &event.what {
        What::Switch { next, .. } => Some(next.pid == victim),
        _ => None,
    });
    switches.next().unwrap_or(false)
}

/// Activity of the thread at a time, by its events before, else by the next one; with the switch at
/// the start of a sleep, if known.
fn doing_at<'w>(events: &[&'w Named], victim: i32, time: i64) -> (Doing, Option<&'w Named>) {
    let at = events.partition_point(|event| event.time.0 < time);
    let mut now = None;
    for event in &events[..at] {
        now = match (&event.what, now) {
            (What::Switch { next, .. }, _) if next.pid == victim => Some((Doing::Running, None)),
            (What::Switch { state, .. }, _) if stays(*state) => Some((Doing::Preempted, None)),
            (What::Switch { .. }, _) => Some((Doing::Sleeping, Some(*event))),
            (What::Waking { .. }, None | Some((Doing::Sleeping, _))) => Some((Doing::Waiting, None)),
            _ => now,
        };
    }
    let of_next = || match events.get(at..)?.iter().find(|event| !is_timer(event))?.what {
        What::Waking { .. } => Some((Doing::Sleeping, None)),
        What::Switch { prev, .. } if prev.pid == victim => Some((Doing::Running, None)),
        _ => None,
    };
    now.or_else(of_next).unwrap_or((Doing::Waiting, None))
}

fn is_timer(event: &Named) -> bool {
    matches!(event.what, What::TimerStart { .. } | What::TimerStartExpired { .. })
}

/// True if a thread that leaves its CPU in this state is runnable; 256 is preempted
/// (TASK_REPORT_MAX).
fn stays(state: i64) -> bool {
    matches!(state, 0 | 256)
}

struct Walk<'s, 'w> {
    /// All events, in order of time.
    all: &'s [&'w Named],
    segments: Vec<CycleSegment<'w>>,
    start: i64,
    doing: Doing,
    /// True if it is on a CPU, also before its release.
    runs: bool,
    /// True after the waking of its release.
    released: bool,
    last_cycle: bool,
    slept: Option<&'w Named>,
    woken: Option<&'w Named>,
    /// Time of the last switch from it.
    left: Option<i64>,
}

impl<'w> Walk<'_, 'w> {
    /// Adds the part before the thread went to sleep for its release, if it slept in it: the cause
    /// of such a sleep did not delay the release, so it is kept separate.
    fn last_cycle(&mut self, events: &[&'w Named], victim: i32, from: i64, asleep: i64) {
        let (doing, slept) = doing_at(events, victim, from);
        let before = || events.iter().filter(|event| (from..asleep).contains(&event.time.0));
        let sleeps = |event: &&&Named| match &event.what {
            What::Switch { prev, state, .. } => prev.pid == victim && !stays(*state),
            _ => false,
        };
        if from >= asleep || (doing != Doing::Sleeping && !before().any(|event| sleeps(&event))) {
            return;
        }
        (self.doing, self.slept, self.last_cycle, self.released) = (doing, slept, true, true);
        for event in before() {
            self.step(event, victim);
        }
        self.released = false;
    }

    fn step(&mut self, event: &'w Named, victim: i32) {
        let time = event.time.0;
        if is_own(event, victim) {
            self.has_its_cpu(event);
        }
        match &event.what {
            What::TimerStartExpired { .. } if event.context.hard_irq() => {}
            What::Waking { .. } if self.doing == Doing::Sleeping => {
                self.woken = Some(event);
                self.turn(time, event.cpu, Doing::Waiting);
                self.release();
            }
            What::Waking { .. } | What::TimerStartExpired { .. } if !self.released => {
                if self.runs {
                    self.turn(time, event.cpu, Doing::Running);
                }
                self.release();
            }
            What::Switch { next, .. } if next.pid == victim => {
                self.runs = true;
                // Its waking came before the window or was lost: the end of its sleep is unknown.
                if self.last_cycle && self.doing == Doing::Sleeping {
                    self.doing = Doing::Waiting;
                }
                let still = self.last_cycle && self.doing == Doing::Preempted;
                self.turn(time, event.cpu, Doing::Running);
                // The release may have no waking: it was lost, or came before the window.
                if !still {
                    self.release();
                }
            }
            What::Switch { prev, state, .. } if prev.pid == victim => {
                (self.runs, self.left) = (false, Some(time));
                self.leaves(event, stays(*state));
            }
            _ => {}
        }
    }

    /// Handles an event of the thread while it waited: the switch to it was not recorded, and came
    /// after the last event of another thread on that CPU. Events of the kernel on the way from the
    /// thread come before that.
    fn has_its_cpu(&mut self, event: &Named) {
        if !self.released || !matches!(self.doing, Doing::Waiting | Doing::Preempted) {
            return;
        }
        let before = self.all.partition_point(|other| other.time < event.time);
        let mut others = self.all[..before].iter().rev();
        let last = others.find(|other| other.cpu == event.cpu && other.pid != event.pid);
        let Some(last) = last.map(|other| other.time.0) else { return };
        if self.left.is_none_or(|left| last > left) {
            self.turn(last.max(self.start), event.cpu, Doing::Unseen);
            self.turn(event.time.0, event.cpu, Doing::Running);
            self.runs = true;
        }
    }

    fn leaves(&mut self, event: &'w Named, stays: bool) {
        if self.doing != Doing::Running {
            return;
        }
        // Once its timer is started, its sleep is the one for its release.
        let next = match (stays, self.released) {
            (true, _) => Doing::Preempted,
            (false, true) => Doing::Sleeping,
            (false, false) => Doing::Waiting,
        };
        self.turn(event.time.0, event.cpu, next);
        self.slept = (next == Doing::Sleeping).then_some(event);
        self.last_cycle &= next != Doing::Waiting;
    }

    fn release(&mut self) {
        if !self.released {
            (self.released, self.last_cycle) = (true, false);
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
            let (start, doing, last_cycle) = (self.start, self.doing, self.last_cycle);
            self.segments.push(CycleSegment { start, end, doing, cpu, last_cycle, slept, woken });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{E, window};
    use super::*;

    fn segment_lines(events: &str, end: f64) -> Vec<String> {
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
        assert_eq!(segment_lines(events, 70.0), all);
    }

    #[test]
    fn a_switch_that_was_not_recorded_lies_between_two_events_of_its_cpu() {
        let events = "
            -50 1 50 d switch rt/50/19 S swapper/1/0/120
            2  1 0  dh waking rt/50/19
            4  1 0  dh vector- local_timer
            20 1 50 dh vector+ local_timer
            24 1 50 dh vector- local_timer
            30 1 50 d  switch rt/50/19 P hog/60/9
            30 1 50 d  stack schedule
            40 1 60 d  vector- local_timer
            52 1 50 d  switch rt/50/19 S low/61/120
            55 1 61 .  waking rt/50/19";
        let all = ["Waiting 4", "Unseen 16", "Running 10", "Preempted 10", "Unseen 12", "Sleeping 3"];
        assert_eq!(segment_lines(events, 70.0), [&all[..], &["Waiting 15"]].concat());
        // On the way from the thread, events of the kernel are still its own.
        let way = "
            -50 1 50 d switch rt/50/19 S swapper/1/0/120
            2  1 0  dh waking rt/50/19
            5  1 0  d  switch swapper/1/0/120 R rt/50/19
            30 1 50 d  switch rt/50/19 P hog/60/9
            31 1 50 d  vector- local_timer";
        assert_eq!(segment_lines(way, 40.0), ["Waiting 5", "Running 25", "Preempted 10"]);
    }

    #[test]
    fn what_the_last_cycle_still_does_is_waiting() {
        // Due at 0, it runs and is preempted until it starts its timer at 40, which is over.
        let events = "
            -50 1 0  d  switch swapper/1/0/120 R rt/50/19
            10  1 50 d  switch rt/50/19 P hog/60/9
            20  1 60 d  switch hog/60/9 S rt/50/19
            40  1 50 .  start 1 hrtimer_wakeup 0
            42  1 50 dh waking rt/50/19";
        assert_eq!(segment_lines(events, 70.0), ["Waiting 42", "Running 28"]);
        // Since 7.2 no timer is queued for it, and nothing wakes it.
        let over = events.replace("42  1 50 dh waking rt/50/19", "42  1 50 d  over 1");
        assert_eq!(segment_lines(&over, 70.0), ["Waiting 42", "Running 28"]);
        let another = events.replace("42  1 50 dh waking rt/50/19", "42  1 50 dh over 2");
        assert_eq!(segment_lines(&another, 70.0), ["Waiting 70"]);
        assert_eq!(segment_lines("", 10.0), ["Waiting 10"]);
    }

    #[test]
    fn a_sleep_of_the_last_cycle_is_walked_as_in_any() {
        // Due at 0, it waits for another thread until 30, is preempted, sleeps again, and starts
        // its timer at 60, which is over.
        let slept = "-50 1 50 d  switch rt/50/19 S swapper/1/0/120\n";
        let events = "
            30  0 61 .  waking rt/50/19
            34  1 0  d  switch swapper/1/0/120 R rt/50/19
            40  1 50 d  switch rt/50/19 P hog/60/9
            44  1 60 d  switch hog/60/9 S rt/50/19
            46  1 50 d  switch rt/50/19 S low/61/120
            52  1 61 .  waking rt/50/19
            55  1 61 d  switch low/61/120 R rt/50/19
            60  1 50 .  start 1 hrtimer_wakeup 0\n";
        let last = ["Running 6", "Preempted 4", "Running 2", "Sleeping 6", "Waiting 3"];
        let with = |first: &[&'static str], rest: &[&'static str]| [first, &last[..], rest].concat();
        let woken = "62 1 50 dh waking rt/50/19";
        let all = with(&["Sleeping 30", "Waiting 4"], &["Running 7", "Running 8"]);
        assert_eq!(segment_lines(&(slept.to_owned() + events + woken), 70.0), all);
        // Its waking shows that it slept, since an unknown time.
        assert_eq!(segment_lines(&(events.to_owned() + woken), 70.0), all);
        // It sleeps for its release, or is preempted on the way there.
        let sleeps = "62 1 50 d  switch rt/50/19 S swapper/1/0/120
                      63 1 0  dh waking rt/50/19
                      66 1 0  d  switch swapper/1/0/120 R rt/50/19";
        let all = with(&["Sleeping 30", "Waiting 4"], &["Running 7", "Waiting 4", "Running 4"]);
        assert_eq!(segment_lines(&(events.to_owned() + sleeps), 70.0), all);
        let preempted = "62 1 50 d  switch rt/50/19 P hog/60/9
                         64 1 60 d  switch hog/60/9 S rt/50/19\n";
        let all =
            with(&["Sleeping 30", "Waiting 4"], &["Running 7", "Preempted 2", "Running 2", "Running 4"]);
        let woken = "66 1 50 dh waking rt/50/19";
        assert_eq!(segment_lines(&(events.to_owned() + preempted + woken), 70.0), all);
        let unseen = events.lines().skip(2).collect::<Vec<_>>().join("\n") + "\n" + woken;
        assert_eq!(segment_lines(&(slept.to_owned() + &unseen), 70.0)[0], "Waiting 34");
        let own = window(70.0, &(events.to_owned() + woken));
        let own = segments(&own).iter().filter(|segment| !segment.last_cycle).count();
        assert_eq!(own, 1);
    }
}
