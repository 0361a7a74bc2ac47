//! Why time of a spike is unexplained, in a sentence: stopped from outside, or that it cannot be
//! told.

use super::own::MAX_BOUNDED_NS;
use model::run::{Host, Spike};

const OUTSIDE: &str = "stopped from outside";

/// What is known of the time that no slice has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub lost: bool,
    /// The thread may have waited for another: no timer of its own woke it.
    pub waits: bool,
}

/// Puts the sentence into a spike.
pub(super) fn tell(host: &Host, known: Known, spike: &mut Spike) {
    let rest = spike.unexplained_ns.0;
    // Small change is in every wake-up.
    let matters = rest > 0 && (rest >= spike.latency_ns.0 / 10 || rest >= MAX_BOUNDED_NS);
    let stopped = spike.stopped_ns.0.saturating_mul(2) > rest;
    spike.unexplained_why = match (matters, stopped) {
        (false, _) => String::new(),
        (true, true) => outside(host),
        (true, false) if known.lost => "it cannot be told: events of this time are missing".to_owned(),
        (true, false) if known.waits => String::new(),
        (true, false) => cannot(host),
    };
}

fn outside(host: &Host) -> String {
    let (by, whom) = match host.virtualization.as_str() {
        "" => ("firmware, hardware or a hypervisor", "the CPU"),
        "none" => ("firmware (SMI) or hardware", "the CPU"),
        _ => ("the hypervisor", "this virtual machine, or this CPU of it,"),
    };
    format!("{OUTSIDE}: {by} stopped {whom} where nothing inside could hold it up")
}

fn cannot(host: &Host) -> String {
    let why = match host.virtualization.as_str() {
        "" => "firmware (SMI), hardware or a hypervisor can stop a CPU without an event",
        "none" => "firmware (SMI) and hardware can stop a CPU without an event",
        _ => {
            "a virtual CPU that the hypervisor did not run looks the same as one that had interrupts off or was busy \
             without an event"
        }
    };
    format!("it cannot be told: {why}")
}

/// The sentence for time that the hypervisor itself counts as taken.
pub fn steal(spike: &mut Spike) {
    if !spike.unexplained_why.is_empty() && !is_outside(&spike.unexplained_why) {
        spike.unexplained_why =
            format!("{OUTSIDE}: the hypervisor counted as much steal on this CPU in the same second");
    }
}

/// Whether such a sentence states that something outside stopped the CPU.
pub fn is_outside(why: &str) -> bool {
    why.starts_with(OUTSIDE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;

    fn of(virtualization: &str, known: Known, stopped: i64, rest: i64) -> String {
        let host = Host { virtualization: virtualization.to_owned(), ..Host::default() };
        let mut spike = Spike {
            latency_ns: Nanos(30_000_000),
            unexplained_ns: Nanos(rest),
            stopped_ns: Nanos(stopped),
            ..Spike::default()
        };
        tell(&host, known, &mut spike);
        spike.unexplained_why
    }

    #[test]
    fn a_proven_stop_is_distinguished_from_an_unknown_cause() {
        let known = Known::default();
        let lost = Known { lost: true, ..known };
        let waits = Known { waits: true, ..known };
        assert!(is_outside(&of("kvm", known, 15_000_000, 20_000_000)));
        assert!(of("kvm", known, 15_000_000, 20_000_000).contains("hypervisor"));
        assert!(of("none", lost, 15_000_000, 20_000_000).contains("SMI"));
        for (host, word) in [("kvm", "virtual CPU"), ("none", "SMI"), ("", "SMI")] {
            let why = of(host, known, 9_000_000, 20_000_000);
            assert!(why.starts_with("it cannot be told") && why.contains(word) && !is_outside(&why), "{why}");
        }
        assert!(of("kvm", lost, 0, 20_000_000).contains("missing"));
        assert_eq!(of("kvm", waits, 0, 20_000_000), "");
        assert_eq!(of("kvm", known, 0, 0), "");
        assert_eq!(of("kvm", known, 900_000, 900_000), "", "a thirtieth");
        assert_ne!(of("kvm", known, 0, 1_100_000), "", "a long time, whatever its share");
    }

    #[test]
    fn steal_takes_precedence_over_unknown() {
        let spike = |why: &str| {
            let mut spike = Spike { unexplained_why: why.to_owned(), ..Spike::default() };
            steal(&mut spike);
            spike.unexplained_why
        };
        assert_eq!(spike(""), "");
        assert!(spike("it cannot be told: x").contains("steal"));
        assert_eq!(spike("stopped from outside: x"), "stopped from outside: x");
    }
}
