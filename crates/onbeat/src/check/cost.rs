//! Cost of recording per wake-up, measured on this thread, whose events are recorded with those of
//! the program.

use host::clock;
use model::units::Nanos;

/// Wake-ups of one measurement, and their distance: five milliseconds in all.
const WAKEUPS: i64 = 50;
const DISTANCE: Nanos = Nanos(100_000);
/// Number of measurements, of which the least counts: disturbances lengthen them.
const ROUNDS: usize = 30;

/// CPU time per wake-up of this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration(pub Option<Nanos>);

impl Calibration {
    pub fn measure() -> Calibration {
        let rounds = (0..ROUNDS).filter_map(|_| one_round());
        Calibration(rounds.min())
    }

    /// Increase since the measurement before; at least 1 ns, because 0 means that nothing was
    /// recorded.
    pub fn above(self, before: Calibration) -> Option<u64> {
        let more = self.0?.0.saturating_sub(before.0?.0);
        Some(more.max(1) as u64)
    }
}

fn one_round() -> Option<Nanos> {
    let (from, used) = (clock::monotonic(), clock::thread_cpu()?);
    for nth in 1..=WAKEUPS {
        // A signal ends one sleep early, which is a wake-up as well.
        clock::nanosleep_until(from + Nanos(nth * DISTANCE.0));
    }
    let used = clock::thread_cpu()? - used;
    Some(Nanos(used.0 / WAKEUPS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_the_difference_and_never_nothing() {
        let of = |ns| Calibration(Some(Nanos(ns)));
        assert_eq!((of(900).above(of(500)), of(500).above(of(900))), (Some(400), Some(1)));
        assert_eq!((of(900).above(Calibration(None)), Calibration(None).above(of(1))), (None, None));
    }
}
