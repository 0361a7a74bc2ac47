//! Gaps in which the whole machine stood still: a hypervisor or firmware stopped it from outside.
//!
//! A CPU that is busy and ticking ticks once per period; that it is silent for several, at the very time at which
//! the victim's CPU is silent too, is nothing that the victim's CPU does. Two things inside do silence all CPUs:
//! `stop_machine`, in the threads `migration/N`, and a lock that is waited for with interrupts off. So a gap
//! counts only if, at its begin, a CPU other than the victim's runs a thread that is neither idle nor the stopper,
//! is in no interrupt, waits for no lock, and has ticked just before; and if it goes on right after. Where
//! events are missing, silence says nothing.
//!
//! Source: kernel/time/tick-sched.c.

use super::case::Case;
use super::spans::Spans;
use super::state::{Stretch, Top, stretches};
use super::tasks::is_stopper;
use crate::trace::event::{Named, Vector, What};
use crate::units::CpuSet;

/// Periods of the tick that a gap is longer than.
const PERIODS: i64 = 3;

/// Where everything was silent.
pub(super) fn find(case: &Case<'_>) -> Spans<()> {
    if case.window.left_out > 0 || case.window.events_lost > 0 || case.cpus.len() < 2 {
        return Spans::new(Vec::new());
    }
    let tick = case.host.hz.filter(|&hz| hz > 0).map_or(10_000_000, |hz| 1_000_000_000 / i64::from(hz));
    let mut times: Vec<i64> = case.window.events.iter().map(|event| event.time.0).collect();
    times.sort_unstable();
    let gaps = times.windows(2).map(|pair| (pair[0], pair[1]));
    let long = |&(start, end): &(i64, i64)| {
        end.saturating_sub(start) > tick.saturating_mul(PERIODS) && end > case.from && start < case.to
    };
    let gaps: Vec<(i64, i64)> = gaps.filter(long).collect();
    if gaps.is_empty() {
        return Spans::new(Vec::new());
    }
    let tickless = CpuSet::parse(&case.host.nohz_full).unwrap_or_default();
    let mut stopped = vec![false; gaps.len()];
    let mut inside = vec![false; gaps.len()];
    for (&cpu, events) in &case.cpus {
        let stretches = stretches(events, case.to);
        for (at, &(start, end)) in gaps.iter().enumerate() {
            let after = stretches.partition_point(|stretch| stretch.start <= start);
            let Some(stretch) = stretches[..after].last().filter(|stretch| stretch.end > start) else {
                continue;
            };
            inside[at] |= works(case, events, stretch);
            let busy =
                cpu != case.home() && cpu != case.window.cpu && is_busy(stretch) && !tickless.contains(cpu);
            stopped[at] |= busy && ticks(events, start, end, tick);
        }
    }
    let certain = gaps.into_iter().zip(stopped.into_iter().zip(inside));
    Spans::new(
        certain
            .filter(|(_, (stopped, inside))| *stopped && !inside)
            .map(|(gap, _)| (gap.0, gap.1, ()))
            .collect(),
    )
}

fn is_busy(stretch: &Stretch) -> bool {
    matches!(stretch.top, Top::Thread | Top::Work(_)) && stretch.pid.is_some_and(|pid| pid != 0)
}

/// Whether the CPU does what silences others: `stop_machine`, or waits for a lock.
fn works(case: &Case<'_>, events: &[&Named], stretch: &Stretch) -> bool {
    if case.current(stretch).is_some_and(|task| is_stopper(&task)) {
        return true;
    }
    let end = events.partition_point(|event| event.time.0 <= stretch.start);
    let last = events[..end].iter().rev().find(|event| {
        matches!(event.what, What::ContentionBegin { .. } | What::ContentionEnd { .. } | What::Switch { .. })
    });
    last.is_some_and(|event| matches!(event.what, What::ContentionBegin { flags, .. } if flags & 1 != 0))
}

/// Whether the tick came in the two periods before or the one after, and whether the CPU goes on within that.
fn ticks(events: &[&Named], start: i64, end: i64, tick: i64) -> bool {
    let within = |from: i64, to: i64| {
        let begin = events.partition_point(|event| event.time.0 < from);
        events[begin..].iter().take_while(move |event| event.time.0 <= to)
    };
    let mut around = within(start.saturating_sub(tick.saturating_mul(2)), end.saturating_add(tick));
    around.any(|event| is_tick(event)) && within(end, end.saturating_add(tick)).next().is_some()
}

fn is_tick(event: &Named) -> bool {
    match &event.what {
        What::VectorEntry { vector } => *vector == Vector::LocalTimer,
        What::TimerEntry { function, .. } => function.starts_with("tick_"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained, told};

    /// A FIFO thread has the victim's CPU for 20 ms; the other CPU does as told.
    fn with(hog: &str, other: &str) -> Vec<String> {
        let events = format!(
            "-500  1 50 d  switch rt/50/19 S {hog}
             2     1 60 dh vector+ local_timer
             3     1 60 dh timer+ 1 hrtimer_wakeup
             4     1 60 dh waking rt/50/19
             5     1 60 dh timer- 1
             5     1 60 dh vector- local_timer
             {other}
             20005 1 60 d  switch {hog} S rt/50/19"
        );
        told(&explained(20_005.0, &events))
    }

    const BUSY: &str = "
        -900  0 8 d  switch a/7/120 R load/8/120
        -100  0 8 dh vector+ local_timer
        -90   0 8 dh vector- local_timer
        20000 0 8 dh vector+ local_timer
        20001 0 8 dh vector- local_timer";
    const HOG: &str = "hog/60/9";

    #[test]
    fn a_busy_cpu_that_misses_its_ticks_was_stopped() {
        assert_eq!(with(HOG, BUSY), ["timer-irq local_timer 3", "thread hog 5", "unexplained 19997"]);
    }

    #[test]
    fn what_has_another_reason_is_no_stop() {
        let hog = ["timer-irq local_timer 3", "thread hog 20000", "unexplained 2"];
        for (why, other) in [
            ("it ticks on", BUSY.replace("20000 0", "10000 0").replace("20001 0", "10001 0")),
            ("it idles", BUSY.replace("load/8/120", "swapper/0/120").replace(" 0 8 ", " 0 0 ")),
            ("it never ticks", BUSY.replace("local_timer", "reschedule")),
            ("its events end", BUSY.lines().take(4).collect::<Vec<_>>().join("\n")),
            ("it is the stopper", BUSY.replace("load/8/120", "migration/0/8/-1")),
            ("it waits for a lock", BUSY.replace("20000 0", "-80 0 8 d spin+ 4\n20000 0")),
            (
                "it is in an interrupt",
                BUSY.lines().filter(|line| !line.contains("-90")).collect::<Vec<_>>().join("\n"),
            ),
            ("there is none", String::new()),
        ] {
            assert_eq!(with(HOG, &other), hog, "{why}");
        }
        assert_eq!(with("migration/1/60/-1", BUSY)[2], "stop-machine migration/1 20000");
    }
}
