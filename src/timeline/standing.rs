//! What several CPUs that stand still have in common, in a virtual machine: a stop of all holds each of them wherever it is, and
//! ends for all at once.

use super::case::Case;
use super::doubt::is_virtual;
use super::hard;
use super::kind::Kind;
use super::silence::{Gap, ROUSED, STRAGGLING};
use super::state::{Stretch, Top};
use crate::units::Cpu;

/// Since when, in a virtual machine, a CPU stands still on a path that takes microseconds: in the timer's interrupt, or in the
/// loop of a measuring thread.
pub(super) fn stands(case: &Case<'_>, cpu: Cpu, stretch: &Stretch, gap: &Gap) -> Option<i64> {
    let bounded = match &stretch.top {
        Top::Hard(interrupt) => hard::cause(case, cpu, interrupt).kind == Kind::TimerIrq,
        Top::Thread => case.current(stretch).is_some_and(|task| task.comm.text().starts_with("onbeat/")),
        _ => false,
    };
    let long = gap.end.saturating_sub(gap.start) > ROUSED;
    (is_virtual(case.host) && bounded && long && ends_at_once(case, cpu, gap)).then_some(gap.start)
}

/// Whether the victim's CPU and that one go on together: what stopped both let both go on. An idle virtual CPU that is late by
/// itself comes when it comes, and what has the other meanwhile ends by itself.
pub(super) fn ends_at_once(case: &Case<'_>, cpu: Cpu, gap: &Gap) -> bool {
    let goes_on = |cpu: Cpu| {
        let events = case.events(cpu);
        let next = events.get(events.partition_point(|event| event.time.0 < gap.end));
        next.map_or(case.to, |event| event.time.0).saturating_sub(gap.end)
    };
    goes_on(cpu).max(goes_on(case.home())) <= STRAGGLING
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained_on, host, window};
    use super::super::silence::tests::events;
    use crate::bundle::run::Host;

    #[test]
    fn a_virtual_cpu_that_stands_still_in_its_timers_interrupt_shows_a_stop() {
        let of = |virtualization: &str, entry: &str, exit: &str| {
            let host = Host { virtualization: virtualization.to_owned(), ..host() };
            let other = format!(
                "-90 0 0 d switch a/7/120 S swapper/0/120\n-1 0 0 dh vector+ {entry}\n{exit} 0 0 dh vector- {entry}"
            );
            let slices = explained_on(&host, &window(20_010.0, &events(&other))).slices;
            (slices[0].kind.clone(), slices[0].contested)
        };
        assert_eq!(of("kvm", "local_timer", "20003"), ("irqs-off".to_owned(), true));
        for (host, entry, exit) in
            [("none", "local_timer", "20003"), ("kvm", "irq_work", "20003"), ("kvm", "local_timer", "9000")]
        {
            assert_eq!(of(host, entry, exit), ("irqs-off".to_owned(), false), "{host} {entry} {exit}");
        }
    }
}
