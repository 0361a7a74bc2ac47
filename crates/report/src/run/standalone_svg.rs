//! Latency plot as a standalone file, with a heading and the integrity entries.

use maud::html;

use super::{conditions, policy, probes, sentences};
use crate::input::Input;
use crate::plot::svg;
use crate::plot::svg::{Size, text};
use crate::plot::theme::PAPER;
use crate::plot::{latency, line, modes};
use crate::words;
use crate::words::{clean, several, span};
use model::run::Run;

/// Latency plot as a standalone file: a line per CPU of one run, or a line per run of several.
pub fn svg(inputs: &[Input]) -> String {
    let theme = &PAPER;
    let (lines, limit, heading, facts) = match inputs {
        [one] => {
            let run = one.run;
            let facts = [
                format!(
                    "{}, {}, {}",
                    clean(&run.host.release),
                    conditions::preemption(run),
                    policy::policy(run)
                ),
                headline_times(run),
            ];
            (line::of_run(run), run.plan.limit_ns, clean(one.title), facts.to_vec())
        }
        several => (
            line::of_runs(several.iter().map(|input| (input.title, input.run))),
            None,
            "Latency of several runs".into(),
            Vec::new(),
        ),
    };
    let modes = if inputs.len() == 1 { modes::of(&lines) } else { Vec::new() };
    let mut picture = latency::draw(&lines, limit, &modes, Size::Wide, theme);
    let mut notes = std::mem::take(&mut picture.notes);
    for input in inputs {
        let of = if inputs.len() > 1 { format!("{}: ", clean(input.title)) } else { String::new() };
        notes.extend(sentences::incomplete(input.run).map(|sentence| format!("{of}{sentence}")));
        let invalid = input.run.integrity.iter().filter(|entry| entry.invalidates);
        notes.extend(invalid.take(3).map(|entry| format!("{of}INVALID: {}", sentences::integrity(entry))));
    }
    let top = 34.0 + facts.len() as f64 * svg::LINE;
    let height = top + picture.height + notes.len() as f64 * svg::LINE + 14.0;
    let below = top + picture.height + 6.0;
    let room = picture.width - 40.0;
    html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(svg::Px(picture.width)) height=(svg::Px(height))
            viewBox={ "0 0 " (svg::Px(picture.width)) " " (svg::Px(height)) } role="img" aria-label=(picture.label) {
            title { (heading) }
            rect width="100%" height="100%" fill=(theme.background) {}
            (svg::group(theme, html! {
                g font-size="17" font-weight="600" { (text(20.0, 28.0, "start", theme.ink, &svg::fit(&heading, room * 0.7))) }
                @for (i, fact) in facts.iter().enumerate() {
                    (text(20.0, 48.0 + i as f64 * svg::LINE, "start", theme.muted, &svg::fit(fact, room)))
                }
                @for (i, note) in notes.iter().enumerate() {
                    (text(20.0, below + (i + 1) as f64 * svg::LINE - 6.0, "start", theme.alarm, &svg::fit(note, room)))
                }
            }))
            g transform={ "translate(0 " (svg::Px(top)) ")" } { (picture.body) }
        }
    }
    .into_string()
}

fn headline_times(run: &Run) -> String {
    let (one, more) = probes::sample(run);
    let samples = run.samples().map_or(more.into(), |n| several(n, one, more));
    let interval = run.plan.interval_ns.map_or_else(String::new, |i| format!(", interval {}", span(i)));
    let length = run.elapsed_ns.map_or_else(String::new, |l| format!(" in {}", words::duration(l)));
    format!("{samples}{length}{interval}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use model::units::Nanos;

    #[test]
    fn every_cpu_has_its_line_its_mark_and_its_maximum() {
        for sample in [fixture::quiet(), fixture::noisy(), fixture::eight()] {
            let text = svg(&[sample.input()]);
            let lines = line::of_run(&sample.run);
            assert_eq!(text.matches("stroke-width=\"1.6\"").count(), lines.len());
            for line in lines {
                // In the legend, in the line's tooltip, and at the mark.
                assert!(text.matches(&span(line.max.unwrap())).count() >= 3, "{}", line.name);
            }
        }
    }

    #[test]
    fn many_cpus_are_a_band_and_the_worst() {
        let text = svg(&[fixture::many().input()]);
        assert_eq!(text.matches("stroke-width=\"1.6\"").count(), line::WORST);
        assert!(text.contains("all 64, least to most"));
        assert!(text.len() < 120_000, "{}", text.len());
    }

    #[test]
    fn what_is_not_drawn_is_named() {
        assert!(svg(&[fixture::import().input()]).contains("3 samples beyond the histogram's end"));
        assert!(svg(&[fixture::early().input()]).contains("before the time"));
        assert!(svg(&[fixture::empty().input()]).contains("no samples"));
        assert!(svg(&[]).contains("no samples"));
        let mut sample = fixture::quiet();
        sample.run.plan.limit_ns = Some(Nanos(90_000_000));
        assert!(svg(&[sample.input()]).contains("lies outside the plot"));
    }

    #[test]
    fn several_runs_are_a_line_each() {
        let (a, b) = (fixture::quiet(), fixture::noisy());
        let text = svg(&[a.input(), b.input()]);
        assert_eq!(text.matches("stroke-width=\"1.6\"").count(), 2);
    }
}
