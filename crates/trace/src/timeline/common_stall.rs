//! Common stalls of CPUs in a virtual machine: a stop of all CPUs halts each of them anywhere, and
//! ends for all at the same time.

use super::case::Case;
use super::gap::{Gap, MAX_LATE_INTERRUPT_NS, MAX_LATE_VCPU_NS};
use super::hard_irq;
use super::state::{RunningContext, Stretch};
use super::virtual_machine::is_virtual;
use crate::event::What;
use model::slice::SliceKind;
use model::units::Cpu;

/// Start of a virtual CPU's stall in work that usually takes microseconds: its interrupt, a
/// softirq, the exit from idle, or the loop of a measuring thread. Not in a function requested by
/// another CPU, which may wait for that one.
pub(super) fn stands(case: &Case<'_>, cpu: Cpu, stretch: &Stretch, gap: &Gap) -> Option<i64> {
    let short = match &stretch.top {
        RunningContext::Hard(interrupt) => {
            matches!(hard_irq::cause(case, cpu, interrupt).kind, SliceKind::TimerIrq | SliceKind::Irq)
        }
        RunningContext::Soft { .. } => true,
        RunningContext::Thread if stretch.pid == Some(0) => leaves_idle(case, cpu, stretch.start),
        RunningContext::Thread => {
            case.current(stretch).is_some_and(|task| task.comm.text().starts_with("onbeat/"))
        }
        _ => false,
    };
    let long = gap.end.saturating_sub(gap.start) > MAX_LATE_VCPU_NS;
    (is_virtual(case.host) && short && long && ends_for_all(case, cpu, gap)).then_some(gap.start)
}

/// True if the CPU's last event was the end of its idle state.
fn leaves_idle(case: &Case<'_>, cpu: Cpu, time: i64) -> bool {
    let events = case.events(cpu);
    let last = events[..events.partition_point(|event| event.time.0 <= time)].last();
    last.is_some_and(|event| matches!(event.what, What::Idle { state: None }))
}

/// True if the victim's CPU and another one resume together, as after a common stop. An idle
/// virtual CPU that is late by itself resumes at any time, and other work on the victim's CPU ends
/// independently.
pub(super) fn ends_for_all(case: &Case<'_>, cpu: Cpu, gap: &Gap) -> bool {
    let goes_on = |cpu: Cpu| {
        let events = case.events(cpu);
        let next = events.get(events.partition_point(|event| event.time.0 < gap.end));
        next.map_or(case.to, |event| event.time.0).saturating_sub(gap.end)
    };
    goes_on(cpu).max(goes_on(case.home())) <= MAX_LATE_INTERRUPT_NS
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained_on, host, window};
    use super::super::machine_stall::tests::events;
    use model::run::Host;
    use model::slice::SliceKind;

    #[test]
    fn a_virtual_cpu_stalled_in_something_short_shows_a_stop() {
        let of = |virtualization: &str, (entry, exit): (&str, &str), until: u32| {
            let host = Host { virtualization: virtualization.to_owned(), ..host() };
            let other =
                format!("-90 0 0 d switch a/7/120 S swapper/0/120\n-1 0 0 {entry}\n{until} 0 0 {exit}");
            let slices = explained_on(&host, &window(20_010.0, &events(&other))).slices;
            assert_eq!(slices[0].kind, SliceKind::IrqsOff);
            slices[0].contested
        };
        let timer = ("dh vector+ local_timer", "dh vector- local_timer");
        let call = ("dh vector+ call_function_single", "dh vector- call_function_single");
        let (soft, leaves, idles) =
            (("s soft+ 7", "s soft- 7"), ("d idle -", "d idle 1"), ("d idle 1", "d idle -"));
        for short in [timer, soft, leaves] {
            assert!(of("kvm", short, 20_003), "{short:?}");
            assert!(!of("none", short, 20_003) && !of("kvm", short, 9_000), "{short:?}");
        }
        assert!(!of("kvm", call, 20_003) && !of("kvm", idles, 20_003));
    }
}
