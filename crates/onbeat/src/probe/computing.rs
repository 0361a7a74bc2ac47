//! Work of a thread by its own clock, and the pauses in it.

use host::{clock, rt};
use model::units::Nanos;

/// Pause between two reads of the clock.
pub struct Pause {
    pub from: Nanos,
    pub length: Nanos,
    /// True if another thread had the CPU; otherwise an interrupt, firmware or a hypervisor.
    pub switched: bool,
}

/// Computes until the time without pauses of at least `least` is `work`. `each` gets every read of
/// the clock, with the pause before it.
#[inline(always)]
pub fn compute(work: Nanos, least: Nanos, mut each: impl FnMut(Nanos, Option<Pause>)) {
    let mut switches = rt::thread_usage().involuntary_switches;
    let (mut last, mut used) = (clock::monotonic(), Nanos(0));
    while used < work {
        let now = clock::monotonic();
        let step = now - last;
        if step < least {
            used = used + step;
            each(now, None);
        } else {
            let before = std::mem::replace(&mut switches, rt::thread_usage().involuntary_switches);
            each(now, Some(Pause { from: last, length: step, switched: switches != before }));
        }
        last = now;
    }
}
