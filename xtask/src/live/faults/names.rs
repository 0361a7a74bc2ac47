//! Kinds of fault whose names need more than the context that ran: the function, the requesting
//! thread, or a text for the part without events.

use super::table::{By, FAULT, Fault, NamePlace, ORIGIN, On, Origin};

const NAMED: Fault = Fault { first: false, ..FAULT };

pub const FAULTS: &[Fault] = &[
    Fault {
        word: "irq-work",
        parts: &[Origin {
            logged: "irq",
            kinds: &["irq"],
            names: &["irq_work"],
            said: &["no event shows the called function or its origin"],
            ..ORIGIN
        }],
        ..NAMED
    },
    // Kernels before 6.5 have no event with the function.
    Fault {
        word: "tasklet",
        raised: "ksoftirqd/1",
        parts: &[Origin {
            logged: "softirq",
            kinds: &["softirq"],
            names: &["fault_tasklet"],
            place: NamePlace::Function,
            ..ORIGIN
        }],
        on: On::New,
        ..NAMED
    },
    // It mostly begins after the victim's timer, whose stack then lacks it.
    Fault {
        word: "rcu-callback",
        raised: "rcuc/1",
        parts: &[Origin {
            logged: "thread",
            kinds: &["thread"],
            names: &["rcuc", "fault_rcu_callback"],
            said: &["callback"],
            ..ORIGIN
        }],
        on: On::Rt,
        ..NAMED
    },
    // The other CPU goes offline: all wait for its work with all CPUs stopped, and an offline CPU
    // records no events.
    Fault {
        word: "cpu-offline",
        by: By::Module("us=20000 cpu=0 from=1 count=16 period_ms=300"),
        hunt: "-a 0 -p 80",
        parts: &[Origin {
            logged: "stop-machine",
            kinds: &["stop-machine"],
            names: &["multi_cpu_stop", "migration"],
            said: &[
                "CPU 1 went off line: takedown_cpu",
                "is in no event",
                // On 7.3 the requesting thread does it itself.
                "in the work item work_for_cpu_fn|asked for by fault_offliner",
            ],
            ..ORIGIN
        }],
        least: 12,
        ..NAMED
    },
    // Kernels before 6.5 have no event with the function.
    Fault {
        word: "call-wait",
        parts: &[Origin {
            logged: "preempt-off",
            kinds: &["preempt-off"],
            names: &["smp_call_function_single", "fault_call_wait"],
            said: &["fault_called"],
            ..ORIGIN
        }],
        on: On::New,
        ..NAMED
    },
    Fault {
        word: "storm",
        parts: &[Origin {
            logged: "irq",
            kinds: &["irq"],
            names: &["onbeat_storm"],
            said: &["no event has its handler's function"],
            ..ORIGIN
        }],
        ..NAMED
    },
    Fault {
        word: "irqs-handed",
        parts: &[Origin {
            logged: "irqs-off",
            kinds: &["irqs-off"],
            names: &["fault_take_over"],
            place: NamePlace::Function,
            said: &["it or one that ran before it had switched them off"],
        }],
        ..NAMED
    },
    // A fair thread runs with the priority of a thread that waits for a second mutex, which a third
    // thread holds.
    Fault {
        word: "chained",
        by: By::Program("chained 1 34"),
        parts: &[Origin {
            logged: "thread",
            kinds: &["thread", "priority-inversion"],
            names: &["inh_low"],
            said: &["inh_high"],
            ..ORIGIN
        }],
        ..NAMED
    },
];
