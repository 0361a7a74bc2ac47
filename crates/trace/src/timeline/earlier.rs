//! Time of an earlier cycle as a part of a later one.

use model::run::{Slice, Spike};
use model::units::Nanos;

/// Limit of slices taken from an earlier cycle.
const MAX_SLICES: usize = 512;

/// Text if the earlier cycle's time has no cause either.
const UNKNOWN: &str = "its previous cycle overran, and no event shows the cause";

/// Sets the reason to an unknown earlier cycle, if most of the unexplained time is of that.
pub(super) fn tell_unknown(spike: &mut Spike, of_earlier: i64) {
    let most = of_earlier.saturating_mul(2) > spike.unexplained_ns.0;
    if most && !spike.unexplained_why.is_empty() {
        UNKNOWN.clone_into(&mut spike.unexplained_why);
    }
}

/// Slices of any kind cut to a stretch of time, in order and without overlap.
pub(super) fn within(slices: &[Slice], from: Nanos, to: Nanos) -> Vec<Slice> {
    let (mut cut, mut reached) = (Vec::new(), from.0);
    for slice in slices.iter().take(MAX_SLICES) {
        let start = slice.start_ns.0.max(reached);
        let end = slice.start_ns.0.saturating_add(slice.ns.0).min(to.0);
        if start < end {
            cut.push(Slice { start_ns: Nanos(start), ns: Nanos(end - start), ..slice.clone() });
            reached = end;
        }
    }
    cut
}
