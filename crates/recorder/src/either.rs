//! The recorder in the best way that works here.

use model::error::{Failure, Result};

use crate::drain::DrainedEpoch;
use crate::recorder::{About, KernelRecorder, Options, Reading, no_switch};
use crate::records::WorstFound;
use crate::ring::RingRecorder;

/// Programs inside the kernel, or a ring that is read here. Either counts the same.
pub enum WakeupRecorder {
    Programs(Box<KernelRecorder>),
    Ring(RingRecorder),
}

impl WakeupRecorder {
    /// Arms a recorder: programs rather than a ring, unless one of them was requested.
    ///
    /// # Errors
    /// The missing requirement of each way that was tried.
    pub fn arm(options: &Options) -> Result<WakeupRecorder> {
        let programs = || KernelRecorder::arm(options).map(|armed| WakeupRecorder::Programs(Box::new(armed)));
        let ring = || RingRecorder::arm(options);
        match options.reading {
            Reading::Types | Reading::Format => programs(),
            Reading::Ring if options.switch => Err(no_switch("a ring does not show its end")),
            Reading::Ring => ring().map(WakeupRecorder::Ring),
            Reading::Best if options.switch => programs(),
            Reading::Best => programs().or_else(|no_programs| match ring() {
                Ok(mut ring) => {
                    ring.about_mut().why_not_better = Some(no_programs.message);
                    Ok(WakeupRecorder::Ring(ring))
                }
                Err(no_ring) => Err(neither(no_programs, &no_ring)),
            }),
        }
    }

    /// Properties of the recording.
    pub fn about(&self) -> &About {
        match self {
            WakeupRecorder::Programs(recorder) => recorder.about(),
            WakeupRecorder::Ring(recorder) => recorder.about(),
        }
    }

    /// Gives a thread separate histograms from its next wake-up on.
    ///
    /// # Errors
    /// The thread does not exist, or all separate histograms are in use.
    pub fn choose(&mut self, tid: u32) -> Result<()> {
        match self {
            WakeupRecorder::Programs(recorder) => recorder.choose(tid),
            WakeupRecorder::Ring(recorder) => recorder.choose(tid),
        }
    }

    /// Takes the records since the last call.
    ///
    /// # Errors
    /// The kernel does not hand it over.
    pub fn take(&mut self) -> Result<DrainedEpoch> {
        match self {
            WakeupRecorder::Programs(recorder) => recorder.take(),
            WakeupRecorder::Ring(recorder) => Ok(recorder.take()),
        }
    }

    /// Largest wake-up of a program's thread since the last call of `take`: T + W, or W without T.
    /// Removes nothing, so it may be polled.
    ///
    /// # Errors
    /// The kernel does not hand it over.
    pub fn largest(&self) -> Result<Option<WorstFound>> {
        match self {
            WakeupRecorder::Programs(recorder) => recorder.largest(),
            WakeupRecorder::Ring(recorder) => Ok(recorder.largest()),
        }
    }
}

/// Failure of both ways; either remedy suffices.
fn neither(no_programs: Failure, no_ring: &Failure) -> Failure {
    let message = format!("{}; and no trace ring: {}", no_programs.message, no_ring.message);
    Failure { exit: no_programs.exit, message }
}
