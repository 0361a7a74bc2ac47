//! Kinds of a spike's slices: the one list for the timeline, the rules, the pictures and the
//! documents.

use crate::keywords;

keywords! {
    /// The ways in which time is taken from a task (docs/hunting.md explains them).
    pub enum SliceKind {
        /// interrupts were off
        IrqsOff = "irqs-off",
        /// a thread could not be preempted
        PreemptOff = "preempt-off",
        /// a device's interrupt
        Irq = "irq",
        /// the timer interrupt
        TimerIrq = "timer-irq",
        /// a soft interrupt
        Softirq = "softirq",
        /// the timer's soft interrupt
        TimerSoftirq = "timer-softirq",
        /// a non-maskable interrupt
        Nmi = "nmi",
        /// an interrupt from another CPU
        Ipi = "ipi",
        /// all CPUs were stopped
        StopMachine = "stop-machine",
        /// a work item
        Workqueue = "workqueue",
        /// another thread ran
        Thread = "thread",
        /// the fair server ran ordinary threads
        FairServer = "fair-server",
        /// real-time throttling
        Throttled = "throttled",
        /// waited for a lock
        LockContention = "lock-contention",
        /// waited for a lower thread
        PriorityInversion = "priority-inversion",
        /// the CPU left idle
        IdleExit = "idle-exit",
        /// the clock frequency changed
        Frequency = "frequency",
        /// a page fault
        PageFault = "page-fault",
        /// the switch to the thread
        Switch = "switch",
        /// the return to user space
        ReturnToUser = "return-to-user",
        /// the followed thread ran itself
        Own = "own",
        /// another thread took the CPU from the followed one
        Preempted = "preempted",
        /// slept before its cycle was done
        Blocked = "blocked",
        /// in a system call
        Syscall = "syscall",
        /// stopped from outside
        Stopped = "stopped",
        /// no event accounts for it
        Unexplained = "unexplained",
    }
}
