//! Tracks of threads in a window, for pictures: one track per thread, across CPUs.

use crate::event::{Named, Task, What};
use crate::window::Window;
use model::sort::CompactSort;
use model::units::{Cpu, Nanos};

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadDoing {
    Running,
    /// Runnable, while another thread has the CPU.
    Waiting,
    Sleeping,
}

/// Time of a thread in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStretch {
    pub start: Nanos,
    /// Length, above 0.
    pub ns: Nanos,
    pub state: ThreadDoing,
    /// CPU on which it ran, or was to run.
    pub cpu: Cpu,
}

/// Track of one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadTrack {
    pub task: Task,
    /// Stretches in order of time, without overlap; gaps are times without evidence.
    pub stretches: Vec<ThreadStretch>,
}

/// Tracks of these threads, in their order, from their first event to the window's actual time;
/// threads without events are omitted.
pub fn thread_tracks(window: &Window, threads: &[i32]) -> Vec<ThreadTrack> {
    let mut ordered: Vec<&Named> = window.events.iter().collect();
    ordered.compact_sort_by_key(|event| event.time);
    let track = |&thread: &i32| Walk::of(&ordered, thread, window.actual_ns.0);
    threads.iter().filter_map(track).collect()
}

struct Walk {
    track: ThreadTrack,
    /// State, with its start and CPU.
    now: Option<(i64, ThreadDoing, Cpu)>,
}

impl Walk {
    fn of(ordered: &[&Named], thread: i32, until: i64) -> Option<ThreadTrack> {
        let task = Task { pid: thread, ..Task::default() };
        let mut walk = Walk { track: ThreadTrack { task, stretches: Vec::new() }, now: None };
        for event in ordered.iter().filter(|event| event.time.0 < until) {
            match &event.what {
                What::Switch { next, .. } if next.pid == thread => {
                    walk.turn(event, *next, ThreadDoing::Running, event.cpu);
                }
                What::Switch { prev, state, .. } if prev.pid == thread => {
                    let stays = matches!(state, 0 | 256);
                    let state = if stays { ThreadDoing::Waiting } else { ThreadDoing::Sleeping };
                    walk.turn(event, *prev, state, event.cpu);
                }
                What::Waking { task, target } if task.pid == thread => {
                    let runs = walk.now.is_some_and(|now| now.1 == ThreadDoing::Running);
                    if !runs {
                        walk.turn(event, *task, ThreadDoing::Waiting, *target);
                    }
                }
                _ => {}
            }
        }
        walk.close(until);
        (!walk.track.stretches.is_empty()).then_some(walk.track)
    }

    fn turn(&mut self, event: &Named, task: Task, state: ThreadDoing, cpu: Cpu) {
        self.close(event.time.0);
        self.track.task = task;
        self.now = Some((event.time.0, state, cpu));
    }

    fn close(&mut self, end: i64) {
        if let Some((start, state, cpu)) = self.now.take().filter(|now| now.0 < end) {
            let ns = Nanos(end - start);
            self.track.stretches.push(ThreadStretch { start: Nanos(start), ns, state, cpu });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{E, window};
    use super::*;

    #[test]
    fn a_thread_has_its_states_wherever_it_is() {
        let window = window(
            60.0,
            "-5 1 50 d  switch rt/50/19 S low/61/120
             2  1 0  dh waking rt/50/19 2
             5  2 0  d  switch swapper/2/0/120 R rt/50/19
             20 2 50 d  switch rt/50/19 P hog/60/9
             30 2 60 d  switch hog/60/9 S rt/50/19",
        );
        let all = thread_tracks(&window, &[50, 61, 99]);
        let lines_of = |track: &ThreadTrack| {
            let one = |stretch: &ThreadStretch| {
                let (from, long) = ((stretch.start.0 - E) / 1_000, stretch.ns.0 / 1_000);
                format!("{:?} {from}+{long} on {}", stretch.state, stretch.cpu)
            };
            track.stretches.iter().map(one).collect::<Vec<_>>()
        };
        assert_eq!(
            lines_of(&all[0]),
            [
                "Sleeping -5+7 on 1",
                "Waiting 2+3 on 2",
                "Running 5+15 on 2",
                "Waiting 20+10 on 2",
                "Running 30+30 on 2"
            ]
        );
        assert_eq!((all.len(), lines_of(&all[1])), (2, vec!["Running -5+65 on 1".to_owned()]));
        assert_eq!(all[1].task.comm.text(), "low");
    }
}
