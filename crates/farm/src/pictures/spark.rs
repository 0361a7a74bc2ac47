//! The maxima of some days as small bars, for a row of a table.

use maud::{Markup, html};
use report::plot::axis::Scale;
use report::plot::svg::{PathData, Px};
use report::plot::theme::PAGE;
use report::words::us;

use crate::records::DayMaximum;
use crate::wall_clock::DAY;

const DAYS: i64 = 30;
const WIDTH: f64 = 136.0;
const HEIGHT: f64 = 30.0;

/// The days up to that of a time; the height is the logarithm of the latency, from 1 us to 10 ms on
/// all boards, so that two can be compared.
pub fn days(of: &[DayMaximum], last: i64) -> Markup {
    let newest = last.div_euclid(DAY);
    let (x, y) = (WIDTH / DAYS as f64, Scale::log(1e3, 1e7, HEIGHT - 2.0, 2.0));
    let mut bars = PathData::default();
    let age = |day: &DayMaximum| newest - day.t.div_euclid(DAY);
    let shown: Vec<&DayMaximum> = of.iter().filter(|day| (0..DAYS).contains(&age(day))).collect();
    for day in &shown {
        let top = y.at(day.max_ns.0 as f64).min(HEIGHT - 4.0);
        bars.rect((DAYS - 1 - age(day)) as f64 * x, top, x - 1.0, HEIGHT - top);
    }
    let words = match shown.iter().max_by_key(|day| day.max_ns) {
        Some(worst) => format!("Daily maxima of 30 days, the largest {} us", us(worst.max_ns)),
        None => "No valid measurement in 30 days".to_owned(),
    };
    html! {
        svg.spark viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(words) {
            path d={ "M0 " (HEIGHT - 0.5) "H" (WIDTH) } stroke=(PAGE.muted) fill="none" {}
            path d=(bars.0) fill=(PAGE.lines[0]) {}
            path d={ "M0 " (Px(y.at(1e5))) "H" (WIDTH) } stroke=(PAGE.ink) stroke-dasharray="2 3" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;

    #[test]
    fn each_day_is_a_bar_and_what_is_older_is_none() {
        let day = |age: i64, max| DayMaximum { t: (100 - age) * DAY, max_ns: Nanos(max) };
        let of = [day(0, 5_000), day(29, 1), day(30, 9_000), day(-1, 9_000)];
        let text = days(&of, 100 * DAY + 7).into_string();
        assert_eq!(text.matches('z').count(), 2, "{text}");
        // Its words are of these days too.
        assert!(text.contains("the largest 5.0 us"), "{text}");
        let older = days(&[day(30, 9_000)], 100 * DAY).into_string();
        assert!(older.contains("No valid measurement"), "{older}");
        assert!(days(&[], 0).into_string().contains("No valid measurement"));
    }
}
