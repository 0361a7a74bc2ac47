//! Unhandled interrupts: polling of all handlers for their source.

use super::sources::{PARAMETERS, SPURIOUS_C};
use super::unsettable;
use crate::change::{Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::kbool::kint;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "irq-polling",
    title: "polling of interrupt handlers",
    description: "With irqfixup an unhandled interrupt is passed to the handlers of all other interrupts; \
                  with irqpoll timer interrupts do this as well. Both are for machines with broken interrupt \
                  routing, and for crash kernels.",
    rationale: "handlers of all devices run one after the other, with interrupts off, although their devices \
                did not interrupt",
    detection: "irqpoll, irqfixup and spurious.irqfixup= on the command line, and the present value of \
                the parameter. PREEMPT_RT ignores the words.",
    side_effects: "A device with misrouted interrupts stops working: the kernel's log then names the \
                   interrupt that was not handled; another driver, slot, or firmware may help.",
    wanted: "not given",
    fix: || Change::cmdline_remove("irqpoll").into(),
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: command line, irqpoll and irqfixup", url: PARAMETERS },
        Source { title: "kernel source: kernel/irq/spurious.c, try_misrouted_irq()", url: SPURIOUS_C },
    ],
    cures: &[SliceKind::Irq, SliceKind::IrqsOff],
    reads: &[NOW],
    facts: &["/proc/cmdline", "/proc/sys/kernel/version"],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC
                CONFIG_PREEMPT_RT=n
                cmdline + irqpoll",
        silent: "cmdline - irqpoll",
        unknown: "/proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

/// 1 as with irqfixup, 2 as with irqpoll.
const NOW: &str = "/sys/module/spurious/parameters/irqfixup";

/// Words that request it; the last is the file's parameter, which PREEMPT_RT does accept.
const WORDS: [&str; 3] = ["irqpoll", "irqfixup", "spurious.irqfixup"];

fn judge(machine: &MachineView) -> Judged {
    // Value in effect; older captures lack it, and the words decide alone.
    let now = machine.number_if_present(NOW).ok().flatten();
    let cmdline = machine.cmdline_or_built_in()?;
    let given: Vec<&str> = WORDS.into_iter().filter(|word| cmdline.has(word)).collect();
    let ignored = machine.facts().realtime == Some(true);
    let asked = given.iter().filter_map(|word| match *word {
        "irqpoll" if !ignored => Some(2),
        "irqfixup" if !ignored => Some(1),
        "spurious.irqfixup" => cmdline.values(word).filter_map(kint).next_back().map(i64::from),
        _ => None,
    });
    let mode = now.unwrap_or_else(|| asked.max().unwrap_or(0));
    let words = given.join(" and ");
    if mode <= 0 {
        machine.cmdline()?;
        return Ok(Judgement::pass(match (words.is_empty(), ignored) {
            (true, _) => "not given".to_owned(),
            (false, true) => format!("{words}, which PREEMPT_RT ignores"),
            (false, false) => format!("{words}, off now"),
        }));
    }
    let severity = if mode == 1 { Severity::Low } else { Severity::Medium };
    if given.is_empty() {
        let value = format!("{mode}, set on the running kernel");
        return Ok(Judgement::fail(value).severity(severity).fix(Change::write(NOW, 0)));
    }
    let off = Remedy::all(given.iter().map(|word| Remedy::from(Change::cmdline_remove(*word))));
    Ok(Judgement::fail(words).severity(severity).fix(off))
}

#[cfg(test)]
mod tests {
    use super::{KNOB, NOW};
    use crate::fixture::check;

    const OTHER: &str = "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\nCONFIG_PREEMPT_RT=n\n\
                         /sys/kernel/realtime absent";

    #[test]
    fn the_words_count_where_the_kernel_heeds_them() {
        check(&KNOB, "", "pass not given");
        check(&KNOB, "cmdline + irqpoll", "pass irqpoll, which PREEMPT_RT ignores");
        check(&KNOB, &format!("{OTHER}\ncmdline + irqpoll"), "fail medium irqpoll");
        check(&KNOB, &format!("{OTHER}\ncmdline + irqfixup"), "fail low irqfixup");
        let both = format!("{OTHER}\ncmdline + irqpoll\ncmdline + irqfixup");
        check(&KNOB, &both, "fail medium irqpoll and irqfixup");
        for value in ["2", "0x2", "2\ncmdline + spurious.irqfixup=on"] {
            let given = format!("cmdline + spurious.irqfixup={value}");
            check(&KNOB, &given, "fail medium spurious.irqfixup");
        }
    }

    #[test]
    fn what_the_kernel_goes_by_decides() {
        check(&KNOB, &format!("{OTHER}\ncmdline + irqpoll\n{NOW}: 0"), "pass irqpoll, off now");
        check(&KNOB, &format!("{OTHER}\n{NOW}: 2"), "fail medium 2, set on the running kernel");
        check(&KNOB, &format!("{OTHER}\n{NOW}: 0"), "pass not given");
    }
}
