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
    /// Arms it: programs before a ring, unless one way was asked for.
    ///
    /// # Errors
    /// What is missing for each way that was tried.
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

    /// How it records.
    pub fn about(&self) -> &About {
        match self {
            WakeupRecorder::Programs(recorder) => recorder.about(),
            WakeupRecorder::Ring(recorder) => recorder.about(),
        }
    }

    /// Gives a thread histograms of its own, from its next wake-up on.
    ///
    /// # Errors
    /// There is no such thread, or no room for it.
    pub fn choose(&mut self, tid: u32) -> Result<()> {
        match self {
            WakeupRecorder::Programs(recorder) => recorder.choose(tid),
            WakeupRecorder::Ring(recorder) => recorder.choose(tid),
        }
    }

    /// Takes what was recorded since the last time.
    ///
    /// # Errors
    /// The kernel does not hand it over.
    pub fn take(&mut self) -> Result<DrainedEpoch> {
        match self {
            WakeupRecorder::Programs(recorder) => recorder.take(),
            WakeupRecorder::Ring(recorder) => Ok(recorder.take()),
        }
    }

    /// The largest wake-up of a program's thread since the last time, T + W or, without T, W; for
    /// looking now and then, as it takes nothing out.
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

/// Why there is neither: the remedy of either helps.
fn neither(no_programs: Failure, no_ring: &Failure) -> Failure {
    let message = format!("{}; and no trace ring: {}", no_programs.message, no_ring.message);
    Failure { exit: no_programs.exit, message }
}
