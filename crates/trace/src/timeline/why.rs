//! Reason for unexplained time of a spike, in a sentence.

use super::outside::matters;
use model::run::{Host, Spike};

/// Knowledge about the unexplained time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub lost: bool,
    /// True if no timer of the thread woke it, so that it may have waited for another thread.
    pub waits: bool,
}

/// Sets the sentence in a spike.
pub(super) fn tell(host: &Host, known: Known, spike: &mut Spike) {
    // Every wake-up has a small unexplained rest.
    spike.unexplained_why = if !matters(spike.unexplained_ns, spike.latency_ns) {
        String::new()
    } else if known.lost {
        "it cannot be told: events of this time are missing".to_owned()
    } else if known.waits {
        String::new()
    } else {
        cannot(host)
    };
}

fn cannot(host: &Host) -> String {
    let why = match host.virtualization.as_str() {
        "" => "firmware (SMI), hardware or a hypervisor can stop a CPU without an event",
        "none" => "firmware (SMI) and hardware can stop a CPU without an event",
        _ => {
            "a virtual CPU that was not run by the hypervisor looks the same as one with interrupts off or busy without an event"
        }
    };
    format!("it cannot be told: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;

    fn of(virtualization: &str, known: Known, rest: i64) -> String {
        let host = Host { virtualization: virtualization.to_owned(), ..Host::default() };
        let mut spike =
            Spike { latency_ns: Nanos(30_000_000), unexplained_ns: Nanos(rest), ..Spike::default() };
        tell(&host, known, &mut spike);
        spike.unexplained_why
    }

    #[test]
    fn it_is_said_what_cannot_be_told_and_why() {
        let known = Known::default();
        let lost = Known { lost: true, ..known };
        let waits = Known { waits: true, ..known };
        for (host, word) in [("kvm", "virtual CPU"), ("none", "SMI"), ("", "SMI")] {
            let why = of(host, known, 20_000_000);
            assert!(why.starts_with("it cannot be told") && why.contains(word), "{why}");
        }
        assert!(of("kvm", lost, 20_000_000).contains("missing"));
        assert_eq!(of("kvm", waits, 20_000_000), "");
        assert_eq!(of("kvm", known, 0), "");
        assert_eq!(of("kvm", known, 900_000), "", "a thirtieth");
        assert_ne!(of("kvm", known, 1_100_000), "", "a long time, whatever its share");
    }
}
