//! The kinds of fault: the request for each, and the properties of a right explanation.

/// One cause within a fault.
pub struct Origin {
    /// The kind in the log.
    pub logged: &'static str,
    /// The kinds of slice that are right for it.
    pub kinds: &'static [&'static str],
    /// The names that are right: functions, threads, interrupts. Any of them suffices.
    pub names: &'static [&'static str],
    /// Required place of the name.
    pub place: NamePlace,
    /// Further texts that a slice must contain, in its evidence or as another name; if kernels
    /// differ, one of several between bars.
    pub said: &'static [&'static str],
}

/// Place of a right name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NamePlace {
    /// Function, thread or interrupt.
    Any,
    /// The function: a thread's name alone does not identify the work.
    Function,
    /// Like [`NamePlace::Any`], and no name at all is right, too: the events lack it.
    Nowhere,
}

/// Defaults.
pub const ORIGIN: Origin = Origin { logged: "", kinds: &[], names: &[], place: NamePlace::Any, said: &[] };

/// Injector of a fault.
pub enum By {
    /// The module: the request without its count.
    Module(&'static str),
    /// The program: its arguments.
    Program(&'static str),
    /// The module's kind of this word; then the other CPU is made to sleep through the rest of the
    /// handler, by its function.
    Late(&'static str, &'static str),
    /// The program that the hunt starts: its cause of delay.
    Followed(&'static str),
    /// The module's kind of this word, during the program that the hunt starts.
    BesideFollowed(&'static str),
}

/// Machines to which a fault applies.
#[derive(Clone, Copy, PartialEq)]
pub enum On {
    /// Everywhere.
    All,
    /// Kernels whose soft timers expire in a thread.
    Rt,
    /// A kernel that does not preempt its own code: no stock kernel from 7.0 on.
    Stock,
    /// Kernels from 6.12 on.
    New,
    /// Before the fair server.
    Old,
}

/// A kind of fault.
pub struct Fault {
    /// Its word in the log, and the name of the check.
    pub word: &'static str,
    /// Its injector.
    pub by: By,
    /// Arguments of the hunt besides the CPU and the threshold.
    pub hunt: &'static str,
    /// A kernel thread of the victim's CPU that the guest raises above it.
    pub raised: &'static str,
    /// Command through which the hunt is started.
    pub start: &'static str,
    /// Its causes.
    pub parts: &'static [Origin],
    /// Machines to which it applies.
    pub on: On,
    /// True if it is part of the gate.
    pub first: bool,
    /// True if it is run on the other architecture.
    pub foreign: bool,
    /// True if the culprit's time must be the injected time: a fault longer than the period of its
    /// victim makes several wake-ups late, and counts once.
    pub counts_time: bool,
    /// Minimum number of injections seen as spikes.
    pub least: usize,
}

/// Defaults.
pub const FAULT: Fault = Fault {
    word: "",
    by: By::Module("us=20000"),
    hunt: "-a 1 -p 80",
    raised: "",
    start: "",
    parts: &[],
    on: On::All,
    first: true,
    foreign: false,
    counts_time: false,
    least: 30,
};

/// The wait for a raw lock that another CPU holds has interrupts off, and a single waiter has no
/// event of the wait. That the waiter's function keeps interrupts off is true and misleading.
const LOCK: Origin = Origin {
    logged: "lock-contention",
    kinds: &["lock-contention"],
    names: &["fault_lock_hold", "fault_holder"],
    place: NamePlace::Nowhere,
    ..ORIGIN
};

/// The same kind on kernels whose locks have queues: from 7.3 on the release has an event.
pub const NAMED_LOCK: Fault =
    Fault { word: "lock", parts: &[Origin { place: NamePlace::Any, ..LOCK }], ..FAULT };

/// Every kind, the module's first.
pub const FAULTS: &[Fault] = &[
    Fault {
        word: "irqs-off",
        parts: &[Origin { logged: "irqs-off", kinds: &["irqs-off"], names: &["fault_irqs_off"], ..ORIGIN }],
        foreign: true,
        ..FAULT
    },
    Fault {
        word: "spin-irqsave",
        parts: &[Origin {
            logged: "irqs-off",
            kinds: &["irqs-off"],
            names: &["fault_spin_irqsave"],
            ..ORIGIN
        }],
        ..FAULT
    },
    Fault {
        word: "preempt-off",
        parts: &[Origin {
            logged: "preempt-off",
            kinds: &["preempt-off"],
            names: &["fault_preempt_off"],
            ..ORIGIN
        }],
        ..FAULT
    },
    // At the switch the thread sleeps: its previous function is in the stack at the timer's expiry
    // alone.
    Fault {
        word: "long-call",
        parts: &[Origin {
            logged: "preempt-off",
            kinds: &["preempt-off"],
            names: &["fault_long_call"],
            place: NamePlace::Function,
            ..ORIGIN
        }],
        on: On::Stock,
        ..FAULT
    },
    // The handler's function is in no event; the name it was requested under is.
    Fault {
        word: "irq",
        parts: &[Origin {
            logged: "irq",
            kinds: &["irq"],
            names: &["onbeat_fault", "fault_device"],
            ..ORIGIN
        }],
        ..FAULT
    },
    // The timer's interrupt is the victim's own path; a function that a foreign timer calls in it
    // is not.
    Fault {
        word: "hrtimer",
        parts: &[Origin { logged: "timer-irq", kinds: &["irq"], names: &["fault_hrtimer"], ..ORIGIN }],
        first: false,
        ..FAULT
    },
    // The other CPU, idle, is late with its timers at that time: that does not remove the handler's
    // name.
    Fault {
        word: "hrtimer-idle",
        by: By::Late("hrtimer", "fault_hrtimer"),
        parts: &[Origin { logged: "timer-irq", kinds: &["irq"], names: &["fault_hrtimer"], ..ORIGIN }],
        first: false,
        ..FAULT
    },
    Fault {
        word: "hrtimer-device",
        parts: &[Origin { logged: "timer-irq", kinds: &["irq"], names: &["fault_hrtimer_device"], ..ORIGIN }],
        first: false,
        ..FAULT
    },
    // On PREEMPT_RT it runs in ksoftirqd, which the guest raises above the victim: a mistake people
    // make.
    Fault {
        word: "softirq",
        raised: "ksoftirqd/1",
        parts: &[Origin {
            logged: "softirq",
            kinds: &["softirq"],
            names: &["tasklet", "fault_tasklet", "ksoftirqd"],
            ..ORIGIN
        }],
        ..FAULT
    },
    Fault {
        word: "fifo",
        parts: &[Origin { logged: "thread", kinds: &["thread"], names: &["fault_fifo"], ..ORIGIN }],
        foreign: true,
        ..FAULT
    },
    // Kernels before 6.5 have no event with the function.
    Fault {
        word: "ipi",
        parts: &[Origin {
            logged: "ipi",
            kinds: &["ipi"],
            names: &["fault_ipi", "fault_ipi_sender", "call_function_single"],
            ..ORIGIN
        }],
        foreign: true,
        ..FAULT
    },
    Fault {
        word: "stop-machine",
        parts: &[Origin {
            logged: "stop-machine",
            kinds: &["stop-machine"],
            names: &["fault_stop_machine", "multi_cpu_stop", "migration"],
            // The requesting thread: the stopper itself only executes the request.
            said: &["fault_stopper"],
            ..ORIGIN
        }],
        ..FAULT
    },
    // The worker is fair: only with preemption off it can hold up a real-time thread.
    Fault {
        word: "work-preempt-off",
        parts: &[Origin {
            logged: "preempt-off",
            kinds: &["preempt-off"],
            names: &["fault_work_preempt_off"],
            place: NamePlace::Function,
            ..ORIGIN
        }],
        ..FAULT
    },
    Fault {
        word: "kthread-hog",
        parts: &[Origin {
            logged: "thread",
            kinds: &["thread"],
            names: &["fault_hog_function"],
            place: NamePlace::Function,
            ..ORIGIN
        }],
        ..FAULT
    },
    // Work whose worker was raised above the victim.
    Fault {
        word: "workqueue",
        parts: &[Origin { logged: "workqueue", kinds: &["workqueue"], names: &["fault_work"], ..ORIGIN }],
        ..FAULT
    },
    Fault { word: "lock", parts: &[LOCK], ..FAULT },
    Fault {
        word: "double",
        by: By::Module("us=30000"),
        parts: &[
            Origin { logged: "irqs-off", kinds: &["irqs-off"], names: &["fault_then_above"], ..ORIGIN },
            Origin { logged: "thread", kinds: &["thread"], names: &["fault_above"], ..ORIGIN },
        ],
        ..FAULT
    },
    Fault {
        word: "hog",
        hunt: "-a 1 -p 80 --wake timerfd",
        parts: &[Origin { logged: "thread", kinds: &["thread"], names: &["fault_hog"], ..ORIGIN }],
        on: On::Rt,
        ..FAULT
    },
    Fault {
        word: "user-spin",
        by: By::Program("spin 1 90 20000 34 250"),
        parts: &[Origin { logged: "thread", kinds: &["thread"], names: &["user_spin"], ..ORIGIN }],
        first: false,
        ..FAULT
    },
    Fault {
        word: "fair-server",
        by: By::Program("fair 1 13"),
        parts: &[Origin { logged: "fair-server", kinds: &["fair-server"], names: &["user_hog"], ..ORIGIN }],
        on: On::New,
        ..FAULT
    },
    Fault {
        word: "throttle",
        by: By::Program("throttle 1 36"),
        parts: &[Origin {
            logged: "throttled",
            kinds: &["throttled"],
            names: &["user_spin", "rt-throttling"],
            ..ORIGIN
        }],
        on: On::Old,
        first: false,
        ..FAULT
    },
    // It is fair and runs with the priority of the waiter for its mutex: the fair server is not the
    // cause.
    Fault {
        word: "inherited",
        by: By::Program("inherited 1 34"),
        parts: &[Origin {
            logged: "thread",
            kinds: &["thread", "priority-inversion"],
            names: &["inh_low"],
            said: &["inherit"],
            ..ORIGIN
        }],
        first: false,
        ..FAULT
    },
    // The recording thread has to stay off the CPU of the thread that is followed, wherever it was
    // started.
    Fault {
        word: "victim-own",
        by: By::Program("own 0 34 victim-own"),
        hunt: "--victim own_victim",
        counts_time: true,
        parts: &[Origin { logged: "thread", kinds: &["thread"], names: &["own_hog"], ..ORIGIN }],
        first: false,
        ..FAULT
    },
    Fault {
        word: "victim-confined",
        by: By::Program("own 1 34 victim-confined"),
        hunt: "--victim own_victim",
        start: "taskset 2",
        parts: &[Origin { logged: "thread", kinds: &["thread"], names: &["own_hog"], ..ORIGIN }],
        first: false,
        ..FAULT
    },
];

impl Fault {
    /// The word in the log.
    pub fn logged(&self) -> &'static str {
        match self.by {
            By::Late(word, _) | By::BesideFollowed(word) => word,
            _ => self.word,
        }
    }

    /// True if the hunt follows a thread of the program instead of measuring itself.
    pub fn follows(&self) -> bool {
        self.hunt.contains("--victim") || matches!(self.by, By::Followed(_) | By::BesideFollowed(_))
    }
}
