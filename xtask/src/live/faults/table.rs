//! The kinds of fault: how each is asked for, and what a right explanation of it says.

/// One cause within a fault.
pub struct Part {
    /// The kind in the log.
    pub logged: &'static str,
    /// The kinds of slice that are right for it.
    pub kinds: &'static [&'static str],
    /// The names that are right: functions, threads, interrupts. Any of them will do.
    pub names: &'static [&'static str],
}

/// Who injects it.
pub enum By {
    /// The module: the request without its count.
    Module(&'static str),
    /// The program: its arguments.
    Program(&'static str),
}

/// On which machines it makes sense.
#[derive(Clone, Copy, PartialEq)]
pub enum On {
    /// Everywhere.
    All,
    /// Where soft timers expire in a thread.
    Rt,
    /// From 6.12 on.
    New,
    /// Before the fair server.
    Old,
}

/// A kind of fault.
pub struct Fault {
    /// Its word in the log, and the name of the check.
    pub word: &'static str,
    /// Who injects it.
    pub by: By,
    /// What the hunt is given beside the CPU and the threshold.
    pub hunt: &'static str,
    /// Its causes.
    pub parts: &'static [Part],
    /// On which machines.
    pub on: On,
    /// Whether the gate has it.
    pub first: bool,
    /// Whether the other architecture has it.
    pub foreign: bool,
    /// How many injections must have been seen as spikes.
    pub least: usize,
}

const FAULT: Fault = Fault {
    word: "",
    by: By::Module("us=20000"),
    hunt: "-a 1 -p 80",
    parts: &[],
    on: On::All,
    first: true,
    foreign: false,
    least: 30,
};

/// A raw lock that another CPU holds is waited for with interrupts off, and where the emulator's kernel takes no queued
/// lock there is no event of the wait: both are true, the function says which it is.
const LOCK: Part = Part {
    logged: "lock-contention",
    kinds: &["lock-contention", "irqs-off"],
    names: &["fault_lock_wait", "fault_lock_hold", "fault_holder"],
};

/// Every kind, the module's first.
pub const FAULTS: &[Fault] = &[
    Fault {
        word: "irqs-off",
        parts: &[Part { logged: "irqs-off", kinds: &["irqs-off"], names: &["fault_irqs_off"] }],
        foreign: true,
        ..FAULT
    },
    Fault {
        word: "spin-irqsave",
        parts: &[Part { logged: "irqs-off", kinds: &["irqs-off"], names: &["fault_spin_irqsave"] }],
        ..FAULT
    },
    Fault {
        word: "preempt-off",
        parts: &[Part { logged: "preempt-off", kinds: &["preempt-off"], names: &["fault_preempt_off"] }],
        ..FAULT
    },
    // The handler's function is in no event; the name it was requested under is.
    Fault {
        word: "irq",
        parts: &[Part { logged: "irq", kinds: &["irq"], names: &["onbeat_fault", "fault_device"] }],
        ..FAULT
    },
    Fault {
        word: "irq-work",
        parts: &[Part { logged: "irq", kinds: &["irq"], names: &["irq_work", "fault_irq_work"] }],
        first: false,
        ..FAULT
    },
    // The timer's interrupt is the victim's own path; a function that somebody else's timer calls in it is not.
    Fault {
        word: "hrtimer",
        parts: &[Part { logged: "timer-irq", kinds: &["irq"], names: &["fault_hrtimer"] }],
        first: false,
        ..FAULT
    },
    // On PREEMPT_RT it runs in ksoftirqd, which the guest raises above the victim: a mistake people make.
    Fault {
        word: "softirq",
        parts: &[Part {
            logged: "softirq",
            kinds: &["softirq"],
            names: &["tasklet", "fault_tasklet", "ksoftirqd"],
        }],
        ..FAULT
    },
    Fault {
        word: "fifo",
        parts: &[Part { logged: "thread", kinds: &["thread"], names: &["fault_fifo"] }],
        foreign: true,
        ..FAULT
    },
    // Kernels before 6.5 have no event with the function.
    Fault {
        word: "ipi",
        parts: &[Part {
            logged: "ipi",
            kinds: &["ipi"],
            names: &["fault_ipi", "fault_ipi_sender", "call_function_single"],
        }],
        foreign: true,
        ..FAULT
    },
    Fault {
        word: "stop-machine",
        parts: &[Part {
            logged: "stop-machine",
            kinds: &["stop-machine"],
            names: &["fault_stop_machine", "multi_cpu_stop", "migration"],
        }],
        ..FAULT
    },
    Fault {
        word: "workqueue",
        parts: &[Part { logged: "workqueue", kinds: &["workqueue"], names: &["fault_work"] }],
        ..FAULT
    },
    Fault { word: "lock", parts: &[LOCK], ..FAULT },
    Fault {
        word: "double",
        by: By::Module("us=30000"),
        parts: &[
            Part { logged: "irqs-off", kinds: &["irqs-off"], names: &["fault_then_above"] },
            Part { logged: "thread", kinds: &["thread"], names: &["fault_above"] },
        ],
        ..FAULT
    },
    Fault {
        word: "hog",
        hunt: "-a 1 -p 80 --wake timerfd",
        parts: &[Part { logged: "thread", kinds: &["thread"], names: &["fault_hog"] }],
        on: On::Rt,
        ..FAULT
    },
    Fault {
        word: "user-spin",
        by: By::Program("spin 1 90 20000 34 250"),
        parts: &[Part { logged: "thread", kinds: &["thread"], names: &["user_spin"] }],
        first: false,
        ..FAULT
    },
    Fault {
        word: "fair-server",
        by: By::Program("fair 1 13"),
        parts: &[Part { logged: "fair-server", kinds: &["fair-server"], names: &["user_hog"] }],
        on: On::New,
        ..FAULT
    },
    Fault {
        word: "throttle",
        by: By::Program("throttle 1 36"),
        parts: &[Part { logged: "throttled", kinds: &["throttled"], names: &["user_spin", "rt-throttling"] }],
        on: On::Old,
        first: false,
        ..FAULT
    },
    Fault {
        word: "inversion",
        by: By::Program("inversion 1 34"),
        hunt: "--victim inv_high",
        parts: &[Part {
            logged: "priority-inversion",
            kinds: &["priority-inversion"],
            names: &["inv_low", "inv_middle"],
        }],
        first: false,
        ..FAULT
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn words_are_unique_and_every_fault_has_a_cause_with_a_name() {
        let words: BTreeSet<&str> = FAULTS.iter().map(|fault| fault.word).collect();
        assert_eq!(words.len(), FAULTS.len());
        let named = |part: &Part| !part.names.is_empty() && !part.kinds.is_empty();
        assert!(FAULTS.iter().all(|fault| !fault.parts.is_empty() && fault.parts.iter().all(named)));
        assert!(FAULTS.iter().filter(|fault| fault.foreign).count() >= 3);
    }
}
