//! The kernel's hwlat tracer in onbeat's instance: what it needs, and its refusals.
//!
//! Source: Documentation/trace/hwlat_detector.rst, kernel/trace/trace_hwlat.c.

use std::io;
use std::sync::Arc;

use host::tracefs::{Instance, NotHere, Tracing, start_keeper};
use model::error::{Exit, Failure, Result, run_with};
use model::units::{CpuSet, Nanos};

/// Folder of the tracer's machine-wide settings, below the top level of tracefs.
pub const FOLDER: &str = "hwlat_detector";

/// Name of the tracer, as in `available_tracers`.
pub const TRACER: &str = "hwlat";

/// Size of a CPU's buffer: a window has one line at most.
const BUFFER_KIB: &str = "64";

/// Armed tracer, which does not record yet. Dropping it restores the threshold and removes the
/// instance, if no other has it.
pub struct HwlatTracer {
    tracing: Tracing,
    pub instance: Arc<Instance>,
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
        let tracing = Tracing::open().map_err(refusal)?;
        let offered = tracing.read("available_tracers").unwrap_or_default();
        if !offered.split_ascii_whitespace().any(|name| name == TRACER) {
            return Err(Failure::not_supported(
                "this kernel has no hwlat tracer (CONFIG_HWLAT_TRACER): use --source spin",
            ));
        }
        Ok(tracing)
    }

    /// Arms the tracer for these CPUs and gaps of that length.
    ///
    /// # Errors
    /// Another program uses the tracer, or the kernel refuses.
    pub fn arm(tracing: Tracing, cpus: &CpuSet, over: Nanos) -> Result<HwlatTracer> {
        let failed = |error: io::Error| match error.raw_os_error() {
            Some(libc::EBUSY) => Failure::not_permitted(
                "another program uses the kernel's hwlat tracer: wait until it ends, or use --source spin",
            ),
            _ => {
                let what = "cannot use the kernel's hwlat tracer";
                Failure::of_call(what, &error, Exit::NotSupported, "use --source spin")
            }
        };
        let instance = tracing.instance().map_err(failed)?;
        let unkept = start_keeper().err().map(|error| {
            format!(
                "if this process is killed, the tracer runs until onbeat starts again: no keeper ({error})"
            )
        });
        instance.write("tracing_on", "0").map_err(failed)?;
        instance.write("buffer_size_kb", BUFFER_KIB).map_err(failed)?;
        instance.write("tracing_cpumask", &cpus.mask()).map_err(failed)?;
        instance.write("current_tracer", TRACER).map_err(failed)?;
        // The tracer counts gaps that are longer than its threshold.
        let threshold = (over.0 / Nanos::MICRO.0 - 1).max(1);
        let threshold_before = tracing.set_threshold(threshold).map_err(failed)?;
        Ok(HwlatTracer { tracing, instance: Arc::new(instance), threshold_before, unkept })
    }
}

impl Drop for HwlatTracer {
    fn drop(&mut self) {
        let _ = self.instance.write("tracing_on", "0");
        let _ = self.tracing.set_threshold(self.threshold_before);
        let _ = self.instance.write("current_tracer", "nop");
    }
}

fn refusal(why: NotHere) -> Failure {
    let instead = "use --source spin";
    match why {
        NotHere::NoTracefs => Failure::not_supported(format!("this kernel has no tracing: {instead}")),
        NotHere::NotMounted => Failure::not_supported(format!(
            "tracefs is not mounted: mount -t tracefs nodev /sys/kernel/tracing, or {instead}"
        )),
        NotHere::NotPermitted(errno) => Failure::not_permitted(format!(
            "tracefs is not permitted here ({}): {}, and without kernel lockdown, or {instead}",
            io::Error::from_raw_os_error(errno),
            run_with("CAP_SYS_ADMIN")
        )),
        NotHere::Failed(errno) => {
            let error = io::Error::from_raw_os_error(errno);
            Failure::of_call("cannot open tracefs", &error, Exit::NotSupported, instead)
        }
    }
}
