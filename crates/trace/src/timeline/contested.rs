//! Causes that may have had the CPU during a suspected stop of all CPUs, which the other spikes of
//! a run must decide.

use super::case::{Case, Cause};
use model::slice::SliceKind;

/// True for kernel paths of bounded work: a CPU that takes far longer there did not run.
fn is_bounded(kind: SliceKind) -> bool {
    use SliceKind::{ReturnToUser, Switch, TimerIrq, TimerSoftirq};
    matches!(kind, TimerIrq | TimerSoftirq | Switch | ReturnToUser)
}

/// Contested cause, if it may have had the CPU although another CPU was late; none for paths that
/// every wake-up takes.
pub(super) fn contested(case: &Case<'_>, cause: Cause) -> Option<Cause> {
    let own = case.window.own && cause.kind == SliceKind::Thread && cause.who.pid == case.window.victim.pid;
    let passed = match cause.kind {
        SliceKind::TimerSoftirq => cause.who.function.is_empty(),
        SliceKind::IdleExit | SliceKind::PageFault => true,
        kind => is_bounded(kind),
    };
    (!own && !passed).then_some(Cause { contested: true, ..cause })
}
