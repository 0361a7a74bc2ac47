//! The culprit of an interval's largest wake-up, by the rules of a hunt.

use super::context::{RunContext, SliceContext};
use super::naming::group_name;
use super::{classify, names};
use model::run::{Host, Slice, Spike};
use model::slice::SliceKind;
use model::units::Nanos;
use model::watch::{WatchCulprit, WatchTask};
use trace::timeline::Corroboration;

/// Names culprits over the months of a watch: in a virtual machine a single observation proves
/// nothing, so earlier ones are remembered, in bounded memory.
#[derive(Clone, Debug, Default)]
pub struct CulpritNames {
    seen: Corroboration,
}

impl CulpritNames {
    /// Culprits of an interval's spikes, each of at most one slice, and each with the stop from
    /// outside that takes its place if the slice is not believed; `WatchCulprit::default()` if none
    /// is proven.
    pub fn name(&mut self, host: &Host, spikes: Vec<(Spike, Option<Slice>)>) -> Vec<WatchCulprit> {
        spikes.iter().for_each(|(spike, _)| self.seen.note(host, spike));
        let settled = spikes.into_iter().map(|(mut spike, stop)| {
            self.seen.settle(host, &mut spike);
            // A slice that was seen too seldom counts as a stop only with further evidence.
            spike.slices.retain(|slice| slice.kind != SliceKind::Stopped);
            if spike.slices.is_empty() {
                spike.slices.extend(stop);
            }
            spike
        });
        settled.map(|spike| culprit(host, &spike)).collect()
    }
}

fn culprit(host: &Host, spike: &Spike) -> WatchCulprit {
    let Some(slice) = spike.slices.first() else { return WatchCulprit::default() };
    let run = RunContext::of_machine(host);
    let rule = classify(&SliceContext { spike, slice, run: &run }).map(|(rule, _)| rule);
    let name = rule.map_or_else(
        || names::fallback_name(slice),
        |rule| match group_name(rule.grouping, slice) {
            name if name.is_empty() => rule.title.to_owned(),
            name => name,
        },
    );
    let who = &slice.who;
    WatchCulprit {
        rule: rule.map(|rule| rule.id.to_owned()),
        name,
        kind: slice.kind.clone(),
        // The clocks of two CPUs may make the other part of the latency negative.
        share: (spike.latency_ns > Nanos(0))
            .then(|| (slice.ns.0 as f64 / spike.latency_ns.0 as f64).min(1.0)),
        estimated: slice.estimated,
        task: WatchTask {
            comm: who.comm.clone(),
            pid: None,
            tid: Some(who.pid),
            prio: Some(who.prio),
            cpu: Some(spike.cpu),
            ..WatchTask::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::Who;
    use model::units::Cpu;

    fn spike(kind: SliceKind, who: Who) -> Spike {
        let slice = Slice { kind: kind.into(), ns: Nanos(900_000), who, ..Slice::default() };
        Spike {
            cpu: Cpu(1),
            latency_ns: Nanos(1_000_000),
            unexplained_ns: Nanos(100_000),
            victim: Who { comm: "rt".into(), pid: 50, prio: 19, ..Who::default() },
            slices: vec![slice],
            ..Spike::default()
        }
    }

    fn holding_spike() -> Spike {
        let who = Who {
            comm: "insmod".into(),
            pid: 71,
            prio: 120,
            function: "hold".into(),
            module: "faults".into(),
            ..Who::default()
        };
        spike(SliceKind::IrqsOff, who)
    }

    #[test]
    fn a_section_is_named_by_its_function_and_a_thread_by_its_name() {
        let hog = Who { comm: "hog".into(), pid: 812, prio: 9, ..Who::default() };
        let spikes = [holding_spike(), spike(SliceKind::Thread, hog), Spike::default()];
        let spikes = spikes.map(|spike| (spike, None)).into();
        let found = CulpritNames::default().name(&Host::default(), spikes);
        let name_of =
            |culprit: &WatchCulprit| (culprit.rule.clone().unwrap_or_default(), culprit.name.clone());
        assert_eq!(name_of(&found[0]), ("irqs-off-section".into(), "hold [faults]".into()));
        assert_eq!(name_of(&found[1]), ("realtime-thread".into(), "hog".into()));
        assert_eq!((found[0].task.tid, found[0].share), (Some(71), Some(0.9)));
        assert_eq!(found[2], WatchCulprit::default());
    }

    #[test]
    fn in_a_virtual_machine_a_section_is_named_from_the_third_time_on() {
        let guest = Host { virtualization: "kvm".into(), ..Host::default() };
        let mut names = CulpritNames::default();
        let stop = spike(SliceKind::Stopped, Who::default()).slices.pop();
        let stop = stop.map(|slice| Slice { estimated: true, ..slice });
        let named = |names: &mut CulpritNames| {
            let found = names.name(&guest, vec![(holding_spike(), stop.clone())]).remove(0);
            (found.name, found.estimated)
        };
        let outside = || ("stopped from outside".to_owned(), true);
        assert_eq!([named(&mut names), named(&mut names)], [outside(), outside()]);
        assert_eq!(named(&mut names), ("hold [faults]".to_owned(), false));
    }
}
