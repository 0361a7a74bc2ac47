//! Answer of `onbeat watch` as the last lines on the terminal: the lateness, the culprit, the share
//! that was recorded, the next commands.

use super::words::{culprit, task};
use crate::last_lines::{LastLines, RunPlace};
use crate::palette::{BOLD, Palette};
use crate::words::{duration, percent, several, span};
use model::units::Nanos;
use model::watch::{WatchCoverage, WorstWakeup};

/// Least share that counts as everything: switches at the edges of the record are not in it.
const NEARLY_ALL: f64 = 0.99;

/// Results of a watch since its beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchFound {
    pub intervals: u64,
    /// Number of wake-ups in the histograms.
    pub recorded: u64,
    /// Length of the watch.
    pub span_ns: Nanos,
    pub worst: Option<WorstWakeup>,
    pub coverage: WatchCoverage,
}

/// Answer as text of up to this number of columns.
pub fn render(found: &WatchFound, place: RunPlace, width: usize, color: bool) -> String {
    let mut answer = LastLines::default();
    let length = duration(found.span_ns);
    let of_all = format!("{} in {length}", several(found.recorded, "wake-up", "wake-ups"));
    match &found.worst {
        None => {
            answer.styled("late", format!("no real-time thread woke up in {length}"), BOLD);
            answer.row("who", "no culprit: no wake-up was recorded");
        }
        Some(worst) => {
            let cpu = worst.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
            let (total, victim) = (span(worst.total()), task(&worst.victim));
            answer.styled("late", format!("{total} at worst, {victim}{cpu}; {of_all}"), BOLD);
            answer.row("who", culprit(&worst.culprit));
        }
    }
    answer.row("fair", fair(&found.coverage));
    answer.row("next", format!("{} (the worst, each CPU)", place.command("report", "")));
    answer.location(Some(place)).render(width, Palette(color))
}

/// Share that was recorded.
fn fair(coverage: &WatchCoverage) -> String {
    let Some(share) = coverage.share() else {
        return "not known: the total number of switches was not counted".to_owned();
    };
    let word = if share >= NEARLY_ALL { "yes" } else { "in part" };
    format!("{word}: {} of the switches to real-time threads were recorded", percent(share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::watch::{WatchCulprit, WatchTask};

    #[test]
    fn the_answer_of_a_watch_has_all_its_rows() {
        let place = RunPlace { path: "w", newest: false, fresh: true, program: "onbeat" };
        let mut found = WatchFound { span_ns: Nanos(2_000_000_000), ..WatchFound::default() };
        let text = render(&found, place, 80, false);
        assert!(
            text.contains(
                "late    no real-time thread woke up in 2.0 s\nwho     no culprit: no wake-up was recorded\n"
            ),
            "{text}"
        );
        assert!(text.contains("fair    not known: ") && text.ends_with("kept in w\n"), "{text}");
        found.worst = Some(WorstWakeup {
            wakeup_ns: Some(Nanos(1_200_000)),
            cpu: Some(model::units::Cpu(1)),
            victim: WatchTask { comm: "control".into(), ..WatchTask::default() },
            ..WorstWakeup::default()
        });
        found.recorded = 5;
        found.coverage = WatchCoverage { recorded: 8, voluntary: Some(7), ..WatchCoverage::default() };
        let text = render(&found, place, 80, false);
        for row in [
            "late    1.20 ms at worst, control on CPU 1; 5 wake-ups in 2.0 s\n",
            "who     unknown\n",
            "fair    yes: 100.0 % of the switches to real-time threads were recorded\n",
            "next    onbeat report w",
        ] {
            assert!(text.contains(row), "{row}: {text}");
        }
        let idle = WatchTask { tid: Some(0), cpu: Some(model::units::Cpu(1)), ..WatchTask::default() };
        let culprit = WatchCulprit { name: "stopped from outside".into(), task: idle, ..Default::default() };
        found.worst.iter_mut().for_each(|worst| worst.culprit = culprit.clone());
        let text = render(&found, place, 80, false);
        assert!(text.contains("who     stopped from outside\n"), "{text}");
        found.coverage.recorded = 1;
        assert!(render(&found, place, 80, false).contains("fair    in part: "));
    }
}
