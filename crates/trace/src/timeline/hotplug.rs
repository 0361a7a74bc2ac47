//! Steps of a CPU on its way online or offline, for which all others are stopped.
//!
//! The step that requests the stop surrounds it, in the thread that moves the CPU. Steps that the
//! CPU takes itself occur while it is not online, when tracepoints do not record.
//!
//! Source: kernel/cpu.c (`cpuhp_invoke_callback`, `takedown_cpu`, `take_cpu_down`),
//! include/linux/tracepoint.h (`cpu_online`).

use super::path::PerCpu;
use crate::event::What;
use model::units::Cpu;

/// Limit of nested steps on one CPU; the kernel has two.
const DEPTH: usize = 16;

/// Step of a CPU on its way online or offline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HotplugStep<'w> {
    start: i64,
    end: i64,
    /// CPU that changes its state.
    of: Cpu,
    offline: bool,
    /// Function called for it.
    function: &'w str,
    /// CPU that ran it.
    on: Cpu,
}

impl HotplugStep<'_> {
    /// Text of the step, to be appended to a sentence.
    pub(super) fn words(&self) -> String {
        let way = if self.offline { "off" } else { "on" };
        let HotplugStep { of, function, on, .. } = self;
        format!(
            "; CPU {of} went {way} line: {function} ran for that on CPU {on}; no event shows the work on CPU \
             {of}"
        )
    }

    fn within(&self, from: i64, to: i64) -> i64 {
        self.end.min(to).saturating_sub(self.start.max(from)).max(0)
    }
}

/// Step that took the time: the innermost one that lasted for half of it, else the one that lasted
/// longest in it; none if no CPU changed its state.
pub(super) fn step<'w>(steps: &[HotplugStep<'w>], from: i64, to: i64) -> Option<HotplugStep<'w>> {
    let half = to.saturating_sub(from) / 2;
    let all = || steps.iter().filter(|step| step.within(from, to) > 0);
    let innermost = all().filter(|step| step.within(from, to) >= half);
    let innermost = innermost.min_by_key(|step| step.end.saturating_sub(step.start));
    innermost.or_else(|| all().max_by_key(|step| step.within(from, to))).copied()
}

/// All steps of a window that ends at `to`.
pub(super) fn steps<'w>(cpus: &PerCpu<'w>, to: i64) -> Vec<HotplugStep<'w>> {
    let mut found = Vec::new();
    for (&on, events) in cpus {
        let mut open: Vec<(i32, HotplugStep<'w>)> = Vec::new();
        for event in events {
            let start = event.time.0;
            match &event.what {
                What::HotplugEntry { of, offline, function } if open.len() < DEPTH => {
                    let (of, offline) = (*of, *offline);
                    let step = HotplugStep { start, end: to, of, offline, function, on };
                    open.push((event.pid, step));
                }
                What::HotplugExit { of } => {
                    let ends = |(pid, step): &(i32, HotplugStep<'_>)| *pid == event.pid && step.of == *of;
                    if let Some(at) = open.iter().rposition(ends) {
                        found.push(HotplugStep { end: start, ..open.remove(at).1 });
                    }
                }
                _ => {}
            }
        }
        found.extend(open.into_iter().map(|(_, step)| step));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::fixture::explained;
    use model::run::Slice;
    use model::slice::SliceKind;

    /// CPU 1 is late; CPU 2 goes offline, through a worker on CPU 0.
    fn stop(steps: &str) -> Slice {
        stop_by("8 d", steps)
    }

    /// Like `stop`, with the worker woken in another context.
    fn stop_by(waker: &str, steps: &str) -> Slice {
        let events = format!(
            "-900 0 {waker} waking kworker/0:1/7/120 0
             -880 0 8 d    switch sh/8/120 S kworker/0:1/7/120
             -870 0 7 .    work+ work_for_cpu_fn
             -500 1 50 d   switch rt/50/19 S busy/60/120
             {steps}
             -8   0 7 d    waking migration/1/16/-1
             2    1 60 dh  vector+ local_timer
             3    1 60 dh  timer+ 1 hrtimer_wakeup
             4    1 60 dh2 waking rt/50/19
             6    1 60 dNh timer- 1
             7    1 60 dNh vector- local_timer
             8    1 60 d   switch busy/60/120 P migration/1/16/-1
             5012 1 16 d   switch migration/1/16/-1 S rt/50/19"
        );
        let spike = explained(5_012.0, &events);
        spike.slices.into_iter().find(|slice| slice.kind == SliceKind::StopMachine).unwrap()
    }

    const TAKEDOWN: &str = "-20 0 7 . hotplug+ 2 off takedown_cpu";

    #[test]
    fn the_step_around_a_stop_is_named_with_the_thread_that_wanted_it() {
        let slice = stop(&format!("-40 0 7 . hotplug+ 2 off earlier\n-30 0 7 . hotplug- 2\n{TAKEDOWN}"));
        assert!(
            slice.evidence.contains(
                "; CPU 2 went off line: takedown_cpu ran for that on CPU 0; no event shows the work on CPU 2"
            ),
            "{}",
            slice.evidence
        );
        let by = slice.who.asked_by.unwrap();
        assert_eq!((by.comm.as_str(), by.pid), ("sh", 8), "{}", slice.evidence);
        // In a softirq it was woken for something else: the item was queued while it was awake.
        let slice = stop_by("8 ds", TAKEDOWN);
        assert_eq!(slice.who.asked_by.unwrap().comm, "kworker/0:1");
        assert!(
            slice.evidence.ends_with("work_for_cpu_fn; which thread queued that is in no event"),
            "{}",
            slice.evidence
        );
    }

    #[test]
    fn the_innermost_step_is_the_one_and_what_has_ended_is_none() {
        let slice = stop(&format!("{TAKEDOWN}\n-12 2 26 d hotplug+ 2 off quiesce+[device]"));
        assert!(slice.evidence.contains("quiesce [device] ran for that on CPU 2"), "{}", slice.evidence);
        let none = stop(&format!("{TAKEDOWN}\n-15 0 7 . hotplug- 2"));
        assert!(!none.evidence.contains("off line"), "{}", none.evidence);
    }
}
