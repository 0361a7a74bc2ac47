//! Steal, as the hypervisor counts it, beside the spikes of its seconds: which of them it accounts for.

use super::patterns::Patterns;
use super::{About, Sight, Stolen, hypervisor_steal};
use model::run::{Host, Slice, Spike};
use trace::timeline;

/// Says of a spike's unexplained time that the hypervisor took it where that says so itself, once the run is over.
pub fn tell(host: &Host, stolen: &[Stolen], spike: &mut Spike) {
    let about = About { stolen, ..About::machine(host) };
    let (slice, all) = (Slice::default(), Patterns::default());
    let counted = {
        let sight = Sight { spike, slice: &slice, about: &about, all: &all };
        (hypervisor_steal::CULPRIT.matches)(&sight).is_some()
    };
    if counted {
        timeline::steal(spike);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::{Cpu, Nanos};

    #[test]
    fn what_the_hypervisor_counts_is_no_longer_what_cannot_be_told() {
        let host = Host { virtualization: "kvm".into(), ..Host::default() };
        let told = |ns: i64| {
            let steal = Stolen { cpu: Cpu(1), from: Nanos(0), to: Nanos(1_000_000_000), ns: Nanos(ns) };
            let mut spike = Spike {
                cpu: Cpu(1),
                expected_ns: Nanos(500_000_000),
                actual_ns: Nanos(540_000_000),
                unexplained_ns: Nanos(40_000_000),
                unexplained_why: "it cannot be told: x".into(),
                ..Spike::default()
            };
            tell(&host, &[steal], &mut spike);
            timeline::is_outside(&spike.unexplained_why)
        };
        assert!(told(40_000_000) && !told(10_000_000));
    }
}
