//! Hard interrupts: the timer's, a device's, another CPU's.
//!
//! Sources: arch/x86/include/asm/trace/irq_vectors.h, kernel/smp.c, include/trace/events/{irq,ipi,csd,timer}.h.

use super::case::{Case, Cause};
use super::frames::{is_core_timer, named};
use super::kind::Kind;
use super::state::Hard;
use crate::bundle::run::Who;
use crate::trace::event::{Named, Vector, What};
use crate::units::Cpu;

/// How far back the sender of an interrupt is looked for.
const SENT: i64 = 1_000_000_000;
/// And among how many events of a CPU.
const FAR: usize = 16_384;

/// Whose time a hard interrupt is.
pub(super) fn cause(case: &Case<'_>, cpu: Cpu, hard: &Hard<'_>) -> Cause {
    if let Some((function, entry)) = hard.call {
        return call(case, cpu, function, entry);
    }
    if let Some(function) = hard.timer {
        if !is_core_timer(function) {
            let who = named(Who { irq: "local_timer".to_owned(), ..Who::default() }, function);
            return Cause::new(Kind::Irq, who, "a timer's function, from its entry to its exit");
        }
    }
    let name = hard.handler.map(|name| name.text().into_owned()).unwrap_or_default();
    let timer = hard.vector == Some(Vector::LocalTimer) || hard.timer.is_some() || name == "arch_timer";
    match (hard.vector, hard.reason) {
        _ if timer => {
            let irq = if name.is_empty() { "local_timer".to_owned() } else { name };
            Cause::new(Kind::TimerIrq, Who { irq, ..Who::default() }, "the timer's interrupt")
        }
        (Some(vector), _) if vector.is_ipi() && name.is_empty() => ipi(case, cpu, vector.name(), hard.entry),
        (None, Some(reason)) if name.is_empty() => ipi(case, cpu, reason, hard.entry),
        (vector, _) => {
            let irq = if name.is_empty() { vector.map_or("", Vector::name).to_owned() } else { name };
            let evidence = format!("the interrupt {irq}, from its entry to its exit");
            Cause::new(Kind::Irq, Who { irq, ..Who::default() }, evidence)
        }
    }
}

/// A function that another CPU asked for.
pub(super) fn call(case: &Case<'_>, cpu: Cpu, function: &str, entry: i64) -> Cause {
    let who = Who { irq: "call_function".to_owned(), ..sender(case, cpu, entry, Some(function)) };
    let from = who.from_cpu.map_or_else(|| "a CPU that is not known".to_owned(), |cpu| format!("CPU {cpu}"));
    Cause::new(Kind::Ipi, named(who, function), format!("{function} ran here for {from}"))
}

fn ipi(case: &Case<'_>, cpu: Cpu, name: &str, entry: i64) -> Cause {
    let who = Who { irq: name.to_owned(), ..sender(case, cpu, entry, None) };
    Cause::new(Kind::Ipi, who, format!("the interrupt {name}, from its entry to its exit"))
}

/// Who sent the last interrupt to the CPU before the time: with a function, whoever asked for that function.
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
    let mut last: Option<&Named> = None;
    for (_, events) in case.cpus.iter().filter(|&(&other, _)| other != cpu) {
        let end = events.partition_point(|event| event.time.0 <= before);
        let near = |event: &&&Named| before.saturating_sub(event.time.0) <= SENT;
        let found = events[..end].iter().rev().take(FAR).take_while(near).find(|event| sent(event));
        last = found.copied().into_iter().chain(last).max_by_key(|event| event.time);
    }
    last.map_or_else(Who::default, |event| {
        let who = case.tasks.who(event.pid, event.time.0);
        Who { from_cpu: Some(event.cpu), ..who }
    })
}
