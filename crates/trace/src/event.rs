//! Events of the kernel's tracepoints as one type: from raw pages, from a bundle, or from a test.
//!
//! `N` is the type of a place in the kernel: an address while decoding, later the text `function`
//! or `function [module]`.

use serde::{Deserialize, Serialize};

use super::fixed_str::FixedStr;
pub use super::tracer_record::{NoiseSource, TracerRecord};
use model::units::{Cpu, CpuSet, Nanos};

/// Kernel address; never written to a bundle.
pub type Address = u64;

/// Decoded event.
pub type Raw = Event<Address>;

/// Stored event.
pub type Named = Event<String>;

/// Event in the kernel, on one CPU, at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event<N> {
    /// Time on the trace's clock, CLOCK_MONOTONIC.
    #[serde(rename = "t")]
    pub time: Nanos,
    pub cpu: Cpu,
    /// Current thread; for a switch the previous one. 0 is the idle thread.
    pub pid: i32,
    /// Context recorded by the kernel.
    #[serde(rename = "in")]
    pub context: Context,
    /// Depth of disabled preemption, without hard and soft interrupts.
    #[serde(default, rename = "off")]
    pub preempt: u8,
    #[serde(flatten)]
    pub what: What<N>,
}

/// Context of an event, `common_flags` of a trace event.
///
/// Source: `enum trace_flag_type`, include/linux/trace_events.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Context(pub u8);

impl Context {
    pub fn irqs_off(self) -> bool {
        self.0 & 0x01 != 0
    }

    /// True if the current thread was to be switched away from.
    pub fn need_resched(self) -> bool {
        self.0 & 0x04 != 0
    }

    /// Adds the mark of a thread to be switched away from, or removes it.
    pub fn with_need_resched(self, needed: bool) -> Context {
        Context(self.0 & !0x04 | u8::from(needed) << 2)
    }

    /// True in a hard interrupt.
    pub fn hard_irq(self) -> bool {
        self.0 & 0x08 != 0
    }

    /// True in a soft interrupt.
    pub fn soft_irq(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// True in a non-maskable interrupt.
    pub fn nmi(self) -> bool {
        self.0 & 0x40 != 0
    }
}

/// Thread in a scheduling event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Name of at most 15 bytes.
    pub comm: FixedStr<16>,
    pub pid: i32,
    /// Kernel priority: -1 for deadline and the stopper, 0 to 98 for real-time (99 less the
    /// priority), 100 to 139 for fair.
    pub prio: i32,
}

impl Task {
    /// True if its priority is at least `prio`, so that a thread of `prio` does not preempt it.
    pub fn not_below(&self, prio: i32) -> bool {
        self.prio <= prio
    }

    /// True under SCHED_FIFO, SCHED_RR or above.
    pub fn real_time(&self) -> bool {
        self.prio < 100
    }

    /// True for the idle thread.
    pub fn idle(&self) -> bool {
        self.pid == 0
    }
}

/// Kinds of x86's interrupt vectors with separate events
/// (arch/x86/include/asm/trace/irq_vectors.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // The names are the kernel's.
pub enum Vector {
    LocalTimer,
    Reschedule,
    CallFunction,
    CallFunctionSingle,
    IrqWork,
    X86PlatformIpi,
    ThermalApic,
    ThresholdApic,
    DeferredErrorApic,
    ErrorApic,
    SpuriousApic,
}

/// True for the handler name of a CPU's timer on architectures other than x86: arm64, 32-bit Arm,
/// RISC-V (drivers/clocksource, arch/arm/kernel/smp_twd.c).
pub fn is_cpu_timer(handler: &str) -> bool {
    matches!(handler, "arch_timer" | "twd" | "clint-timer" | "riscv-timer")
}

/// True for the handler name of an IPI on RISC-V (arch/riscv/kernel/smp.c, `ipi_names`).
pub fn is_riscv_ipi(handler: &str) -> bool {
    const KINDS: [&str; 8] = [
        "CPU backtrace",
        "CPU stop",
        "CPU stop (for crash dump)",
        "Function call",
        "IRQ work",
        "KGDB roundup",
        "Rescheduling",
        "Timer broadcast",
    ];
    handler.strip_suffix(" interrupts").is_some_and(|kind| KINDS.contains(&kind))
}

impl Vector {
    /// True for a vector sent by another CPU.
    pub fn is_ipi(self) -> bool {
        matches!(self, Vector::Reschedule | Vector::CallFunction | Vector::CallFunctionSingle)
    }

    pub fn name(self) -> &'static str {
        match self {
            Vector::LocalTimer => "local_timer",
            Vector::Reschedule => "reschedule",
            Vector::CallFunction => "call_function",
            Vector::CallFunctionSingle => "call_function_single",
            Vector::IrqWork => "irq_work",
            Vector::X86PlatformIpi => "x86_platform_ipi",
            Vector::ThermalApic => "thermal_apic",
            Vector::ThresholdApic => "threshold_apic",
            Vector::DeferredErrorApic => "deferred_error_apic",
            Vector::ErrorApic => "error_apic",
            Vector::SpuriousApic => "spurious_apic",
        }
    }
}

/// Content of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "e")]
pub enum What<N> {
    /// sched_switch: one thread gave the CPU to another.
    Switch {
        /// Previous thread.
        prev: Task,
        /// State of the previous thread; 0 is still runnable, 256 preempted (TASK_REPORT_MAX).
        state: i64,
        /// Next thread.
        next: Task,
    },
    /// sched_waking: a thread or an interrupt wakes a thread.
    Waking {
        task: Task,
        /// CPU on which it is to run.
        target: Cpu,
    },
    /// sched_wakeup: the thread is in its run queue.
    Wakeup {
        task: Task,
        /// CPU on which it is to run.
        target: Cpu,
    },
    Migrate {
        #[serde(rename = "task")]
        pid: i32,
        /// Previous CPU.
        from: Cpu,
        /// New CPU.
        to: Cpu,
    },
    /// sched_pi_setprio: a thread inherited a priority, or returned to its own.
    Inherit {
        #[serde(rename = "task")]
        pid: i32,
        /// Kernel priority before.
        old: i32,
        /// Kernel priority after.
        new: i32,
    },
    /// sched_process_fork: the current thread created a thread or a process.
    Fork {
        /// New thread.
        child: i32,
    },
    /// sched_process_exec: a program was executed. Its thread has the number of its process from
    /// now on.
    Exec {
        /// Previous number of that thread.
        old: i32,
    },
    /// sched_process_exit: the current thread ends.
    Exit,
    /// irq_handler_entry: the handler of a device.
    IrqEntry {
        irq: i32,
        /// Name under which the handler was requested, cut after 23 bytes.
        name: FixedStr<24>,
    },
    IrqExit {
        irq: i32,
    },
    SoftirqRaise {
        /// Number of the softirq.
        vec: u8,
    },
    SoftirqEntry {
        /// Number of the softirq.
        vec: u8,
    },
    SoftirqExit {
        /// Number of the softirq.
        vec: u8,
    },
    /// irq_vectors:*_entry, on x86.
    VectorEntry {
        vector: Vector,
    },
    VectorExit {
        vector: Vector,
    },
    /// ipi_entry, on architectures other than x86.
    IpiEntry {
        /// Kernel text for the reason.
        reason: N,
    },
    IpiExit {
        /// Kernel text for the reason.
        reason: N,
    },
    IpiSend {
        /// Target CPUs.
        targets: CpuSet,
        /// Code that sends it.
        callsite: N,
        /// Function to run there; for a call, the one that takes it from the queue.
        callback: N,
    },
    /// csd_queue_cpu: a function is queued for another CPU.
    CallQueue {
        /// CPU that runs it.
        target: Cpu,
        /// Code that requests it.
        callsite: N,
        function: N,
    },
    /// csd_function_entry: the function begins.
    CallEntry {
        function: N,
    },
    CallExit {
        function: N,
    },
    TimerStart {
        /// Address of the timer; once stored, a number without meaning outside of its window.
        timer: u64,
        /// Function that it will call.
        function: N,
        /// Earliest time of expiry, on the timer's own clock.
        expires: Nanos,
    },
    /// hrtimer_start, with its mode. Recorded by `onbeat check`, not by a hunt.
    TimerArmed {
        /// Function that it will call.
        function: N,
        /// `enum hrtimer_mode`; none if the kernel does not record it.
        mode: Option<u32>,
    },
    /// hrtimer_expire_entry: the timer's function is called.
    TimerEntry {
        timer: u64,
        function: N,
        /// Kernel's reading of the present time, on the timer's own clock.
        now: Nanos,
    },
    TimerExit {
        timer: u64,
    },
    /// hrtimer_start_expired, after hrtimer_start: the timer was due already. The kernel does not
    /// queue it: there is no expiry, and its thread does not sleep (since 7.2).
    TimerStartExpired {
        timer: u64,
    },
    /// hrtimer_rearm: the CPU's clock device is set for its next timer (since 7.1).
    TimerRearm {
        /// Time that it is set for, on CLOCK_MONOTONIC.
        next: Nanos,
        /// True if set on the way out of the kernel, after the interrupt of the previous timers.
        deferred: bool,
    },
    /// timer_expire_entry: a timer of the timer wheel.
    WheelEntry {
        function: N,
    },
    WheelExit,
    /// tasklet_entry: a tasklet's function is called, in its softirq. Kernels before 6.5 do not
    /// have the event.
    TaskletEntry {
        function: N,
    },
    TaskletExit,
    /// nmi_handler, recorded at its end.
    Nmi {
        handler: N,
        /// Duration.
        ns: Nanos,
    },
    WorkEntry {
        function: N,
    },
    WorkExit {
        /// Function of the work; empty if the kernel does not record it.
        function: N,
    },
    /// cpuhp_enter: a step of bringing a CPU online or offline begins.
    HotplugEntry {
        /// CPU that changes its state.
        of: Cpu,
        /// True if it goes offline.
        offline: bool,
        /// Function called for it.
        function: N,
    },
    HotplugExit {
        /// CPU that changes its state.
        of: Cpu,
    },
    Idle {
        /// State that is entered; none at the end of idling.
        state: Option<u32>,
    },
    Frequency {
        /// CPU whose frequency changes.
        of: Cpu,
        khz: u32,
    },
    Fault {
        /// True for a fault in user space.
        user: bool,
    },
    /// page_fault_user, with its place in the program. Recorded by `onbeat check`, not by a hunt.
    FaultAt {
        address: u64,
        /// Instruction of the program.
        instruction: u64,
    },
    /// mmap_lock_acquire_returned: the mmap lock of a process was taken. Recorded by `onbeat
    /// check`, not by a hunt.
    MemoryLocked {
        /// True if taken for writing, to change the mappings.
        write: bool,
    },
    ContentionBegin {
        /// Address of the lock; once stored, a number without meaning outside of its window.
        lock: u64,
        /// Kind of the wait: 1 spinning, 2 for reading, 4 for writing, 8 an RT lock, 16 per CPU, 32
        /// a mutex.
        flags: u32,
    },
    ContentionEnd {
        lock: u64,
    },
    /// contended_release: the owner releases a lock that others wait for (since 7.2).
    ContendedRelease {
        lock: u64,
    },
    /// suspend_resume: a step into or out of a suspend begins or ends. Recorded by a watch, not by
    /// a hunt.
    Suspend,
    /// printk:console: a message goes to the consoles.
    Console,
    /// ftrace:print: a program wrote to the trace. Found in traces of other tools, not of a hunt.
    Mark {
        /// Text, cut after 63 bytes.
        text: FixedStr<64>,
    },
    /// Record of a tracer that measures. Not recorded by a hunt.
    Tracer {
        record: TracerRecord,
    },
    /// preemptirq:irq_disable and the like, if built in.
    Toggle {
        /// True for interrupts, false for preemption.
        irqs: bool,
        /// True for disabling.
        #[serde(rename = "to_off")]
        off: bool,
        caller: N,
    },
    SyscallEntry {
        /// Number of the system call.
        id: i64,
        /// First four arguments.
        args: [u64; 4],
    },
    SyscallExit {
        /// Number of the system call.
        id: i64,
    },
    /// kernel_stack, which belongs to the event before it on the same CPU.
    Stack {
        /// Stack frames, innermost first.
        frames: Vec<N>,
        /// Index of the frame interrupted right after the instruction that re-enables interrupts.
        #[serde(default)]
        enables: Option<usize>,
    },
}
