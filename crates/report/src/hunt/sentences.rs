//! Sentences on the results of `hunt`, the same on the terminal and on the page.

use super::program;
use super::unlisted::{passed_over, unwritten};
use crate::words::{MachineClock, below_noise, clean, duration, several, span};
use model::run::{Behind, Culprit, Recorder, Run, Slice, Spike, Who};

use model::units::Nanos;

/// Limit of events and notes in a list; the others are counted.
const LISTED: usize = 3;
/// Limit of frames of a stack in a line.
const FRAMES: usize = 3;

/// Owner of a time: `rcuc/1:23 (FIFO 1), rcu_core`.
pub fn who(who: &Who) -> String {
    let mut words: Vec<String> = Vec::new();
    if !who.comm.is_empty() || who.pid != 0 {
        words.push(thread(who));
    }
    if !who.irq.is_empty() {
        words.push(clean(&who.irq));
    }
    if !who.function.is_empty() {
        let module = if who.module.is_empty() { String::new() } else { format!(" [{}]", clean(&who.module)) };
        words.push(format!("{}{module}", clean(&who.function)));
    }
    words.extend(who.from_cpu.map(|cpu| format!("from CPU {cpu}")));
    let behind = |behind: &Behind| format!("{}:{}", clean(&behind.comm), behind.pid);
    let named = |of: &Option<Behind>| of.as_ref().filter(|of| !of.comm.is_empty()).map(behind);
    words.extend(named(&who.asked_by).map(|by| format!("asked for by {by}")));
    words.extend(named(&who.inherited_from).map(|from| format!("priority inherited from {from}")));
    words.join(", ")
}

/// Thread with its id and priority.
pub fn thread(who: &Who) -> String {
    let comm = clean(&who.comm);
    if who.pid == 0 {
        return if comm.is_empty() { "idle".into() } else { comm };
    }
    format!("{comm}:{} ({})", who.pid, priority(who.prio))
}

/// Kernel priority as policy and priority.
pub fn priority(prio: i32) -> String {
    match prio {
        ..0 => "deadline or stopper".into(),
        0..=98 => format!("real-time {}", 99 - prio),
        // nice 0 is 120.
        99..=139 => format!("nice {}", prio - 120),
        Who::PRIO_UNKNOWN => "priority not known".into(),
        _ => format!("priority {prio}"),
    }
}

/// Owner of a slice, and the evidence.
pub fn slice(slice: &Slice) -> String {
    let (who, evidence) = (who(&slice.who), clean(&slice.evidence));
    match (who.is_empty(), evidence.is_empty()) {
        (_, true) => who,
        (true, false) => evidence,
        (false, false) => format!("{who}: {evidence}"),
    }
}

/// Stack of the CPU, innermost first, cut to a line; `""` without a stack.
pub fn stack(slice: &Slice) -> String {
    if slice.stack.is_empty() {
        return String::new();
    }
    let frames: Vec<String> = slice.stack.iter().take(FRAMES).map(|frame| clean(frame)).collect();
    let more = if slice.stack.len() > FRAMES { " < ..." } else { "" };
    format!("; stack {}{more}", frames.join(" < "))
}

/// Time of a spike: the time of day if it is among a CPU's worst, else the time since the start.
pub fn when(spike: &Spike, run: &Run) -> String {
    let worst = run.cpus.iter().filter(|cpu| cpu.cpu == Some(spike.cpu)).flat_map(|cpu| &cpu.worst);
    let mut known = worst.filter(|worst| worst.mono_ns == Some(spike.actual_ns) && !worst.time.is_empty());
    if let Some(worst) = known.next() {
        return format!("at {}", MachineClock::of(run).moment(&worst.time));
    }
    let start = run.cpus.iter().filter_map(|cpu| cpu.t0_mono_ns).max();
    let since =
        start.map(|start| Nanos(spike.actual_ns.0.saturating_sub(start.0))).filter(|since| since.0 >= 0);
    since.map_or_else(String::new, |since| format!("{} after the start", duration(since)))
}

/// Classes of a spike, `thread + timer-irq`.
pub fn classes(spike: &Spike) -> String {
    if spike.classes.is_empty() {
        return "no class".into();
    }
    spike.classes.iter().map(|class| clean(class.as_str())).collect::<Vec<_>>().join(" + ")
}

/// Thread that woke late; none for the measuring thread itself.
pub fn victim(spike: &Spike) -> Option<String> {
    let another = spike.cycle.is_none() && (spike.victim.pid != 0 || !spike.victim.comm.is_empty());
    another.then(|| thread(&spike.victim))
}

/// Threads whose wake-ups were measured; none for onbeat's own threads.
pub fn followed(run: &Run) -> Option<String> {
    let names =
        run.plan.notes.iter().filter(|_| run.follows()).find_map(|note| note.strip_prefix("following "))?;
    Some(format!("Followed: {}.", clean(names)))
}

/// Number of cycles later than their deadline, including those that were not kept.
fn late_cycles(run: &Run) -> u64 {
    let listed_count = run.spikes.iter().filter(|spike| spike.deadline_ns.is_some()).count() as u64;
    let counted = run.threads.iter().filter_map(|thread| thread.late).fold(0u64, u64::saturating_add);
    listed_count.max(counted)
}

fn of_deadline(cycles: u64) -> &'static str {
    if cycles == 1 { "its deadline" } else { "their deadline" }
}

/// Number of spikes, and their threshold.
pub fn found(run: &Run) -> String {
    if let Some(nothing) = program::void(run) {
        return format!("Nothing was measured: {}.", nothing.what);
    }
    let listed_count = run.spikes.len() as u64;
    let all = listed_count.saturating_add(run.spikes_dropped);
    let over = run.recorder.as_ref().map(|recorder| recorder.over_ns.filter(|over| over.0 > 0));
    let length = run.elapsed_ns.map_or_else(String::new, |length| format!(" in {}", duration(length)));
    // A tool's own account of a wake-up does not name the CPUs it covered.
    let on = match run.cpus.len() as u64 {
        0 if all > 0 => length,
        cpus => format!(" on {}{length}", several(cpus, "CPU", "CPUs")),
    };
    // A killed hunt may have spikes, and a last checkpoint from before its threshold was found.
    let over = over.filter(|over| over.is_some() || all == 0);
    let Some(over) = over else { return format!("{}{on}.", several(all, "spike", "spikes")) };
    let late_cycles = late_cycles(run).min(all);
    let Some(over) = over.map(span) else {
        if late_cycles > 0 {
            let cycles = several(late_cycles, "cycle", "cycles");
            return format!("{cycles} later than {}{on}.", of_deadline(late_cycles));
        }
        return format!("No wake-up was examined{on}: no threshold was set.");
    };
    let judged = run.threads.iter().any(|thread| thread.judged > 0);
    if all == 0 {
        let cycle = if judged { "No cycle was later than its deadline, and no" } else { "No" };
        return format!("{cycle} wake-up was later than {over}{on}.");
    }
    let passed_over = passed_over(run);
    let unwritten = unwritten(run);
    let ranked = run.spikes_dropped - passed_over - unwritten;
    let cycles = late_cycles;
    let wakeups = several(all - cycles, "wake-up", "wake-ups");
    let mut words = match cycles {
        0 => format!("{wakeups} later than {over}{on}"),
        _ => format!(
            "{} later than {} and {wakeups} later than {over}{on}",
            several(cycles, "cycle", "cycles"),
            of_deadline(cycles)
        ),
    };
    if ranked > 0 {
        words += &format!("; {} ranked but not stored", several(ranked, "of them is", "of them are"));
    }
    if unwritten > 0 {
        let were = if unwritten == 1 { "was" } else { "were" };
        words += &format!("; {unwritten} of them {were} ranked but not written for lack of space");
    }
    if passed_over > 0 {
        let of_them = if ranked + unwritten > 0 { "" } else { " of them" };
        let are = if passed_over == 1 { "is" } else { "are" };
        words += &format!("; {passed_over}{of_them} came too fast to be examined and {are} only counted");
    }
    words + "."
}

/// Reason that the largest values of a hunt are not the machine's latency.
pub fn armed(run: &Run) -> String {
    let cost = run.recorder.as_ref().and_then(|recorder| {
        let cost = recorder.stacks_cost_ns.or(recorder.events_cost_ns)?;
        Some(match below_noise(cost, recorder.cost_noise_ns) {
            None => format!(", which added {} to the median wake-up", span(cost)),
            Some(words) => format!(", whose effect on the median wake-up is {words}"),
        })
    });
    let cost = cost.unwrap_or_default();
    format!(
        "Measured with tracing{cost}: the maxima are not the machine's latency. `onbeat measure` traces nothing."
    )
}

/// The recorder's account of itself: names and sentences.
pub fn account(recorder: &Recorder) -> Vec<(&'static str, String)> {
    let why =
        if recorder.over_why.is_empty() { String::new() } else { format!(": {}", clean(&recorder.over_why)) };
    // Earlier versions wrote a threshold of 0 for none.
    let over = recorder.over_ns.filter(|over| over.0 > 0).map_or_else(|| "none".into(), span);
    let mut lines = vec![("threshold", format!("{over}{why}")), ("armed", armed_events(recorder))];
    lines.push(("reach", reach(recorder)));
    lines.push(("lost", lost(recorder)));
    lines.extend(cost(recorder).map(|cost| ("cost", cost)));
    lines.extend(self_test(recorder).map(|test| ("self-test", test)));
    lines.extend(tick(recorder).map(|tick| ("one tick", tick)));
    lines.extend(recorder.notes.iter().map(|note| ("note", clean(note))));
    lines
}

fn armed_events(recorder: &Recorder) -> String {
    let mut words = several(recorder.events.len() as u64, "event", "events");
    if !recorder.missing.is_empty() {
        words += &format!("; this kernel does not offer {}", listed(&recorder.missing));
    }
    let stacks = if recorder.stacks.is_empty() {
        "; no stacks".into()
    } else {
        format!("; stacks at {}", listed(&recorder.stacks))
    };
    words + &stacks
}

/// First few names; the others are counted.
pub fn listed(names: &[String]) -> String {
    let examples: Vec<String> = names.iter().take(LISTED).map(|name| clean(name)).collect();
    let more = names.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", examples.join(", "))
}

/// Functions of a culprit, and its count in functions that are not listed.
pub fn functions(culprit: &Culprit) -> String {
    let listed = listed(&culprit.functions);
    match culprit.functions_unlisted {
        0 => listed,
        n => format!("{listed}; {} in others", several(n, "time", "times")),
    }
}

fn reach(recorder: &Recorder) -> String {
    let mut words = vec![format!("buffers of {} KiB per CPU", recorder.buffer_kib)];
    words.extend(recorder.depth_ms.map(|ms| format!("reaching back {} at the highest rate", millis(ms))));
    words.extend(recorder.bytes_per_s.map(|rate| format!("{:.1} MB/s per CPU", rate as f64 / 1e6)));
    words
        .extend(recorder.slowest_response_ms.map(|ms| format!("slowest response to a spike {}", millis(ms))));
    words.join(", ")
}

fn millis(ms: f64) -> String {
    span(Nanos((ms * 1e6) as i64))
}

fn lost(recorder: &Recorder) -> String {
    let windows = match recorder.torn_windows() {
        0 => "no spike's events".into(),
        n => format!("the events of {}", several(n, "spike", "spikes")),
    };
    let all = several(recorder.events_overwritten, "event", "events");
    let mut words =
        format!("{windows} before they could be read; {all} overwritten in total, as in any flight recorder");
    if recorder.slices_pooled > 0 {
        let slices = several(recorder.slices_pooled, "slice", "slices");
        words +=
            &format!("; {slices} counted together as others, because there were too many to distinguish");
    }
    if recorder.spikes_unjudged > 0 {
        let spikes = several(recorder.spikes_unjudged, "spike", "spikes");
        words += &format!(
            "; the unexplained time of {spikes} was not compared with rules, because others had more"
        );
    }
    words
}

fn cost(recorder: &Recorder) -> Option<String> {
    let [bare, events, stacks] = recorder.median_ns;
    let mut words = vec![format!("median wake-up {} without tracing", span(bare?))];
    let one = |what: &str, median: Option<Nanos>, cost: Option<Nanos>| {
        let cost = cost.map_or_else(String::new, |cost| match below_noise(cost, recorder.cost_noise_ns) {
            None => format!(" (+{})", span(cost)),
            Some(words) => format!(" ({words})"),
        });
        median.map(|median| format!("{} {what}{cost}", span(median)))
    };
    words.extend(one("with events", events, recorder.events_cost_ns));
    words.extend(one("with events and stacks", stacks, recorder.stacks_cost_ns));
    if recorder.discarded > 0 {
        words.push(format!(
            "{} before the run not counted",
            several(recorder.discarded, "wake-up", "wake-ups")
        ));
    }
    Some(words.join(", "))
}

fn self_test(recorder: &Recorder) -> Option<String> {
    let tried = recorder.agreeing.saturating_add(recorder.disagreeing);
    if tried == 0 {
        return None;
    }
    let user = recorder.switch_to_user_ns.map_or_else(String::new, |ns| {
        format!("; from the switch to the thread's clock read {} at the median", span(ns))
    });
    Some(format!(
        "the trace has the switch to the thread where the thread's clock puts it in {} of {}{user}",
        recorder.agreeing,
        several(tried, "spike", "spikes")
    ))
}

/// Cost of one tick.
pub fn tick(recorder: &Recorder) -> Option<String> {
    let tick = recorder.tick_ns?;
    let of = several(recorder.ticks, "tick", "ticks");
    Some(format!(
        "{} from the interrupt's entry to its exit, the median of {of} with nothing else to do",
        span(tick)
    ))
}

/// Cure for the culprit at a place: the remedy and the knobs, or the place of an earlier one with
/// the same.
pub fn cure(culprits: &[Culprit], at: usize) -> Cure {
    let this = &culprits[at];
    let same = |other: &Culprit| (&other.remedy, &other.knobs) == (&this.remedy, &this.knobs);
    match culprits[..at].iter().position(same) {
        Some(above) if !this.remedy.is_empty() && this.rule.is_some() => Cure::As(above),
        _ => Cure::Remedy(clean(&this.remedy), knobs(&this.knobs)),
    }
}

/// Cure, each given once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cure {
    /// The same as for the culprit at that place.
    As(usize),
    /// Remedy, and the knobs that cure it; empty if there is none.
    Remedy(String, String),
}

/// Knob rules with their titles, as far as they are known.
pub fn knobs(ids: &[String]) -> String {
    let one = |id: &String| match rules::find(id) {
        Some(knob) => format!("{} ({})", knob.id, knob.title),
        None => clean(id),
    };
    ids.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Share in per cent, rounded for people.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        // A part that took time is never 0 %.
        percent if percent > 0.0 && percent < 0.05 => "<0.1 %".to_owned(),
        percent if percent > 0.0 && percent < 0.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;
    use crate::hunt::unlisted::{left_out, summed};
    use model::units::Cpu;

    #[test]
    fn who_is_named_with_all_that_is_known() {
        let thread = Who { comm: "rcuc/1".into(), pid: 23, prio: 98, ..Who::default() };
        assert_eq!(who(&thread), "rcuc/1:23 (real-time 1)");
        let ipi = Who {
            irq: "call_function_single".into(),
            function: "slow_call".into(),
            module: "inject".into(),
            from_cpu: Some(Cpu(0)),
            ..Who::default()
        };
        assert_eq!(who(&ipi), "call_function_single, slow_call [inject], from CPU 0");
        assert_eq!(who(&Who::default()), "");
        let behind = |comm: &str| Some(Behind { comm: comm.into(), pid: 7 });
        let stopper = Who { asked_by: behind("insmod"), inherited_from: behind("high"), ..thread };
        let description = "rcuc/1:23 (real-time 1), asked for by insmod:7, priority inherited from high:7";
        assert_eq!(who(&stopper), description);
        assert_eq!(who(&Who { inherited_from: behind(""), ..Who::default() }), "");
        for (prio, text) in
            [(-1, "deadline or stopper"), (0, "real-time 99"), (120, "nice 0"), (100, "nice -20")]
        {
            assert_eq!(priority(prio), text);
        }
    }

    #[test]
    fn a_hunt_without_spikes_states_that() {
        let mut run = fixture::run();
        run.spikes.clear();
        assert_eq!(found(&run), "No wake-up was later than 100 us on 2 CPUs in 60.0 s.");
        run.spikes_dropped = 7;
        assert!(found(&run).ends_with("7 of them are ranked but not stored."), "{}", found(&run));
        let recorder = run.recorder.as_mut().expect("a hunt has one");
        (recorder.spikes_unwritten, recorder.spikes_passed_over) = (4, 1);
        assert!(
            found(&run).ends_with(
                "; 2 of them are ranked but not stored; 4 of them were ranked but not written for lack of \
                 space; 1 came too fast to be examined and is only counted."
            ),
            "{}",
            found(&run)
        );
        assert_eq!(summed(&run), "6 spikes");
    }

    #[test]
    fn unexplained_spikes_are_neither_ranked_nor_in_the_sum() {
        let mut run = fixture::run();
        let listed = run.spikes.len() as u64;
        let mut sentences_of = |dropped: u64, passed_over: u64| {
            run.spikes_dropped = dropped;
            run.recorder.as_mut().expect("a hunt has one").spikes_passed_over = passed_over;
            let page = crate::hunt::text::render(&run, 400, false);
            (found(&run), summed(&run), left_out(&run), page)
        };
        let (all, sum, rest, page) = sentences_of(12, 7);
        let end =
            "; 5 of them are ranked but not stored; 7 came too fast to be examined and are only counted.";
        assert!(all.starts_with(&format!("{} wake-ups", listed + 12)) && all.ends_with(end), "{all}");
        let rest = rest.expect("said");
        assert_eq!(rest, "The latency of 7 spikes that were only counted is not included in the sum.");
        assert!(page.contains(&format!("{sum} late by")) && page.contains(&rest), "{page}");
        assert_eq!(sum, format!("{} spikes", listed + 5));
        let (all, sum, ..) = sentences_of(1, 1);
        let end = "; 1 of them came too fast to be examined and is only counted.";
        assert!(all.ends_with(end) && sum == format!("{listed} spikes"), "{all}");
        assert_eq!(sentences_of(12, 0).2, None);
        // A bundle may contain any text.
        assert!(sentences_of(u64::MAX, u64::MAX).2.is_some());
        sentences_of(u64::MAX, 0);
        sentences_of(0, u64::MAX);
    }

    #[test]
    fn a_cost_below_the_noise_is_reported_as_such() {
        let mut run = fixture::run();
        let Some(recorder) = &mut run.recorder else { panic!("a hunt has one") };
        (recorder.stacks_cost_ns, recorder.cost_noise_ns) = (Some(Nanos(-40)), Some(Nanos(120)));
        let cost_of = |run: &Run| cost(run.recorder.as_ref().expect("one")).expect("medians");
        assert!(armed(&run).contains("is below the noise of the medians (120 ns)"), "{}", armed(&run));
        assert!(cost_of(&run).contains("with events and stacks (below the noise of the medians (120 ns))"));
        assert!(cost_of(&run).contains("(+900 ns)"), "{}", cost_of(&run));
    }

    #[test]
    fn followed_threads_are_named_and_a_missing_threshold_is_stated() {
        let mut run = fixture::run();
        run.plan.notes = vec!["following control (12)".into()];
        assert_eq!(followed(&run), None, "its own threads");
        run.plan.interval_ns = None;
        assert_eq!(followed(&run).as_deref(), Some("Followed: control (12)."));
        for none in [None, Some(Nanos(0))] {
            let Some(recorder) = &mut run.recorder else { panic!("a hunt has one") };
            recorder.over_ns = none;
            let spikes = std::mem::take(&mut run.spikes);
            assert!(found(&run).ends_with("no threshold was set."), "{}", found(&run));
            assert!(account(run.recorder.as_ref().expect("one"))[0].1.starts_with("none"));
            // A killed hunt whose last checkpoint is older than its threshold.
            run.spikes = spikes;
            assert!(found(&run).starts_with("8 spikes on "), "{}", found(&run));
        }
    }

    #[test]
    fn the_maxima_are_never_called_the_machines() {
        let sentence = armed(&fixture::run());
        assert!(
            sentence.contains("not the machine's latency") && sentence.contains("added 2.90 us"),
            "{sentence}"
        );
        assert!(armed(&Run::default()).contains("Measured with tracing: "));
    }

    #[test]
    fn small_shares_keep_a_digit() {
        for (share, text) in [(0.0, "0 %"), (0.004, "0.4 %"), (0.612, "61 %"), (1.0, "100 %")] {
            assert_eq!(percent(share), text);
        }
    }
}
