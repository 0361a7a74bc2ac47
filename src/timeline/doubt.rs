//! What is said only if it was seen several times: in a virtual machine, interrupts that were off cannot be told from a
//! stop of that one virtual CPU inside a short section with interrupts off. A stop comes anywhere, a culprit comes again.

use std::collections::{BTreeMap, BTreeSet};

use super::explain::classes;
use super::kind::Kind;
use crate::bundle::run::{Host, Slice, Spike};
use crate::units::Nanos;

/// So many spikes of a function are no chance.
pub const SPIKES: usize = 3;

/// Whether the machine is a virtual one, as far as it is known.
pub(super) fn is_virtual(host: &Host) -> bool {
    !matches!(host.virtualization.as_str(), "" | "none")
}

/// The function, with its module, that a slice names and that has to be seen in [`SPIKES`] spikes; none if it need not.
pub fn doubted(host: &Host, slice: &Slice) -> Option<(String, String)> {
    let doubtful = is_virtual(host) && slice.kind == Kind::IrqsOff.name();
    doubtful.then(|| (slice.who.function.clone(), slice.who.module.clone()))
}

/// Takes back what too few of a run's spikes show: its time becomes unexplained, and the sums stay exact.
pub fn doubt(host: &Host, spikes: &mut [Spike]) {
    let mut doubts = Doubts::default();
    spikes.iter().for_each(|spike| doubts.note(host, spike));
    spikes.iter_mut().for_each(|spike| doubts.settle(host, spike));
}

/// In how many of a run's spikes each doubted function is: all are noted before the first is settled.
#[derive(Clone, Debug, Default)]
pub struct Doubts {
    seen: BTreeMap<(String, String), usize>,
}

impl Doubts {
    /// Notes what is doubted in a spike.
    pub fn note(&mut self, host: &Host, spike: &Spike) {
        let own: BTreeSet<_> = spike.slices.iter().filter_map(|slice| doubted(host, slice)).collect();
        own.into_iter().for_each(|function| *self.seen.entry(function).or_default() += 1);
    }

    /// Takes back what too few have shown.
    pub fn settle(&self, host: &Host, spike: &mut Spike) {
        let rare = |slice: &Slice| {
            doubted(host, slice)
                .is_some_and(|function| self.seen.get(&function).is_none_or(|&spikes| spikes < SPIKES))
        };
        let (taken, kept): (Vec<Slice>, Vec<Slice>) =
            std::mem::take(&mut spike.slices).into_iter().partition(&rare);
        spike.slices = kept;
        if let Some(first) = taken.first() {
            let ns = taken.iter().fold(0, |sum: i64, slice| sum.saturating_add(slice.ns.0));
            let (function, length) = (&first.who.function, Nanos(ns).spaced());
            spike.notes.push(format!(
                "interrupts came on again in {function} after {length}, in fewer than {SPIKES} spikes of the run: in a virtual machine \
                 that may be a stop of the virtual CPU, and it stays unexplained"
            ));
            spike.unexplained_ns = Nanos(spike.unexplained_ns.0.saturating_add(ns));
            spike.classes = classes(spike);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{adds_up, explained_on, host, told, window};
    use super::*;

    fn spike(host: &Host, function: &str) -> Spike {
        let events = format!(
            "-500  1 50 d  switch rt/50/19 S busy/60/120
             19800 1 60 d  switch busy/60/120 S next/61/120
             19900 1 61 d  switch next/61/120 S busy/60/120
             20000 1 60 dh vector+ local_timer
             20001 1 60 dh timer+ 1 hrtimer_wakeup
             20001 1 60 dh stack hrtimer_interrupt,asm_sysvec_apic_timer_interrupt,{function},write 2
             20002 1 60 dh waking rt/50/19
             20004 1 60 dNh vector- local_timer
             20004 1 60 d  switch busy/60/120 P rt/50/19"
        );
        explained_on(host, &window(20_004.0, &events))
    }

    fn of(virtualization: &str, functions: &[&str]) -> Vec<String> {
        let host = Host { virtualization: virtualization.to_owned(), ..host() };
        let mut spikes: Vec<Spike> = functions.iter().map(|function| spike(&host, function)).collect();
        doubt(&host, &mut spikes);
        spikes.iter().for_each(adds_up);
        assert!(
            spikes
                .iter()
                .all(|spike| spike.classes.len() == 1 && spike.slices.len() + spike.notes.len() == 2)
        );
        spikes.iter().map(|spike| format!("{}: {}", spike.classes[0], told(spike)[0])).collect()
    }

    #[test]
    fn in_a_virtual_machine_what_was_seen_twice_is_not_named() {
        let (off, not) =
            (|f: &str| format!("irqs-off: irqs-off {f}/busy 20000"), "unexplained: timer-irq local_timer 4");
        assert_eq!(of("kvm", &["hold", "hold"]), [not, not]);
        assert_eq!(
            of("kvm", &["hold", "keep", "hold", "hold"]),
            [off("hold"), not.into(), off("hold"), off("hold")]
        );
        assert_eq!(of("kvm", &["hold", "hold+[a]", "hold"]), [not, not, not]);
        for metal in ["", "none"] {
            assert_eq!(of(metal, &["hold"]), [off("hold")]);
        }
    }

    #[test]
    fn every_switch_lets_interrupts_in_and_is_named_on_metal_only() {
        let switch = ["finish_task_switch"; 4];
        assert_eq!(of("none", &switch)[0], "irqs-off: irqs-off finish_task_switch/busy 20000");
        let host = Host { virtualization: "qemu".to_owned(), ..host() };
        assert_eq!(told(&spike(&host, switch[0]))[0], "timer-irq local_timer 4");
    }
}
