//! The kinds of slices, as `bundle::run::Slice` names them: the one list, for the timeline and for the rules above it.

/// The ways in which time is taken from a task: the kinds of a spike's slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // docs/hunting.md explains them; the words are the kernel's.
pub enum Kind {
    IrqsOff,
    PreemptOff,
    Irq,
    TimerIrq,
    Softirq,
    TimerSoftirq,
    Nmi,
    Ipi,
    StopMachine,
    Workqueue,
    Thread,
    FairServer,
    Throttled,
    LockContention,
    PriorityInversion,
    IdleExit,
    Frequency,
    PageFault,
    Switch,
    ReturnToUser,
    Unexplained,
}

impl Kind {
    /// All of them, in the contract's order.
    pub const ALL: [Kind; 21] = [
        Kind::IrqsOff,
        Kind::PreemptOff,
        Kind::Irq,
        Kind::TimerIrq,
        Kind::Softirq,
        Kind::TimerSoftirq,
        Kind::Nmi,
        Kind::Ipi,
        Kind::StopMachine,
        Kind::Workqueue,
        Kind::Thread,
        Kind::FairServer,
        Kind::Throttled,
        Kind::LockContention,
        Kind::PriorityInversion,
        Kind::IdleExit,
        Kind::Frequency,
        Kind::PageFault,
        Kind::Switch,
        Kind::ReturnToUser,
        Kind::Unexplained,
    ];

    /// The word in JSON: `idle-exit`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::IrqsOff => "irqs-off",
            Kind::PreemptOff => "preempt-off",
            Kind::Irq => "irq",
            Kind::TimerIrq => "timer-irq",
            Kind::Softirq => "softirq",
            Kind::TimerSoftirq => "timer-softirq",
            Kind::Nmi => "nmi",
            Kind::Ipi => "ipi",
            Kind::StopMachine => "stop-machine",
            Kind::Workqueue => "workqueue",
            Kind::Thread => "thread",
            Kind::FairServer => "fair-server",
            Kind::Throttled => "throttled",
            Kind::LockContention => "lock-contention",
            Kind::PriorityInversion => "priority-inversion",
            Kind::IdleExit => "idle-exit",
            Kind::Frequency => "frequency",
            Kind::PageFault => "page-fault",
            Kind::Switch => "switch",
            Kind::ReturnToUser => "return-to-user",
            Kind::Unexplained => "unexplained",
        }
    }

    /// Whether it is a path of the kernel's of bounded work: what takes far longer there did not run it.
    pub(super) fn bounded(self) -> bool {
        matches!(self, Kind::TimerIrq | Kind::TimerSoftirq | Kind::Switch | Kind::ReturnToUser)
    }
}
