//! `run.json` and `blocks.jsonl` as types: the contract with scripts, field for field.
//!
//! Strings are never null, `""` when unknown; numbers are null when unknown. Fields may be added,
//! never renamed or removed.

use serde::{Deserialize, Serialize};

pub use super::cross_check::{CheckedSide, CrossCheck};
pub use super::culprit_thread::{CulpritThread, CulpritTurns, FoundThread};
pub use super::followed::{ProgramRun, ThreadRun};
pub use super::peak::Peak;
pub use super::probe_counts::{
    CpuNoise, DeadlineJobs, Inversions, Migration, NoisePart, Packets, PartTime, Responses, SpinGap,
    SplitResponse,
};
pub use super::spike::{Behind, Culprit, Recorder, Slice, Spike, Who};
use crate::histogram::{self, Bucket};
use crate::keyword::{Keyword, Word};
use crate::labels::Labels;
use crate::load::LoadRun;
use crate::units::{Cpu, Nanos};
use crate::vocabulary::{
    Command, Ended, Expiry, GapSource, IdleStates, IntegrityKind, Policy, Preempt, Probe, Quantity,
    SchedulePhase, WakeMechanism,
};

/// The schema this version writes, and the newest it reads.
pub const SCHEMA: &str = "onbeat.run/1";

/// Number of worst wake-ups that a run keeps per CPU; each of its blocks keeps as many.
pub const WORST: usize = 8;

/// A run, complete or as of its last checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub schema: String,
    /// Identity of the run; also the name of its default directory.
    pub id: String,
    pub command: Word<Command>,
    /// True if the run ended, for whatever reason; false in a checkpoint.
    pub complete: bool,
    /// Reason for the end; `""` in a checkpoint.
    pub ended: Word<Ended>,
    /// Version of onbeat that wrote the document.
    pub version: String,
    /// Wall time of the start, RFC 3339.
    #[serde(default)]
    pub started: String,
    /// Seconds by which the measuring machine's clock was ahead of UTC at the start; null if
    /// unknown.
    #[serde(default)]
    pub utc_offset_s: Option<i32>,
    /// Boot of the measurement, as `/proc/sys/kernel/random/boot_id`; `""` if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot: String,
    /// Labels set by the user: a build, a commit, a job.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// CLOCK_MONOTONIC up to which the statistics below reach.
    pub checkpoint_mono_ns: Option<Nanos>,
    /// Conditions of the measurement.
    pub plan: Plan,
    /// Machine of the measurement.
    pub host: Host,
    /// Time from the last CPU's t0, when all are measured, to the last wake-up of any CPU.
    pub elapsed_ns: Option<Nanos>,
    /// One entry per measured CPU, ascending.
    pub cpus: Vec<CpuRun>,
    /// Events that may invalidate or limit the measurement.
    pub integrity: Vec<Integrity>,
    /// Loads that ran during it on request, each with its proof.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadRun>,
    /// Cost of onbeat itself.
    pub overhead: Overhead,
    /// Explained spikes; empty for `measure`.
    #[serde(default)]
    pub spikes: Vec<Spike>,
    /// Number of spikes beyond the bound of the list.
    #[serde(default)]
    pub spikes_dropped: u64,
    /// Culprits by the lateness they caused; empty for `measure`.
    #[serde(default)]
    pub culprits: Vec<Culprit>,
    /// Events that `hunt` had armed, with their cost and losses; null for `measure`.
    #[serde(default)]
    pub recorder: Option<Recorder>,
    /// Cross-check of a hunt by the kernel's timerlat tracer, per CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cross_check: Vec<CrossCheck>,
    /// Threads of other programs that a hunt followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadRun>,
    /// Real-time threads that are not in the list: too many at once, or in all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub threads_dropped: u64,
    /// The program that a hunt started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramRun>,
    /// The longest gaps of `probe spin` or `probe hw`, in the order of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<Vec<SpinGap>>,
    /// Gaps that are in the histograms and not in that list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps_dropped: Option<u64>,
    /// Overruns of SCHED_DEADLINE threads that the kernel reported to the process (SIGXCPU, which
    /// joins several before it is received); null for others than `probe deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrun_signals: Option<u64>,
}

/// Increase of one interrupt's count of a CPU in /proc/interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptCount {
    /// Number, or the architecture's abbreviation, like `LOC`.
    pub irq: String,
    /// Name given by the kernel.
    pub name: String,
    pub count: u64,
}

/// The conditions of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub cpus: Vec<Cpu>,
    /// Period of the schedule of the first CPU; null for an import that does not state it.
    pub interval_ns: Option<Nanos>,
    /// Increment of the period per further CPU, as cyclictest's `-d`.
    pub distance_ns: Option<Nanos>,
    /// The scheduling policy, as it took effect.
    pub policy: Word<Policy>,
    /// Priority as it took effect; 0 for `other`.
    pub priority: Option<u32>,
    /// Sleep mechanism of the threads.
    pub wake: Word<WakeMechanism>,
    /// Context in which the kernel runs the timer's expiry.
    pub expiry: Word<Expiry>,
    /// Relation of the CPUs' schedules to each other.
    pub phase: Word<SchedulePhase>,
    /// Treatment of idle states: limited by /dev/cpu_dma_latency at 0, or not.
    pub idle: Word<IdleStates>,
    /// Planned length; null if loops or a signal end the run.
    pub duration_ns: Option<Nanos>,
    /// Planned wake-ups per CPU; null if a duration or a signal ends the run.
    #[serde(default)]
    pub loops: Option<u64>,
    /// Latency at which the run stops.
    #[serde(default)]
    pub limit_ns: Option<Nanos>,
    /// Seed of the dithered schedule: splitmix64 from seed XOR the CPU's place in `cpus`, see
    /// `measure::schedule`.
    #[serde(default)]
    pub seed: Option<u64>,
    /// CPUs of the housekeeping thread.
    pub housekeeping: Vec<Cpu>,
    /// Remarks on the plan, in words.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Tool whose result was imported, as it names itself, like `cyclictest 2.10`; `""` for
    /// onbeat's runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The probe that was run; `""` for other commands.
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    pub probe: Word<Probe>,
    /// Mechanism by which the threads of `probe ipc` hand over, like `futex`, the lock of `probe
    /// pi`, the placement of the threads of `probe migrate` or `deadline`, the path of `probe net`,
    /// or the source of `probe hw`, and of `probe spin` and a hunt if that is a tracer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Length from which `probe spin` and `probe hw` count a gap, and `probe migrate` a violation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_ns: Option<Nanos>,
    /// CPU time of a thread in a round of `probe migrate` or a job of `probe deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_ns: Option<Nanos>,
    /// Runtime of SCHED_DEADLINE threads in each period, which is `interval_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_ns: Option<Nanos>,
    /// Their deadline, from the start of the period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<Nanos>,
    /// Part of each window in which a tracer of `probe hw` samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_ns: Option<Nanos>,
    /// Length of a window, from one sampling to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<Nanos>,
}

impl Plan {
    /// True if a thread reads the clock without a pause.
    pub fn spins(&self) -> bool {
        let by_loop = || GapSource::named(&self.kind) == Some(GapSource::Spin);
        self.probe == Probe::Spin || self.probe == Probe::Hw && by_loop()
    }
}

/// Properties of the machine; strings are `""` and numbers null if unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Kernel release, as `uname -r`.
    pub release: String,
    /// Kernel build, as `uname -v`.
    pub kernel: String,
    /// Architecture, as `uname -m`.
    pub machine: String,
    pub preempt: Word<Preempt>,
    /// The clocksource in use.
    pub clocksource: String,
    /// The hypervisor's name, or `none`.
    #[serde(rename = "virtual")]
    pub virtualization: String,
    pub model: String,
    pub cmdline: String,
    /// Online CPUs as a list.
    pub online: String,
    /// CPUs taken out of load balancing at boot, as a list.
    pub isolated: String,
    /// CPUs with the tick off when they can, as a list.
    pub nohz_full: String,
    /// SMT siblings: one list of CPUs per core that has more than one.
    pub siblings: Vec<String>,
    /// Cpufreq governors in use, comma-separated.
    pub governor: String,
    pub cpufreq_driver: String,
    pub cpuidle_driver: String,
    /// Idle states by name, shallow to deep, of the first CPU.
    pub idle_states: Vec<String>,
    /// Declared exit latency of each idle state, in the same order; empty if unknown.
    pub idle_exit_ns: Vec<u64>,
    /// Runtime of real-time tasks in each period, -1 without limit.
    pub rt_runtime_us: Option<i64>,
    /// The period of RT throttling.
    pub rt_period_us: Option<i64>,
    /// Runtime of the fair server in each period of a CPU, if the kernel shows it.
    pub fair_server_runtime_ns: Option<u64>,
    /// Real-time budget of the cgroup, if it has one.
    pub cgroup_rt_runtime_us: Option<i64>,
    /// The highest real-time priority that the process may take without CAP_SYS_NICE; null without
    /// limit.
    pub rtprio_limit: Option<u64>,
    /// Bytes that it may lock in memory without CAP_IPC_LOCK; null without limit.
    pub memlock_limit: Option<u64>,
    /// Effective capabilities, of those that matter here, like `sys_nice`.
    pub capabilities: Vec<String>,
    /// High-resolution timers in the kernel's configuration.
    pub high_res_timers: Option<bool>,
    /// Timer tick frequency in the kernel's configuration.
    pub hz: Option<u32>,
    /// Values that could not be read, each with the reason.
    pub unknown: Vec<String>,
}

/// The samples of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuRun {
    /// The CPU; null for an import whose file does not state it.
    pub cpu: Option<Cpu>,
    /// Number of the thread if several were measured on one CPU, or the CPU is unknown; else 0.
    #[serde(default)]
    pub thread: u32,
    /// Quantity of the latencies below.
    #[serde(default)]
    pub measures: Word<Quantity>,
    /// Kind of core on a machine with several kinds, `""` elsewhere.
    pub core_type: String,
    /// CLOCK_MONOTONIC of slot 0: slot k is expected at t0 + k * interval (without dither).
    pub t0_mono_ns: Option<Nanos>,
    #[serde(default)]
    pub interval_ns: Option<Nanos>,
    /// Slots from 1 up to the last wake-up; null without a schedule: an import, or threads of other
    /// programs.
    pub scheduled: Option<u64>,
    /// Number of samples; null for an import whose file does not state it.
    pub cycles: Option<u64>,
    /// Slots whose time had passed at a later wake-up; null if `scheduled` is.
    pub missed: Option<u64>,
    /// Wake-ups before their time; they are cycles too.
    pub early: Option<u64>,
    /// Wake-ups excluded at the start.
    pub warmup: Option<u64>,
    /// The exact least latency.
    pub min_ns: Option<Nanos>,
    /// The mean, rounded to a nanosecond.
    pub mean_ns: Option<Nanos>,
    /// The exact largest latency.
    pub max_ns: Option<Nanos>,
    /// Nearest-rank quantile, upper edge of its row, and never above `max_ns`.
    pub p50_ns: Option<Nanos>,
    pub p90_ns: Option<Nanos>,
    pub p99_ns: Option<Nanos>,
    pub p999_ns: Option<Nanos>,
    pub p9999_ns: Option<Nanos>,
    /// Latency of each wake-up; counts sum to `cycles`.
    pub histogram: Vec<Bucket>,
    /// Latency as a periodic task would have seen it; counts sum to `scheduled`. Null if that is.
    pub deadline_histogram: Option<Vec<Bucket>>,
    /// Worst wake-ups with exact latencies, largest first.
    pub worst: Vec<Worst>,
    /// CLOCK_MONOTONIC up to which this CPU's statistics reach.
    #[serde(default)]
    pub until_mono_ns: Option<Nanos>,
    /// Sum of the latencies, for the mean; null for an import.
    #[serde(default)]
    pub sum_ns: Option<i64>,
    /// Samples that an imported histogram counted without their value; null if nothing was cut.
    #[serde(default)]
    pub overflows: Option<u64>,
    /// Lower bound of the latencies beyond an imported histogram, of which there are `overflows`.
    /// Null if nothing was cut.
    #[serde(default)]
    pub overflows_from_ns: Option<Nanos>,
    /// Cycles of an import beyond its histogram, counted from 0: the first ones, as many as the
    /// file lists, which are not the worst.
    #[serde(default)]
    pub overflow_cycles: Vec<u64>,
    /// Voluntary context switches of the measuring thread while it counted.
    #[serde(default)]
    pub voluntary_switches: Option<u64>,
    /// Involuntary context switches of that thread.
    #[serde(default)]
    pub involuntary_switches: Option<u64>,
    /// Share of its time for which the measuring thread had the CPU, by its CPU clock; null for an
    /// import.
    #[serde(default)]
    pub cpu_share: Option<f64>,
    /// Share of its time that a thread of `probe spin` spent in gaps, in parts per million.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_ppm: Option<f64>,
    /// Interrupts during the measurement, the most frequent first; empty if they were not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<InterruptCount>,
    /// Mechanism by which the threads of `probe ipc` handed over.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// CPU of the thread that released; `cpu` is that of the one that acquired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_cpu: Option<Cpu>,
    /// Priority inversions of `probe pi`; null for others, and for a run that was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inversions: Option<Inversions>,
    /// Rounds of `probe migrate`; null for others, and for a run that was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<Migration>,
    /// Jobs of `probe deadline`, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DeadlineJobs>,
    /// Packets of `probe net`, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<Packets>,
    /// Responses of `probe irq` to hardware events, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responses: Option<Responses>,
    /// Noise by its sources, of a probe with the kernel's osnoise tracer, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<CpuNoise>,
}

/// One of the worst wake-ups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// Exact latency; null in imports from before `overflow_cycles`: overflows were listed here.
    pub latency_ns: Option<Nanos>,
    /// Number k of the slot; null without a schedule.
    pub cycle: Option<u64>,
    /// CLOCK_MONOTONIC of the wake-up.
    pub mono_ns: Option<Nanos>,
    /// Wall time of the wake-up, RFC 3339.
    pub time: String,
}

/// One event that may invalidate or limit the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Integrity {
    pub kind: Word<IntegrityKind>,
    /// CPU concerned, null for the whole machine.
    pub cpu: Option<Cpu>,
    /// Description with the numbers.
    pub detail: String,
    /// True if the run no longer measures what it was planned to measure.
    pub invalidates: bool,
}

/// Cost of onbeat itself; null if unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overhead {
    /// One read of the clock.
    pub clock_read_ns: Option<Nanos>,
    /// One iteration of the loop without its sleep.
    pub loop_ns: Option<Nanos>,
    /// Wake-ups of all threads but the measuring ones.
    pub housekeeping_wakeups_per_s: Option<f64>,
    /// Peak resident memory of the process.
    pub max_rss_kib: Option<u64>,
    /// Cost of the flight recorder; null for `measure`.
    pub recorder_ns_per_cycle: Option<Nanos>,
    /// The largest `cpu_share` of the measured CPUs, 0 to 1; null for an import.
    pub cpu_share: Option<f64>,
    /// Share of one CPU that the housekeeping thread took.
    pub housekeeping_cpu_share: Option<f64>,
    /// Seconds for which the housekeeping thread was too late; their blocks are merged, and none is
    /// lost.
    pub blocks_joined: Option<u64>,
    /// Lines of `blocks.jsonl` that could not be written.
    pub blocks_unwritten: Option<u64>,
}

/// A line of `blocks.jsonl`: one CPU's samples of (about) one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// The CPU; the number of the thread if that is not bound to a CPU.
    pub cpu: Cpu,
    /// Number of a thread that is not bound to a CPU, as in its entry of `cpus`; else 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub thread: u32,
    /// CLOCK_MONOTONIC of the block's start.
    pub mono_ns: Nanos,
    /// Length of the block: 1 s, more if blocks were merged, less at the end.
    #[serde(default)]
    pub span_ns: Option<Nanos>,
    pub n: u64,
    /// The largest latency; null in a block without wake-ups.
    pub max_ns: Option<Nanos>,
    /// CLOCK_MONOTONIC of that wake-up.
    pub max_mono_ns: Option<Nanos>,
    /// The second to eighth largest.
    pub top_ns: Vec<Nanos>,
    /// Wake-ups at or above fixed levels.
    pub over: Vec<(Nanos, u64)>,
    /// Slots missed; null without a schedule.
    pub missed: Option<u64>,
    /// Time that the hypervisor took from this CPU, in ticks of 10 ms.
    pub steal_ns: Option<Nanos>,
    /// Number of interrupts of this CPU.
    pub irqs: Option<u64>,
    /// Clock frequency.
    pub khz: Option<u64>,
    /// Temperature in thousandths of a degree Celsius.
    pub temp_mc: Option<i64>,
    /// Longest response of the followed threads' cycles that ended in the block; null if none did,
    /// or no thread is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<Nanos>,
}

fn is_first(thread: &u32) -> bool {
    *thread == 0
}

pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Run {
    /// True if it follows threads of other programs, whose schedules are not known here.
    pub fn follows(&self) -> bool {
        self.command == Command::Hunt && self.plan.interval_ns.is_none()
    }

    /// Probe of the run.
    pub fn probe(&self) -> Option<Probe> {
        self.plan.probe.known()
    }
}

impl CpuRun {
    /// Entry of a CPU without samples, and without a schedule whose slots could be missed.
    pub fn without_schedule(cpu: Cpu) -> CpuRun {
        let none = Some(0);
        let cpu = Some(cpu);
        let measures = Quantity::Wakeup.into();
        CpuRun {
            cpu,
            measures,
            cycles: none,
            early: none,
            warmup: none,
            sum_ns: Some(0),
            ..CpuRun::default()
        }
    }

    /// Fills the share of its time that a thread of `probe spin` spent in gaps.
    pub fn fill_lost(&mut self) {
        let span = self.until_mono_ns.zip(self.t0_mono_ns).map(|(until, start)| until.0 - start.0);
        let lost = |(sum, span): (i64, i64)| (sum as f64 / span as f64 * 1e9).round() / 1e3;
        self.lost_ppm = self.sum_ns.zip(span.filter(|&span| span > 0)).map(lost);
    }

    /// Fills the quantiles from the histogram.
    pub fn fill_quantiles(&mut self) {
        let at = |per_million| histogram::quantile(&self.histogram, self.max_ns, per_million);
        (self.p50_ns, self.p90_ns, self.p99_ns) = (at(500_000), at(900_000), at(990_000));
        (self.p999_ns, self.p9999_ns) = (at(999_000), at(999_900));
    }
}
