//! The kernel's osnoise tracer in onbeat's instance: its gaps, and its counts by source.
//!
//! Source: Documentation/trace/osnoise-tracer.rst, kernel/trace/trace_osnoise.c.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::gaps::ClockGap;
use super::traced::GapReader;
use super::tracers::{KernelTracer, decoder, keep_instance, lost_before};
use crate::measure::integrity::entry;
use host::tracefs::{Instance, RawPipe, Tracing};
use model::error::Result;
use model::run::{CpuNoise, NoisePart, Run};
use model::text::several;
use model::units::{Cpu, CpuSet, Nanos};
use model::vocabulary::IntegrityKind;
use trace::catalog::OSNOISE;
use trace::decode::Decoder;
use trace::event::{NoiseSource, TracerRecord, What};

/// Folder of the machine-wide settings of osnoise and timerlat, below the top level of tracefs.
pub const FOLDER: &str = "osnoise";

/// Size of a CPU's buffer: ten thousand records for each read.
const BUFFER_KIB: &str = "512";

const TRACER: KernelTracer =
    KernelTracer { name: "osnoise", option: "CONFIG_OSNOISE_TRACER", instead: "use --source spin" };

/// Tracers that have their threads and settings in common.
pub const RELATED: &[&str] = &["osnoise", "timerlat"];

/// Armed tracer, which does not record yet. Dropping it ends the tracer's threads.
pub struct OsnoiseTracer {
    instance: Arc<Instance>,
    reader: Arc<NoiseReader>,
    /// Reason why the instance would remain after a kill.
    pub unkept: Option<String>,
    /// Kept open with the instance: a mount made for it is unmounted at its end.
    _tracing: Tracing,
}

impl OsnoiseTracer {
    /// Opens tracefs of a kernel with this tracer, which no other program uses.
    ///
    /// # Errors
    /// Not supported or not permitted, with the remedy.
    pub fn find() -> Result<Tracing> {
        let tracing = TRACER.find()?;
        TRACER.refuse_used(&tracing, RELATED)?;
        Ok(tracing)
    }

    /// Arms the tracer for these CPUs. Gaps with an interruption count only if `all`.
    ///
    /// # Errors
    /// Another program uses the tracer, or the kernel refuses.
    pub fn arm(tracing: Tracing, cpus: &CpuSet, all: bool) -> Result<OsnoiseTracer> {
        let failed = |error: io::Error| TRACER.failed(&error);
        let instance = tracing.instance().map_err(failed)?;
        let unkept = keep_instance();
        instance.write("tracing_on", "0").map_err(failed)?;
        instance.write("trace_clock", "mono").map_err(failed)?;
        instance.write("buffer_size_kb", BUFFER_KIB).map_err(failed)?;
        instance.write("tracing_cpumask", &cpus.mask()).map_err(failed)?;
        let decoder = decoder(&tracing, OSNOISE, TRACER.instead)?;
        for event in OSNOISE.iter().filter(|event| event.has_switch()) {
            let path = format!("events/{}/{}/enable", event.system, event.event);
            instance.write(&path, "1").map_err(failed)?;
        }
        // The kernel refuses a change of tracer while a buffer is open.
        instance.write("current_tracer", TRACER.name).map_err(failed)?;
        let size = decoder.layout().page_size();
        let open = |cpu| Ok((cpu, Mutex::new(CpuReader::new(instance.pipe(cpu)?, size))));
        let cpus = cpus.iter().map(open).collect::<io::Result<_>>().map_err(failed)?;
        let instance = Arc::new(instance);
        let reader = Arc::new(NoiseReader { instance: instance.clone(), decoder, cpus, all });
        Ok(OsnoiseTracer { instance, reader, unkept, _tracing: tracing })
    }

    /// Reader of its gaps and counts.
    pub fn reader(&self) -> Arc<NoiseReader> {
        self.reader.clone()
    }
}

impl Drop for OsnoiseTracer {
    fn drop(&mut self) {
        // Its threads end; the tracer does with the instance, once its buffers are closed.
        let _ = self.instance.write("tracing_on", "0");
    }
}

/// Reader of the tracer's records.
pub struct NoiseReader {
    instance: Arc<Instance>,
    decoder: Decoder,
    cpus: BTreeMap<Cpu, Mutex<CpuReader>>,
    /// True for gaps of all sources.
    all: bool,
}

impl NoiseReader {
    /// Adds the counts of each CPU up to its last complete period, and the records that were lost.
    pub fn fill(&self, run: &mut Run) {
        for own in &mut run.cpus {
            let Some(reader) = own.cpu.and_then(|cpu| self.cpus.get(&cpu)) else { continue };
            let noise = reader.lock().unwrap_or_else(PoisonError::into_inner).sums.total;
            if noise.lost > 0 {
                let lost = several(noise.lost, "record", "records");
                let detail = format!("{lost} of the tracer were lost: gaps are missing");
                run.integrity.push(entry(IntegrityKind::Tracing, own.cpu, true, detail));
            }
            own.lost_ppm = noise.available().map(|share| ((1.0 - share) * 1e9).round() / 1e3);
            own.noise = Some(noise);
        }
    }
}

impl GapReader for Arc<NoiseReader> {
    fn start(&self) -> io::Result<()> {
        self.instance.write("tracing_on", "1")
    }

    fn read(&self, cpu: Cpu) -> io::Result<Vec<ClockGap>> {
        let Some(reader) = self.cpus.get(&cpu) else { return Ok(Vec::new()) };
        let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
        let CpuReader { pipe, page, sums } = &mut *reader;
        let mut gaps = Vec::new();
        while let Some(length) = pipe.read_page(page)? {
            let notes = self.decoder.page(cpu, &page[..length], &mut |event| {
                let What::Tracer { record } = event.what else { return };
                let gap = sums.take(event.time, record);
                gaps.extend(gap.filter(|gap| self.all || gap.interference == 0).map(|gap| gap.gap));
            });
            sums.total.lost += lost_before(notes.lost);
        }
        Ok(gaps)
    }
}

/// Buffer of one CPU.
struct CpuReader {
    pipe: RawPipe,
    page: Box<[u8]>,
    sums: NoiseSums,
}

impl CpuReader {
    fn new(pipe: RawPipe, page_size: usize) -> CpuReader {
        CpuReader { pipe, page: vec![0; page_size].into(), sums: NoiseSums::default() }
    }
}

/// Gap, with the number of interruptions that the kernel counted in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NoiseGap {
    gap: ClockGap,
    interference: u64,
}

/// Sums of the complete periods, and of the one under way.
#[derive(Debug, Default)]
struct NoiseSums {
    total: CpuNoise,
    period: CpuNoise,
    /// True after the first period, which may have begun before the recording.
    begun: bool,
}

impl NoiseSums {
    /// Takes a record; returns the gap that it describes.
    fn take(&mut self, time: Nanos, record: TracerRecord) -> Option<NoiseGap> {
        match record {
            TracerRecord::NoiseGap { ns, interference } => {
                if interference == 0 {
                    add(&mut self.period.hardware, ns);
                }
                return Some(NoiseGap { gap: ClockGap { before: time - ns, after: time }, interference });
            }
            TracerRecord::Noise { source, ns } => add(of(&mut self.period, source), ns),
            TracerRecord::NoisePeriod { runtime, noise, longest, counts } => {
                let period = std::mem::take(&mut self.period);
                if std::mem::replace(&mut self.begun, true) {
                    self.total.runtime_ns = self.total.runtime_ns + runtime;
                    self.total.noise_ns = self.total.noise_ns + noise;
                    self.total.longest_ns = self.total.longest_ns.max(longest);
                    self.join(period, counts);
                }
            }
            TracerRecord::TimerLatency { .. } => {}
        }
        None
    }

    /// Adds the times of a period, with the kernel's own counts, of which none is lost.
    fn join(&mut self, period: CpuNoise, counts: [u32; 5]) {
        let CpuNoise { hardware, nmi, irq, softirq, thread, .. } = &mut self.total;
        let of_period = [period.hardware, period.nmi, period.irq, period.softirq, period.thread];
        for ((sum, of), count) in [hardware, nmi, irq, softirq, thread].into_iter().zip(of_period).zip(counts)
        {
            sum.count += u64::from(count);
            sum.total_ns = sum.total_ns + of.total_ns;
            sum.longest_ns = sum.longest_ns.max(of.longest_ns);
        }
    }
}

fn of(noise: &mut CpuNoise, source: NoiseSource) -> &mut NoisePart {
    match source {
        NoiseSource::Nmi => &mut noise.nmi,
        NoiseSource::Irq => &mut noise.irq,
        NoiseSource::Softirq => &mut noise.softirq,
        NoiseSource::Thread => &mut noise.thread,
    }
}

fn add(sum: &mut NoisePart, ns: Nanos) {
    sum.count += 1;
    sum.total_ns = sum.total_ns + ns;
    sum.longest_ns = sum.longest_ns.max(ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_complete_periods_are_joined_with_the_kernels_counts() {
        let mut sums = NoiseSums::default();
        let period = |noise: i64, counts| TracerRecord::NoisePeriod {
            runtime: Nanos(100_000),
            noise: Nanos(noise),
            longest: Nanos(noise / 2),
            counts,
        };
        let irq = |ns| TracerRecord::Noise { source: NoiseSource::Irq, ns: Nanos(ns) };
        // The first period may be recorded in part.
        assert_eq!(sums.take(Nanos(1), irq(50)), None);
        sums.take(Nanos(2), period(60, [1, 0, 9, 0, 0]));
        assert_eq!(sums.total, CpuNoise::default());
        let gap = sums.take(Nanos(9_000), TracerRecord::NoiseGap { ns: Nanos(2_000), interference: 0 });
        let at = ClockGap { before: Nanos(7_000), after: Nanos(9_000) };
        assert_eq!(gap, Some(NoiseGap { gap: at, interference: 0 }));
        sums.take(Nanos(9_000), TracerRecord::NoiseGap { ns: Nanos(1_000), interference: 2 });
        sums.take(Nanos(9_100), irq(300));
        sums.take(Nanos(9_200), irq(500));
        sums.take(Nanos(9_300), TracerRecord::Noise { source: NoiseSource::Thread, ns: Nanos(100) });
        sums.take(Nanos(9_400), period(3_000, [1, 0, 2, 0, 1]));
        // A period that is not complete is not counted.
        sums.take(Nanos(9_500), irq(700));
        let total = sums.total;
        assert_eq!((total.runtime_ns, total.noise_ns), (Nanos(100_000), Nanos(3_000)));
        let one = |count, ns, longest| NoisePart { count, total_ns: Nanos(ns), longest_ns: Nanos(longest) };
        assert_eq!((total.hardware, total.irq), (one(1, 2_000, 2_000), one(2, 800, 500)));
        assert_eq!((total.thread, total.nmi), (one(1, 100, 100), NoisePart::default()));
        assert_eq!(total.available(), Some(0.97));
        assert_eq!(CpuNoise::default().available(), None);
    }
}
