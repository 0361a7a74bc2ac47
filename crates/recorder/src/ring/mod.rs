//! The recorder for kernels that accept no programs: a private tracing instance, whose rings are
//! read and counted here.
//!
//! [`source`] filters for events of real-time threads, [`order`] merges the events of all CPUs by
//! time, [`machine`] handles them as the programs inside the kernel do.
//!
//! A thread of this process polls the rings often enough to keep them mostly empty. The kernel
//! could wake it when a ring is half full; that would be one more interrupt on the observed CPU,
//! right after a wake-up (`rb_wakeups`, kernel/trace/ring_buffer.c).

pub mod machine;
mod order;
mod pieces;
mod source;
mod state;
pub mod tally;
mod threads;

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use host::capabilities;
use model::error::{Exit, Failure, Result};

use self::state::RingState;
use crate::drain::DrainedEpoch;
use crate::recorder::{About, Options, Reading, cpus_of_the_machine};
use crate::records::WorstFound;

/// The armed ring. The instance is removed on drop. If this process lost the permission, or is
/// killed, the process of `host::tracefs::start_keeper` removes it.
pub struct RingRecorder {
    shared: Arc<SharedRing>,
    reader: Option<JoinHandle<()>>,
    about: About,
}

struct SharedRing {
    state: Mutex<RingState>,
    ended: Mutex<bool>,
    end: Condvar,
}

impl SharedRing {
    fn state(&self) -> MutexGuard<'_, RingState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn ended(&self) -> MutexGuard<'_, bool> {
        self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Reads the rings until the end.
    fn read(&self) {
        // All is open.
        let _ = capabilities::keep_only(&[]);
        while !*self.ended() {
            let period = self.state().pass_now();
            let ended = self.ended();
            if !*ended {
                let span = Duration::from_nanos(period.0.unsigned_abs());
                drop(self.end.wait_timeout(ended, span));
            }
        }
    }
}

impl RingRecorder {
    /// Makes the instance and lets it record.
    pub fn arm(options: &Options) -> Result<RingRecorder> {
        let cpus = cpus_of_the_machine()?;
        let online = cpus.all_online.len();
        let (state, unlearned) = RingState::arm(options, &cpus.all_possible, online)?;
        let about = About {
            reading: Reading::Ring,
            unlearned,
            sees_suspends: state.sees_suspends(),
            compiled: true,
            kernel_memory: online * (state.buffer_kib() << 10) as usize,
            ..About::default()
        };
        let shared =
            Arc::new(SharedRing { state: Mutex::new(state), ended: Mutex::new(false), end: Condvar::new() });
        let reading = Arc::clone(&shared);
        let reader = Builder::new().name("onbeat-ring".into()).spawn(move || reading.read());
        let reader = reader.map_err(|error| {
            let what = "cannot start a thread to read the trace ring";
            Failure::of_call(what, &error, Exit::Internal, "raise the limit of processes (ulimit -u)")
        })?;
        Ok(RingRecorder { shared, reader: Some(reader), about })
    }

    /// Properties of the recording.
    pub fn about(&self) -> &About {
        &self.about
    }

    pub(crate) fn about_mut(&mut self) -> &mut About {
        &mut self.about
    }

    /// Gives a thread separate histograms from its next wake-up on.
    ///
    /// # Errors
    /// The thread does not exist, or all separate histograms are in use.
    pub fn choose(&mut self, tid: u32) -> Result<()> {
        self.shared.state().choose(tid)
    }

    /// Takes the records since the last call.
    pub fn take(&mut self) -> DrainedEpoch {
        self.shared.state().take()
    }

    /// The largest wake-up of a program's thread since the last time, T + W or, without T, W.
    pub fn largest(&self) -> Option<WorstFound> {
        self.shared.state().largest()
    }

    /// Stops recording; counts can still be taken.
    pub fn disarm(&mut self) {
        self.shared.state().disarm();
    }
}

impl Drop for RingRecorder {
    fn drop(&mut self) {
        *self.shared.ended() = true;
        self.shared.end.notify_all();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
