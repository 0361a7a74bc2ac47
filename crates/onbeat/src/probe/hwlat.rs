//! The kernel's hwlat tracer in onbeat's instance: what it needs, and its gaps.
//!
//! Source: Documentation/trace/hwlat_detector.rst, kernel/trace/trace_hwlat.c.

use std::io;
use std::sync::Arc;

use super::gaps::ClockGap;
use super::traced::GapReader;
use super::tracers::{KernelTracer, keep_instance};
use host::clock;
use host::tracefs::{Instance, Tracing};
use model::error::Result;
use model::units::{Cpu, CpuSet, Nanos};

/// Folder of the tracer's machine-wide settings, below the top level of tracefs.
pub const FOLDER: &str = "hwlat_detector";

const TRACER: KernelTracer =
    KernelTracer { name: "hwlat", option: "CONFIG_HWLAT_TRACER", instead: "use --source spin" };

/// Size of a CPU's buffer: a window has one line at most.
const BUFFER_KIB: &str = "64";

/// Armed tracer, which does not record yet. Dropping it restores the threshold and removes the
/// instance, if no other has it.
pub struct HwlatTracer {
    tracing: Tracing,
    instance: Arc<Instance>,
    /// Threshold of the tracer before, in us.
    threshold_before: i64,
    /// Reason why the instance would remain after a kill.
    pub unkept: Option<String>,
}

impl HwlatTracer {
    /// Opens tracefs of a kernel with this tracer.
    ///
    /// # Errors
    /// Not supported or not permitted, with the remedy.
    pub fn find() -> Result<Tracing> {
        TRACER.find()
    }

    /// Arms the tracer for these CPUs and gaps of that length.
    ///
    /// # Errors
    /// Another program uses the tracer, or the kernel refuses.
    pub fn arm(tracing: Tracing, cpus: &CpuSet, over: Nanos) -> Result<HwlatTracer> {
        let failed = |error: io::Error| TRACER.failed(&error);
        let instance = tracing.instance().map_err(failed)?;
        let unkept = keep_instance();
        instance.write("tracing_on", "0").map_err(failed)?;
        instance.write("buffer_size_kb", BUFFER_KIB).map_err(failed)?;
        instance.write("tracing_cpumask", &cpus.mask()).map_err(failed)?;
        instance.write("current_tracer", TRACER.name).map_err(failed)?;
        // The tracer counts gaps that are longer than its threshold.
        let threshold = (over.0 / Nanos::MICRO.0 - 1).max(1);
        let threshold_before = tracing.set_threshold(threshold).map_err(failed)?;
        Ok(HwlatTracer { tracing, instance: Arc::new(instance), threshold_before, unkept })
    }

    /// Reader of its gaps.
    pub fn reader(&self) -> HwlatGaps {
        HwlatGaps { instance: self.instance.clone() }
    }
}

impl Drop for HwlatTracer {
    fn drop(&mut self) {
        let _ = self.instance.write("tracing_on", "0");
        let _ = self.tracing.set_threshold(self.threshold_before);
        let _ = self.instance.write("current_tracer", "nop");
    }
}

/// Reader of the tracer's lines.
pub struct HwlatGaps {
    instance: Arc<Instance>,
}

impl GapReader for HwlatGaps {
    fn start(&self) -> io::Result<()> {
        self.instance.write("tracing_on", "1")
    }

    fn read(&self, cpu: Cpu) -> io::Result<Vec<ClockGap>> {
        let text = self.instance.read(&format!("per_cpu/cpu{cpu}/trace_pipe"))?;
        Ok(gaps_of(&text, clock::wall_offset()))
    }
}

/// Gaps of windows, each as long as the longest of its window.
fn gaps_of(text: &str, wall_offset: Nanos) -> Vec<ClockGap> {
    let gap = |window: facts::hwlat::HwlatWindow| {
        let after = window.wall - wall_offset;
        ClockGap { before: after - window.longest(), after }
    };
    facts::hwlat::windows(text).map(gap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_gap_that_ends_at_its_time() {
        let text = "hwlatd-9 [000] d..1 1.5: #1 inner/outer(us): 12/31000 ts:100.000000500 count:1\n";
        let gaps = gaps_of(text, Nanos(60_000_000_000));
        assert_eq!(gaps, [ClockGap { before: Nanos(39_969_000_500), after: Nanos(40_000_000_500) }]);
    }
}
