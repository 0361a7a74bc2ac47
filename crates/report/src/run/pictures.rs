//! Pictures on the page of a run, in their order.

use maud::{Markup, html};

use super::picture_tables::{levels, times};
use super::probes;
use crate::html::figure;
use crate::input::Input;
use crate::plot::line::{self, PlotLine};
use crate::plot::marks::Marks;
use crate::plot::svg::{Picture, Size};
use crate::plot::theme::PAGE;
use crate::plot::{exceedance, exceedance_rate, folded, heatmap, latency, matrix, max_over_time, modes};
use stats::bounds::periods::Period;

/// Data of the pictures.
struct Subject<'a> {
    input: &'a Input<'a>,
    lines: Vec<PlotLine<'a>>,
    marks: Marks<'a>,
}

/// Part of the page with its heading. It is left out if the run has no data for it.
enum Section {
    /// One picture of the run.
    Run {
        heading: &'static str,
        caption: &'static str,
        draw: fn(&Subject, Size) -> Option<Picture>,
        /// Table with the data of the picture.
        table: Option<fn(&Input) -> Markup>,
    },
    /// Picture for each period of the spikes.
    Period { heading: fn(&Period) -> String, draw: fn(&Subject, &Period, Size) -> Option<Picture> },
}

/// The noun in headings and captions for which that of the run's samples is put.
const COUNTED: &str = "wake-ups";

const PICTURES: &[Section] = &[
    Section::Run {
        heading: "Number of wake-ups by latency",
        caption: "The count is logarithmic; triangles mark each line's largest value.",
        draw: |of, size| {
            let modes = modes::of(&of.lines);
            let is_drawn = !of.lines.is_empty() || of.input.run.cpus.is_empty();
            is_drawn.then(|| latency::draw(&of.lines, of.input.limit(), &modes, size, &PAGE))
        },
        table: None,
    },
    Section::Run {
        heading: "Share of wake-ups that reached a latency",
        caption: "For each latency: the share of wake-ups that were at least that late.",
        draw: |of, size| exceedance::draw(&of.lines, size, &PAGE),
        table: Some(|input| levels(input.run)),
    },
    Section::Run {
        heading: "How often a latency is reached",
        caption: "For each latency: the number of blocks per hour that reach it.",
        draw: |of, size| exceedance_rate::draw(of.input.series, of.input.bounds?, size, &PAGE),
        table: None,
    },
    Section::Run {
        heading: "The largest latency over time",
        caption: "",
        draw: |of, size| max_over_time::draw(of.input.history, of.marks, size, &PAGE),
        table: Some(times),
    },
    Section::Run {
        heading: "Latency by CPU and time",
        caption: "Each row is a CPU, each column a period of time; the colour shows the largest latency.",
        draw: |of, size| matrix::draw(of.input.history, size, &PAGE),
        table: None,
    },
    Section::Period {
        heading: folded::heading,
        draw: |of, period, size| folded::draw(period, of.input.series, size, &PAGE),
    },
    Section::Run {
        heading: "All latencies over time",
        caption: "Each cell is a period of time and a range of latency. The eight largest of each second have exact cells; for the others only the band between two levels is known.",
        draw: |of, size| heatmap::draw(of.input.history, of.floor(), size, &PAGE),
        table: None,
    },
];

impl Subject<'_> {
    /// Least latency of the run.
    fn floor(&self) -> Option<i64> {
        self.input.run.cpus.iter().filter_map(|cpu| cpu.min_ns).map(|min| min.0).min()
    }
}

/// Pictures for which the run has data.
pub fn pictures(input: &Input) -> Markup {
    let subject = Subject {
        input,
        lines: line::of_run(input.run),
        marks: Marks(input.bounds.map(|bounds| &bounds.structure)),
    };
    html! { @for section in PICTURES { (section.of(&subject)) } }
}

impl Section {
    fn of(&self, subject: &Subject) -> Markup {
        match self {
            Section::Run { heading, caption, draw, table } => {
                let named = |text: &str| text.replace(COUNTED, probes::sample(subject.input.run).1);
                let picture = figure(&named(caption), |size| draw(subject, size));
                let table = table.map(|table| table(subject.input));
                under(&named(heading), picture, table)
            }
            Section::Period { heading, draw } => html! {
                @for period in subject.input.bounds.iter().flat_map(|bounds| &bounds.structure.periods).take(folded::MAX_PERIODS) {
                    (under(&heading(period), figure("", |size| draw(subject, period, size)), None))
                }
            },
        }
    }
}

/// Picture below its heading; nothing without a picture.
fn under(heading: &str, picture: Markup, table: Option<Markup>) -> Markup {
    html! {
        @if !picture.0.is_empty() {
            h3 { (heading) }
            (picture)
            @if let Some(table) = table { (table) }
        }
    }
}
