//! Hard interrupts: of the timer, of a device, or of another CPU.
//!
//! Sources: arch/x86/include/asm/trace/irq_vectors.h, arch/riscv/kernel/smp.c, kernel/smp.c,
//! include/trace/events/{irq,ipi,csd,timer}.h.

use super::case::{Case, Cause};
use super::state::Hard;
use super::tasks::runs_softirqs;
use crate::event::{Named, Vector, What, is_cpu_timer, is_riscv_ipi};
use crate::kernel_functions::{is_core_timer, named};
use model::run::Who;
use model::slice::SliceKind;
use model::units::Cpu;

/// Longest time between an interrupt and its sending, in ns.
const MAX_SENT_BEFORE_NS: i64 = 1_000_000_000;
/// Limit of sent interrupts that are searched for it.
const MAX_EVENTS_BACK: usize = 1_024;

/// Evidence for a handler: irq_handler_entry has the name under which it was requested, not its
/// function (include/trace/events/irq.h).
const HANDLER: &str = "; no event has its handler's function";

/// Evidence for irq_work, whose items have no events in the kernel (kernel/irq_work.c).
const IRQ_WORK: &str = "; no event shows the called function or its origin";

/// Cause of a hard interrupt.
pub(super) fn cause(case: &Case<'_>, cpu: Cpu, hard: &Hard<'_>) -> Cause {
    if let Some((function, entry)) = hard.call {
        return call(case, cpu, function, entry);
    }
    if let Some(function) = hard.timer {
        if !is_core_timer(function) {
            let who = named(Who { irq: "local_timer".to_owned(), ..Who::default() }, function);
            return Cause::new(SliceKind::Irq, who, "a timer's function, from its entry to its exit");
        }
    }
    let name = hard.handler.map(|name| name.text().into_owned()).unwrap_or_default();
    let timer = hard.vector == Some(Vector::LocalTimer) || hard.timer.is_some() || is_cpu_timer(&name);
    match (hard.vector, hard.reason) {
        _ if timer => {
            let irq = if name.is_empty() { "local_timer".to_owned() } else { name };
            Cause::new(SliceKind::TimerIrq, Who { irq, ..Who::default() }, "the timer's interrupt")
        }
        (Some(vector), _) if vector.is_ipi() && name.is_empty() => ipi(case, cpu, vector.name(), hard.entry),
        (None, Some(reason)) => ipi(case, cpu, reason, hard.entry),
        (None, None) if is_riscv_ipi(&name) => ipi(case, cpu, &name, hard.entry),
        (vector, _) => {
            let irq = if name.is_empty() { vector.map_or("", Vector::name).to_owned() } else { name };
            let unknown = match hard.handler {
                Some(_) => HANDLER,
                None if vector == Some(Vector::IrqWork) => IRQ_WORK,
                None => "",
            };
            let evidence = format!("the interrupt {irq}, from its entry to its exit{unknown}");
            Cause::new(SliceKind::Irq, Who { irq, ..Who::default() }, evidence)
        }
    }
}

/// Cause of a function that another CPU requested.
pub(super) fn call(case: &Case<'_>, cpu: Cpu, function: &str, entry: i64) -> Cause {
    let who = Who { irq: "call_function".to_owned(), ..sender(case, cpu, entry, Some(function)) };
    let from = who.from_cpu.map_or_else(|| "a CPU that is not known".to_owned(), |cpu| format!("CPU {cpu}"));
    Cause::new(SliceKind::Ipi, named(who, function), format!("{function} ran here for {from}"))
}

fn ipi(case: &Case<'_>, cpu: Cpu, name: &str, entry: i64) -> Cause {
    let who = Who { irq: name.to_owned(), ..sender(case, cpu, entry, None) };
    Cause::new(SliceKind::Ipi, who, format!("the interrupt {name}, from its entry to its exit"))
}

/// Sender of the last interrupt to the CPU before a time: with a function, the code that requested
/// that function. If a handler sent it, as the tick does to balance load, the interrupted thread is
/// not the sender: only the CPU is known.
fn sender(case: &Case<'_>, cpu: Cpu, before: i64, function: Option<&str>) -> Who {
    let sent = |event: &Named| match &event.what {
        What::CallQueue { target, function: queued, .. } => {
            *target == cpu && function.is_none_or(|function| function == queued)
        }
        What::IpiSend { targets, callback, .. } => {
            targets.contains(cpu) && function.is_none_or(|function| function == callback)
        }
        _ => false,
    };
    let end = case.sent.partition_point(|event| event.time.0 <= before);
    let mut near = case.sent[..end].iter().rev().take(MAX_EVENTS_BACK).filter(|event| event.cpu != cpu);
    let last = near.find(|event| sent(event) && before.saturating_sub(event.time.0) <= MAX_SENT_BEFORE_NS);
    last.map_or_else(Who::default, |event| {
        let own = || case.tasks.at(event.pid, event.time.0).is_some_and(|task| runs_softirqs(&task));
        let handler = event.context.hard_irq() || event.context.soft_irq() && !own();
        let who = if handler { Who::default() } else { case.tasks.who(event.pid, event.time.0) };
        Who { from_cpu: Some(event.cpu), ..who }
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{explained, slice_lines};

    const AFTER: &str = "
        40 1 60 dh   vector+ local_timer
        41 1 60 dh   timer+ 1 hrtimer_wakeup
        42 1 60 dh   waking rt/50/19
        43 1 60 dNh  vector- local_timer
        44 1 60 d    switch busy/60/120 P rt/50/19";

    fn first(before: &str) -> String {
        let events = format!("-500 1 50 d switch rt/50/19 S busy/60/120\n{before}\n{AFTER}");
        slice_lines(&explained(45.0, &events)).swap_remove(0)
    }

    #[test]
    fn a_device_by_its_handler_and_a_vector_by_its_name() {
        assert_eq!(first("-5 1 60 dh irq+ 24 eth0\n39 1 60 dh irq- 24"), "irq eth0 39");
        assert_eq!(first("-5 1 60 dh vector+ irq_work\n39 1 60 dh vector- irq_work"), "irq irq_work 39");
    }

    #[test]
    fn a_timer_function_that_is_not_of_the_kernel_core() {
        let timer = |function: &str| {
            first(&format!(
                "-9 1 60 dh vector+ local_timer\n-5 1 60 dh timer+ 3 {function}\n38 1 60 dh timer- 3\n38 1 60 dh vector- local_timer"
            ))
        };
        assert_eq!(timer("poll_sensor+[sensor]"), "irq local_timer/poll_sensor 38");
        assert_eq!(timer("tick_nohz_handler"), "timer-irq local_timer 38");
    }

    #[test]
    fn another_cpus_call_has_its_sender() {
        let call = |queue: &str| {
            format!(
                "-900 0 7 d switch a/1/120 R asker/7/120\n{queue}\n-6 1 60 dh vector+ call_function_single\n\
                 -6 1 60 dh call+ flush_all\n38 1 60 dh call- flush_all\n38 1 60 dh vector- call_function_single"
            )
        };
        let of = |before: &str| {
            let events = format!("-950 1 50 d switch rt/50/19 S busy/60/120\n{before}\n{AFTER}");
            explained(45.0, &events).slices.swap_remove(0)
        };
        let known = of(&call("-8 0 7 . queue 1 asks flush_all"));
        assert_eq!((known.kind.as_str(), known.who.function.as_str()), ("ipi", "flush_all"));
        assert_eq!((known.who.comm.as_str(), known.who.from_cpu), ("asker", Some(model::units::Cpu(0))));
        // The tick sent it, or a softirq after an interrupt.
        for context in ["dh", "ds"] {
            let by = of(&call(&format!("-8 0 7 {context} queue 1 asks flush_all")));
            assert_eq!(
                (by.who.comm.as_str(), by.who.from_cpu),
                ("", Some(model::units::Cpu(0))),
                "{context}"
            );
        }
        // Another function, for another CPU, or later: not its sender.
        for other in [
            "-8 0 7 . queue 1 asks other",
            "-8 0 7 . queue 2 asks flush_all",
            "-1 0 7 . queue 1 asks flush_all",
        ] {
            assert_eq!(of(&call(other)).who.from_cpu, None, "{other}");
        }
    }

    #[test]
    fn without_vectors_handlers_and_reasons_decide() {
        let events = "
            -500 1 50 d  switch rt/50/19 S busy/60/120
            -1  1 60 dh  irq+ 2 IPI
            -1  1 60 dh  ipi+ Rescheduling+interrupts
            19  1 60 dh  ipi- Rescheduling+interrupts
            20  1 60 dh  irq- 2
            20  1 60 dh  irq+ 11 arch_timer
            20  1 60 dh  timer+ 1 hrtimer_wakeup
            22  1 60 dh  waking rt/50/19
            23  1 60 dNh timer- 1
            24  1 60 dNh irq- 11
            25  1 60 d   switch busy/60/120 P rt/50/19";
        assert_eq!(
            slice_lines(&explained(25.0, events)),
            [
                "ipi Rescheduling interrupts 19",
                "irq IPI 1",
                "timer-irq arch_timer 4",
                "switch 1",
                "unexplained 0"
            ]
        );
        let arm = events.replace("arch_timer", "twd");
        assert_eq!(slice_lines(&explained(25.0, &arm))[2], "timer-irq twd 4");
        // RISC-V has a handler for each kind, and its own timer.
        let riscv = events.replace("2 IPI", "2 Rescheduling+interrupts").replace("arch_timer", "riscv-timer");
        let riscv = riscv.lines().filter(|line| !line.contains("ipi")).collect::<Vec<_>>().join("\n");
        assert_eq!(
            slice_lines(&explained(25.0, &riscv)),
            ["ipi Rescheduling interrupts 20", "timer-irq riscv-timer 4", "switch 1", "unexplained 0"]
        );
    }
}
