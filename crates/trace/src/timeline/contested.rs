//! Which causes may have had the CPU in a stop of all CPUs, so that all spikes of a run have to
//! decide.

use super::case::{Case, Cause};
use model::slice::SliceKind;

/// Whether it is a path of the kernel's of bounded work: what takes far longer there did not run
/// it.
fn is_bounded(kind: SliceKind) -> bool {
    use SliceKind::{ReturnToUser, Switch, TimerIrq, TimerSoftirq};
    matches!(kind, TimerIrq | TimerSoftirq | Switch | ReturnToUser)
}

/// What may have had the CPU although another CPU was late; none of what every wake-up passes
/// through.
pub(super) fn contested(case: &Case<'_>, cause: Cause) -> Option<Cause> {
    let own = case.window.own && cause.kind == SliceKind::Thread && cause.who.pid == case.window.victim.pid;
    let passed = match cause.kind {
        SliceKind::TimerSoftirq => cause.who.function.is_empty(),
        SliceKind::IdleExit | SliceKind::PageFault => true,
        kind => is_bounded(kind),
    };
    (!own && !passed).then_some(Cause { contested: true, ..cause })
}
