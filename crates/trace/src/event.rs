//! What the kernel's tracepoints record, as one type: from raw pages, from a bundle, or made up in
//! a test.
//!
//! `N` names a place in the kernel: an address while decoding, `function` or `function [module]` in
//! all that is kept.

use serde::{Deserialize, Serialize};

use super::fixed_str::FixedStr;
use model::units::{Cpu, CpuSet, Nanos};

/// A kernel address; it is never written to a bundle.
pub type Address = u64;

/// An event as decoded.
pub type Raw = Event<Address>;

/// An event as kept.
pub type Named = Event<String>;

/// Something that the kernel did, on one CPU, at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event<N> {
    /// When, on the trace's clock: CLOCK_MONOTONIC.
    #[serde(rename = "t")]
    pub time: Nanos,
    pub cpu: Cpu,
    /// The thread that was current there; of a switch the previous one. 0 is the idle thread.
    pub pid: i32,
    /// In which context, as the kernel noted it.
    #[serde(rename = "in")]
    pub context: Context,
    /// How deep preemption was disabled, not counting hard and soft interrupts.
    #[serde(default, rename = "off")]
    pub preempt: u8,
    #[serde(flatten)]
    pub what: What<N>,
}

/// `common_flags` of a trace event.
///
/// Source: `enum trace_flag_type`, include/linux/trace_events.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Context(pub u8);

impl Context {
    pub fn irqs_off(self) -> bool {
        self.0 & 0x01 != 0
    }

    /// The current thread was to be switched away from.
    pub fn need_resched(self) -> bool {
        self.0 & 0x04 != 0
    }

    /// In a hard interrupt.
    pub fn hard_irq(self) -> bool {
        self.0 & 0x08 != 0
    }

    /// In a soft interrupt.
    pub fn soft_irq(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// In a non-maskable interrupt.
    pub fn nmi(self) -> bool {
        self.0 & 0x40 != 0
    }
}

/// A thread as scheduling events show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its name, at most 15 bytes.
    pub comm: FixedStr<16>,
    pub pid: i32,
    /// The kernel's priority: -1 deadline and the stopper, 0 to 98 real-time (99 less the
    /// priority), 100 to 139 fair.
    pub prio: i32,
}

impl Task {
    /// Whether it has a higher priority than that, or the same (so that it is not preempted).
    pub fn not_below(&self, prio: i32) -> bool {
        self.prio <= prio
    }

    /// Whether it is under SCHED_FIFO, SCHED_RR or above.
    pub fn real_time(&self) -> bool {
        self.prio < 100
    }

    /// Whether it is the idle thread.
    pub fn idle(&self) -> bool {
        self.pid == 0
    }
}

/// The kinds of x86's interrupt vectors that have events of their own
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

/// True of the name that a CPU's own timer requests its handler by, elsewhere than on x86: arm64,
/// 32-bit Arm, RISC-V (drivers/clocksource, arch/arm/kernel/smp_twd.c).
pub fn is_cpu_timer(handler: &str) -> bool {
    matches!(handler, "arch_timer" | "twd" | "clint-timer" | "riscv-timer")
}

/// True of the name that RISC-V requests the handler of a kind of IPI by (arch/riscv/kernel/smp.c,
/// `ipi_names`).
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
    /// Whether another CPU sent it.
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

/// The content of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "e")]
pub enum What<N> {
    /// sched_switch: one thread gave the CPU to another.
    Switch {
        /// The thread that had the CPU.
        prev: Task,
        /// The state in which it left; 0 is still runnable, 256 preempted (TASK_REPORT_MAX).
        state: i64,
        /// The thread that has the CPU now.
        next: Task,
    },
    /// sched_waking: a thread or an interrupt wakes a thread.
    Waking {
        task: Task,
        /// Where it is to run.
        target: Cpu,
    },
    /// sched_wakeup: the thread is in its run queue.
    Wakeup {
        task: Task,
        /// Where it is to run.
        target: Cpu,
    },
    Migrate {
        #[serde(rename = "task")]
        pid: i32,
        /// The previous CPU.
        from: Cpu,
        /// The new CPU.
        to: Cpu,
    },
    /// sched_pi_setprio: a priority was inherited, or given back.
    Inherit {
        #[serde(rename = "task")]
        pid: i32,
        /// The kernel's priority before.
        old: i32,
        /// The kernel's priority after.
        new: i32,
    },
    /// sched_process_fork: a thread or a process was made, by the current thread.
    Fork {
        /// The new thread.
        child: i32,
    },
    /// sched_process_exec: a program was executed. Its thread has the number of its process from
    /// now on.
    Exec {
        /// The number of that thread before.
        old: i32,
    },
    /// sched_process_exit: the current thread ends.
    Exit,
    /// irq_handler_entry: the handler of a device.
    IrqEntry {
        irq: i32,
        /// The name under which the handler was requested, cut after 23 bytes.
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
    /// ipi_entry, elsewhere than on x86.
    IpiEntry {
        /// The kernel's text for the reason.
        reason: N,
    },
    IpiExit {
        /// The kernel's words for why.
        reason: N,
    },
    IpiSend {
        /// The target CPUs.
        targets: CpuSet,
        /// The sending code.
        callsite: N,
        /// What is to be run there: for a call, the function that takes it from the queue.
        callback: N,
    },
    /// csd_queue_cpu: a function is to be run on another CPU.
    CallQueue {
        /// The CPU that runs it.
        target: Cpu,
        /// The requesting code.
        callsite: N,
        function: N,
    },
    /// csd_function_entry: it begins.
    CallEntry {
        function: N,
    },
    CallExit {
        function: N,
    },
    TimerStart {
        /// Which timer; a number without meaning beyond its window once it is kept.
        timer: u64,
        /// What it will call.
        function: N,
        /// The earliest time of expiry, on the timer's own clock.
        expires: Nanos,
    },
    /// hrtimer_start, with how it is meant. `onbeat check` asks for it, a hunt does not.
    TimerArmed {
        /// What it will call.
        function: N,
        /// `enum hrtimer_mode`; none where the kernel does not record it.
        mode: Option<u32>,
    },
    /// hrtimer_expire_entry: its function is called.
    TimerEntry {
        timer: u64,
        function: N,
        /// The time that the kernel took for now, on the timer's own clock.
        now: Nanos,
    },
    TimerExit {
        timer: u64,
    },
    /// hrtimer_start_expired, after hrtimer_start: the timer was due already. The kernel does not
    /// queue it: there is no expiry, and its thread does not sleep (from 7.2 on).
    TimerStartExpired {
        timer: u64,
    },
    /// hrtimer_rearm: the CPU's clock device is set for its next timer (from 7.1 on).
    TimerRearm {
        /// For when, on CLOCK_MONOTONIC.
        next: Nanos,
        /// On the way out of the kernel, behind the interrupt of the timers before.
        deferred: bool,
    },
    /// timer_expire_entry: a timer of the wheel.
    WheelEntry {
        function: N,
    },
    WheelExit,
    /// tasklet_entry: a tasklet's function is called, in its softirq. Kernels before 6.5 lack the
    /// event.
    TaskletEntry {
        function: N,
    },
    TaskletExit,
    /// nmi_handler, when it has ended.
    Nmi {
        handler: N,
        /// How long it took.
        ns: Nanos,
    },
    WorkEntry {
        function: N,
    },
    WorkExit {
        /// The work's function; empty where the kernel does not record it.
        function: N,
    },
    /// cpuhp_enter: a step of a CPU's way on or off line begins.
    HotplugEntry {
        /// The CPU that goes.
        of: Cpu,
        /// Off line rather than on.
        offline: bool,
        /// The function called for it.
        function: N,
    },
    HotplugExit {
        /// The CPU that goes.
        of: Cpu,
    },
    Idle {
        /// The state that is entered; none when the CPU is back.
        state: Option<u32>,
    },
    Frequency {
        /// Of this CPU.
        of: Cpu,
        khz: u32,
    },
    Fault {
        /// Whether user space faulted.
        user: bool,
    },
    /// page_fault_user, with its place in the program. `onbeat check` asks for it, a hunt does not.
    FaultAt {
        address: u64,
        /// The program's instruction.
        instruction: u64,
    },
    /// mmap_lock_acquire_returned: the lock of a process's memory was taken. `onbeat check` asks
    /// for it, a hunt does not.
    MemoryLocked {
        /// To change what the memory consists of, and not only to read that.
        write: bool,
    },
    ContentionBegin {
        /// Which lock; a number without meaning beyond its window once it is kept.
        lock: u64,
        /// How it waits: 1 spinning, 2 for reading, 4 for writing, 8 an RT lock, 16 per CPU, 32 a
        /// mutex.
        flags: u32,
    },
    ContentionEnd {
        lock: u64,
    },
    /// contended_release: who holds a lock that others wait for gives it free (from 7.2 on).
    ContendedRelease {
        lock: u64,
    },
    /// suspend_resume: a step into or out of a suspend begins or ends. A watch asks for it, a hunt
    /// does not.
    Suspend,
    /// printk:console: a message goes to the consoles.
    Console,
    /// ftrace:print: a program wrote to the trace. Traces of other tools have it, a hunt does not.
    Mark {
        /// The text, cut after 63 bytes.
        text: FixedStr<64>,
    },
    /// preemptirq:irq_disable and the like, where they are built in.
    Toggle {
        /// Interrupts rather than preemption.
        irqs: bool,
        /// Off rather than on.
        #[serde(rename = "to_off")]
        off: bool,
        caller: N,
    },
    SyscallEntry {
        /// The system call's number.
        id: i64,
        /// Its first four arguments.
        args: [u64; 4],
    },
    SyscallExit {
        /// The system call's number.
        id: i64,
    },
    /// kernel_stack: belongs to the event before it on the same CPU.
    Stack {
        /// Where the kernel was, innermost first.
        frames: Vec<N>,
        /// The frame that an interrupt stopped right after the instruction that re-enables
        /// interrupts.
        #[serde(default)]
        enables: Option<usize>,
    },
}
