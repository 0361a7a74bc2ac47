//! Answer of a hunt in the last lines on the terminal: lateness, culprits with their remedies,
//! reliability of the ranking, next commands.

use super::next_step::{first_step, with_spike};
use super::typical::{self, InvolvedRun};
use super::{cpu_time, culprit_thread, disagreement, outside, program, sentences, shares, threads, unlisted};
use crate::last_lines::{LastLines, MOST_LINES, RunPlace};
use crate::palette::{BOLD, Palette, RED, Style};
use crate::run::answer::{at_worst, besides_the_host, free_space};
use crate::totals::largest;
use crate::words::{below_noise, capitalised, clean, duration, several, span};
use model::run::{Culprit, Run};

/// Limit of culprits with a bar.
const BARS: usize = 3;
/// Least share of a culprit with a bar, except for the first.
const LEAST: f64 = 0.01;
/// Columns of a full bar.
const CELLS: usize = 10;

/// Answer as text of up to this number of columns.
pub fn render<'a>(
    run: impl Into<InvolvedRun<'a>>,
    place: Option<RunPlace>,
    width: usize,
    color: bool,
) -> String {
    let known = run.into();
    let run = known.run;
    let bars = run.culprits.iter().take(BARS).take_while(|culprit| culprit.share >= LEAST).count();
    let most = if is_ranked(run) { bars.max(1).min(run.culprits.len()) } else { 0 };
    // If the lines do not suffice: fewer bars first, then also fewer words.
    let ways = [false, true].into_iter().flat_map(|brief| (1..=most).rev().map(move |bars| (bars, brief)));
    let all: Vec<LastLines> = ways.map(|(bars, brief)| answer(&known, place, bars, brief)).collect();
    let found = all.iter().find(|answer| answer.lines(width) <= MOST_LINES).or(all.last());
    found.unwrap_or(&answer(&known, place, 0, false)).render(width, Palette(color))
}

/// True if spikes were explained, even if there was no space for their list.
fn is_ranked(run: &Run) -> bool {
    !run.spikes.is_empty() || run.spikes_dropped > unlisted::passed_over(run)
}

fn answer(known: &InvolvedRun, place: Option<RunPlace>, bars: usize, brief: bool) -> LastLines {
    let run = known.run;
    let mut answer = LastLines::default();
    answer.styled("late", how_late(run), BOLD);
    let follow = run.culprits.first().filter(|_| bars > 0).and_then(theirs(run));
    let unexplained = shares::mostly_unexplained(run).filter(|_| bars > 0);
    if let Some((ns, share)) = unexplained {
        let words = format!("unexplained: no event accounts for {}", span(ns));
        answer.styled("who", format!("{} {words}", cells(share)), BOLD);
    }
    let none = run.spikes.is_empty() && run.spikes_dropped == 0;
    if none && program::void(run).is_none() && run.samples().is_some_and(|samples| samples > 0) {
        answer.row("who", "no culprit: no latency reached the spike threshold");
    }
    for at in 0..bars {
        let (name, style) = (if at == 0 && unexplained.is_none() { "who" } else { " " }, BOLD);
        let thread = if at == 0 && !brief { culprit_thread::short(&run.culprits[at]) } else { String::new() };
        answer.styled(name, bar(&run.culprits[at], brief), style).below(thread, 2);
        let step =
            with_spike(&first_step(&run.culprits, at), typical::number(run, &known.involved, at), place);
        let other_way = step.split_once("; otherwise ").filter(|_| at == 0 && follow.is_some());
        // The last row has the command for the other case.
        answer.below(other_way.map_or(step.clone(), |(_, change)| capitalised(change)), 2);
    }
    let (words, style) = relied_on(run);
    answer.styled("fair", words, style).row("next", next(run, place, follow, brief));
    answer.location(place);
    answer
}

/// Lateness in a sentence: of followed threads their cycles or wake-ups, else the worst wake-up;
/// and the number of spikes over the threshold.
fn how_late(run: &Run) -> String {
    if program::void(run).is_some() {
        return sentences::found(run);
    }
    if let Some(cycles) = threads::short_answer(run) {
        return cycles;
    }
    let worst = run.spikes.iter().max_by_key(|spike| spike.latency_ns);
    let over = run.recorder.as_ref().and_then(|recorder| recorder.over_ns).filter(|over| over.0 > 0);
    let length = run.elapsed_ns.map_or_else(String::new, |length| format!(" in {}", duration(length)));
    let of_all = at_worst(run).filter(|_| !run.follows());
    if let (None, 0, Some(over), Some(worst)) = (worst, run.spikes_dropped, over, &of_all) {
        return format!("{worst}; no spike over {}{length}.", span(over));
    }
    let many = several((run.spikes.len() as u64).saturating_add(run.spikes_dropped), "spike", "spikes");
    if let (None, Some(over), Some(worst)) = (worst, over, &of_all) {
        return format!("{worst}; {many} over {}{length}.", span(over));
    }
    let (Some(worst), Some(over)) = (worst, over) else { return sentences::found(run) };
    // A spike that was only counted may have been later than all that were explained.
    let later = of_all.filter(|_| largest(run) > Some(worst.latency_ns));
    match later {
        Some(later) => format!("{later}, not explained; {many} over {}{length}.", span(over)),
        None => {
            let least = if run.unseen_wakeups().is_some() { "at least " } else { "" };
            let latency = span(worst.latency_ns);
            format!("{least}{latency} at worst, on CPU {}; {many} over {}{length}.", worst.cpu, span(over))
        }
    }
}

/// Culprit's share as a bar, with its name and its number of spikes.
fn bar(culprit: &Culprit, brief: bool) -> String {
    let (name, kind) = (clean(&culprit.name), clean(culprit.kind.as_str()));
    let has_kind = brief || name.split([' ', ':']).any(|word| word == kind);
    let kind = if has_kind { String::new() } else { format!(" ({kind})") };
    let spikes = several(culprit.spikes, "spike", "spikes");
    let spikes = if brief { String::new() } else { format!(" in {spikes}") };
    format!("{} {name}{kind}: {}{spikes}", cells(culprit.share), cpu_time::numbers(culprit))
}

/// Share as a number and a bar.
fn cells(share: f64) -> String {
    let full = (share.clamp(0.0, 1.0) * CELLS as f64).round() as usize;
    let bar = if full > 0 { "\u{2588}".repeat(full) } else { "\u{258c}".into() };
    format!("{:>5} {bar}", sentences::percent(share))
}

/// Advice that loses fewer of the events that identify a wake-up.
const FEWER_EVENTS: &str = "reduce events with --no-stacks, or fewer CPUs (-a)";

/// Reliability of the ranking: disturbances of the run, lost events, cost of recording. Findings
/// that leave the ranking unchanged are reported above.
fn relied_on(run: &Run) -> (String, Style) {
    let recorder = run.recorder.as_ref();
    let disagreement = disagreement::of(run).filter(|disagreement| !disagreement.holds);
    if let Some(no) = disagreement.as_ref().filter(|no| !no.few) {
        return (format!("no: {}; {FEWER_EVENTS}", no.sentence), RED);
    }
    let (mut words, style) = besides_the_host(run);
    if program::void(run).is_some() {
        return (words, style);
    }
    if let Some(outside) = outside::brief(run).filter(|_| !words.starts_with("no: ")) {
        words = match run.missed() {
            0 => format!("in part: {outside}"),
            missed => format!("in part: {outside}; {} missed", several(missed, "slot", "slots")),
        };
    }
    if let Some((part, looked_at)) = looked_at(run) {
        words = if part { in_part(&words, &looked_at) } else { format!("{words}; {looked_at}") };
    }
    if let Some(few) = disagreement {
        words = in_part(&words, &format!("{}; {FEWER_EVENTS}", few.sentence));
    }
    let lost = recorder.map_or(0, model::run::Recorder::torn_windows);
    if lost > 0 {
        words += &format!("; {} lost events", several(lost, "explained spike", "explained spikes"));
    }
    (format!("{words}; {}", recording(run)), style)
}

/// Adds a reason to the words, by which they hold in part.
fn in_part(words: &str, why: &str) -> String {
    match words.strip_prefix("yes") {
        Some(rest) => {
            let rest = rest.trim_start_matches(": no disturbance seen");
            format!("in part: {why}{}", rest.replacen(", with ", "; ", 1))
        }
        None => format!("{words}; {why}"),
    }
}

/// Part of the spikes that the ranking covers, if not all; true if a hundredth or more is missing.
fn looked_at(run: &Run) -> Option<(bool, String)> {
    let passed_over = unlisted::passed_over(run);
    let all = (run.spikes.len() as u64).saturating_add(run.spikes_dropped);
    let words = format!("the ranking covers {} of {all} spikes", all - passed_over);
    (passed_over > 0).then_some((passed_over.saturating_mul(100) >= all, words))
}

/// Reason, in short, that the largest values of a hunt are not the machine's latency.
fn recording(run: &Run) -> String {
    let cost = run.recorder.as_ref().and_then(|recorder| {
        let cost = recorder.stacks_cost_ns.or(recorder.events_cost_ns)?;
        below_noise(cost, recorder.cost_noise_ns).is_none().then(|| span(cost))
    });
    match (run.follows(), cost) {
        (true, _) => "includes the cost of recording".to_owned(),
        (false, Some(cost)) => format!("tracing adds {cost}: use `onbeat measure` for maxima"),
        (false, None) => "use `onbeat measure`, which traces nothing, for maxima".to_owned(),
    }
}

/// Next commands to type; no more than two if `brief`.
fn next(run: &Run, place: Option<RunPlace>, follow: Option<(String, String)>, brief: bool) -> String {
    let mut steps = Vec::new();
    steps.extend(free_space(run));
    steps.extend(follow.map(|(culprit, command)| {
        if brief {
            format!("{command} (if it has deadlines)")
        } else {
            format!("{command} (if {culprit} has deadlines)")
        }
    }));
    if let Some(place) = place {
        let draw = if place.newest { "--open" } else { "-o page.html" };
        let what = match (run.spikes.is_empty(), brief) {
            (true, _) => " (pictures)",
            // After another command there is no room for its description.
            (false, true) if !steps.is_empty() => "",
            (false, true) => " (each spike)",
            (false, false) => " (each spike drawn)",
        };
        steps.push(place.command("report", draw) + what);
    }
    if let Some(nothing) = program::void(run) {
        steps.push(nothing.remedy);
    } else if !is_ranked(run) && run.spikes_dropped == 0 {
        steps.push("hunt longer, or lower --over".to_owned());
    }
    let knobs = is_ranked(run) && run.culprits.iter().any(|culprit| !culprit.knobs.is_empty());
    if let Some(place) = place.filter(|_| knobs && !(brief && steps.len() > 1)) {
        let audit = place.command("audit --hunt", "");
        steps.push(format!("{audit} (settings{})", if brief { "" } else { " that matter" }));
    }
    steps.join("; ")
}

/// Name of a culprit that may itself have deadlines, and the command that follows it.
fn theirs(run: &Run) -> impl Fn(&Culprit) -> Option<(String, String)> {
    |culprit| {
        let command = rules::culprits::advice::follow(culprit, run)?;
        Some((clean(&culprit.threads.first()?.comm), command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;
    use model::run::{CulpritThread, Integrity, ProgramRun};
    use model::units::Nanos;
    use model::vocabulary::IntegrityKind;

    const PLACE: RunPlace = RunPlace { path: "/runs/x", newest: true, fresh: true, program: "onbeat" };

    #[test]
    fn the_answer_fits_the_last_lines_and_names_a_culprit() {
        let run = fixture::run();
        for width in [80, 100, 120] {
            let text = render(&run, Some(PLACE), width, false);
            assert!(text.lines().count() - 1 <= MOST_LINES, "{width}: {text}");
            assert!(text.contains("who   ") && text.contains("tracing adds 2.90 us"), "{text}");
        }
        for width in [40, 60] {
            let text = render(&run, Some(PLACE), width, false);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        }
    }

    #[test]
    fn a_thread_that_may_be_theirs_is_answered_in_as_many_lines() {
        let mut run = fixture::run();
        run.host.online = "0-3".into();
        let lidar = CulpritThread { tid: 19730, comm: "lidar".into(), prio: 9, ..CulpritThread::default() };
        run.culprits[0] = Culprit {
            rule: Some("realtime-thread".into()),
            name: "a real-time thread that runs first: lidar".into(),
            kind: "thread".into(),
            threads: vec![lidar],
            threads_seen: 1,
            ..run.culprits[0].clone()
        };
        rules::culprits::advice::renew(&mut run);
        let text = render(&run, Some(PLACE), 80, false);
        assert!(text.lines().count() - 1 <= MOST_LINES, "{text}");
        assert!(text.contains("next    onbeat hunt --victim lidar (if it has deadlines); "), "{text}");
        assert!(text.contains("\n          Give yours the higher priority (`chrt -f -p 91 PID`)"), "{text}");
    }

    #[test]
    fn time_outside_linux_is_said_in_short() {
        let mut run = fixture::run();
        run.host.virtualization = "kvm".into();
        run.spikes.iter_mut().for_each(|spike| spike.unexplained_ns = spike.latency_ns);
        let account = run.recorder.as_mut().expect("a hunt has one");
        (account.latency_ns, account.unexplained_ns) = (Nanos(100), Nanos(60));
        let text = render(&run, Some(PLACE), 80, false);
        assert!(
            text.contains("fair    in part: 60 % of it has no event in this virtual machine: "),
            "{text}"
        );
        run.integrity = vec![Integrity { invalidates: true, ..Integrity::default() }];
        assert!(render(&run, Some(PLACE), 80, false).contains("fair    no: "));
    }

    #[test]
    fn a_hunt_without_spikes_names_nobody() {
        let mut run = fixture::run();
        run.spikes.clear();
        let text = render(&run, Some(PLACE), 80, false);
        assert!(text.contains("; no spike over 100 us in"), "{text}");
        assert!(text.contains("\nwho     no culprit: no latency reached the spike threshold\n"), "{text}");
    }

    #[test]
    fn one_that_was_only_counted_is_the_worst_all_the_same() {
        let mut run = fixture::run();
        let most = run.spikes.iter().map(|spike| spike.latency_ns).max().expect("some");
        run.cpus[0].max_ns = Some(Nanos(most.0 * 2));
        run.spikes_dropped = 1;
        let text = render(&run, None, 120, false);
        assert!(text.contains(", not explained; "), "{text}");
    }

    #[test]
    fn a_trace_that_disagrees_is_not_relied_on() {
        let mut run = fixture::run();
        run.recorder.as_mut().expect("a hunt has one").disagreeing = 2;
        assert!(render(&run, None, 80, false).contains("fair    no: in 2 of "));
    }

    #[test]
    fn a_run_that_lacked_space_keeps_its_counts_and_its_culprits() {
        let mut run = fixture::run();
        let all = run.spikes.len() as u64;
        run.spikes.clear();
        run.spikes_dropped = all;
        run.recorder.as_mut().expect("a hunt has one").spikes_unwritten = all;
        let lacks = Integrity { kind: IntegrityKind::Storage.into(), ..Integrity::default() };
        run.integrity = vec![lacks];
        let text = render(&run, Some(PLACE), 200, false);
        assert!(
            text.contains(" at worst, on CPU ") && text.contains(&format!("; {all} spikes over ")),
            "{text}"
        );
        assert!(text.contains("\nwho    ") && text.contains("next    free some space"), "{text}");
        assert!(!text.contains("lower --over"), "{text}");
    }

    #[test]
    fn followed_threads_without_a_wake_up_are_not_called_fair() {
        let program =
            ProgramRun { name: "sh".into(), exit_code: Some(0), outlived_by: 1, ..ProgramRun::default() };
        let mut run = fixture::run();
        (run.plan.interval_ns, run.program) = (None, Some(program));
        (run.cpus, run.spikes, run.integrity) = (Vec::new(), Vec::new(), Vec::new());
        (run.complete, run.ended) = (true, "victim".into());
        assert!(run.follows());
        let text = render(&run, Some(PLACE), 200, false);
        assert!(
            text.contains("late    Nothing was measured: sh ended with exit code 0 and went to"),
            "{text}"
        );
        assert!(text.contains("\nfair    not known: nothing was measured\n"), "{text}");
        assert!(
            text.contains("keep it in the foreground, or follow it") && !text.contains("--over"),
            "{text}"
        );
    }

    #[test]
    fn few_doubtful_spikes_are_fair_in_part_with_a_remedy() {
        let mut run = fixture::run();
        (run.integrity, run.spikes_dropped) = (Vec::new(), 1_738);
        run.cpus.iter_mut().for_each(|cpu| cpu.missed = Some(0));
        run.recorder.as_mut().expect("a hunt has one").disagreeing = 19;
        let text = render(&run, None, 400, false);
        let all = run.spikes.len() + 1_738;
        assert!(text.contains(&format!("fair    in part: in 19 of {all} spikes the timestamps")), "{text}");
        assert!(text.contains("; reduce events with --no-stacks, or fewer CPUs (-a)"), "{text}");
    }

    #[test]
    fn the_ranking_of_a_part_is_fair_in_part() {
        let mut run = fixture::run();
        let all = run.spikes.len();
        run.spikes_dropped = 90;
        run.recorder.as_mut().expect("a hunt has one").spikes_passed_over = 90;
        let text = render(&run, None, 200, false);
        let fair = format!("the ranking covers {all} of {} spikes", all + 90);
        assert!(text.contains(&format!("in part: {fair}")) || text.contains(&format!("; {fair}")), "{text}");
    }
}
