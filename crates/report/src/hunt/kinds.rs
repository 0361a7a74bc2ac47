//! The kinds of slices: what each is in a few words, and the colour it has in every picture.
//!
//! There are more kinds than distinguishable colours. Kinds of a family share one and differ in its
//! strength.

use crate::plot::theme::Theme;

/// What no event accounts for.
pub const UNEXPLAINED: &str = model::slice::SliceKind::Unexplained.name();

/// How a kind is drawn and named.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KindStyle {
    /// The value in `run.json`.
    pub name: &'static str,
    /// What it is, in a few words.
    pub words: &'static str,
    /// The index of the theme's line with its colour.
    colour: usize,
    /// How strong the colour is, 0 to 1.
    pub strength: f64,
}

/// Colours of the families: another thread, hard interrupts, the way itself, other CPUs, power,
/// softirqs, waiting for another, what keeps the CPU from reacting.
const ALL: &[KindStyle] = &[
    kind("irqs-off", "interrupts were off", 7, 1.0),
    kind("preempt-off", "a thread could not be preempted", 7, 0.5),
    kind("irq", "a device's interrupt", 1, 1.0),
    kind("timer-irq", "the timer interrupt", 1, 0.6),
    kind("nmi", "a non-maskable interrupt", 1, 0.3),
    kind("softirq", "a soft interrupt", 5, 1.0),
    kind("timer-softirq", "the timer's soft interrupt", 5, 0.5),
    kind("ipi", "an interrupt from another CPU", 3, 1.0),
    kind("stop-machine", "all CPUs were stopped", 3, 0.5),
    kind("thread", "another thread ran", 0, 1.0),
    kind("fair-server", "the fair server ran ordinary threads", 0, 0.65),
    kind("throttled", "real-time throttling", 0, 0.4),
    kind("workqueue", "a work item", 0, 0.25),
    kind("lock-contention", "waited for a lock", 6, 0.8),
    kind("priority-inversion", "waited for a lower thread", 6, 0.5),
    kind("page-fault", "a page fault", 6, 0.25),
    kind("idle-exit", "the CPU left idle", 4, 1.0),
    kind("frequency", "the clock frequency changed", 4, 0.5),
    kind("switch", "the switch to the thread", 2, 1.0),
    kind("return-to-user", "the return to user space", 2, 0.5),
    kind("own", "the followed thread ran itself", 2, 0.25),
    kind("preempted", "another thread took the CPU from the followed one", 0, 0.85),
    kind("blocked", "slept before its cycle was done", 6, 1.0),
    kind("syscall", "in a system call", 2, 0.75),
    kind(UNEXPLAINED, "no event accounts for it", 6, 0.12),
];

const fn kind(name: &'static str, words: &'static str, colour: usize, strength: f64) -> KindStyle {
    KindStyle { name, words, colour, strength }
}

/// The kind of a name; one that is not known is drawn as what is unexplained.
pub fn of(name: &str) -> KindStyle {
    ALL.iter().copied().find(|kind| kind.name == name).unwrap_or(ALL[ALL.len() - 1])
}

/// The place of a kind in legends.
pub fn order(name: &str) -> usize {
    ALL.iter().position(|kind| kind.name == name).unwrap_or(ALL.len())
}

impl KindStyle {
    pub fn colour(&self, theme: &Theme) -> &'static str {
        if self.name == UNEXPLAINED { theme.muted } else { theme.lines[self.colour] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::slice::SliceKind;

    #[test]
    fn every_kind_of_slices_is_known_by_its_name() {
        for slice in [
            SliceKind::IrqsOff,
            SliceKind::TimerSoftirq,
            SliceKind::StopMachine,
            SliceKind::ReturnToUser,
            SliceKind::Unexplained,
        ] {
            assert_eq!(of(slice.name()).name, slice.name());
        }
        assert_eq!(ALL.len(), SliceKind::Unexplained as usize + 1);
        assert_eq!(of("novel").name, UNEXPLAINED);
    }

    #[test]
    fn no_two_kinds_look_the_same() {
        for (at, one) in ALL.iter().enumerate() {
            for other in &ALL[at + 1..] {
                let alike = one.colour == other.colour && (one.strength - other.strength).abs() < 0.1;
                assert!(!alike || one.name == UNEXPLAINED || other.name == UNEXPLAINED, "{one:?} {other:?}");
            }
        }
    }
}
