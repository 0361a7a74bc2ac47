//! Tests with one window per kind of slice, and one that comes close to it.

use super::fixture::{explained, explained_on, host, slice_lines, window};
use model::slice::SliceKind;

/// Timer interrupt that is on time and wakes the thread, up to its exit.
const WOKEN: &str = "
    2    1 60 dh    vector+ local_timer
    3    1 60 dh    timer+ 1 hrtimer_wakeup
    4    1 60 dh2   waking rt/50/19
    5    1 60 dNh2  wakeup rt/50/19
    6    1 60 dNh   timer- 1
    7    1 60 dNh   vector- local_timer";

fn with(before: &str, after: &str) -> String {
    format!("{before}\n{WOKEN}\n{after}")
}

#[test]
fn the_kinds_are_the_contracts() {
    let words = "irqs-off preempt-off irq timer-irq softirq timer-softirq nmi ipi stop-machine workqueue thread \
                 fair-server throttled lock-contention priority-inversion idle-exit frequency page-fault switch \
                 return-to-user own preempted blocked syscall \
                 stopped unexplained";
    assert!(SliceKind::ALL.iter().map(|kind| kind.name()).eq(words.split_whitespace()));
}

#[test]
fn a_thread_that_raised_its_own_priority_had_it() {
    let events =
        with("-500 1 50 d switch rt/50/19 S start/60/120", "20007 1 60 d switch hog/60/9 S rt/50/19");
    assert_eq!(slice_lines(&explained(20_010.0, &events))[1], "thread hog 20000");
    let lowered = with("-500 1 50 d switch rt/50/19 S hog/60/9", "20007 1 60 d switch low/60/120 S rt/50/19");
    assert_eq!(slice_lines(&explained(20_010.0, &lowered))[1], "thread hog 20000");
}

#[test]
fn thread_of_higher_priority() {
    let events = with("-500 1 50 d switch rt/50/19 S hog/60/9", "20007 1 60 d switch hog/60/9 S rt/50/19");
    let spike = explained(20_010.0, &events);
    assert_eq!(
        slice_lines(&spike),
        ["timer-irq local_timer 5", "thread hog 20000", "return-to-user 3", "unexplained 2"]
    );
    assert_eq!(spike.classes, [SliceKind::Thread]);
    assert_eq!(spike.switched_ns, Some(model::units::Nanos(super::fixture::E + 20_007_000)));
    assert_eq!((spike.slices[1].who.pid, spike.slices[1].who.prio), (60, 9));
    assert_eq!(spike.notes, [""; 0]);
}

#[test]
fn irqs_off_by_the_frame_that_let_them_in() {
    let events = "
        -500  1 50 d  switch rt/50/19 S busy/60/120
        -3    1 60 .  spin+ 9 32
        20000 1 60 dh vector+ local_timer
        20001 1 60 dh timer+ 1 hrtimer_wakeup
        20001 1 60 dh stack hrtimer_interrupt,asm_sysvec,_raw_spin_unlock_irqrestore,hold+[faults],write 2
        20002 1 60 dh waking rt/50/19
        20003 1 60 dNh timer- 1
        20004 1 60 dNh vector- local_timer
        20006 1 60 d  switch busy/60/120 P rt/50/19";
    let spike = explained(20_010.0, events);
    assert_eq!(
        slice_lines(&spike),
        [
            "irqs-off hold/busy 20000",
            "timer-irq local_timer 4",
            "switch 2",
            "return-to-user 4",
            "unexplained 0"
        ]
    );
    let slice = &spike.slices[0];
    assert_eq!((slice.who.module.as_str(), slice.who.pid), ("faults", 60));
    assert_eq!(slice.stack, ["_raw_spin_unlock_irqrestore", "hold [faults]", "write"]);
}

#[test]
fn a_late_interrupt_without_proof_stays_unexplained() {
    let events = "
        -500  1 50 d  switch rt/50/19 S busy/60/120
        20000 1 60 dh vector+ local_timer
        20001 1 60 dh timer+ 1 hrtimer_wakeup
        20001 1 60 dh stack hrtimer_interrupt,asm_sysvec,compute,write
        20002 1 60 dh waking rt/50/19
        20004 1 60 dNh vector- local_timer
        20006 1 60 d  switch busy/60/120 P rt/50/19";
    assert_eq!(
        slice_lines(&explained(20_010.0, events)),
        ["timer-irq local_timer 4", "switch 2", "return-to-user 4", "unexplained 20000"]
    );
    assert_eq!(explained(20_010.0, events).classes, [SliceKind::Unexplained]);
}

#[test]
fn what_woke_a_thread_that_was_still_at_its_last_cycle_is_not_its_timer() {
    let events = "
        -40   1 50 d  switch rt/50/19 S ktimers/1/33/98
        2     1 33 d  waking rt/50/19                    # the lock of its last cycle is free
        5     1 33 d  switch ktimers/1/33/98 P rt/50/19
        20    1 50 d  start 1 timerfd_tmrproc 0
        30    1 50 d  switch rt/50/19 S hog/60/89
        50    1 60 dh vector+ local_timer
        51    1 60 dh raise 8
        55    1 60 dh vector- local_timer
        20055 1 60 d  switch hog/60/89 S ktimers/1/33/98
        20056 1 33 s  soft+ 8
        20057 1 33 s  timer+ 1 timerfd_tmrproc
        20058 1 33 ds waking rt/50/19
        20060 1 33 ds switch ktimers/1/33/98 P rt/50/19";
    assert_eq!(
        slice_lines(&explained(20_061.0, events)),
        [
            "switch 3",
            "thread rt 15",
            "timer-irq local_timer 5",
            "thread hog 20000",
            "timer-softirq ktimers/1 1",
            "timer-softirq HRTIMER/ktimers/1 1",
            "timer-softirq HRTIMER/timerfd_tmrproc/ktimers/1 1",
            "softirq HRTIMER/timerfd_tmrproc/ktimers/1 2",
            "return-to-user 1",
            "unexplained 32"
        ]
    );
}

#[test]
fn a_thread_that_was_preempted_in_its_last_cycle_is_runnable() {
    let events = "
        -200  1 50 d  switch rt/50/19 P spin/60/9
        20000 1 60 d  switch spin/60/9 S rt/50/19
        20010 1 50 d  start 1 hrtimer_wakeup 0
        20012 1 50 dh vector+ local_timer
        20013 1 50 dh timer+ 1 hrtimer_wakeup
        20014 1 50 dh waking rt/50/19
        20015 1 50 dh timer- 1
        20016 1 50 dh vector- local_timer";
    let lines = slice_lines(&explained(20_020.0, events));
    assert_eq!(lines[..2], ["thread spin 20000", "thread rt 10"], "{lines:?}");
}

/// Slices from the waking on: `events` follow the timer's interrupt, up to `late` microseconds.
fn after(late: f64, events: &str) -> Vec<String> {
    let mut lines = slice_lines(&explained(late, &with("-500 1 50 d switch rt/50/19 S busy/60/120", events)));
    assert_eq!(lines.remove(0), "timer-irq local_timer 5");
    lines
}

#[test]
fn softirqs_by_name_and_function() {
    let events = "
        8   1 60 s  soft+ 3
        508 1 60 s  soft- 3
        508 1 60 s  soft+ 1
        510 1 60 s  wheel+ flush_cache
        610 1 60 s  wheel-
        611 1 60 s  soft- 1
        611 1 60 s  soft+ 6
        612 1 60 s  tasklet+ poll_link
        712 1 60 s  tasklet-
        713 1 60 s  soft- 6
        714 1 60 d  switch busy/60/120 P rt/50/19";
    assert_eq!(
        after(715.0, events),
        [
            "switch 1",
            "softirq NET_RX 500",
            "softirq TIMER 2",
            "softirq TIMER/flush_cache 100",
            "softirq TIMER 1",
            "softirq TASKLET 1",
            "softirq TASKLET/poll_link 100",
            "softirq TASKLET 1",
            "switch 1",
            "return-to-user 1",
            "unexplained 2"
        ]
    );
}

#[test]
fn a_softirq_keeps_no_interrupt_waiting_and_on_preempt_rt_no_thread_above_its_own() {
    let late = "
        -500 1 50 d  switch rt/50/19 S busy/60/120
        -10  1 60 s  soft+ 3
        900  1 60 dsh vector+ local_timer
        901  1 60 dsh timer+ 1 hrtimer_wakeup
        902  1 60 dsh waking rt/50/19
        903  1 60 dNsh vector- local_timer
        905  1 60 s  soft- 3
        906  1 60 d  switch busy/60/120 P rt/50/19";
    assert_eq!(slice_lines(&explained(906.0, late))[..2], ["timer-irq local_timer 3", "softirq NET_RX 2"]);
    let rt = model::run::Host { preempt: "rt".into(), ..host() };
    let on_rt = |thread: &str| {
        let events =
            "-500 1 50 d switch rt/50/19 S THREAD\n-10 1 17 s soft+ 3\n2 1 17 dsh1 vector+ local_timer
            3 1 17 dsh1 timer+ 1 hrtimer_wakeup\n4 1 17 dsh waking rt/50/19\n5 1 17 dNsh vector- local_timer
            20005 1 17 ds switch THREAD P rt/50/19";
        slice_lines(&explained_on(&rt, &window(20_005.0, &events.replace("THREAD", thread))))[1].clone()
    };
    assert_eq!(on_rt("ksoftirqd/1/17/9"), "softirq NET_RX/ksoftirqd/1 20000");
    assert_eq!(on_rt("ksoftirqd/1/17/120"), "preempt-off NET_RX/ksoftirqd/1 20000");
}

#[test]
fn a_softirq_thread_of_higher_priority_runs_softirqs() {
    let events = "
        8   1 60 d  switch busy/60/120 P ksoftirqd/1/17/9
        9   1 17 s  soft+ 6
        509 1 17 s  soft- 6
        510 1 17 d  switch ksoftirqd/1/17/9 S rt/50/19";
    assert_eq!(
        after(510.0, events),
        [
            "switch 1",
            "thread ksoftirqd/1 1",
            "softirq TASKLET/ksoftirqd/1 500",
            "thread ksoftirqd/1 1",
            "unexplained 2"
        ]
    );
}

#[test]
fn non_maskable_interrupts_are_laid_over() {
    let events = "
        8   1 60 d  switch busy/60/120 P hog/61/9
        300 1 61 d  nmi perf_event_nmi_handler 200
        510 1 61 d  switch hog/61/9 S rt/50/19";
    assert_eq!(
        after(510.0, events),
        [
            "switch 1",
            "thread hog 92",
            "nmi nmi/perf_event_nmi_handler 200",
            "thread hog 210",
            "unexplained 2"
        ]
    );
}

#[test]
fn work_is_named_by_its_function() {
    let events = "
        8    1 60 d  switch busy/60/120 P kworker/1:0/61/9
        10   1 61 .  work+ refresh+[driver]
        5010 1 61 .  work- refresh+[driver]
        5012 1 61 d  switch kworker/1:0/61/9 S rt/50/19";
    assert_eq!(
        after(5_012.0, events),
        [
            "switch 1",
            "thread kworker/1:0 2",
            "workqueue refresh/kworker/1:0 5000",
            "thread kworker/1:0 2",
            "unexplained 2"
        ]
    );
}

#[test]
fn the_stopper_stops_the_machine() {
    let events = "
        8    1 60 d  switch busy/60/120 P migration/1/16/-1
        5012 1 16 d  switch migration/1/16/-1 S rt/50/19";
    assert_eq!(after(5_012.0, events), ["switch 1", "stop-machine migration/1 5004", "unexplained 2"]);
}

#[test]
fn page_faults_before_the_clock_is_read() {
    let switch = "8 1 60 d switch busy/60/120 P rt/50/19";
    let fault = "10 1 50 . fault";
    assert_eq!(
        after(500.0, &format!("{switch}\n{fault}")),
        ["switch 1", "return-to-user 2", "page-fault rt 490", "unexplained 2"]
    );
    let sleeps = "
        12  1 50 d  switch rt/50/19 S other/70/120
        400 1 70 dh waking rt/50/19
        401 1 70 d  switch other/70/120 P rt/50/19";
    assert_eq!(after(500.0, &format!("{switch}\n{fault}\n{sleeps}"))[2], "page-fault rt 390");
    // A sleep without a fault is the thread's own, for an unknown reason.
    assert_eq!(
        after(500.0, &format!("{switch}\n{sleeps}")),
        ["switch 1", "return-to-user 4", "switch 1", "return-to-user 99", "unexplained 390"]
    );
}

#[test]
fn paths_of_bounded_work_do_not_explain_a_stop() {
    let switch = "8 1 60 d switch busy/60/120 P rt/50/19";
    assert_eq!(after(908.0, switch)[1..], ["return-to-user 900", "unexplained 2"]);
    assert_eq!(after(30_008.0, switch)[1..], ["stopped 30000", "unexplained 2"]);
    let spike = explained(30_008.0, &with("", switch));
    assert!(spike.slices[2].evidence.contains("no event came in return-to-user"), "{:?}", spike.slices);
    // Long, but not too long for work inside.
    let spike = explained(3_008.0, &with("", switch));
    assert_eq!(slice_lines(&spike)[1..], ["switch 1", "unexplained 3002"]);
    assert!(spike.notes.iter().any(|note| note.contains("return-to-user")), "{:?}", spike.notes);
    // The timer's interrupt itself.
    let events = "
        -500 1 50 d   switch rt/50/19 S busy/60/120
        0    1 60 dh  vector+ local_timer
        5000 1 60 dh  timer+ 1 hrtimer_wakeup
        5001 1 60 dh  waking rt/50/19
        5002 1 60 dNh vector- local_timer
        5002 1 60 d   switch busy/60/120 P rt/50/19";
    assert_eq!(
        slice_lines(&explained(5_002.0, events)),
        ["stopped 5000", "timer-irq local_timer 2", "unexplained 0"]
    );
}

#[test]
fn a_thread_preempted_before_it_read_the_clock_is_passed_over_like_any() {
    let switch = "8 1 60 d switch busy/60/120 P rt/50/19";
    let of = |next: &str| {
        let pid = next.split('/').nth(1).unwrap();
        let out = format!("10 1 50 d switch rt/50/19 P {next}\n900 1 {pid} d switch {next} S rt/50/19");
        after(901.0, &format!("{switch}\n{out}"))
    };
    let expected =
        |middle: &'static str| ["switch 1", "return-to-user 2", middle, "return-to-user 1", "unexplained 2"];
    assert_eq!(of("hog/70/9"), expected("thread hog 890"));
    assert_eq!(of("fair/70/120"), expected("fair-server fair 890"));
}

/// On PREEMPT_RT soft timers expire in a thread.
#[test]
fn a_soft_timer_waits_for_its_thread() {
    let events = "
        -500  1 50 d  switch rt/50/19 S hog/60/89
        2     1 60 dh vector+ local_timer
        3     1 60 dh raise 8
        4     1 60 dh waking ktimers/1/18/98
        5     1 60 dh vector- local_timer
        40005 1 60 d  switch hog/60/89 S ktimers/1/18/98
        40006 1 18 s  soft+ 8
        40007 1 18 s  timer+ 1 timerfd_tmrproc
        40008 1 18 s  waking rt/50/19
        40009 1 18 s  timer- 1
        40010 1 18 s  soft- 8
        40011 1 18 d  switch ktimers/1/18/98 P rt/50/19";
    assert_eq!(
        slice_lines(&explained(40_012.0, events)),
        [
            "timer-irq local_timer 3",
            "thread hog 40000",
            "timer-softirq ktimers/1 1",
            "timer-softirq HRTIMER/ktimers/1 1",
            "timer-softirq HRTIMER/timerfd_tmrproc/ktimers/1 1",
            "softirq HRTIMER/timerfd_tmrproc/ktimers/1 1",
            "softirq HRTIMER/ktimers/1 1",
            "switch 1",
            "return-to-user 1",
            "unexplained 2"
        ]
    );
    // A thread below ktimers cannot delay it.
    let lower = events.replace("hog/60/89", "low/60/120");
    assert_eq!(explained(40_012.0, &lower).classes, [SliceKind::Unexplained]);
}

#[test]
fn a_waking_from_another_cpu_and_a_thread_that_moves() {
    let events = "
        -500 2 60 d  switch a/1/120 R hog/60/9
        -400 1 70 d  switch rt/50/19 S swapper/0/120
        0    0 7  d2 waking rt/50/19 2
        3    2 60 dh vector+ reschedule
        4    2 60 dh vector- reschedule
        900  0 7  d  migrate 50 2 1
        901  1 0  d  switch swapper/0/120 R rt/50/19";
    let mut window = window(901.0, events);
    window.own = false;
    assert_eq!(
        slice_lines(&explained_on(&host(), &window)),
        ["thread hog 3", "ipi reschedule 1", "thread hog 896", "switch 1", "unexplained 0"]
    );
}

#[test]
fn missing_events_leave_time_unexplained_with_a_remark() {
    // The switch to the hog is missing: the running thread is unknown from the last event on.
    let missing = "
        300 1 61 d  work+ job
        510 1 61 d  switch hog/61/9 S rt/50/19";
    let before = "-500 1 50 d switch rt/50/19 S busy/60/120";
    let spike = explained(510.0, &with(before, missing));
    assert_eq!(slice_lines(&spike)[1..], ["workqueue job/hog 210", "unexplained 295"]);
    assert!(spike.notes.iter().any(|note| note.contains("missing")), "{:?}", spike.notes);
    let mut lossy = window(10.0, &with(before, "8 1 60 d switch busy/60/120 P rt/50/19"));
    (lossy.events_lost, lossy.left_out) = (12, 5);
    assert_eq!(explained_on(&host(), &lossy).notes.len(), 2);
    let nothing = explained(1_000.0, "");
    assert_eq!((nothing.classes.len(), nothing.unexplained_ns.0), (1, 1_000_000));
    assert_eq!(nothing.notes.len(), 3);
}

#[test]
fn a_thread_that_had_not_gone_to_sleep_was_late_by_itself() {
    let events = "-500 1 60 d switch busy/60/120 S rt/50/19\n-100 1 50 . fault";
    assert_eq!(slice_lines(&explained(700.0, events)), ["thread rt 700", "unexplained 0"]);
}

#[test]
fn early_and_punctual_wake_ups_have_no_slices() {
    for late in [0.0, -5.0] {
        let spike = explained(late, WOKEN);
        assert_eq!((spike.slices.len(), spike.unexplained_ns), (0, spike.latency_ns));
    }
}

#[test]
fn a_thread_whose_timer_was_due_before_it_was_started_did_not_sleep() {
    // Preempted on its way into the sleep, it starts its timer when that time has passed.
    let spike = explained(
        31.0,
        "-40 1 0  d  switch swapper/1/0/120 R rt/50/19
         -10 1 50 d  switch rt/50/19 P hog/60/9
         20  1 60 d  switch hog/60/9 S rt/50/19
         26  1 50 d  start 1 hrtimer_wakeup 0
         27  1 50 d  over 1",
    );
    assert_eq!(slice_lines(&spike), ["thread hog 20", "thread rt 7", "return-to-user 4", "unexplained 0"]);
    assert!(spike.notes.iter().any(|note| note.contains("did not sleep")), "{:?}", spike.notes);
    assert!(spike.notes.iter().all(|note| !note.contains("no event shows")), "{:?}", spike.notes);
}
