//! The boots of a record on one time axis.

use model::text::several;
use model::units::Nanos;
use model::wall_time::wall_time;
use report::watch::summary::WatchAxis;

/// A clock before this was never set: 2020.
const SET: Nanos = Nanos(1_577_836_800 * Nanos::SECOND.0);

/// One boot, and its position on the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedBoot {
    pub id: String,
    pub first: Nanos,
    pub end: Nanos,
    /// Last offset from CLOCK_MONOTONIC to CLOCK_REALTIME: a clock that is set late is right for
    /// earlier times, too.
    pub offset: i64,
    /// Offset from CLOCK_MONOTONIC to the axis.
    pub shift: i64,
}

impl PlacedBoot {
    /// Time by RFC 3339, if the boot's clock was set.
    pub fn time(&self, mono: Nanos) -> String {
        if self.is_set() { wall_time(Nanos(mono.0.saturating_add(self.offset))) } else { String::new() }
    }

    /// True if its clock was set.
    pub fn is_set(&self) -> bool {
        self.end.0.saturating_add(self.offset) >= SET.0
    }
}

/// Places boots on one axis: by the clock if it was set, otherwise one after the other.
pub fn place(boots: &mut [PlacedBoot], remarks: &mut Vec<String>) -> WatchAxis {
    let wall = boots.iter().any(PlacedBoot::is_set);
    let unset = boots.iter().filter(|boot| !boot.is_set()).count() as u64;
    let mut end: Option<i64> = None;
    for at in 0..boots.len() {
        let own = boots[at].first.0.saturating_add(boots[at].offset);
        let start = match end {
            _ if boots[at].is_set() => own.max(end.unwrap_or(own)),
            Some(end) => end,
            // Before the first boot that has a time, as near to it as can be.
            None => boots.iter().find(|boot| boot.is_set()).map_or(0, |set| {
                let before: i64 = boots
                    .iter()
                    .take_while(|boot| !boot.is_set())
                    .map(|boot| boot.end.0 - boot.first.0)
                    .sum();
                set.first.0.saturating_add(set.offset).saturating_sub(before)
            }),
        };
        boots[at].shift = start.saturating_sub(boots[at].first.0);
        end = Some(boots[at].end.0.saturating_add(boots[at].shift));
    }
    if wall && unset > 0 {
        remarks.push(format!(
            "the clock was not set in {}: its data are drawn next to the previous boot",
            several(unset, "boot", "boots")
        ));
    }
    let from = boots.first().map_or(0, |boot| boot.first.0.saturating_add(boot.shift));
    WatchAxis { from: Nanos(from), to: Nanos(end.unwrap_or(from).max(from.saturating_add(1))), wall }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(id: &str, first: i64, end: i64, wall: i64) -> PlacedBoot {
        let second = Nanos::SECOND.0;
        PlacedBoot {
            id: id.into(),
            first: Nanos(first * second),
            end: Nanos(end * second),
            offset: wall * second,
            shift: 0,
        }
    }

    #[test]
    fn boots_lie_where_their_clock_says_or_after_each_other() {
        let second = Nanos::SECOND.0;
        let mut remarks = Vec::new();
        let mut boots = [
            boot("a", 10, 110, 0),
            boot("b", 0, 50, 1_700_000_000),
            boot("c", 5, 9, 40),
            boot("d", 0, 9, 1_600_000_000),
        ];
        let axis = place(&mut boots, &mut remarks);
        let starts: Vec<i64> =
            boots.iter().map(|boot| (boot.first.0 + boot.shift) / second - 1_700_000_000).collect();
        assert_eq!(starts, [-100, 0, 50, 54], "none lies over another");
        assert_eq!((axis.wall, (axis.to.0 - axis.from.0) / second, remarks.len()), (true, 163, 1));
        let mut unset = [boot("a", 10, 110, 0), boot("b", 0, 50, 0)];
        let axis = place(&mut unset, &mut remarks);
        assert_eq!((axis.wall, axis.from.0, axis.to.0 / second, remarks.len()), (false, 0, 150, 1));
    }
}
