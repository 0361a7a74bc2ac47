//! From a window's events to the culprit: the timeline and the rules use the same names.

use super::context::RunContext;
use super::tally::rank_all;
use model::run::Host;
use trace::timeline::fixture::{explained_on, host, window};

/// The timer's interrupt and the wake-up after it, from 40 us on.
const WAKES: &str = "
    40 1 60 dh   vector+ local_timer
    41 1 60 dh   timer+ 1 hrtimer_wakeup
    42 1 60 dh   waking rt/50/19
    43 1 60 dNh  vector- local_timer
    44 1 60 d    switch busy/60/120 P rt/50/19";

/// IDs of the rules that match slices of the window's spike, those with most time first.
fn named(host: &Host, late: f64, events: &str) -> Vec<String> {
    let mut spikes = [explained_on(host, &window(late, events))];
    let found = rank_all(&mut spikes, &RunContext::of_machine(host));
    found.culprits.into_iter().filter_map(|culprit| culprit.rule).collect()
}

fn before_the_timer(events: &str) -> Vec<String> {
    named(&host(), 45.0, &format!("-500 1 50 d switch rt/50/19 S busy/60/120\n{events}\n{WAKES}"))
}

#[test]
fn what_keeps_the_timer_from_coming_is_named() {
    let call = |function: &str| {
        before_the_timer(&format!(
            "-8 0 7 . queue 1 asks {function}\n-6 1 60 dh vector+ call_function\n-6 1 60 dh call+ \
             {function}\n38 1 60 dh call- {function}\n38 1 60 dh vector- call_function"
        ))
    };
    assert_eq!(call("do_sync_core"), ["code-patching"]);
    assert_eq!(call("flush_tlb_func"), ["tlb-flush"]);
    assert_eq!(call("long_call"), ["remote-call"]);
    assert_eq!(before_the_timer("-5 1 60 dh irq+ 24 eth0\n39 1 60 dh irq- 24"), ["device-interrupt"]);
    assert_eq!(
        before_the_timer("-5 1 60 dh vector+ thermal_apic\n39 1 60 dh vector- thermal_apic"),
        ["thermal-interrupt"]
    );
    let work = before_the_timer("-5 1 60 dh vector+ irq_work\n39 1 60 dh vector- irq_work");
    assert_eq!(work, [""; 0], "an interrupt that no device sends");
}

#[test]
fn timers_and_softirqs_are_distinguished() {
    let timer = |function: &str| {
        before_the_timer(&format!(
            "-9 1 60 dh vector+ local_timer\n-5 1 60 dh timer+ 3 {function}\n38 1 60 dh timer- 3\n\
             38 1 60 dh vector- local_timer"
        ))
    };
    assert_eq!(timer("poll_sensor"), ["timer-function"]);
    assert_eq!(timer("tick_nohz_handler"), [""; 0]);
    let softirq = |vec: u8, inside: &str| {
        named(
            &host(),
            950.0,
            &format!(
                "-500 1 50 d switch rt/50/19 S busy/60/120\n1 1 60 dh vector+ local_timer\n2 1 60 \
                 dh timer+ 1 hrtimer_wakeup\n3 1 60 dh waking rt/50/19\n4 1 60 dNh timer- 1\n4 1 \
                 60 dNh vector- local_timer\n5 1 60 Ns soft+ {vec}\n{inside}\n940 1 60 Ns soft- \
                 {vec}\n941 1 60 d switch busy/60/120 P rt/50/19"
            ),
        )
    };
    assert_eq!(softirq(3, ""), ["network-softirq"]);
    assert_eq!(softirq(9, ""), ["rcu-softirq"]);
    assert_eq!(softirq(4, ""), ["softirq-work"]);
    let polled = softirq(1, "6 1 60 Ns wheel+ mce_timer_fn\n939 1 60 Ns wheel-");
    assert_eq!(polled.first().map(String::as_str), Some("machine-check-poll"), "{polled:?}");
}

#[test]
fn threads_are_named_by_their_priorities() {
    let ran = |thread: &str| {
        named(
            &host(),
            950.0,
            &format!(
                "-500 1 50 d switch rt/50/19 S swapper/0/120\n1 1 0 dh vector+ local_timer\n2 1 0 \
                 dh timer+ 1 hrtimer_wakeup\n3 1 0 dh waking rt/50/19\n3 1 0 dh waking {thread}\n\
                 4 1 0 dNh timer- 1\n4 1 0 dNh vector- local_timer\n5 1 0 d switch swapper/0/120 \
                 R {thread}\n940 1 70 d switch {thread} S rt/50/19"
            ),
        )
    };
    assert_eq!(ran("hog/70/9"), ["realtime-thread"]);
    assert_eq!(ran("irq/24-eth0/70/9"), ["irq-thread"]);
    assert_eq!(ran("rcu_preempt/70/9"), ["rcu-thread"]);
    assert_eq!(ran("migration/1/70/0").first().map(String::as_str), Some("cpu-stopper"));
    // A fair thread in its place: the kernel's fair server, if it has one.
    assert_eq!(ran("hog/70/120"), ["fair-server-turn"]);
    assert!(!ran("hog/70/30").contains(&"realtime-thread".to_owned()));
}

#[test]
fn stacks_distinguish_known_sections_from_others() {
    let section = |frames: &str| {
        named(
            &host(),
            20_004.0,
            &format!(
                "-900 1 50 d switch rt/50/19 S busy/60/120\n-500 1 60 . waking other/61/120\n\
                 20000 1 60 dh vector+ local_timer\n20001 1 60 dh timer+ 1 hrtimer_wakeup\n20001 \
                 1 60 dh stack hrtimer_interrupt,asm_sysvec,{frames} 2\n20002 1 60 dh waking \
                 rt/50/19\n20003 1 60 dNh vector- local_timer\n20004 1 60 d switch busy/60/120 P \
                 rt/50/19"
            ),
        )
    };
    assert_eq!(section("_raw_spin_unlock_irqrestore,hold+[faults],write"), ["irqs-off-section"]);
    assert_eq!(section("__up_console_sem,console_unlock,vprintk_emit,write"), ["console-output"]);
    assert_eq!(section("clk_set_rate,od_dbs_update,dbs_work_handler"), ["frequency-change"]);
    assert_eq!(section("_raw_spin_unlock_irqrestore,count_partial,get_slabinfo"), ["slab-statistics"]);
}
