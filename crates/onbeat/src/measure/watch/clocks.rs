//! Clock steps and suspends, from the clocks' offsets to CLOCK_MONOTONIC.

use crate::measure::integrity::entry;
use host::clock;
use model::run::Integrity;
use model::units::Nanos;
use model::vocabulary::IntegrityKind;

/// CLOCK_REALTIME may be slewed by 500 ppm (adjtimex(2)); a change beyond that is a step.
const SLEW_PPM: i64 = 1_000;

/// Change of a clock's offset that may be an error of the reading.
const CLOCK_NOISE: Nanos = Nanos(1_000_000);

/// Offsets of the clocks to CLOCK_MONOTONIC at the last reading.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Time of the reading.
    pub at: Nanos,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC.
    pub wall: Nanos,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC: time spent suspended.
    pub boot: Nanos,
}

impl Clocks {
    pub fn read() -> Clocks {
        Clocks { at: clock::monotonic(), wall: clock::wall_offset(), boot: clock::boot_offset() }
    }

    /// Entry for a suspend or a step between two readings.
    pub fn compare(self, later: Clocks) -> Option<Integrity> {
        let suspended = later.boot - self.boot;
        if suspended > CLOCK_NOISE {
            return Some(entry(
                IntegrityKind::Suspend,
                None,
                true,
                format!("the machine was suspended for {suspended}; CLOCK_MONOTONIC stood still"),
            ));
        }
        let step = later.wall - self.wall;
        let slewed = (later.at - self.at).0 / 1_000_000 * SLEW_PPM;
        (step.0.abs() > slewed + CLOCK_NOISE.0).then(|| {
            entry(
                IntegrityKind::ClockStep,
                None,
                false,
                format!(
                    "the wall clock was stepped by {step}; latencies use CLOCK_MONOTONIC and are not \
                     affected, wall times before and after differ"
                ),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(at_s: i64, wall_ms: i64, boot_ms: i64) -> Clocks {
        Clocks {
            at: Nanos(at_s * 1_000_000_000),
            wall: Nanos(wall_ms * 1_000_000),
            boot: Nanos(boot_ms * 1_000_000),
        }
    }

    #[test]
    fn slewing_is_not_a_step() {
        let kind = |later: Clocks| clocks(0, 0, 0).compare(later).map(|e| (e.kind, e.invalidates));
        assert_eq!(kind(clocks(10, 5, 0)), None);
        assert_eq!(kind(clocks(10, 40, 0)), Some(("clock-step".into(), false)));
        assert_eq!(kind(clocks(10, -40, 0)), Some(("clock-step".into(), false)));
        assert_eq!(kind(clocks(10, 5_000, 5_000)), Some(("suspend".into(), true)));
    }
}
