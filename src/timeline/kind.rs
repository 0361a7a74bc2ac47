//! The kinds of slices, as `bundle::run::Slice` names them; a room below the rules has them without the rules.

/// Whose time a slice is, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
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
}

impl Kind {
    /// All of them, in the contract's order.
    #[cfg(test)]
    pub(super) const ALL: [Kind; 20] = [
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
    ];

    /// The word in JSON.
    pub(super) fn name(self) -> &'static str {
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
        }
    }

    /// Whether it is a path of the kernel's of bounded work: what takes far longer there did not run it.
    pub(super) fn bounded(self) -> bool {
        matches!(self, Kind::TimerIrq | Kind::TimerSoftirq | Kind::Switch | Kind::ReturnToUser)
    }
}
