//! A board's histograms as a stack of lines, as OSADL's farm draws them: a line per period, the
//! newest in front, older ones further back. The latency axis has the same decades in all pictures;
//! both axes are logarithmic.
//!
//! A line hides the ones behind it. The largest latency of each is a dot on top of all of them, so
//! that a single late wake-up is visible however many lines follow.

use std::collections::BTreeMap;

use maud::{Markup, html};
use model::units::Nanos;
use model::wall_time::wall_time;
use report::plot::axis::{Scale, Tick, power_label, span_label};
use report::plot::columns::decades;
use report::plot::svg::{self, PathData, Picture, Plot, Size, text};
use report::plot::theme::Theme;
use report::plot::wall_ticks::wall_ticks;
use report::words::{several, span, us};

use super::cells::{cells, early_note, edges};
use super::periods::{BoardPeriod, BoardPeriods};

/// The axis of heights begins below 1, so that a single sample has a height.
const FLOOR: f64 = 0.45;
/// Width of the axis of counts next to a single line.
const COUNT_AXIS: f64 = 52.0;

/// The picture; `None` without samples. Lines whose largest latency exceeds a limit stand out.
pub fn draw(of: &BoardPeriods, limit: Option<Nanos>, size: Size, theme: &Theme) -> Option<Picture> {
    let counts: Vec<BTreeMap<usize, u64>> = of.all.iter().map(|one| cells(one.rows.iter())).collect();
    let all = || counts.iter().flatten();
    let lowest = all().map(|(&cell, _)| edges(cell).0).min()?;
    let exact = of.all.iter().filter_map(|one| one.max_ns).max().map_or(1, |max| max.0);
    let top = all().map(|(&cell, _)| edges(cell).1).max()?.max(exact);
    let (lo, hi) = decades(lowest, top);
    let stack = Stack::of(of, lo, hi, *all().map(|(_, count)| count).max()?, size);
    let is_over = |one: &BoardPeriod| limit.is_some_and(|limit| one.max_ns > Some(limit));
    let lines = || of.all.iter().zip(&counts);
    let any_over = of.all.iter().any(is_over);
    let body = html! {
        (stack.floor(size, theme))
        (stack.times(of, size, theme))
        @for (one, counts) in lines() {
            @let (colour, width) = if is_over(one) { (theme.alarm, "1.8") } else { (theme.lines[0], "1.1") };
            path d=(stack.line(one, counts).0) fill=(theme.background) stroke=(colour) stroke-width=(width) {}
        }
        (stack.dots(of.all.iter().filter(|one| !is_over(one)), theme.ink, theme))
        (stack.dots(of.all.iter().filter(|one| is_over(one)), theme.alarm, theme))
        (stack.count_axis(theme))
        (text(4.0, stack.plot.top - 9.0, "start", theme.ink, &format!("one line per {}", of.words())))
    };
    let over = limit.filter(|_| any_over);
    let over = over.map(|limit| format!("Red lines have a latency over the budget of {}.", span(limit)));
    Some(Picture {
        width: size.width(),
        height: stack.plot.bottom + 46.0,
        body: svg::group(theme, body),
        label: format!(
            "Histograms of latency behind each other, {} of {} each, the largest latency {} us.",
            several(of.all.len() as u64, "line", "lines"),
            of.length(),
            us(Nanos(exact))
        ),
        notes: over.into_iter().chain(early_note(of.all.iter().flat_map(|one| one.rows.iter()))).collect(),
    })
}

/// Geometry of the lines: the newest along the lower edge, the oldest along the upper one, shifted
/// to the right.
struct Stack {
    plot: Plot,
    /// Latencies of the front line.
    x: Scale,
    /// Seconds to the vertical offset of a line.
    time: Scale,
    /// Heights of counts above their line.
    height: Scale,
    /// The largest count that has a height, a power of ten.
    most: f64,
    /// Horizontal offset of the oldest line.
    aside: f64,
    /// Vertical offset of the oldest line.
    depth: f64,
}

impl Stack {
    fn of(of: &BoardPeriods, lo: i64, hi: i64, most: u64, size: Size) -> Stack {
        let (depth, aside, rise) =
            if size == Size::Wide { (270.0, 150.0, 120.0) } else { (200.0, 64.0, 90.0) };
        let (oldest, newest) = (of.all.first().map_or(0, |one| one.t), of.all.last().map_or(0, |one| one.t));
        // A single line is in front.
        let (depth, aside) = if newest > oldest { (depth, aside) } else { (0.0, 0.0) };
        // The axis of counts occupies the lower right corner, the end of a single line.
        let beside = if depth > 0.0 { 0.0 } else { COUNT_AXIS };
        let mut plot = Plot::new(size, 32.0, depth + rise);
        // Dates are longer than latencies.
        plot.left += 6.0;
        let most = 10f64.powi((most.max(1) as f64).log10().floor() as i32 + 1);
        let second = Nanos::SECOND.0 as f64;
        Stack {
            x: Scale::log(lo as f64, hi as f64, plot.left, plot.right - aside - beside),
            time: Scale::linear(oldest as f64 * second, newest as f64 * second, depth, 0.0),
            height: Scale::log(FLOOR, most, 0.0, rise),
            most,
            depth,
            aside,
            plot,
        }
    }

    /// Position of a point on a line whose foot has this vertical offset.
    fn place(&self, up: f64, latency: f64, height: f64) -> (f64, f64) {
        let share = if self.depth > 0.0 { up / self.depth } else { 0.0 };
        (self.x.at(latency) + share * self.aside, self.plot.bottom - up - height)
    }

    fn foot(&self, t: i64) -> f64 {
        if self.depth > 0.0 { self.time.at(t as f64 * Nanos::SECOND.0 as f64) } else { 0.0 }
    }

    /// Steps over the cells that have samples, down to the foot elsewhere.
    fn line(&self, of: &BoardPeriod, counts: &BTreeMap<usize, u64>) -> PathData {
        let up = self.foot(of.t);
        let mut path = PathData::default();
        let mut open = None;
        for (&cell, &count) in counts {
            let (lower, upper) = edges(cell);
            if open != Some(cell) {
                if open.is_some() {
                    path.down(self.place(up, 1.0, 0.0).1);
                }
                let (x, y) = self.place(up, lower as f64, 0.0);
                path.go(x, y);
            }
            let (x, y) = self.place(up, upper as f64, self.height.at(count as f64));
            path.down(y);
            path.across(x);
            open = Some(cell + 1);
        }
        path.down(self.place(up, 1.0, 0.0).1);
        path
    }

    fn dots<'a>(&self, of: impl Iterator<Item = &'a BoardPeriod>, colour: &str, theme: &Theme) -> Markup {
        let mut dots = PathData::default();
        for one in of {
            let Some(max) = one.max_ns else { continue };
            let (x, y) = self.place(self.foot(one.t), max.0 as f64, self.height.at(1.0));
            dots.rect(x - 2.5, y - 2.5, 5.0, 5.0);
        }
        html! {
            @if !dots.0.is_empty() {
                path d=(dots.0) fill=(colour) stroke=(theme.background) stroke-width="1" {}
            }
        }
    }

    /// The floor under the lines, ruled by latencies.
    fn floor(&self, size: Size, theme: &Theme) -> Markup {
        let about = if size == Size::Wide { 6 } else { 4 };
        let ticks = self.x.ticks(about, span_label);
        let named = || ticks.iter().filter(|tick| !tick.label.is_empty());
        let mut ruled = PathData::default();
        for value in named().map(|tick| tick.value).chain([self.x.lo(), self.x.hi()]) {
            let ends = [self.place(0.0, value, 0.0), self.place(self.depth, value, 0.0)];
            ruled.go(ends[0].0, ends[0].1);
            ruled.to(ends[1].0, ends[1].1);
        }
        let mut edges = PathData::default();
        for up in [0.0, self.depth] {
            let (left, y) = self.place(up, self.x.lo(), 0.0);
            edges.go(left, y);
            edges.across(self.place(up, self.x.hi(), 0.0).0);
        }
        let middle = (self.x.at(self.x.lo()) + self.x.at(self.x.hi())) / 2.0;
        html! {
            path d=(ruled.0) fill="none" stroke=(theme.grid) {}
            path d=(edges.0) fill="none" stroke=(theme.muted) {}
            @for tick in named() {
                (text(self.x.at(tick.value), self.plot.bottom + 16.0, "middle", theme.muted, &tick.label))
            }
            (text(middle, self.plot.bottom + 34.0, "middle", theme.ink, "latency, logarithmic"))
        }
    }

    /// Dates, or times of a day, at the lines' left ends.
    fn times(&self, of: &BoardPeriods, size: Size, theme: &Theme) -> Markup {
        let about = if size == Size::Wide { 8 } else { 6 };
        let ticks: Vec<Tick> = if self.depth > 0.0 {
            // None is between two lines of a day, or of less.
            let step = of.seconds.min(86_400) * Nanos::SECOND.0;
            wall_ticks(&self.time, about).into_iter().filter(|tick| tick.value as i64 % step == 0).collect()
        } else {
            let date = |one: &BoardPeriod| {
                let time = wall_time(Nanos(one.t.saturating_mul(Nanos::SECOND.0)));
                let shown = if of.seconds < 86_400 { 11..16 } else { 5..10 };
                time.get(shown).unwrap_or_default().to_owned()
            };
            of.all.iter().map(|one| Tick { value: 0.0, label: date(one) }).collect()
        };
        let mut marks = PathData::default();
        let mut labels = Vec::new();
        for tick in ticks.iter().filter(|tick| !tick.label.is_empty()) {
            let up = if self.depth > 0.0 { self.time.at(tick.value) } else { 0.0 };
            let (x, y) = self.place(up, self.x.lo(), 0.0);
            marks.go(x - 4.0, y);
            marks.across(x);
            labels.push((x - 6.0, y + 4.0, &tick.label));
        }
        html! {
            path d=(marks.0) fill="none" stroke=(theme.muted) {}
            @for (x, y, words) in labels { (text(x, y, "end", theme.muted, words)) }
        }
    }

    /// Axis for the height of a line, in the corner that no line reaches.
    fn count_axis(&self, theme: &Theme) -> Markup {
        let x = self.plot.right - 2.0;
        let (low, high) =
            (self.plot.bottom - self.height.at(1.0), self.plot.bottom - self.height.at(self.most));
        let mut bar = PathData::default();
        for y in [low, high] {
            bar.go(x - 4.0, y);
            bar.across(x);
        }
        bar.go(x, self.plot.bottom);
        bar.down(high);
        html! {
            path d=(bar.0) fill="none" stroke=(theme.muted) {}
            (text(x - 6.0, low + 4.0, "end", theme.muted, "1"))
            (text(x - 6.0, high + 4.0, "end", theme.muted, &power_label(self.most)))
            (text(self.plot.right, self.plot.bottom + 34.0, "end", theme.ink, "wake-ups"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::rows::{EARLY_ROW, RowCounts, row_of};
    use report::plot::theme::PAPER;

    const WEEK: i64 = 7 * 86_400;

    fn week(at: i64, counts: &[(i64, u64)]) -> BoardPeriod {
        let rows = RowCounts::of_rows(counts.iter().map(|&(ns, count)| (row_of(Nanos(ns)), count)));
        let max_ns = counts.iter().map(|&(ns, _)| Nanos(ns)).max();
        BoardPeriod { t: at * WEEK, missed: 0, max_ns, worst_t: at * WEEK, rows }
    }

    fn weeks(all: Vec<BoardPeriod>) -> BoardPeriods {
        BoardPeriods { seconds: WEEK, all }
    }

    /// The places of the squares in a path that is drawn in a colour.
    fn squares(text: &str, colour: &str) -> Vec<(f64, f64)> {
        let end = text.find(&format!("fill=\"{colour}\" stroke=\"{}\"", PAPER.background));
        let Some(before) = end.map(|end| &text[..end]) else { return Vec::new() };
        let path = &before[before.rfind("d=\"").unwrap() + 3..];
        let place = |one: &str| {
            let mut numbers = one.split(['h', ' ']).filter_map(|number| number.parse().ok());
            Some((numbers.next()?, numbers.next()?))
        };
        path.split('M').filter_map(place).collect()
    }

    #[test]
    fn one_late_wake_up_of_years_has_a_dot_that_no_line_hides() {
        let mut all: Vec<BoardPeriod> = (0..100).map(|at| week(at, &[(20_000, 40_000_000)])).collect();
        all[37] = week(37, &[(20_000, 40_000_000), (9_000_000, 1)]);
        for size in [Size::Wide, Size::Narrow] {
            let picture = draw(&weeks(all.clone()), None, size, &PAPER).unwrap();
            let text = picture.body.into_string();
            let dots = squares(&text, PAPER.ink);
            assert_eq!(dots.len(), 100);
            let usual = dots.iter().map(|dot| dot.0).sum::<f64>() / 100.0;
            let late = dots.iter().filter(|dot| dot.0 > usual + 90.0).count();
            assert_eq!(late, 1, "{dots:?}");
            let on_top = text.find(&format!("fill=\"{}\" stroke", PAPER.ink));
            assert!(text.rfind("stroke-width=\"1.1\"") < on_top);
            assert!(dots.iter().all(|dot| dot.0 > 0.0 && dot.0 < size.width() && dot.1 > 0.0));
            assert!(text.len() < 60_000, "{}", text.len());
            assert!(picture.label.contains("100 lines of one week") && picture.label.contains("9000.0 us"));
        }
    }

    #[test]
    fn older_lines_are_higher_and_all_have_the_axis_of_the_other_pictures() {
        let all = vec![week(0, &[(20_000, 5)]), week(1, &[(20_000, 5)]), week(9, &[(20_000, 5)])];
        let text = draw(&weeks(all), None, Size::Wide, &PAPER).unwrap().body.into_string();
        let dots = squares(&text, PAPER.ink);
        // By time and not by their order.
        let steps = [dots[1].1 - dots[0].1, dots[2].1 - dots[1].1];
        assert!((steps[1] / steps[0] - 8.0).abs() < 0.1 && dots[0].0 > dots[2].0, "{dots:?}");
        assert!([">1 us<", ">100 us<", ">10 ms<"].iter().all(|label| text.contains(label)), "{text}");
    }

    #[test]
    fn what_is_over_the_budget_stands_out_in_words_too() {
        let all = vec![week(0, &[(20_000, 5)]), week(1, &[(700_000, 1)])];
        let picture = draw(&weeks(all), Some(Nanos(500_000)), Size::Wide, &PAPER).unwrap();
        assert!(picture.notes[0].contains("over the budget of 500 us"), "{:?}", picture.notes);
        assert_eq!(squares(&picture.body.into_string(), PAPER.alarm).len(), 1);
    }

    #[test]
    fn one_line_alone_and_the_ends_of_the_scale_are_drawn_and_nothing_is_not() {
        assert!(draw(&weeks(Vec::new()), None, Size::Wide, &PAPER).is_none());
        let mut one = week(5, &[(1, u64::MAX), (i64::MAX, 1)]);
        one.rows = RowCounts::of_rows(one.rows.iter().chain([(EARLY_ROW, 3)]));
        let picture = draw(&weeks(vec![one]), None, Size::Narrow, &PAPER).unwrap();
        let text = picture.body.into_string();
        assert!(!text.contains("NaN") && !text.contains("inf") && text.contains(">02-05<"), "{text}");
        assert!(picture.height < 220.0);
        assert!(picture.notes[0].contains("3 wake-ups"));
    }
}
