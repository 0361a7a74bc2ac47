//! Ticks of an axis of dates, at round values in the zone of the axis.

use super::axis::{Scale, Tick};
use model::units::Nanos;
use model::wall_time::wall_time;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Seconds between ticks; steps of days and more do not follow months.
const STEPS: [i64; 19] = [
    1,
    5,
    15,
    MINUTE,
    5 * MINUTE,
    15 * MINUTE,
    HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    14 * DAY,
    28 * DAY,
    91 * DAY,
    364 * DAY,
    728 * DAY,
    1_820 * DAY,
];

/// About this number of ticks: times within a day, dates within years.
pub fn wall_ticks(scale: &Scale, about: usize) -> Vec<Tick> {
    let second = Nanos::SECOND.0 as f64;
    let wanted = (scale.hi() - scale.lo()) / second / about.max(2) as f64;
    let step = STEPS.iter().copied().find(|step| *step as f64 >= wanted).unwrap_or(3_640 * DAY);
    let label = |ns: f64| {
        let text = wall_time(Nanos(ns as i64));
        let (date, time) = text.split_once('T').unwrap_or((&text, ""));
        match step {
            step if step < MINUTE => time.get(..8).unwrap_or_default().to_owned(),
            step if step < DAY && time.starts_with("00:00") => date.get(5..).unwrap_or_default().to_owned(),
            step if step < DAY => time.get(..5).unwrap_or_default().to_owned(),
            step if step < 91 * DAY => date.get(5..).unwrap_or_default().to_owned(),
            _ => date.get(..7).unwrap_or_default().to_owned(),
        }
    };
    scale.step_ticks(step as f64 * second, label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from: i64, length: i64) -> Vec<String> {
        let scale = Scale::linear(from as f64 * 1e9, (from + length) as f64 * 1e9, 0.0, 900.0);
        wall_ticks(&scale, 8).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_in_utc() {
        let midnight = 1_700_006_400; // 2023-11-15
        assert_eq!(labels(midnight - 3_600, 2 * HOUR)[..5], ["23:00", "23:15", "23:30", "23:45", "11-15"]);
        assert_eq!(labels(midnight, 9 * DAY)[..3], ["11-15", "11-17", "11-19"]);
        let years = labels(midnight, 3_000 * DAY);
        assert!(years.len() > 2 && years.iter().all(|label| label.starts_with("20")), "{years:?}");
    }
}
