//! The threads that had a CPU last, piece by piece, as in `programs::pieces`.

use std::collections::VecDeque;

use model::units::Nanos;
use trace::event::Task;

use crate::layout::PIECES;

/// The last pieces of one CPU's time, each up to the start of the next.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuPieces {
    /// Start of each piece, and its thread; `None` if a switch from another one was not seen.
    pieces: VecDeque<(Nanos, Option<Task>)>,
}

impl CpuPieces {
    /// Begins the piece of the next thread of a switch.
    pub fn begin(&mut self, previous: &Task, next: Task, at: Nanos) {
        if let Some((_, task)) = self.pieces.back_mut()
            && task.is_some_and(|task| task.pid != previous.pid)
        {
            *task = None;
        }
        if self.pieces.len() == PIECES {
            self.pieces.pop_front();
        }
        self.pieces.push_back((at, Some(next)));
    }

    /// The thread that has the CPU.
    pub fn running(&self) -> Option<Task> {
        self.pieces.back().and_then(|(_, task)| *task)
    }

    /// Time in which the previous thread of the last switch had the CPU since a waking, as far as
    /// the pieces show; `None` if its own switch-in was not seen.
    pub fn held(&self, previous: &Task, wake: Nanos) -> Option<Nanos> {
        let mut later = self.pieces.iter().rev();
        let mut end = later.next()?.0;
        let of_previous = |task: &Option<Task>| task.is_some_and(|task| task.pid == previous.pid);
        later.clone().next().filter(|(_, task)| of_previous(task))?;
        let mut held = Nanos(0);
        for (since, task) in later {
            if of_previous(task) {
                held = held + (end - wake.max(*since));
            }
            if *since <= wake {
                break;
            }
            end = *since;
        }
        Some(held)
    }
}
