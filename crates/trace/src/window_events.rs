//! Window of one spike: the events around it, from any source.

use super::event::{Event, Raw, Vector, What};
use super::held::{EventCoverage, HeldEvents};
use super::last_switch::since_last_switch;
use model::sort::CompactSort;
use model::units::{Cpu, Nanos};

/// Time before the spike in which every event is included: the activity when the thread should have
/// run.
const LEAD_IN: Nanos = Nanos(1_000_000);

/// Time before the spike in which events of other CPUs that show them running are included: their
/// ticks, and onbeat's own timers, of which one starts every 10 ms.
const LEAD_IN_OF_OTHER_CPUS: Nanos = Nanos(25_000_000);

/// Time after the spike for the same: timers of a stopped machine expire late, right when it
/// resumes.
pub const LEAD_OUT_OF_OTHER_CPUS: Nanos = Nanos(4_000_000);

/// Time before a cycle's release in which its thread's sleep is searched, if the thread slept in
/// the previous cycle when this one was due.
const LAST_SLEEP: Nanos = Nanos(100_000_000);

/// Limit of events of the thread's last sleep: it is switched away once, and woken.
const MAX_EVENTS_OF_SLEEP: usize = 64;

/// Time before the spike that is searched for steps of CPU hotplug and their origin, for which the
/// machine is stopped. It includes a grace period of RCU.
const HOTPLUG: Nanos = Nanos(500_000_000);

/// Limit of events of CPU hotplug and its origin.
const MAX_EVENTS_OF_HOTPLUG: usize = 1_024;

/// Limit of events of the late thread's CPU in a window.
const MAX_EVENTS: usize = 20_000;
const MAX_EVENTS_OF_OTHER_CPUS: usize = 40_000;
const MIN_EVENTS_PER_CPU: usize = 500;

/// Spike whose window is requested.
#[derive(Clone, Copy, Debug)]
pub struct WindowRequest {
    /// CPU of the late thread.
    pub cpu: Cpu,
    /// Time at which it should have run.
    pub expected: Nanos,
    pub actual: Nanos,
    /// Thread, for a cycle.
    pub of_cycle: Option<i32>,
}

/// Window with addresses.
#[derive(Debug, Default)]
pub struct WindowEvents {
    /// Events in order of time, of all CPUs.
    pub events: Vec<Raw>,
    /// Number of overwritten events of the late thread's CPU within the window.
    pub lost: u64,
    /// True if the recorded events do not reach back to the start of the spike.
    pub begins_late: bool,
    /// Number of omitted or overwritten events of other CPUs, and of omitted events before the
    /// lead-in.
    pub left_out: u64,
}

/// Builds the window from the events that the source has collected after the spike.
pub fn window_events(request: &WindowRequest, source: &mut dyn HeldEvents) -> WindowEvents {
    let mut window = WindowEvents::default();
    let cpus = source.cpus();
    let of_others = (MAX_EVENTS_OF_OTHER_CPUS / cpus.len().max(1)).clamp(MIN_EVENTS_PER_CPU, MAX_EVENTS);
    for cpu in cpus {
        let own = cpu == request.cpu;
        let found = CpuEvents::of(cpu, request, source, if own { MAX_EVENTS } else { of_others });
        if own {
            // Events of the late thread's CPU beyond the limit count as missing, like overwritten
            // ones.
            window.lost = found.lost + found.left_out;
            window.begins_late =
                source.oldest(cpu).is_some_and(|oldest| oldest > request.expected) && source.lacks_older(cpu);
        } else {
            window.left_out += found.left_out + found.lost;
        }
        window.left_out += found.before_left_out;
        window.events.extend(found.events);
    }
    if let Some(thread) = request.of_cycle {
        add_last_sleep(thread, request, source, &mut window);
    }
    if window.events.iter().any(|event| event.cpu == request.cpu && runs_stopper(event)) {
        add_hotplug(request, source, &mut window);
    }
    // Stable: simultaneous events of one CPU stay in order.
    window.events.compact_sort_by_key(|event| event.time);
    window
}

/// Adds the thread's last switch before the lead-in, with its stack, the timer that it had started
/// for that sleep, and its wakings since: it may still be in its last cycle, on any CPU.
fn add_last_sleep(
    thread: i32,
    request: &WindowRequest,
    source: &mut dyn HeldEvents,
    window: &mut WindowEvents,
) {
    let (from, to) = (request.expected - LAST_SLEEP, request.expected - LEAD_IN);
    let mut found: Vec<Raw> = Vec::new();
    for cpu in source.cpus() {
        let mut switched = false;
        source.events(cpu, from, to, &mut |event: Raw| {
            if event.time > to {
                return;
            }
            let of_it = match &event.what {
                What::Switch { prev, next, .. } => prev.pid == thread || next.pid == thread,
                What::Waking { task, .. } => task.pid == thread,
                What::TimerStart { .. } => event.pid == thread && !event.context.hard_irq(),
                What::Stack { .. } => switched,
                _ => false,
            };
            switched = of_it && matches!(event.what, What::Switch { .. });
            if of_it {
                found.push(event);
            }
        });
    }
    found.compact_sort_by_key(|event| event.time);
    let last = found.iter().rposition(|event| matches!(event.what, What::Switch { .. }));
    let mut since = found.split_off(last.unwrap_or(0));
    let timer = found.into_iter().rfind(|event| matches!(event.what, What::TimerStart { .. }));
    window.left_out += since.len().saturating_sub(MAX_EVENTS_OF_SLEEP) as u64;
    since.truncate(MAX_EVENTS_OF_SLEEP);
    since.extend(timer);
    since.retain(|event| !window.events.contains(event));
    window.events.extend(since);
}

fn runs_stopper(event: &Raw) -> bool {
    matches!(event.what, What::Switch { next, .. } if next.comm.text().starts_with("migration/"))
}

/// Adds the steps of CPU hotplug before the lead-in; for their workers, the last work item, its
/// waking and the switch to the thread that woke them.
fn add_hotplug(request: &WindowRequest, source: &mut dyn HeldEvents, window: &mut WindowEvents) {
    let (from, to) = (request.expected - HOTPLUG, request.expected - LEAD_IN);
    let (mut steps, mut before): (Vec<Raw>, Vec<Raw>) = (Vec::new(), Vec::new());
    for cpu in source.cpus() {
        source.events(cpu, from, to, &mut |event: Raw| match event.what {
            _ if event.time > to => {}
            What::HotplugEntry { .. } | What::HotplugExit { .. } => steps.push(event),
            What::WorkEntry { .. } | What::Waking { .. } | What::Switch { .. } => before.push(event),
            _ => {}
        });
    }
    if steps.is_empty() {
        return;
    }
    before.compact_sort_by_key(|event| event.time);
    let mut workers: Vec<i32> = steps.iter().map(|event| event.pid).collect();
    workers.sort_unstable();
    workers.dedup();
    for worker in workers {
        let works = |event: &Raw| event.pid == worker && matches!(event.what, What::WorkEntry { .. });
        let Some(work) = before.iter().rposition(works) else { continue };
        let wakes = |event: &Raw| matches!(event.what, What::Waking { task, .. } if task.pid == worker);
        let Some(waking) = before[..work].iter().rposition(wakes) else { continue };
        let by = before[waking].pid;
        let names = |event: &Raw| matches!(event.what, What::Switch { next, .. } if next.pid == by);
        let switch = before[..waking].iter().rposition(names);
        steps.extend(switch.into_iter().chain([waking, work]).map(|at| before[at].clone()));
    }
    steps.compact_sort_by_key(|event| event.time);
    let first = steps.len().saturating_sub(MAX_EVENTS_OF_HOTPLUG);
    window.left_out += first as u64;
    steps.drain(..first);
    steps.retain(|event| !window.events.contains(event));
    window.events.extend(steps);
}

/// Part of a window from one CPU.
struct CpuEvents {
    events: Vec<Raw>,
    lost: u64,
    left_out: u64,
    before_left_out: u64,
}

impl CpuEvents {
    fn of(cpu: Cpu, request: &WindowRequest, source: &mut dyn HeldEvents, max_events: usize) -> CpuEvents {
        let lead_in = request.expected - LEAD_IN;
        let own = cpu == request.cpu;
        let from = if own { lead_in } else { request.expected - LEAD_IN_OF_OTHER_CPUS };
        let until = if own { request.actual } else { request.actual + LEAD_OUT_OF_OTHER_CPUS };
        let (mut before, mut ticks, mut events) = (Vec::new(), Vec::new(), Vec::new());
        let mut left_out = 0;
        // A stack belongs to the event before it, which may be the last of the window.
        let mut within = false;
        let coverage = source.events(cpu, from, until, &mut |event: Raw| {
            within = event.time <= request.actual || (within && matches!(event.what, What::Stack { .. }));
            let shows_after = !own && event.time <= until && shows_cpu_alive(&event);
            if !within && !shows_after {
                return;
            }
            let mut keep = |list: &mut Vec<Raw>, event: Raw| {
                if list.len() < max_events {
                    list.push(event);
                } else {
                    left_out += 1;
                }
            };
            if event.time >= lead_in {
                keep(&mut events, event);
                return;
            }
            if !own && event.time >= from && shows_cpu_alive(&event) {
                keep(&mut ticks, event.clone());
            }
            before.push(event);
        });
        let EventCoverage { begins, lost_before, lost, left_out: mut before_left_out } = coverage;
        let lost = lost + if begins > lead_in { lost_before } else { 0 };
        let mut all = since_last_switch(before, &mut before_left_out);
        // Ticks after the last switch are included only once.
        let first = all.first().map(|event| event.time);
        ticks.retain(|tick: &Raw| first.is_none_or(|first| tick.time < first));
        ticks.append(&mut all);
        ticks.append(&mut events);
        CpuEvents { events: ticks, lost, left_out, before_left_out }
    }
}

/// True if an event shows that a CPU takes its timer's interrupts.
pub fn shows_cpu_alive<N>(event: &Event<N>) -> bool {
    matches!(event.what, What::TimerStart { .. } | What::TimerEntry { .. } | What::TimerExit { .. })
        || matches!(event.what, What::VectorEntry { vector: Vector::LocalTimer })
        || matches!(event.what, What::VectorExit { vector: Vector::LocalTimer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Address, Context, Task};

    const E: i64 = 1_000_000_000;

    /// Source of scripted events of two CPUs in order of time.
    #[derive(Default)]
    struct Script {
        events: Vec<Raw>,
        lost_before: Option<Nanos>,
    }

    impl HeldEvents for Script {
        fn cpus(&self) -> Vec<Cpu> {
            vec![Cpu(0), Cpu(1)]
        }

        fn events(&mut self, cpu: Cpu, from: Nanos, to: Nanos, each: &mut dyn FnMut(Raw)) -> EventCoverage {
            let own: Vec<&Raw> = self.events.iter().filter(|event| event.cpu == cpu).collect();
            let switch = |event: &&Raw| event.time < from && matches!(event.what, What::Switch { .. });
            let first = own.iter().rposition(switch).unwrap_or(0);
            own[first..].iter().filter(|event| event.time <= to).for_each(|&event| each(event.clone()));
            EventCoverage::default()
        }

        fn oldest(&self, cpu: Cpu) -> Option<Nanos> {
            self.events.iter().find(|event| event.cpu == cpu).map(|event| event.time)
        }

        fn lacks_older(&self, _: Cpu) -> bool {
            self.lost_before.is_some()
        }
    }

    fn event(at: i64, cpu: u32, pid: i32, what: What<Address>) -> Raw {
        Event { time: Nanos(at), cpu: Cpu(cpu), pid, context: Context(0), preempt: 0, what }
    }

    fn switch(at: i64, cpu: u32, from: i32, to: i32) -> Raw {
        let task = |pid| Task { pid, prio: 19, ..Task::default() };
        event(at, cpu, from, What::Switch { prev: task(from), state: 1, next: task(to) })
    }

    fn window(mut script: Script) -> WindowEvents {
        let request =
            WindowRequest { cpu: Cpu(0), expected: Nanos(E), actual: Nanos(E + 10_000), of_cycle: None };
        window_events(&request, &mut script)
    }

    fn tick(at: i64, cpu: u32) -> Raw {
        event(at, cpu, 0, What::TimerExit { timer: 1 })
    }

    #[test]
    fn a_window_begins_with_the_last_switch_and_ends_with_the_spike_and_the_timers_of_other_cpus() {
        let far = E - 40_000_000;
        let events = vec![
            switch(far - 5, 0, 3, 4),
            switch(far, 0, 4, 5),
            tick(far + 1, 0),
            tick(far + 2, 1),
            tick(E - 20_000_000, 1),
            switch(E + 9_000, 0, 5, 7),
            event(E + 9_000, 0, 7, What::Stack { frames: vec![1], enables: None }),
            switch(E + 11_000, 0, 7, 0),
            tick(E + 12_000, 0),
            switch(E + 12_000, 1, 7, 0),
            tick(E + 3_000_000, 1),
            tick(E + 5_000_000, 1),
        ];
        let found = window(Script { events, ..Script::default() });
        let times: Vec<i64> = found.events.iter().map(|event| event.time.0).collect();
        assert_eq!(times, [far, far + 1, far + 2, E - 20_000_000, E + 9_000, E + 9_000, E + 3_000_000]);
        assert!(!found.begins_late && (found.lost, found.left_out) == (0, 0));
    }

    #[test]
    fn of_a_cycle_the_thread_s_last_sleep_is_there_from_whichever_cpu() {
        let stack = |at| event(at, 1, 7, What::Stack { frames: vec![1], enables: None });
        let start =
            |at, pid| event(at, 1, pid, What::TimerStart { timer: 4, function: 1, expires: Nanos(E) });
        let events = vec![
            start(E - 70_000_000, 7),
            switch(E - 60_000_000, 1, 3, 7),
            start(E - 31_000_000, 7),
            start(E - 30_500_000, 3),
            switch(E - 30_000_000, 1, 7, 3),
            stack(E - 30_000_000),
            switch(E - 29_000_000, 1, 3, 4),
            stack(E - 29_000_000),
            switch(E - 2_000_000, 1, 4, 3),
            switch(E - 3_000_000, 0, 4, 5),
            switch(E + 9_000, 0, 5, 7),
        ];
        let times = |of_cycle| {
            let request =
                WindowRequest { cpu: Cpu(0), expected: Nanos(E), actual: Nanos(E + 10_000), of_cycle };
            let mut script = Script { events: events.clone(), ..Script::default() };
            let found = window_events(&request, &mut script);
            found.events.iter().map(|event| event.time.0 - E).collect::<Vec<_>>()
        };
        assert_eq!(times(None), [-3_000_000, -2_000_000, 9_000]);
        let asleep = [-31_000_000, -30_000_000, -30_000_000, -3_000_000, -2_000_000, 9_000];
        assert_eq!(times(Some(7)), asleep, "with the timer that it started");
        assert_eq!(times(Some(4)), [-3_000_000, -2_000_000, 9_000], "it is there once");
    }

    #[test]
    fn of_a_cpu_that_goes_off_line_the_steps_and_who_wanted_them_are_there() {
        let named = |comm: &str, pid| Task { comm: comm.into(), pid, prio: 120 };
        let to = |at: i64, cpu, comm: &str, pid| {
            event(E + at, cpu, 3, What::Switch { prev: named("a", 3), state: 1, next: named(comm, pid) })
        };
        let waking = |at: i64, by| {
            event(E + at, 1, by, What::Waking { task: named("kworker/1:0", 9), target: Cpu(1) })
        };
        let work = |at: i64| event(E + at, 1, 9, What::WorkEntry { function: 5 });
        let step =
            |at: i64| event(E + at, 1, 9, What::HotplugEntry { of: Cpu(2), offline: true, function: 6 });
        let calm = vec![
            to(-90_000_000, 1, "other", 8),
            to(-80_000_000, 1, "sh", 7),
            waking(-70_000_000, 7),
            work(-69_000_000),
            step(-40_000_000),
            waking(-30_000_000, 8),
            switch(E - 2_000_000, 1, 9, 0),
            switch(E - 2_000_000, 0, 9, 5),
        ];
        let times = |events: Vec<Raw>| {
            let found = window(Script { events, ..Script::default() });
            found.events.iter().map(|event| (event.time.0 - E) / 1_000_000).collect::<Vec<_>>()
        };
        assert_eq!(times(calm.clone()), [-2, -2], "no stop");
        let stopped = [calm, vec![to(1_000, 0, "migration/0", 15)]].concat();
        assert_eq!(times(stopped), [-80, -70, -69, -40, -2, -2, 0]);
    }

    #[test]
    fn what_finds_no_room_is_counted_on_the_late_cpu_as_lost() {
        let many = MAX_EVENTS as i64 + 3;
        let found =
            window(Script { events: (0..many).map(|n| tick(E + n / 4, 0)).collect(), ..Script::default() });
        assert_eq!((found.events.len(), found.lost, found.left_out), (MAX_EVENTS, 3, 0));
        let found =
            window(Script { events: (0..many).map(|n| tick(E + n / 4, 1)).collect(), ..Script::default() });
        assert_eq!((found.events.len(), found.lost, found.left_out), (MAX_EVENTS, 0, 3));
    }

    #[test]
    fn of_a_flood_before_the_lead_in_the_switch_and_the_last_events_stay() {
        let before = E - 2_000_000;
        let mut events = vec![switch(before, 0, 3, 4)];
        events.extend((1..1_000).map(|n| tick(before + n, 0)));
        let found = window(Script { events, ..Script::default() });
        assert_eq!(
            (found.events[0].time.0, found.events.last().map(|e| e.time.0)),
            (before, Some(before + 999))
        );
        assert_eq!(found.events.len() as u64 + found.left_out, 1_000);
    }

    #[test]
    fn a_source_that_lost_the_spikes_beginning_reports_it() {
        let events = vec![tick(E + 5, 0)];
        let found = window(Script { events: events.clone(), lost_before: Some(Nanos(E)) });
        assert!(found.begins_late);
        assert!(!window(Script { events, ..Script::default() }).begins_late, "silence lost nothing");
    }
}
