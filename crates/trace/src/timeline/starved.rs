//! Real-time threads that are runnable but passed over: by the fair server, or by real-time
//! throttling.
//!
//! Since 6.12 fair threads have a deadline server, and classic throttling remains only with groups
//! (RT_GROUP_SCHED); before, throttling takes the whole real-time queue off the CPU, which may then
//! even idle.
//!
//! No trace event shows the server's turn (the tracepoints sched_dl_*_tp of 7.x do not, and
//! sched_dl_server_start_tp is the start of its wait for one). Its timer does: in dl_task_timer the
//! server changes from waiting to running.
//!
//! Sources: kernel/sched/deadline.c, kernel/sched/rt.c, Documentation/scheduler/sched-rt-group.rst.

use super::case::{Case, Cause};
use super::inherited;
use super::state::Stretch;
use super::tasks::who;
use crate::event::{Named, Task, What};
use crate::fixed_str::FixedStr;
use model::run::Host;
use model::slice::SliceKind;

/// Cause that let a thread of lower priority, or none, run while the victim was runnable.
pub(super) fn cause(case: &Case<'_>, stretch: &Stretch, current: Task) -> Option<Cause> {
    let queued = case.runnable_since(stretch.start)?;
    let victim = case.window.victim;
    let begun = stretch.since > queued && stretch.since <= stretch.start;
    // A thread that ran before the victim was runnable may have passed over another, and keeps
    // running.
    let comm = if begun { Some(victim.comm) } else { passed_over(case, stretch, current) };
    let comm = comm.filter(|_| (0..100).contains(&victim.prio))?;
    // The scheduler chose it by its priority at that time: one returned since was not a fair
    // thread's.
    let chosen = inherited::chosen(case, current, stretch.since);
    if (current.real_time() || chosen.real_time()) && !current.idle() {
        return None;
    }
    // Woken from another CPU, the victim is in no run queue yet.
    let taken_up = case.path.queued.filter(|_| case.path.waking == Some(queued));
    if begun && taken_up.is_some_and(|since| since > stretch.since) {
        return None;
    }
    if current.idle() {
        let evidence = format!("the CPU went idle while {comm} was runnable");
        return throttles(case.host).then(|| Cause::new(SliceKind::Throttled, who(current), evidence));
    }
    let evidence = format!("{} was switched to while {comm}, a real-time thread, was runnable", current.comm);
    let unclear = throttles(case.host);
    if version(case.host) >= FIRST_SERVER && !unclear && turn_begins(case, stretch, current) {
        let evidence = format!("{evidence}, right after the timer of the fair or ext server (dl_task_timer)");
        return Some(Cause::new(SliceKind::FairServer, who(current), evidence));
    }
    if serves(case.host) {
        return Some(Cause::new(SliceKind::FairServer, who(current), evidence));
    }
    throttles(case.host).then(|| Cause::new(SliceKind::Throttled, who(current), evidence))
}

/// Longest time between a server's timer and the resulting switch: a later switch has another
/// reason, because the same function refills a sleeping deadline task.
const TURN_BEGINS_WITHIN: i64 = 100_000;

/// Limit of events before a switch that are searched for a thread that was passed over.
const MAX_EVENTS_BACK: usize = 256;

/// Switch at the start of a stretch, and the events of its CPU.
fn switch_to<'c, 'w>(
    case: &'c Case<'w>,
    stretch: &Stretch,
    current: Task,
) -> Option<(&'c [&'w Named], usize)> {
    let is = |event: &Named| {
        event.time.0 == stretch.since
            && matches!(event.what, What::Switch { next, .. } if next.pid == current.pid)
    };
    case.cpus.values().find_map(|events| {
        let from = events.partition_point(|event| event.time.0 < stretch.since);
        let near = events[from..].iter().take_while(|event| event.time.0 == stretch.since);
        near.enumerate().find(|(_, event)| is(event)).map(|(at, _)| (events.as_slice(), from + at))
    })
}

/// True if a server's timer expired on that CPU right before the switch: a deadline task's timer
/// has the same function, but then that task would run.
fn turn_begins(case: &Case<'_>, stretch: &Stretch, current: Task) -> bool {
    let Some((events, at)) = switch_to(case, stretch, current) else { return false };
    let since = events[..at].iter().rev().take(MAX_EVENTS_BACK);
    since
        .take_while(|event| !matches!(event.what, What::Switch { .. }))
        .take_while(|event| event.time.0.saturating_add(TURN_BEGINS_WITHIN) >= stretch.since)
        .any(|event| matches!(&event.what, What::TimerEntry { function, .. } if function == "dl_task_timer"))
}

/// Real-time thread that was runnable on the CPU at the switch to the current one: taken off it
/// before, and not back yet.
fn passed_over(case: &Case<'_>, stretch: &Stretch, current: Task) -> Option<FixedStr<16>> {
    let (events, at) = switch_to(case, stretch, current)?;
    let mut waiting: Vec<Task> = Vec::new();
    for event in &events[at.saturating_sub(MAX_EVENTS_BACK)..=at] {
        match event.what {
            What::Switch { prev, state, next } => {
                waiting.retain(|task| task.pid != prev.pid && task.pid != next.pid);
                if matches!(state, 0 | 256) && (0..100).contains(&prev.prio) && !prev.idle() {
                    waiting.push(prev);
                }
            }
            What::Migrate { pid, .. } => waiting.retain(|task| task.pid != pid),
            _ => {}
        }
    }
    waiting.last().map(|task| task.comm)
}

/// First release with a fair server.
const FIRST_SERVER: Option<(u32, u32)> = Some((6, 12));

/// True if the kernel has a fair server that is not disabled.
fn serves(host: &Host) -> bool {
    host.fair_server_runtime_ns.map_or_else(|| version(host) >= FIRST_SERVER, |ns| ns > 0)
}

/// True if the kernel enforces a limit on real-time threads.
fn throttles(host: &Host) -> bool {
    let classic = version(host).is_some_and(|version| Some(version) < FIRST_SERVER);
    let global = classic && host.rt_runtime_us.is_some_and(|us| us >= 0);
    global || host.cgroup_rt_runtime_us.is_some_and(|us| us >= 0)
}

/// Version of a kernel: `6.12.4-rt` as (6, 12).
fn version(host: &Host) -> Option<(u32, u32)> {
    let mut numbers = host.release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained_on, slice_lines, window};
    use super::*;

    fn host(release: &str, server: Option<u64>, runtime: Option<i64>) -> Host {
        let (fair_server_runtime_ns, rt_runtime_us) = (server, runtime);
        Host { release: release.to_owned(), fair_server_runtime_ns, rt_runtime_us, ..Host::default() }
    }

    #[test]
    fn kernels_pass_over_in_their_own_way() {
        let judged = |release, server, runtime| {
            let host = host(release, server, runtime);
            (serves(&host), throttles(&host))
        };
        assert_eq!(judged("6.12.4-rt-amd64", None, Some(950_000)), (true, false));
        assert_eq!(judged("6.1.0-30-rt", None, Some(950_000)), (false, true));
        assert_eq!(judged("6.1.0-30-rt", None, Some(-1)), (false, false));
        assert_eq!(judged("6.12.4", Some(0), Some(-1)), (false, false));
        assert_eq!(judged("6.12.4", Some(50_000_000), Some(-1)), (true, false));
        assert_eq!(judged("", None, Some(950_000)), (false, false));
    }

    /// A real-time spinner of equal priority is taken off the CPU for 50 ms, while the victim waits
    /// behind it.
    fn with(host: &Host, next: &str, victim: &str) -> Vec<String> {
        let pid = next.split('/').nth(1).unwrap();
        let events = format!(
            "-500  1 50 d  switch VICTIM S spin/60/19
             2     1 60 dh vector+ local_timer
             3     1 60 dh timer+ 1 hrtimer_wakeup
             4     1 60 dh waking VICTIM
             5     1 60 dh wakeup VICTIM
             5     1 60 dh timer- 1
             5     1 60 dh vector- local_timer
             105   1 60 d  switch spin/60/19 R {next}
             50105 1 {pid} d switch {next} R VICTIM"
        );
        let mut window = window(50_105.0, &events.replace("VICTIM", &format!("rt/50/{victim}")));
        window.victim.prio = victim.parse().unwrap();
        slice_lines(&explained_on(host, &window))[1..].to_vec()
    }

    #[test]
    fn who_passes_a_real_time_thread_over() {
        let (new, old) = (host("6.12.4", None, Some(950_000)), host("6.1.0", None, Some(950_000)));
        let free = host("6.1.0", None, Some(-1));
        let second = |host, next| with(host, next, "19").swap_remove(1);
        assert_eq!(second(&new, "fair/61/120"), "fair-server fair 50000");
        assert_eq!(second(&old, "fair/61/120"), "throttled fair 50000");
        assert_eq!(second(&old, "swapper/0/120"), "throttled swapper 50000");
        assert_eq!(second(&free, "fair/61/120"), "unexplained 50002");
        assert_eq!(second(&new, "swapper/0/120"), "unexplained 50002");
    }

    #[test]
    fn the_server_s_timer_shows_its_turn() {
        // The fair server is disabled, and the turn is the ext server's.
        let off = host("7.3.4", Some(0), Some(1_000_000));
        let of = |host: &Host, between: &str| {
            let events = format!(
                "-500  1 50 d  switch rt/50/19 S spin/60/19
                 2     1 60 dh waking rt/50/19
                 {between}
                 105   1 60 d  switch spin/60/19 R fair/61/120
                 50105 1 61 d  switch fair/61/120 R rt/50/19"
            );
            let spike = explained_on(host, &window(50_105.0, &events));
            let named = spike.slices.into_iter().find(|slice| slice.kind == SliceKind::FairServer);
            named.map_or_else(String::new, |slice| slice.evidence)
        };
        let timer = "99 1 60 dh timer+ 9 dl_task_timer\n101 1 60 dNh timer- 9";
        assert!(of(&off, timer).ends_with("(dl_task_timer)"), "{}", of(&off, timer));
        assert_eq!(of(&off, ""), "");
        assert_eq!(of(&off, &timer.replace(" 1 60", " 0 60")), "", "another CPU's");
        let task = format!(
            "{timer}\n102 1 60 d switch spin/60/19 R dl/62/-1\n103 1 62 d switch dl/62/-1 S spin/60/19"
        );
        assert_eq!(of(&off, &task), "", "a deadline task's");
        assert_eq!(of(&host("6.1.0", None, Some(-1)), timer), "");
    }

    #[test]
    fn a_thread_that_passed_another_over_before_keeps_running() {
        let of = |from: &str| {
            let events = format!(
                "-900  1 50 d  switch rt/50/19 S spin/60/49
                 -300  1 60 d  switch {from} fair/61/120
                 2     1 61 dh vector+ local_timer
                 3     1 61 dh timer+ 1 hrtimer_wakeup
                 4     1 61 dh waking rt/50/19
                 5     1 61 dh timer- 1
                 5     1 61 dh vector- local_timer
                 40105 1 61 d  switch fair/61/120 R rt/50/19"
            );
            slice_lines(&explained_on(&host("6.12.4", None, Some(950_000)), &window(40_105.0, &events)))
                .swap_remove(1)
        };
        assert_eq!(of("spin/60/49 R"), "fair-server fair 40100");
        // Another switch between them.
        assert_eq!(of("spin/60/49 R x/62/19\n-290 1 62 d switch x/62/19 S"), "fair-server fair 40100");
        let came_back =
            "spin/60/49 R x/62/19\n-290 1 62 d switch x/62/19 S spin/60/49\n-280 1 60 d switch spin/60/49 S";
        assert_eq!(of(came_back), "unexplained 40102");
        assert_eq!(of("spin/60/49 S"), "unexplained 40102");
        assert_eq!(of("spin/60/120 R"), "unexplained 40102");
    }

    #[test]
    fn others_are_no_starvation() {
        let new = host("6.12.4", None, Some(950_000));
        assert_eq!(with(&new, "other/61/19", "19")[1], "thread other 50000");
        assert_eq!(with(&new, "fair/61/120", "120")[1], "thread fair 50000");
        assert_eq!(with(&new, "sugov:0/61/-1", "19")[1], "frequency sugov:0 50000");
    }
}
