//! One window per kind of slice, and one that comes close to it.

use super::fixture::{explained, told, window};
use super::kind::Kind;

/// A timer's interrupt that comes in time and wakes the thread, up to its exit.
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
    use crate::rules::Slice;
    let theirs = [
        Slice::IrqsOff,
        Slice::PreemptOff,
        Slice::Irq,
        Slice::TimerIrq,
        Slice::Softirq,
        Slice::TimerSoftirq,
        Slice::Nmi,
        Slice::Ipi,
        Slice::StopMachine,
        Slice::Workqueue,
        Slice::Thread,
        Slice::FairServer,
        Slice::Throttled,
        Slice::LockContention,
        Slice::PriorityInversion,
        Slice::IdleExit,
        Slice::Frequency,
        Slice::PageFault,
        Slice::Switch,
        Slice::ReturnToUser,
    ];
    assert_eq!(Kind::ALL.map(|kind| kind.name().to_owned()), theirs.map(Slice::name));
}

#[test]
fn thread_of_higher_priority() {
    let events = with("-500 1 50 d switch rt/50/19 S hog/60/9", "20007 1 60 d switch hog/60/9 S rt/50/19");
    let spike = explained(20_010.0, &events);
    assert_eq!(
        told(&spike),
        ["timer-irq local_timer 5", "thread hog 20000", "return-to-user 3", "unexplained 2"]
    );
    assert_eq!(spike.classes, ["thread"]);
    assert_eq!(spike.switched_ns, Some(crate::units::Nanos(super::fixture::E + 20_007_000)));
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
        told(&spike),
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
        told(&explained(20_010.0, events)),
        ["timer-irq local_timer 4", "switch 2", "return-to-user 4", "unexplained 20000"]
    );
    assert_eq!(explained(20_010.0, events).classes, ["unexplained"]);
    assert!(window(1.0, events).events.len() == 7);
}
