//! The kernel's timerlat tracer in an instance of its own, and its samples per CPU.
//!
//! Source: Documentation/trace/timerlat-tracer.rst, kernel/trace/trace_osnoise.c.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::osnoise::RELATED;
use super::tracers::{KernelTracer, decoder, keep_instance, lost_before};
use host::tracefs::{Instance, RawPipe, Tracing};
use model::error::Result;
use model::units::{Cpu, CpuSet, Nanos};
use trace::catalog::TIMERLAT;
use trace::decode::Decoder;
use trace::event::{TracerRecord, What};

/// Size of a CPU's buffer: several seconds of samples at an interval of 1 ms.
const BUFFER_KIB: &str = "512";

const TRACER: KernelTracer = KernelTracer {
    name: "timerlat",
    option: "CONFIG_TIMERLAT_TRACER",
    instead: "hunt with onbeat's own threads (--source loop)",
};

/// Remedy of the refusals that name settings.
pub const INSTEAD: &str = TRACER.instead;

/// Place at which timerlat measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerlatContext {
    /// The timer's interrupt handler.
    Irq,
    /// The thread that it wakes.
    Thread,
    /// The thread's return to user mode.
    User,
}

/// Sample of timerlat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerlatSample {
    /// Time of its record, right after the latency was read.
    pub time: Nanos,
    pub latency: Nanos,
    pub context: TimerlatContext,
    /// Current thread.
    pub thread: i32,
}

impl TimerlatSample {
    fn of(time: Nanos, thread: i32, record: TracerRecord) -> Option<TimerlatSample> {
        let TracerRecord::TimerLatency { context, ns, .. } = record else { return None };
        let context = match context {
            0 => TimerlatContext::Irq,
            1 => TimerlatContext::Thread,
            2 => TimerlatContext::User,
            _ => return None,
        };
        Some(TimerlatSample { time, latency: ns, context, thread })
    }

    /// Time at which the timer was due.
    pub fn expected(self) -> Nanos {
        self.time - self.latency
    }
}

/// Running tracer. Dropping it ends its threads.
pub struct TimerlatTracer {
    instance: Instance,
    decoder: Decoder,
    cpus: BTreeMap<Cpu, Mutex<CpuPages>>,
    /// Reason why the instance would remain after a kill.
    pub unkept: Option<String>,
    /// Kept open with the instance: a mount made for it is unmounted at its end.
    _tracing: Tracing,
}

struct CpuPages {
    pipe: RawPipe,
    page: Box<[u8]>,
    lost: u64,
}

impl TimerlatTracer {
    /// Opens tracefs of a kernel with this tracer, which no other program uses.
    ///
    /// # Errors
    /// Not supported or not permitted, with the remedy.
    pub fn find() -> Result<Tracing> {
        let tracing = TRACER.find()?;
        TRACER.refuse_used(&tracing, RELATED)?;
        Ok(tracing)
    }

    /// Starts the tracer on these CPUs.
    ///
    /// # Errors
    /// Another program uses the tracer, or the kernel refuses.
    pub fn start(tracing: Tracing, cpus: &CpuSet) -> Result<TimerlatTracer> {
        let failed = |error: io::Error| TRACER.failed(&error);
        let instance = tracing.tracer_instance().map_err(failed)?;
        let unkept = keep_instance();
        instance.write("tracing_on", "0").map_err(failed)?;
        instance.write("trace_clock", "mono").map_err(failed)?;
        instance.write("buffer_size_kb", BUFFER_KIB).map_err(failed)?;
        instance.write("tracing_cpumask", &cpus.mask()).map_err(failed)?;
        let decoder = decoder(&tracing, TIMERLAT, TRACER.instead)?;
        // The kernel refuses a change of tracer while a buffer is open.
        instance.write("current_tracer", TRACER.name).map_err(failed)?;
        let size = decoder.layout().page_size();
        let open = |cpu| {
            let pages = CpuPages { pipe: instance.pipe(cpu)?, page: vec![0; size].into(), lost: 0 };
            Ok((cpu, Mutex::new(pages)))
        };
        let cpus = cpus.iter().map(open).collect::<io::Result<_>>().map_err(failed)?;
        instance.write("tracing_on", "1").map_err(failed)?;
        Ok(TimerlatTracer { instance, decoder, cpus, unkept, _tracing: tracing })
    }

    /// Samples of a CPU since the last read, in order of time.
    pub fn read(&self, cpu: Cpu, samples: &mut Vec<TimerlatSample>) -> io::Result<()> {
        let Some(pages) = self.cpus.get(&cpu) else { return Ok(()) };
        let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
        let CpuPages { pipe, page, lost } = &mut *pages;
        while let Some(length) = pipe.read_page(page)? {
            let notes = self.decoder.page(cpu, &page[..length], &mut |event| {
                let What::Tracer { record } = event.what else { return };
                samples.extend(TimerlatSample::of(event.time, event.pid, record));
            });
            *lost += lost_before(notes.lost);
        }
        Ok(())
    }

    /// Number of a CPU's records that were overwritten before they were read.
    pub fn lost(&self, cpu: Cpu) -> u64 {
        let pages = self.cpus.get(&cpu).map(|pages| pages.lock().unwrap_or_else(PoisonError::into_inner));
        pages.map_or(0, |pages| pages.lost)
    }
}

impl Drop for TimerlatTracer {
    fn drop(&mut self) {
        // Its threads end; the tracer does with the instance, once its buffers are closed.
        let _ = self.instance.write("tracing_on", "0");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_a_sample_of_its_context() {
        let of = |context| {
            let record = TracerRecord::TimerLatency { activation: 3, context, ns: Nanos(700) };
            TimerlatSample::of(Nanos(9_000), 41, record)
        };
        let thread = of(1).unwrap();
        assert_eq!(
            (thread.context, thread.expected(), thread.thread),
            (TimerlatContext::Thread, Nanos(8_300), 41)
        );
        assert_eq!(of(0).map(|sample| sample.context), Some(TimerlatContext::Irq));
        assert_eq!(of(2).map(|sample| sample.context), Some(TimerlatContext::User));
        assert_eq!(of(3), None);
        let other = TracerRecord::NoiseGap { ns: Nanos(1), interference: 0 };
        assert_eq!(TimerlatSample::of(Nanos(1), 1, other), None);
    }
}
