//! `run.json` and `blocks.jsonl` as types: what scripts rely on, field for field.
//!
//! Strings are never null, `""` when unknown; numbers are null when unknown. Fields may be added,
//! never renamed or removed.

use serde::{Deserialize, Serialize};

pub use super::culprit_thread::{CulpritThread, CulpritTurns, FoundThread};
pub use super::followed::{ProgramRun, ThreadRun};
pub use super::spike::{Behind, Culprit, Recorder, Slice, Spike, Who};
use crate::histogram::{self, Bucket};
use crate::keyword::Word;
use crate::labels::Labels;
use crate::load::LoadRun;
use crate::units::{Cpu, Nanos};
use crate::vocabulary::{
    Command, Ended, Expiry, IdleStates, IntegrityKind, Policy, Preempt, Probe, Quantity, SchedulePhase,
    WakeMechanism,
};

/// The schema this version writes, and the newest it reads.
pub const SCHEMA: &str = "onbeat.run/1";

/// How many of its worst wake-ups a run keeps per CPU, as many as each of its blocks.
pub const WORST: usize = 8;

/// A run, complete or as of its last checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub schema: String,
    /// Identity of the run; also the name of its default directory.
    pub id: String,
    pub command: Word<Command>,
    /// Whether the run came to its end, whatever ended it; false in a checkpoint.
    pub complete: bool,
    /// What ended it; `""` in a checkpoint.
    pub ended: Word<Ended>,
    /// The version of onbeat that wrote this.
    pub version: String,
    /// Wall time of the start, RFC 3339.
    #[serde(default)]
    pub started: String,
    /// How many seconds the measuring machine's own clock was ahead of UTC at the start; null where
    /// it is not known.
    #[serde(default)]
    pub utc_offset_s: Option<i32>,
    /// The boot in which it was measured, as `/proc/sys/kernel/random/boot_id`; `""` where it is
    /// not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot: String,
    /// What it belongs to, as its user named it: a build, a commit, a job.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// CLOCK_MONOTONIC up to which the statistics below reach.
    pub checkpoint_mono_ns: Option<Nanos>,
    /// What was to be done.
    pub plan: Plan,
    /// What the machine was.
    pub host: Host,
    /// From the last CPU's t0, when all are measured, to the last wake-up of any CPU.
    pub elapsed_ns: Option<Nanos>,
    /// One entry per measured CPU, ascending.
    pub cpus: Vec<CpuRun>,
    /// What may invalidate or limit the measurement.
    pub integrity: Vec<Integrity>,
    /// What ran beside it on request, each with its proof.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadRun>,
    /// onbeat's own cost.
    pub overhead: Overhead,
    /// Explained spikes; empty for `measure`.
    #[serde(default)]
    pub spikes: Vec<Spike>,
    /// Spikes beyond the bound of the list.
    #[serde(default)]
    pub spikes_dropped: u64,
    /// Culprits by the lateness they caused; empty for `measure`.
    #[serde(default)]
    pub culprits: Vec<Culprit>,
    /// What `hunt` had armed, and what it cost and lost; null for `measure`.
    #[serde(default)]
    pub recorder: Option<Recorder>,
    /// The threads of other programs that a hunt followed, by thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadRun>,
    /// Threads that were real-time and are not in the list: too many at once, or in all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub threads_dropped: u64,
    /// The program that a hunt started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramRun>,
    /// The longest gaps of `probe spin`, in the order of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps: Option<Vec<SpinGap>>,
    /// Gaps that are in the histograms and not in that list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps_dropped: Option<u64>,
}

/// A span in which a thread that reads the clock without a pause did not get to read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpinGap {
    pub cpu: Cpu,
    /// CLOCK_MONOTONIC of the last read before it.
    pub mono_ns: Nanos,
    /// To the first read after it.
    pub ns: Nanos,
}

/// What one interrupt added to a CPU's count in /proc/interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptCount {
    /// Its number, or the architecture's abbreviation, like `LOC`.
    pub irq: String,
    /// What the kernel calls it.
    pub name: String,
    pub count: u64,
}

/// The conditions of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub cpus: Vec<Cpu>,
    /// Period of the schedule of the first CPU; null for an import that does not state it.
    pub interval_ns: Option<Nanos>,
    /// Added to the period once per further CPU, as cyclictest's `-d`.
    pub distance_ns: Option<Nanos>,
    /// The scheduling policy, as it took effect.
    pub policy: Word<Policy>,
    /// Priority as it took effect; 0 for `other`.
    pub priority: Option<u32>,
    /// How the threads sleep.
    pub wake: Word<WakeMechanism>,
    /// Where the kernel runs the timer's expiry.
    pub expiry: Word<Expiry>,
    /// How the schedules of the CPUs lie to each other.
    pub phase: Word<SchedulePhase>,
    /// Whether /dev/cpu_dma_latency was held at 0.
    pub idle: Word<IdleStates>,
    /// Planned length; null where loops or a signal end the run.
    pub duration_ns: Option<Nanos>,
    /// Planned wake-ups per CPU; null where a duration or a signal ends the run.
    #[serde(default)]
    pub loops: Option<u64>,
    /// The latency at which the run stops.
    #[serde(default)]
    pub limit_ns: Option<Nanos>,
    /// Seed of the dithered schedule: splitmix64 from seed XOR the CPU's place in `cpus`, see
    /// `measure::schedule`.
    #[serde(default)]
    pub seed: Option<u64>,
    /// CPUs of onbeat's own thread.
    pub housekeeping: Vec<Cpu>,
    /// Remarks on how the plan came about, for people.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The tool whose result was imported, as it names itself, like `cyclictest 2.10`; `""` for
    /// onbeat's own runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The probe that was run; `""` for other commands.
    #[serde(default, skip_serializing_if = "Word::is_empty")]
    pub probe: Word<Probe>,
    /// By what the threads of `probe ipc` hand over, like `futex`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// From which length on `probe spin` counts a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_ns: Option<Nanos>,
}

/// What the machine was; strings `""` and numbers null where unknown.
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
    /// The declared exit latency of each, in the same order; empty where unknown.
    pub idle_exit_ns: Vec<u64>,
    /// The real-time tasks' share of the period, -1 without limit.
    pub rt_runtime_us: Option<i64>,
    /// The period of RT throttling.
    pub rt_period_us: Option<i64>,
    /// The fair server's share per CPU's period, where the kernel shows it.
    pub fair_server_runtime_ns: Option<u64>,
    /// The cgroup's own real-time budget, where there is one.
    pub cgroup_rt_runtime_us: Option<i64>,
    /// The highest real-time priority that the process may take without CAP_SYS_NICE; null without
    /// limit.
    pub rtprio_limit: Option<u64>,
    /// What it may lock in memory without CAP_IPC_LOCK, in bytes; null without limit.
    pub memlock_limit: Option<u64>,
    /// Its effective capabilities among the relevant ones, like `sys_nice`.
    pub capabilities: Vec<String>,
    /// High-resolution timers in the kernel's configuration.
    pub high_res_timers: Option<bool>,
    /// Timer tick frequency in the kernel's configuration.
    pub hz: Option<u32>,
    /// What could not be read, each with the reason.
    pub unknown: Vec<String>,
}

/// The samples of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuRun {
    /// The CPU; null for an import whose file does not state it.
    pub cpu: Option<Cpu>,
    /// Number of the thread where several were measured on one CPU, or the CPU is not known; else
    /// 0.
    #[serde(default)]
    pub thread: u32,
    /// The quantity that the latencies below are.
    #[serde(default)]
    pub measures: Word<Quantity>,
    /// Kind of core on a machine with several kinds, `""` elsewhere.
    pub core_type: String,
    /// CLOCK_MONOTONIC of slot 0: slot k is expected at t0 + k * interval (without dither).
    pub t0_mono_ns: Option<Nanos>,
    #[serde(default)]
    pub interval_ns: Option<Nanos>,
    /// Slots from 1 up to the last wake-up; null where there is no schedule: an import, or
    /// another's threads.
    pub scheduled: Option<u64>,
    /// Number of samples; null for an import whose file does not state it.
    pub cycles: Option<u64>,
    /// Slots whose time had passed when a later wake-up came; null as `scheduled` is.
    pub missed: Option<u64>,
    /// Wake-ups before their time; they are cycles too.
    pub early: Option<u64>,
    /// Wake-ups left out at the start.
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
    /// What a periodic task would have seen; counts sum to `scheduled`. Null where that is.
    pub deadline_histogram: Option<Vec<Bucket>>,
    /// The exact worst, largest first.
    pub worst: Vec<Worst>,
    /// CLOCK_MONOTONIC up to which this CPU's statistics reach.
    #[serde(default)]
    pub until_mono_ns: Option<Nanos>,
    /// Sum of the latencies, from which the mean is; null for an import.
    #[serde(default)]
    pub sum_ns: Option<i64>,
    /// Samples that an imported histogram counted without their value; null when nothing was cut.
    #[serde(default)]
    pub overflows: Option<u64>,
    /// From which latency on samples were beyond an imported histogram: each of `overflows` is at
    /// least so late. Null where nothing was cut.
    #[serde(default)]
    pub overflows_from_ns: Option<Nanos>,
    /// Which of an import's wake-ups were beyond the histogram, counted from 0: the first ones, as
    /// many as the file lists, which are not the worst.
    #[serde(default)]
    pub overflow_cycles: Vec<u64>,
    /// Voluntary context switches of the measuring thread while it counted.
    #[serde(default)]
    pub voluntary_switches: Option<u64>,
    /// Involuntary ones.
    #[serde(default)]
    pub involuntary_switches: Option<u64>,
    /// The share of its time that the measuring thread took of the CPU, by its CPU clock; null for
    /// an import.
    #[serde(default)]
    pub cpu_share: Option<f64>,
    /// What of a million parts of the time `probe spin` spent in gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_ppm: Option<f64>,
    /// The interrupts that came meanwhile, the most frequent first; none where they were not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<InterruptCount>,
    /// By what the threads of `probe ipc` handed over.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The CPU of the thread that released; `cpu` is that of the one that acquired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_cpu: Option<Cpu>,
}

/// One of the worst wake-ups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// Exact latency; null in imports of before `overflow_cycles`, which listed the overflows here.
    pub latency_ns: Option<Nanos>,
    /// The slot's number k; null where there is no schedule.
    pub cycle: Option<u64>,
    /// CLOCK_MONOTONIC of the wake-up.
    pub mono_ns: Option<Nanos>,
    /// The same as wall time, RFC 3339.
    pub time: String,
}

/// One thing that may invalidate or limit the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Integrity {
    pub kind: Word<IntegrityKind>,
    /// The CPU concerned, null for the whole machine.
    pub cpu: Option<Cpu>,
    /// In words, with the numbers.
    pub detail: String,
    /// Whether the run no longer measures what it was to measure.
    pub invalidates: bool,
}

/// onbeat's own cost; null where unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overhead {
    /// One read of the clock.
    pub clock_read_ns: Option<Nanos>,
    /// One turn of the loop without its sleep.
    pub loop_ns: Option<Nanos>,
    /// Wake-ups of everything but the measuring threads.
    pub housekeeping_wakeups_per_s: Option<f64>,
    /// Peak resident memory of the process.
    pub max_rss_kib: Option<u64>,
    /// Cost of the flight recorder; null for `measure`.
    pub recorder_ns_per_cycle: Option<Nanos>,
    /// The largest `cpu_share` of the measured CPUs, 0 to 1; null for an import.
    pub cpu_share: Option<f64>,
    /// The share of one CPU that onbeat's own thread took.
    pub housekeeping_cpu_share: Option<f64>,
    /// Seconds for which the housekeeping thread was too late; their blocks are merged, none is
    /// lost.
    pub blocks_joined: Option<u64>,
    /// Lines of `blocks.jsonl` that could not be written.
    pub blocks_unwritten: Option<u64>,
}

/// A line of `blocks.jsonl`: one CPU's samples of (about) one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    pub cpu: Cpu,
    /// CLOCK_MONOTONIC of the block's start.
    pub mono_ns: Nanos,
    /// Length of the block: 1 s, more where blocks were joined, less at the end.
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
    /// Slots missed; null where there is no schedule.
    pub missed: Option<u64>,
    /// Time the hypervisor took from this CPU, in ticks of 10 ms.
    pub steal_ns: Option<Nanos>,
    /// Interrupts of this CPU.
    pub irqs: Option<u64>,
    /// Clock frequency.
    pub khz: Option<u64>,
    /// Temperature in thousandths of a degree Celsius.
    pub temp_mc: Option<i64>,
    /// The longest response of the followed threads' cycles that ended in it; null where none did,
    /// or no thread is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<Nanos>,
}

/// The largest latency of a line of `blocks.jsonl`: the rest need not be kept to be read past.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Peak {
    /// As in [`Block`], as are all of these.
    pub cpu: Cpu,
    pub mono_ns: Nanos,
    #[serde(default)]
    pub span_ns: Option<Nanos>,
    pub n: u64,
    pub max_ns: Option<Nanos>,
    #[serde(default)]
    pub max_mono_ns: Option<Nanos>,
    #[serde(default)]
    pub response_ns: Option<Nanos>,
}

impl Peak {
    /// The peak of a whole record.
    pub fn of(block: &Block) -> Peak {
        Peak {
            cpu: block.cpu,
            mono_ns: block.mono_ns,
            span_ns: block.span_ns,
            n: block.n,
            max_ns: block.max_ns,
            max_mono_ns: block.max_mono_ns,
            response_ns: block.response_ns,
        }
    }
}

pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Run {
    /// Whether it follows threads that are not onbeat's: those keep no schedule that is known here.
    pub fn follows(&self) -> bool {
        self.command == Command::Hunt && self.plan.interval_ns.is_none()
    }

    /// The probe that it is of.
    pub fn probe(&self) -> Option<Probe> {
        self.plan.probe.known()
    }
}

impl CpuRun {
    /// A CPU of which nothing is counted yet, and on which there is no schedule to miss slots of.
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
