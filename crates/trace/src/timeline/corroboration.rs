//! Corroboration of causes over all spikes of a run: a culprit took the time, or a hypervisor that
//! stopped the CPU.
//!
//! In a virtual machine a stop of one CPU inside a short section with interrupts or preemption off
//! looks like a long section, and one inside an interrupt like a long interrupt. Stops occur
//! anywhere, while a culprit recurs: a section is named from its third spike on. In a run with many
//! stops some hit the same place by chance, so sightings must also exceed chance; and possible
//! stops of all CPUs, during which another CPU was late as well, are weighed against the stops of
//! the run.

use std::collections::{BTreeMap, BTreeSet};

use super::classes::classes;
use super::outside;
use super::own::MAX_BOUNDED_NS;
use super::preempt_off::NOT_PREEMPTED;
use super::virtual_machine::is_virtual;
use super::why::{self, Known};

use crate::kernel_functions::{is_lock_helper, unlocks_raw};
use model::keyword::Word;
use model::run::{Host, Slice, Spike};
use model::slice::SliceKind;
use model::units::Nanos;

/// Number of spikes of a function that rules out coincidence.
const CORROBORATING_SPIKES: u64 = 3;

/// Most stops of a CPU per stop in one place: the time that a place usually takes is a far smaller
/// share.
const MIN_STOPS_PER_SPIKE: u64 = 10;

/// Longest time with preemption off that can belong to a plain switch, in ns.
const MAX_SWITCH_NS: i64 = 50_000;

/// Limit of counted places; others are never corroborated.
const MAX_PLACES: usize = 4096;

/// Subject that a slice blames: its kind, function, module and interrupt, or its thread if it has
/// neither function nor interrupt.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlamedPlace {
    kind: Word<SliceKind>,
    function: String,
    module: String,
    other: String,
}

impl BlamedPlace {
    fn of(slice: &Slice) -> BlamedPlace {
        let who = &slice.who;
        // The preemption model of the kernel is to blame, not this thread or function.
        if slice.evidence.starts_with(NOT_PREEMPTED) {
            return BlamedPlace { kind: slice.kind.clone(), ..BlamedPlace::default() };
        }
        if waited(slice) {
            let function = slice.stack.iter().find(|frame| !is_lock_helper(frame)).cloned();
            return BlamedPlace {
                kind: slice.kind.clone(),
                function: function.unwrap_or_default(),
                ..BlamedPlace::default()
            };
        }
        let named = !who.function.is_empty() || !who.irq.is_empty();
        BlamedPlace {
            kind: slice.kind.clone(),
            function: who.function.clone(),
            module: who.module.clone(),
            other: if named { who.irq.clone() } else { who.comm.clone() },
        }
    }

    fn is(&self, kinds: &[SliceKind]) -> bool {
        kinds.iter().any(|kind| self.kind == *kind)
    }
}

const SECTIONS: &[SliceKind] = &[SliceKind::IrqsOff, SliceKind::PreemptOff];
const HANDLERS: &[SliceKind] = &[SliceKind::Irq, SliceKind::Softirq, SliceKind::TimerSoftirq, SliceKind::Ipi];

/// True for a section with interrupts off that counts as a wait for a lock, by where it ended.
fn waited(slice: &Slice) -> bool {
    slice.kind == SliceKind::LockContention && slice.stack.first().is_some_and(|frame| unlocks_raw(frame))
}

/// Place that a slice blames, if it needs corroboration by other spikes; `None` if not.
pub fn needs_corroboration(host: &Host, slice: &Slice) -> Option<BlamedPlace> {
    let is = |kinds: &[SliceKind]| kinds.iter().any(|kind| slice.kind == *kind);
    let section =
        slice.kind == SliceKind::IrqsOff || waited(slice) || is(SECTIONS) && slice.ns.0 > MAX_SWITCH_NS;
    let handler = is(HANDLERS) && slice.ns.0 > MAX_BOUNDED_NS;
    (is_virtual(host) && (slice.contested || section || handler)).then(|| BlamedPlace::of(slice))
}

/// Numbers of spikes in which a place was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Sightings {
    /// Spikes without another sign of a stop.
    alone: u64,
    /// Spikes in which another CPU was late as well.
    contested: u64,
}

/// Sightings over all spikes of a run.
#[derive(Clone, Debug, Default)]
pub struct Corroboration {
    seen: BTreeMap<BlamedPlace, Sightings>,
    /// Number of spikes that are mostly a stop of all CPUs.
    stops: u64,
    /// Number of spikes that are mostly unexplained for another reason.
    unknown: u64,
}

impl Corroboration {
    /// Counts an explained spike.
    pub fn note(&mut self, host: &Host, spike: &Spike) {
        if !is_virtual(host) {
            return;
        }
        // Time inherited from an earlier cycle is counted with that cycle's spike.
        let own = spike.inherited_ns.0.saturating_mul(2) <= spike.latency_ns.0;
        let mostly = |ns: Nanos| own && ns.0.saturating_mul(2) > spike.latency_ns.0;
        self.stops += u64::from(mostly(spike.stopped_ns));
        self.unknown += u64::from(mostly(spike.unexplained_ns));
        let long = |slice: &&Slice| {
            let large = slice.ns.0 > MAX_BOUNDED_NS || needs_corroboration(host, slice).is_some();
            large && slice.overrun_of_ns.is_none()
        };
        let own: BTreeSet<(BlamedPlace, bool)> =
            spike.slices.iter().filter(long).map(|slice| (BlamedPlace::of(slice), slice.contested)).collect();
        for (place, contested) in own {
            if self.seen.len() >= MAX_PLACES && !self.seen.contains_key(&place) {
                continue;
            }
            let seen = self.seen.entry(place).or_default();
            *(if contested { &mut seen.contested } else { &mut seen.alone }) += 1;
        }
    }

    /// Retracts uncorroborated causes of a spike: their time becomes unexplained, or that of a stop
    /// if another CPU was late as well, and the sums stay exact.
    pub fn settle(&self, host: &Host, spike: &mut Spike) {
        let believed =
            |slice: &Slice| needs_corroboration(host, slice).is_none_or(|place| self.believe(&place));
        let (mut rest, mut stops) = (Vec::with_capacity(spike.slices.len()), Vec::new());
        for slice in std::mem::take(&mut spike.slices) {
            if believed(&slice) {
                rest.push(slice);
                continue;
            }
            rest.extend(slice.contested.then(|| contested_as_stop(&slice)));
            stops.push(slice);
        }
        spike.slices = joined(rest);
        if !stops.is_empty() {
            take_back(host, spike, &stops);
        }
    }

    /// True if the spikes so far show that the place took the time.
    pub fn believe(&self, place: &BlamedPlace) -> bool {
        let Some(&Sightings { alone, contested }) = self.seen.get(place) else { return false };
        let all = alone + contested;
        let enough = |n: u64, stops: u64| n.saturating_mul(MIN_STOPS_PER_SPIKE) >= stops;
        let outweighs = enough(all, self.stops + self.unknown);
        // Stops of all CPUs that hit the same place are nearly always seen on another CPU as well.
        let apart = alone >= CORROBORATING_SPIKES && alone >= contested;
        if place.is(HANDLERS) {
            return apart || outweighs;
        }
        all >= CORROBORATING_SPIKES && (outweighs || apart && enough(alone, self.unknown))
    }
}

/// Retracts uncorroborated causes; to be called after all spikes are noted.
pub fn corroborate(host: &Host, corroboration: &Corroboration, spikes: &mut [Spike]) {
    spikes.iter_mut().for_each(|spike| corroboration.settle(host, spike));
}

/// Slice of a stop of all CPUs, in place of one contested by another CPU's late timer.
pub fn contested_as_stop(slice: &Slice) -> Slice {
    Slice {
        kind: SliceKind::Stopped.into(),
        start_ns: slice.start_ns,
        ns: slice.ns,
        evidence: "a timer due on another CPU was late, too; the length is estimated".to_owned(),
        estimated: true,
        overrun_of_ns: slice.overrun_of_ns,
        ..Slice::default()
    }
}

fn take_back(host: &Host, spike: &mut Spike, stops: &[Slice]) {
    let sum = |is: &dyn Fn(&&Slice) -> bool| {
        Nanos(stops.iter().filter(is).fold(0, |sum: i64, slice| sum.saturating_add(slice.ns.0)))
    };
    let (all, unknown) = (sum(&|_| true), sum(&|slice| !slice.contested));
    spike.unexplained_ns = Nanos(spike.unexplained_ns.0.saturating_add(unknown.0));
    spike.stopped_ns = outside::total(&spike.slices);
    spike.classes = classes(spike);
    why::tell(host, Known::default(), spike);
    if all.0 < spike.latency_ns.0 / 10 && all.0 < MAX_BOUNDED_NS {
        return;
    }
    let Some(longest) = stops.iter().max_by_key(|slice| slice.ns) else { return };
    let (who, length) = (&longest.who, longest.ns.spaced());
    let parts = [&who.function, &who.irq, &who.comm];
    let name = parts.into_iter().find(|part| !part.is_empty()).cloned().unwrap_or_default();
    let kind = &longest.kind;
    spike.notes.push(if longest.contested {
        format!(
            "{length} of {kind} ({name}) is attributed to a stop from outside: a timer due on another CPU \
             was late, too, and few spikes of the run show the same"
        )
    } else {
        format!(
            "{length} of {kind} ({name}) is not counted: in a virtual machine a stop of the virtual CPU \
             looks the same, and too few spikes of the run show it"
        )
    });
}

/// Joins slices that were separate only because one of them was contested.
fn joined(slices: Vec<Slice>) -> Vec<Slice> {
    let mut whole: Vec<Slice> = Vec::with_capacity(slices.len());
    for slice in slices {
        let slice = Slice { contested: false, ..slice };
        match whole.last_mut() {
            Some(last)
                if last.start_ns.0.saturating_add(last.ns.0) == slice.start_ns.0
                    && (&last.kind, &last.who) == (&slice.kind, &slice.who)
                    && last.estimated == slice.estimated
                    && last.overrun_of_ns == slice.overrun_of_ns =>
            {
                last.ns = Nanos(last.ns.0.saturating_add(slice.ns.0));
            }
            _ => whole.push(slice),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{adds_up, explained_on, host, slice_lines, window};
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

    fn kvm() -> Host {
        Host { virtualization: "kvm".to_owned(), ..host() }
    }

    /// Settles spikes as at the end of a run.
    fn settle(host: &Host, spikes: &mut [Spike]) {
        let mut corroboration = Corroboration::default();
        spikes.iter().for_each(|spike| corroboration.note(host, spike));
        corroborate(host, &corroboration, spikes);
        spikes.iter().for_each(adds_up);
    }

    fn of(virtualization: &str, functions: &[&str]) -> Vec<String> {
        let host = Host { virtualization: virtualization.to_owned(), ..host() };
        let mut spikes: Vec<Spike> = functions.iter().map(|function| spike(&host, function)).collect();
        settle(&host, &mut spikes);
        assert!(
            spikes
                .iter()
                .all(|spike| spike.classes.len() == 1 && spike.slices.len() + spike.notes.len() == 2)
        );
        spikes.iter().map(|spike| format!("{}: {}", spike.classes[0], slice_lines(spike)[0])).collect()
    }

    #[test]
    fn waits_count_by_their_function_and_a_kernels_model_by_itself() {
        let slice = |kind: SliceKind, evidence: &str, frames: &[&str]| Slice {
            kind: kind.into(),
            ns: Nanos(20_000_000),
            evidence: evidence.to_owned(),
            who: model::run::Who { function: evidence.to_owned(), ..Default::default() },
            stack: frames.iter().map(|&frame| frame.to_owned()).collect(),
            ..Slice::default()
        };
        let late = |of: &str| slice(SliceKind::PreemptOff, &format!("{NOT_PREEMPTED}: {of}"), &[]);
        assert_eq!(needs_corroboration(&kvm(), &late("read")), needs_corroboration(&kvm(), &late("write")));
        assert_ne!(
            needs_corroboration(&kvm(), &late("read")),
            needs_corroboration(&kvm(), &slice(SliceKind::PreemptOff, "read", &[]))
        );
        let wait =
            |frames: &[&str]| needs_corroboration(&kvm(), &slice(SliceKind::LockContention, "", frames));
        assert_eq!(
            wait(&["_raw_spin_unlock_irq", "take"]).map(|place| place.function).as_deref(),
            Some("take")
        );
        // Found waiting for the lock, which is not a stop.
        assert_eq!(wait(&["native_queued_spin_lock_slowpath", "take"]), None);
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
    fn every_switch_enables_interrupts_and_is_named_on_metal_only() {
        let switch = ["finish_task_switch"; 4];
        assert_eq!(of("none", &switch)[0], "irqs-off: irqs-off finish_task_switch/busy 20000");
        let host = Host { virtualization: "qemu".to_owned(), ..host() };
        assert_eq!(slice_lines(&spike(&host, switch[0]))[0], "timer-irq local_timer 4");
    }

    /// A timer's handler takes 20 ms, or the machine stops inside it; the timer of the idle CPU was
    /// due after 4 ms.
    fn handler(late: &str) -> Spike {
        let events = format!(
            "-4000 0 8 .  start 7 hrtimer_wakeup 4000
             -3990 0 8 d  switch pulse/8/120 S swapper/0/120
             -500  1 50 d  switch rt/50/19 S busy/60/120
             -100  1 60 dh vector+ local_timer
             -99   1 60 dh timer+ 3 poll_sensor+[sensor]
             19900 1 60 dh timer- 3
             19901 1 60 dh timer+ 1 hrtimer_wakeup
             19902 1 60 dh waking rt/50/19
             19903 1 60 dh timer- 1
             19904 1 60 dNh vector- local_timer
             19904 1 60 d  switch busy/60/120 P rt/50/19
             {late}"
        );
        explained_on(&kvm(), &window(19_910.0, &events))
    }

    const AT_ONCE: &str = "19950 0 0 dh vector+ local_timer";

    /// A stop of an otherwise idle machine.
    fn stop() -> Spike {
        let events = "
            -4000 0 8 .  start 7 hrtimer_wakeup 400
            -3990 0 8 d  switch pulse/8/120 S swapper/0/120
            -500  1 50 d  switch rt/50/19 S swapper/0/120
            20000 1 0 dh vector+ local_timer
            20001 1 0 dh timer+ 1 hrtimer_wakeup
            20002 1 0 dh waking rt/50/19
            20003 1 0 dNh timer- 1
            20004 1 0 dNh vector- local_timer
            20004 1 0 d  switch swapper/0/120 R rt/50/19
            20005 0 0 dh vector+ local_timer";
        explained_on(&kvm(), &window(20_010.0, events))
    }

    fn settled(mut spikes: Vec<Spike>) -> Vec<Spike> {
        settle(&kvm(), &mut spikes);
        spikes
    }

    #[test]
    fn a_recurring_handler_is_not_mistaken_for_the_stop_that_one_idle_cpu_shows() {
        let named = "irq local_timer/poll_sensor 19900";
        let first = |spikes: Vec<Spike>| slice_lines(&settled(spikes)[0]).swap_remove(0);
        assert!(handler(AT_ONCE).slices[0].contested || handler(AT_ONCE).slices[1].contested);
        assert_eq!(first(vec![handler(AT_ONCE)]), named, "nothing else tells of stops");
        assert_eq!(first((0..5).map(|_| handler(AT_ONCE)).chain([stop()]).collect()), named);
        // It resumed later, on its own: not a stop of all CPUs.
        let later = handler("12000 0 0 dh vector+ local_timer\n12001 0 0 d idle -");
        assert!(later.slices.iter().all(|slice| !slice.contested));
        assert_eq!(slice_lines(&later)[0], named);
    }

    #[test]
    fn among_many_stops_one_inside_a_handler_is_one_of_them() {
        let mut spikes = vec![handler(AT_ONCE)];
        spikes.extend((0..40).map(|_| stop()));
        let spikes = settled(spikes);
        let stopped =
            |spike: &Spike| spike.classes == [SliceKind::Stopped] && spike.unexplained_why.is_empty();
        assert!(spikes.iter().all(stopped), "{:?}", slice_lines(&spikes[0]));
        assert!(spikes[0].slices.iter().any(|slice| slice.kind == SliceKind::Stopped && slice.estimated));
        assert!(spikes[0].notes.iter().any(|note| note.contains("poll_sensor")), "{:?}", spikes[0].notes);
    }

    #[test]
    fn on_metal_nothing_waits_for_the_end_of_the_run() {
        let slice =
            Slice { kind: "irq".into(), ns: Nanos(9 * MAX_BOUNDED_NS), contested: true, ..Slice::default() };
        assert_eq!(needs_corroboration(&host(), &slice), None);
        assert!(needs_corroboration(&kvm(), &slice).is_some());
        let short = Slice { kind: "preempt-off".into(), ns: Nanos(MAX_SWITCH_NS), ..Slice::default() };
        assert_eq!(needs_corroboration(&kvm(), &short), None);
    }
}
