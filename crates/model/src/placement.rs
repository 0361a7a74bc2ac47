//! Threads and interrupts of a machine with their CPUs and priorities: the documents
//! `onbeat.threads/1` and `onbeat.irqs/1`.

use serde::Serialize;

use crate::units::CpuSet;

/// The names and versions of the JSON.
pub const THREADS_SCHEMA: &str = "onbeat.threads/1";
pub const IRQS_SCHEMA: &str = "onbeat.irqs/1";

/// Scheduling policy of a thread; the order is that of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadPolicy {
    /// Any policy that is not real-time.
    Other,
    Rr,
    Fifo,
    Deadline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadOrigin {
    User,
    /// A kernel thread that handles an interrupt.
    Interrupt,
    /// Any other kernel thread.
    Kernel,
}

/// A thread with its CPUs and its priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacedThread {
    pub tid: u32,
    /// ID of its process; null in a capture.
    pub pid: Option<u32>,
    pub comm: String,
    pub policy: ThreadPolicy,
    /// 1 to 99; 0 without FIFO or RR.
    pub priority: u32,
    pub kind: ThreadOrigin,
    /// CPUs that it may run on; `""` if not known.
    pub allowed: CpuSet,
    /// CPU that it ran on last; null in a capture.
    pub last_cpu: Option<u32>,
    /// True if user space may change its affinity.
    pub movable: bool,
    /// Reason why it can or cannot be moved.
    pub why: String,
}

/// Threads of a machine, in the order in which they preempt each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadsDocument {
    pub schema: &'static str,
    /// CPUs whose threads are listed; `""` for all.
    pub cpus: CpuSet,
    pub threads: Vec<PlacedThread>,
    /// Threads that could not be read.
    pub unread: u64,
    /// Limits of the list, a sentence each.
    pub remarks: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InterruptOrigin {
    Device,
    /// A queue of a device, which the kernel places.
    Managed,
    /// A separate interrupt on each CPU, or one that the kernel never moves.
    PerCpu,
}

/// Count of an interrupt on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IrqCount {
    pub cpu: u32,
    /// Since the boot.
    pub total: u64,
    /// Within `counted_ns`; null without a count.
    pub counted: Option<u64>,
}

/// Thread that handles an interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IrqHandler {
    pub tid: u32,
    pub comm: String,
    pub policy: ThreadPolicy,
    pub priority: u32,
    pub allowed: CpuSet,
}

/// An interrupt with its CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacedIrq {
    /// Number, or the architecture's abbreviation, as in `/proc/interrupts`.
    pub irq: String,
    /// Names of its handlers, or the meaning of the abbreviation.
    pub name: String,
    pub kind: InterruptOrigin,
    /// CPUs that take it now; `""` if not known.
    pub effective: CpuSet,
    /// CPUs that may take it; `""` if not known.
    pub allowed: CpuSet,
    /// True if user space may change its affinity.
    pub movable: bool,
    /// Reason why it can or cannot be moved.
    pub why: String,
    /// Counts of the CPUs on which it occurred.
    pub counts: Vec<IrqCount>,
    /// Threads that handle it.
    pub threads: Vec<IrqHandler>,
}

impl PlacedIrq {
    /// True for an interrupt with a number; false for those of the architecture, such as `LOC`.
    pub fn is_numbered(&self) -> bool {
        self.irq.parse::<u32>().is_ok()
    }

    /// True if it may arrive on any of these CPUs.
    pub fn may_arrive_on(&self, cpus: &CpuSet) -> bool {
        !self.allowed.or(&self.effective).and(cpus).is_empty()
    }
}

/// Interrupts of a machine, by number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IrqsDocument {
    pub schema: &'static str,
    /// Requested CPUs, else the isolated ones; `""` if no CPU is isolated.
    pub cpus: CpuSet,
    /// Length of the count; null without one.
    pub counted_ns: Option<i64>,
    pub irqs: Vec<PlacedIrq>,
    /// Interrupts that could not be read.
    pub unread: u64,
    /// Limits of the list, a sentence each.
    pub remarks: Vec<String>,
}
