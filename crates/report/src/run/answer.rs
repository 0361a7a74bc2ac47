//! Answer of a run of `measure` or of a probe, as the last lines on the terminal: the latency, its
//! outlook, its reliability, the next commands.

use super::next_steps::{claim, expected};
use super::{import, probes, sentences, verdicts};
use crate::hunt::program;
use crate::last_lines::{LastLines, RunPlace};
use crate::load;
use crate::palette::{BOLD, PLAIN, Palette, RED, Style};
use crate::totals::{largest, sum_rows};
use crate::words::{MachineClock, clean, duration, percent, several, span};
use model::histogram::quantile;
use model::run::Run;
use model::units::Nanos;
use model::vocabulary::{Command, Ended, IntegrityKind, Policy, Probe};

/// The answer to who took the time where wake-ups were measured alone.
pub const NOT_RECORDED: &str = "not recorded: `onbeat hunt` names the culprit";

/// Missed slots are in none of these numbers.
const MISSING: &str = "in part";

/// Number of missed slots, and whether their lateness is known.
fn missing(run: &Run, missed: u64) -> String {
    let slots = several(missed, "slot", "slots");
    if run.primary().any(|cpu| cpu.deadline_histogram.is_some()) {
        format!("{MISSING}: {slots} missed (dashed in the report)")
    } else {
        format!("{MISSING}: {slots} missed, lateness unknown")
    }
}

/// Answer as text of up to this number of columns.
pub fn render(run: &Run, place: Option<RunPlace>, width: usize, color: bool) -> String {
    let mut answer = LastLines::default();
    answer.styled("late", late(run), BOLD).row("who", who(run));
    let (fair, style) = fair(run);
    if run.command != Command::Import {
        // With a limit, only the claim on the limit is of interest.
        let later = expected(run).filter(|_| run.plan.limit_ns.is_none() || claim(run).is_none());
        let expect: Vec<String> = later.into_iter().chain(claim(run)).collect();
        answer.row("expect", expect.join(" "));
    }
    answer.styled("fair", fair, style).row("next", next(run, place));
    answer.location(place);
    answer.render(width, Palette(color))
}

/// Largest latency, number of samples, length of the run, and the bound of nearly all samples.
pub fn late(run: &Run) -> String {
    let Some(worst) = at_worst(run) else { return sentences::verdict(run) };
    let (one, many) = probes::sample(run);
    let Some(cycles) = run.samples() else { return format!("{worst}.") };
    let length = run.elapsed_ns.map_or_else(String::new, |length| format!(" in {}", duration(length)));
    let missed = run.missed();
    // Quantiles do not cover missed slots, so these come first.
    let (all, of) = match missed {
        0 => (format!("{}{length}", several(cycles, one, many)), None),
        n => {
            let were = if n == 1 { "was" } else { "were" };
            let all = several(cycles.saturating_add(n), one, many);
            let lost = format!("{n} of {all}{length} ({}) {were} missed", missed_share(run));
            ("the others".to_owned(), Some(lost))
        }
    };
    match (nearly_all(run), of) {
        (Some((share, value)), None) => format!("{worst}; {share} of {all} within {}.", span(value)),
        (Some((share, value)), Some(lost)) => {
            format!("{worst}; {lost}, {share} of {all} were within {}.", span(value))
        }
        (None, None) => format!("{worst}, of {all}."),
        (None, Some(lost)) => format!("{worst}; {lost}."),
    }
}

/// Culprit of the lateness, as far as a run without a recorder has one.
pub fn who(run: &Run) -> String {
    let answer = probes::time_taken(run).or_else(|| verdicts::verdict(run));
    if let Some(answer) = answer.or_else(|| probes::origins(run)) {
        return answer;
    }
    match run.probe() {
        _ if run.command == Command::Import || run.samples().is_none_or(|samples| samples == 0) => "",
        Some(_) => "not recorded: a probe traces nothing",
        None => NOT_RECORDED,
    }
    .to_owned()
}

/// The largest latency with its CPU and its time.
pub fn at_worst(run: &Run) -> Option<String> {
    let max = largest(run)?;
    let cpu = run.primary().find(|cpu| cpu.max_ns == Some(max))?;
    let worst = cpu.worst.first().filter(|worst| worst.latency_ns == cpu.max_ns && !worst.time.is_empty());
    let when =
        worst.map_or_else(String::new, |worst| format!(" at {}", MachineClock::of(run).moment(&worst.time)));
    Some(format!("{} at worst, on {}{when}", span(max), cpu.name()))
}

/// Highest quantile that this number of samples determines.
fn nearly_all(run: &Run) -> Option<(&'static str, Nanos)> {
    if run.primary().any(|cpu| cpu.overflows.unwrap_or(0) > 0 || cpu.is_summary()) {
        return None;
    }
    let rows = sum_rows(run.primary().map(|cpu| cpu.histogram.as_slice()));
    let count = rows.iter().try_fold(0u64, |sum, row| sum.checked_add(row.count)).unwrap_or(0);
    let (share, per_million) = match count {
        0..100 => return None,
        100..10_000 => ("99 %", 990_000),
        _ => ("99.9 %", 999_000),
    };
    Some((share, quantile(&rows, largest(run), per_million)?))
}

/// Share of the missed slots.
fn missed_share(run: &Run) -> String {
    let (cycles, missed) = (run.samples().unwrap_or(0), run.missed());
    percent(missed as f64 / (cycles as f64 + missed as f64).max(1.0))
}

/// Reliability of the numbers, and the reservations.
pub fn fair(run: &Run) -> (String, Style) {
    let host = run.host.virtualization.as_str();
    let (words, style) = besides_the_host(run);
    match host {
        "" | "none" => (words, style),
        _ if !words.starts_with("yes") && !words.starts_with(MISSING) => (words, style),
        host => (format!("{words}; includes pauses of the host ({})", clean(host)), style),
    }
}

/// Reliability apart from the host's pauses, which a hunt names among the culprits.
pub fn besides_the_host(run: &Run) -> (String, Style) {
    let spoiled: Vec<_> = run.integrity.iter().filter(|entry| entry.invalidates).collect();
    if let [first, rest @ ..] = spoiled.as_slice() {
        let more = if rest.is_empty() {
            String::new()
        } else {
            format!("; {} more", several(rest.len() as u64, "reason", "reasons"))
        };
        return (format!("no: {}{more}", sentences::integrity(first)), RED);
    }
    if run.command == Command::Import {
        return (import::fair(run), PLAIN);
    }
    let nothing = at_worst(run).is_none() && run.probe().is_none() && !run.follows();
    if nothing || program::void(run).is_some() {
        return ("not known: nothing was measured".into(), PLAIN);
    }
    if !run.complete {
        return ("in part: the run is still in progress or was killed".into(), RED);
    }
    if run.unseen_wakeups().is_some() {
        return ("in part: some wake-ups were not seen, so that maxima are lower bounds".into(), PLAIN);
    }
    let missed = run.missed();
    let mut words = match run.integrity.len() as u64 {
        // The latencies of missed slots are not among the wake-ups.
        0 if missed > 0 => missing(run, missed),
        n if missed > 0 => format!("{}; {}", missing(run, missed), several(n, "note", "notes")),
        0 => "yes: no disturbance seen".to_owned(),
        n => format!("yes, with {}", several(n, "note", "notes")),
    };
    if let Some(late) = load::kept_off(run) {
        words += &format!("; {}", late.what);
    }
    if run.plan.policy == Policy::Other && !run.follows() && run.probe().is_none() {
        words += "; no real-time priority";
    }
    (words, PLAIN)
}

/// Next commands to type.
fn next(run: &Run, place: Option<RunPlace>) -> String {
    let pictures = place.map(|place| {
        let draw = if place.newest { "--open" } else { "-o page.html" };
        format!("{} (pictures)", place.command("report", draw))
    });
    if run.integrity.iter().any(|entry| entry.invalidates) {
        let load = load::kept_off(run).filter(|_| run.loads.iter().any(|load| !load.held));
        let remedy = load.map_or_else(|| "remove the cause".to_owned(), |late| late.remedy);
        let again = format!("{remedy}, and measure again");
        return [Some(again), pictures].into_iter().flatten().collect::<Vec<_>>().join("; ");
    }
    let hunt = (run.command == Command::Measure && run.plan.interval_ns.is_some())
        .then(|| format!("{} (culprits)", hunt(run)));
    let measure = if run.command == Command::Import { import::next(run) } else { None };
    let spins = run.probe() == Some(Probe::Spin) && run.plan.policy == Policy::Other;
    let spin = spins.then(|| "onbeat probe spin -p 1 (as seen by a real-time task)".to_owned());
    [free_space(run), measure, hunt, spin, pictures].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// First step if something could not be written.
pub fn free_space(run: &Run) -> Option<String> {
    let lacks = run.integrity.iter().any(|entry| entry.kind == IntegrityKind::Storage);
    lacks.then(|| "free some space, or choose another folder (-o)".to_owned())
}

/// Hunt under the conditions of this run.
pub fn hunt(run: &Run) -> String {
    let mut command = "onbeat hunt -D 60s".to_owned();
    // A hunt covers all CPUs by default.
    let measured: model::units::CpuSet = run.cpus.iter().filter_map(|cpu| cpu.cpu).collect();
    if !run.cpus.is_empty() && run.host.online != measured.to_string() {
        command += &format!(" -a {measured}");
    }
    if let Some(interval) = run.plan.interval_ns.filter(|interval| *interval != Nanos::MILLI) {
        command += &format!(" -i {}", interval.to_string().replace(' ', ""));
    }
    if run.ended == Ended::Limit {
        command += &run
            .plan
            .limit_ns
            .map_or_else(String::new, |limit| format!(" --over {}", limit.to_string().replace(' ', "")));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    const PLACE: RunPlace = RunPlace { path: "/runs/x", newest: true, fresh: true, program: "onbeat" };

    #[test]
    fn the_answer_of_every_run_fits_the_last_lines() {
        for sample in fixture::all().iter().filter(|sample| sample.title != fixture::hostile().title) {
            for width in [80, 120] {
                let text = render(&sample.run, Some(PLACE), width, false);
                let lines = text.lines().count() - 1;
                assert!(lines <= crate::last_lines::MOST_LINES + 1, "{}: {text}", sample.title);
                assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            }
        }
    }

    #[test]
    fn a_run_of_nothing_and_a_spoiled_one_claim_nothing() {
        let text = render(&Run::default(), None, 80, false);
        assert!(text.contains("No wake-up was measured") && !text.contains("expect"), "{text}");
        assert!(text.contains("fair    not known: nothing was measured"), "{text}");
        assert_eq!(hunt(&Run::default()), "onbeat hunt -D 60s");
        let mut spoiled = fixture::noisy().run;
        spoiled.complete = true;
        let text = render(&spoiled, Some(PLACE), 80, false);
        assert!(text.contains("fair    no: ") && text.contains("measure again"), "{text}");
    }

    #[test]
    fn every_run_that_measured_answers_who() {
        for sample in fixture::all().iter().filter(|sample| sample.run.samples().unwrap_or(0) > 0) {
            let text = render(&sample.run, Some(PLACE), 80, false);
            let is_foreign = sample.run.command == Command::Import;
            assert_eq!(text.contains("\nwho     "), !is_foreign, "{}: {text}", sample.title);
        }
    }

    #[test]
    fn a_run_that_may_be_on_is_not_called_cut_short() {
        let mut run = fixture::quiet().run;
        run.complete = false;
        run.integrity.clear();
        let (words, _) = besides_the_host(&run);
        assert_eq!(words, "in part: the run is still in progress or was killed");
        let sentence = sentences::incomplete(&run).expect("it is incomplete");
        assert!(sentence.contains("is still in progress or was killed; the numbers end"), "{sentence}");
    }

    #[test]
    fn slots_that_were_slept_through_are_counted_with_their_share() {
        let missing = |missed: u64| {
            let mut run = fixture::quiet().run;
            run.cpus[0].missed = Some(missed);
            late(&run)
        };
        assert!(missing(1).contains(" (under 0.1 %) was missed, 99"), "{}", missing(1));
        assert!(missing(2).contains(" (under 0.1 %) were missed, 99"), "{}", missing(2));
    }

    #[test]
    fn missed_slots_are_found_on_the_dashed_line() {
        let mut run = fixture::quiet().run;
        run.cpus[0].missed = Some(694);
        assert!(run.cpus[0].deadline_histogram.is_some());
        let verdict = fair(&run).0;
        assert_eq!(verdict, "in part: 694 slots missed (dashed in the report)");
        run.cpus.iter_mut().for_each(|cpu| cpu.deadline_histogram = None);
        assert!(fair(&run).0.contains("lateness unknown"), "{}", fair(&run).0);
    }

    #[test]
    fn the_next_command_repeats_what_was_measured() {
        let mut run = fixture::quiet().run;
        run.host.online = "0-7".into();
        run.plan.interval_ns = Some(Nanos(250_000));
        assert!(
            next(&run, Some(PLACE)).contains("onbeat hunt -D 60s -a 0-1 -i 250us"),
            "{}",
            next(&run, None)
        );
        assert!(next(&run, Some(PLACE)).contains("onbeat report --open (pictures)"));
        let elsewhere = RunPlace { newest: false, ..PLACE };
        assert!(next(&run, Some(elsewhere)).contains("onbeat report /runs/x -o page.html"));
    }
}
