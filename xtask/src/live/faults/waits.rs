//! Kinds of fault that delay a followed thread by a wait: for a lock of a lower thread while
//! another one runs, over chains of several, and for waits that are not such an inversion.

use super::table::{By, FAULT, Fault, ORIGIN, Origin};

/// With a deadline all that is late in a cycle is a spike, not late wake-ups and mutexes alone.
const WAIT: Fault = Fault { hunt: "--victim inv_high --syscalls --deadline 10ms", first: false, ..FAULT };

/// The thread in the middle runs while the holder of the lock is runnable.
const INVERSION: Origin =
    Origin { logged: "priority-inversion", kinds: &["priority-inversion"], names: &["inv_middle"], ..ORIGIN };

/// The holder has the priority of the waiter, or is not kept from running.
const WOKEN: Origin =
    Origin { logged: "priority-inversion", kinds: &["blocked"], names: &["inv_low"], ..ORIGIN };

pub const FAULTS: &[Fault] = &[
    Fault { word: "inversion", by: By::Program("inversion 1 34 inversion"), parts: &[INVERSION], ..WAIT },
    Fault { word: "inversion-2", by: By::Program("inversion 1 34 inversion-2"), parts: &[INVERSION], ..WAIT },
    Fault { word: "inversion-3", by: By::Program("inversion 1 34 inversion-3"), parts: &[INVERSION], ..WAIT },
    Fault {
        word: "inversion-rwlock",
        by: By::Program("inversion 1 34 inversion-rwlock"),
        parts: &[INVERSION],
        ..WAIT
    },
    Fault { word: "inversion-pi", by: By::Program("inversion 1 34 inversion-pi"), parts: &[WOKEN], ..WAIT },
    Fault {
        word: "inversion-pipe",
        by: By::Program("inversion 1 34 inversion-pipe"),
        parts: &[WOKEN],
        ..WAIT
    },
];
