//! Exits of a CPU from an idle state, limited to the exit latency that the state declares.
//!
//! Source: drivers/cpuidle/cpuidle.c; Documentation/admin-guide/pm/cpuidle.rst (`latency`).

use super::case::{Case, Cause};
use super::spans::Spans;
use crate::event::{Named, What};
use model::run::Who;
use model::slice::SliceKind;

/// Stretch in which the CPU left its state, before the timer's interrupt, or after a waking from
/// another CPU.
pub(super) fn find(case: &Case<'_>) -> Spans<Cause> {
    let one = before_interrupt(case).or_else(|| after_waking(case));
    Spans::new(one.into_iter().collect())
}

fn before_interrupt(case: &Case<'_>) -> Option<(i64, i64, Cause)> {
    let expiry = case.path.expiry.as_ref().filter(|expiry| expiry.interrupt > case.from)?;
    let events = case.events(case.home());
    let end = events.partition_point(|event| event.time.0 < expiry.interrupt);
    let state = entered(events[..end].iter())?;
    let (latency, cause) = declared(case, state)?;
    let start = expiry.interrupt.saturating_sub(latency).max(case.from);
    (start < expiry.interrupt).then_some((start, expiry.interrupt, cause))
}

fn after_waking(case: &Case<'_>) -> Option<(i64, i64, Cause)> {
    let waking = case.path.waking.filter(|_| case.path.expiry.is_none())?;
    let &(_, cpu) = case.path.cpu_intervals.iter().rev().find(|leg| leg.0 <= waking)?;
    let events = case.events(cpu);
    let end = events.partition_point(|event| event.time.0 <= waking);
    let state = entered(events[..end].iter())?;
    let (latency, cause) = declared(case, state)?;
    let next = events.get(end).map_or(case.to, |event| event.time.0);
    let end = waking.saturating_add(latency).min(next);
    (waking < end).then_some((waking, end, cause))
}

/// State of the CPU, if only the idle thread has run since it was entered.
fn entered<'a, 'w: 'a>(events: impl DoubleEndedIterator<Item = &'a &'w Named>) -> Option<u32> {
    let mut rest = events.rev().take(8).take_while(|event| event.pid == 0);
    rest.find_map(|event| match event.what {
        What::Idle { state: Some(state) } => Some(Some(state)),
        What::Idle { state: None } | What::Nmi { .. } => None,
        _ => Some(None),
    })?
}

fn declared(case: &Case<'_>, state: u32) -> Option<(i64, Cause)> {
    let at = usize::try_from(state).ok()?;
    let latency = i64::try_from(*case.host.idle_exit_ns.get(at)?).ok().filter(|&ns| ns > 0)?;
    let name = case.host.idle_states.get(at).cloned().unwrap_or_else(|| format!("state {state}"));
    let evidence = format!("the CPU was in idle state {name}, which declares {latency} ns to leave");
    Some((latency, Cause::new(SliceKind::IdleExit, Who { irq: name, ..Who::default() }, evidence)))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained_on, host, slice_lines, window};
    use model::run::Host;

    fn with(host: &Host, before: &str) -> Vec<String> {
        let events = format!(
            "-500 1 50 d switch rt/50/19 S swapper/0/120
             {before}
             150  1 0 dh  vector+ local_timer
             151  1 0 dh  timer+ 1 hrtimer_wakeup
             152  1 0 dh  waking rt/50/19
             153  1 0 dNh timer- 1
             153  1 0 dNh vector- local_timer
             154  1 0 d   switch swapper/0/120 R rt/50/19"
        );
        slice_lines(&explained_on(host, &window(154.0, &events)))
    }

    #[test]
    fn a_state_takes_what_it_declares_and_no_more() {
        let idle_states = ["POLL", "C1", "C6"].map(str::to_owned).to_vec();
        let declares = Host { idle_states, idle_exit_ns: vec![0, 2_000, 133_000], ..host() };
        let rest = ["timer-irq local_timer 3", "switch 1"];
        let of = |first: &'static str, last: &'static str| [&[first], &rest[..], &[last]].concat();
        let lines = |host, before: &str| with(host, before);
        assert_eq!(
            lines(&declares, "-400 1 0 d idle 2\n149 1 0 d idle -"),
            of("idle-exit C6 133", "unexplained 17")
        );
        assert_eq!(lines(&declares, "-400 1 0 d idle 1"), of("idle-exit C1 2", "unexplained 148"));
        let nothing = [&rest[..], &["unexplained 150"]].concat();
        assert_eq!(lines(&declares, "-400 1 0 d idle 0"), nothing);
        assert_eq!(lines(&declares, "-400 1 0 d idle 7"), nothing);
        assert_eq!(lines(&declares, ""), nothing);
        assert_eq!(lines(&host(), "-400 1 0 d idle 2"), nothing);
    }
}
