//! Marks on the maximum over time: stretches with a different rate of spikes, and the spikes of a
//! period.

use maud::{Markup, html};

use super::axis::Scale;
use super::history::History;
use super::svg::{FONT, LegendEntry, Plot, Px, text_over, text_width};
use super::theme::Theme;
use crate::words::{duration, per_hour};
use model::text::several;
use stats::bounds::periods;
use stats::bounds::structure::{RateEpoch, Structure};

/// Limit of stretches that are distinguished.
const MOST_STRETCHES: usize = 60;
/// Limit of stretches that are named in words.
const NAMED: usize = 6;
/// Width of a ring: more rings than fit would hide the line.
const RING: f64 = 5.0;

/// Marked structure; no marks if none was found.
#[derive(Clone, Copy, Default)]
pub struct Marks<'a>(pub Option<&'a Structure>);

impl<'a> Marks<'a> {
    fn stretches(&self) -> &'a [RateEpoch] {
        let all = self.0.map_or(&[][..], |found| found.stretches.as_slice());
        if all.len() < 2 { &[] } else { &all[..all.len().min(MOST_STRETCHES)] }
    }

    /// Strongest period, if its spikes can be distinguished.
    fn period(&self, plot: &Plot) -> Option<&'a periods::Period> {
        let period = self.0?.periods.first()?;
        (period.at_ns.len() as f64 * RING < plot.right - plot.left).then_some(period)
    }

    /// Room above the data for the names of the stretches.
    pub fn room(&self) -> f64 {
        if self.stretches().is_empty() { 0.0 } else { FONT + 6.0 }
    }

    /// Shading of every other stretch, with rates where they fit. Drawn below the data.
    pub fn shade(&self, plot: &Plot, time: &Scale, theme: &Theme) -> Markup {
        html! {
            @for (i, stretch) in self.stretches().iter().enumerate() {
                @let (left, right) = (time.at(stretch.from_ns.0 as f64), time.at(stretch.to_ns.0 as f64));
                @let words = per_hour(stretch.per_hour);
                @if i % 2 == 1 {
                    rect x=(Px(left)) y=(Px(plot.top)) width=(Px(right - left)) height=(Px(plot.bottom - plot.top))
                        fill=(theme.band) fill-opacity="0.35" { title { (words) } }
                }
                @if text_width(&words) + 6.0 < right - left {
                    (text_over((left + right) / 2.0, plot.top + FONT + 3.0, "middle", theme.ink, theme, &words))
                }
            }
        }
    }

    /// Ring around each spike of the strongest period.
    pub fn rings(
        &self,
        history: &History,
        plot: &Plot,
        time: &Scale,
        latency: &Scale,
        theme: &Theme,
    ) -> Markup {
        let Some(period) = self.period(plot) else { return html! {} };
        let worst = |at| {
            history.cpus().flat_map(|(_, slots)| slots).filter_map(|slot| slot.max).find(|max| max.1 == at)
        };
        html! {
            g fill="none" stroke=(theme.ink) stroke-width="1.3" {
                // A spike below the maximum of its column is not on the line.
                @for (max, at) in period.at_ns.iter().filter_map(|&at| worst(at)) {
                    circle cx=(Px(time.at(history.elapsed(at).0 as f64))) cy=(Px(latency.at(max.0 as f64))) r="3.4" {}
                }
            }
        }
    }

    /// Legend of the rings.
    pub fn key(&self, plot: &Plot, theme: &Theme) -> Option<LegendEntry> {
        let words = format!("rings: every {}", self.period(plot)?.every());
        Some(LegendEntry { colour: theme.ink, area: false, words })
    }

    /// Stretches in words.
    pub fn note(&self) -> Option<String> {
        let stretches = self.stretches();
        let (first, rest) = stretches.split_first()?;
        let mut note =
            format!("The rate of the largest spikes changed: {} at first", per_hour(first.per_hour));
        for stretch in rest.iter().take(NAMED) {
            note += &format!(", {} from {} on", per_hour(stretch.per_hour), duration(stretch.from_ns));
        }
        if rest.len() > NAMED {
            note += &format!(", and {}", several((rest.len() - NAMED) as u64, "more change", "more changes"));
        }
        Some(note + ".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::plot::max_over_time;
    use crate::plot::svg::Size;
    use crate::plot::theme::PAPER;
    use model::units::Nanos;

    #[test]
    fn spikes_of_a_period_have_rings() {
        let mut sample = fixture::comb();
        sample.ask(None);
        let found = sample.bounds.unwrap().structure;
        let text = max_over_time::draw(&sample.history, Marks(Some(&found)), Size::Wide, &PAPER)
            .unwrap()
            .body
            .into_string();
        assert_eq!(text.matches("r=\"3.4\"").count(), found.periods[0].members);
        assert!(text.contains("rings: every 17.000 s"));
    }

    #[test]
    fn stretches_are_shaded_in_turns_and_named() {
        let stretch = |from: i64, per_hour| RateEpoch {
            from_ns: Nanos(from * 2_000_000_000),
            to_ns: Nanos((from + 60) * 2_000_000_000),
            spikes: 1,
            per_hour,
        };
        let found = Structure {
            stretches: vec![stretch(0, 3.0), stretch(60, 90.0), stretch(120, 4.0)],
            ..Structure::default()
        };
        let marks = Marks(Some(&found));
        let plot = Plot::new(Size::Wide, 30.0, 200.0);
        let time = Scale::linear(0.0, 360e9, plot.left, plot.right);
        let text = marks.shade(&plot, &time, &PAPER).into_string();
        assert_eq!((text.matches("<rect").count(), text.matches("<text").count()), (1, 3));
        assert_eq!(
            marks.note().unwrap(),
            "The rate of the largest spikes changed: 3.0 an hour at first, 90.0 an hour from 2 min on, 4.0 an hour from 4 min on."
        );
        assert!(Marks(None).note().is_none() && Marks(None).room() == 0.0);
    }
}
