//! Clock device that was set late: since 7.1, on some architectures, the kernel sets it on the way
//! out of a timer's interrupt, after the resulting switch of threads. A timer that becomes due in
//! between has to wait.
//!
//! Sources: kernel/time/hrtimer.c (`hrtimer_interrupt`, `__hrtimer_rearm_deferred`),
//! include/linux/hrtimer_rearm.h.

use super::case::{Case, Cause};
use crate::event::What;
use model::run::Who;
use model::slice::SliceKind;

/// Time from the end of the earlier interrupt, or the expected time, to the setting that the late
/// timer had to wait for.
pub(super) fn late(case: &Case<'_>) -> Option<(i64, i64, Cause)> {
    let expiry = case.path.expiry.as_ref().filter(|expiry| !expiry.soft)?;
    let events = case.events(case.home());
    let before = &events[..events.partition_point(|event| event.time.0 < expiry.interrupt)];
    let at = before.iter().rposition(|event| matches!(event.what, What::TimerRearm { .. }))?;
    let set = before[at].time.0;
    let What::TimerRearm { next, deferred: true } = before[at].what else { return None };
    // A clock device set for a later expiry delayed no timer.
    if next.0 > set {
        return None;
    }
    let left = before[..at].iter().rfind(|event| event.context.hard_irq())?;
    let start = left.time.0.max(case.from);
    let function = "__hrtimer_rearm_deferred".to_owned();
    let who = Who { irq: "local_timer".to_owned(), function, ..Who::default() };
    let evidence = "at the exit of an earlier timer interrupt, which set the clock device for this timer \
                    only at its end (hrtimer_rearm)";
    (start < set).then(|| (start, set, Cause::new(SliceKind::TimerIrq, who, evidence)))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained, slice_lines};

    /// The tick's interrupt ends at 5, and its exit goes through the scheduler.
    fn with(rearm: &str) -> Vec<String> {
        let events = format!(
            "-500 1 50 d   switch rt/50/19 S busy/60/120
             -4  1 60 dh   vector+ local_timer
             -3  1 60 dh   timer+ 2 tick_nohz_handler
             4   1 60 dNh  timer- 2
             5   1 60 dNh  vector- local_timer
             {rearm}
             47  1 61 dh   vector+ local_timer
             48  1 61 dh   timer+ 1 hrtimer_wakeup
             48  1 61 dh   stack hrtimer_interrupt,asm_sysvec_apic_timer_interrupt,finish_task_switch,schedule 2
             49  1 61 dh   waking rt/50/19
             50  1 61 dNh  vector- local_timer
             51  1 61 d    switch other/61/120 P rt/50/19"
        );
        slice_lines(&explained(52.0, &events))
    }

    const SWITCH: &str = "30 1 60 d switch busy/60/120 P other/61/120";

    #[test]
    fn a_timer_waits_until_the_clock_device_is_set_for_it() {
        let late = with(&format!("{SWITCH}\n45 1 61 d rearm 0 deferred"));
        let way = "timer-irq local_timer/__hrtimer_rearm_deferred 40";
        assert_eq!(late[..2], ["timer-irq local_timer 5", way], "{late:?}");
        // Set at once, or for a later timer, or not at all: it delayed nothing.
        for other in ["45 1 61 d rearm 0", "45 1 61 d rearm 60 deferred", "-2 1 60 dh rearm -9 deferred", ""]
        {
            let lines = with(&format!("{SWITCH}\n{other}"));
            assert!(lines.iter().all(|line| !line.contains("rearm")), "{other}: {lines:?}");
        }
    }
}
