//! Findings of a hunt: spikes in slices, summed by culprit. A live hunt and one that is explained
//! again from its bundle share this code, so that both give the same result. Pure.

use model::run::{Block, Host, Run, Spike};
use model::units::Nanos;
use rules::culprits::context::{RunContext, StealInterval};
use rules::culprits::steal;
use rules::culprits::tally::{Ranking, SpikeTally};
use trace::timeline::{self, Cost};
use trace::window::Window;

/// Seconds with steal that are held; beyond that, those that no spike can need are dropped first.
const MAX_STOLEN: usize = 20_000;

/// Spikes are explained within this time of their end: older steal that is near no spike so far is
/// near none later.
const MAX_EXPLAIN_DELAY: Nanos = Nanos(60 * Nanos::SECOND.0);

/// The findings while they grow.
#[derive(Default)]
pub struct Findings {
    tally: SpikeTally,
    stolen: Vec<StealInterval>,
    /// Seconds with steal that lie near spikes and found no room.
    stolen_dropped: u64,
}

impl Findings {
    /// Explains a window as a spike in slices.
    pub fn explain(window: &Window, host: &Host, cost: Cost) -> Spike {
        let mut spike = timeline::explain_window(window, host, cost);
        if window.begins_late {
            spike.notes.push("the buffer did not reach back to the start of the spike".to_owned());
        }
        spike
    }

    /// Gives a spike's slices their rules, and counts it.
    pub fn add(&mut self, spike: &mut Spike, host: &Host) {
        self.tally.add(spike, host);
    }

    /// Retracts attributions that all spikes together do not corroborate, and attributes steal; to
    /// be called once all spikes are added.
    pub fn settle(&self, host: &Host, spike: &mut Spike) {
        self.tally.corroboration().settle(host, spike);
        steal::attribute(host, &self.stolen, spike);
    }

    /// Seconds in which the hypervisor took time.
    pub fn second(&mut self, blocks: &[Block]) {
        self.stole(blocks.iter().filter_map(StealInterval::of));
    }

    /// The same from their records.
    pub fn stole(&mut self, stolen: impl Iterator<Item = StealInterval>) {
        self.stolen.extend(stolen);
        if self.stolen.len() > MAX_STOLEN {
            let newest = self.stolen.iter().map(|stolen| stolen.to).max().unwrap_or_default();
            self.tally.retain_steal_near_spikes(
                &mut self.stolen,
                Nanos(newest.0.saturating_sub(MAX_EXPLAIN_DELAY.0)),
            );
            // All of it is near spikes and needed; the oldest is dropped, and counted as missing.
            let excess = self.stolen.len().saturating_sub(MAX_STOLEN);
            self.stolen.drain(..excess);
            self.stolen_dropped += excess as u64;
        }
    }

    /// Steal that was dropped although it may have been evidence, as text.
    pub fn notes(&self) -> Option<String> {
        (self.stolen_dropped > 0).then(|| {
            format!(
                "{} seconds with hypervisor steal near spikes are not compared with them: there were too many",
                self.stolen_dropped
            )
        })
    }

    /// Puts the culprits into a run in progress.
    pub fn standing(&self, run: &mut Run) {
        self.put(run, SpikeTally::interim_ranking);
    }

    /// The same of a run that is over: periods are looked for.
    pub fn conclude(&self, run: &mut Run) {
        self.put(run, SpikeTally::final_ranking);
    }

    fn put(&self, run: &mut Run, rank: fn(&SpikeTally, &RunContext) -> Ranking) {
        let ranked = rank(&self.tally, &RunContext { steal: &self.stolen, ..RunContext::of_run(run) });
        ranked.put_into(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain;
    use bundle::write::BundleWriter;
    use model::units::Cpu;
    use trace::timeline::fixture;

    const SECOND: i64 = Nanos::SECOND.0;

    fn block(cpu: u32, second: i64, steal_ms: i64) -> Block {
        Block {
            cpu: Cpu(cpu),
            mono_ns: Nanos(second * SECOND),
            span_ns: Some(Nanos(SECOND)),
            steal_ns: Some(Nanos(steal_ms * 1_000_000)),
            ..Block::default()
        }
    }

    /// A spike of some milliseconds, half of it unexplained, that ends in that second.
    fn window(second: i64, odd: bool) -> Window {
        let mut window = fixture::window(9_000.0, "-500 1 50 d switch rt/50/19 S busy/60/120");
        if odd {
            let more =
                "-5 1 60 dh irq+ 24 eth0\n39 1 60 dh irq- 24\n9000 1 60 d switch busy/60/120 P rt/50/19";
            window.events.extend(fixture::window(9_000.0, more).events);
        }
        let by = (second * SECOND + SECOND / 2) - fixture::E;
        window.expected_ns = Nanos(window.expected_ns.0 + by);
        window.actual_ns = Nanos(window.actual_ns.0 + by);
        window.events.iter_mut().for_each(|event| event.time = Nanos(event.time.0 + by));
        window.begins_late = second % 7 == 0;
        window
    }

    fn run() -> Run {
        let mut run =
            Run { command: model::vocabulary::Command::Hunt.into(), host: fixture::host(), ..Run::default() };
        run.host.virtualization = "kvm".into();
        (run.plan.cpus, run.recorder) = (vec![Cpu(0), Cpu(1)], Some(Default::default()));
        run
    }

    /// The same hunt while it is on, and later from its bundle.
    fn both(seconds: i64, spikes: &[i64], steal_ms: i64) -> (Run, Run, u64) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run");
        let mut writer = BundleWriter::create(&path, 1).expect("a bundle");
        let mut events = writer.events().expect("a place for windows");
        let (mut live, mut findings, mut all) = (run(), Findings::default(), Vec::new());
        for second in 0..seconds {
            if spikes.contains(&second) {
                let window = window(second, second % 2 == 1);
                assert!(events.add(&window).expect("written"));
                let mut spike = Findings::explain(&window, &live.host, Cost::of(&live));
                findings.add(&mut spike, &live.host);
                live.spikes.push(spike);
            }
            let blocks = [block(0, second, steal_ms), block(1, second, steal_ms)];
            findings.second(&blocks);
            all.extend(blocks.iter().filter_map(StealInterval::of));
            if second % 1_000 == 0 {
                findings.standing(&mut live);
            }
        }
        let host = live.host.clone();
        live.spikes.iter_mut().for_each(|spike| findings.settle(&host, spike));
        findings.conclude(&mut live);
        let mut later = Run { spikes: live.spikes.clone(), ..run() };
        explain::explain(&path, &mut later, &all, |_| ()).expect("explained");
        (live, later, findings.stolen_dropped)
    }

    #[test]
    fn a_long_hunt_on_a_stealing_hypervisor_has_the_same_result_live_and_later() {
        // More seconds with steal than are held, and spikes before, at and after that bound.
        let spikes: Vec<i64> = (0..40).map(|n| n * 700 + n % 3).collect();
        let (live, later, dropped) = both(28_000, &spikes, 20);
        assert_eq!(dropped, 0);
        assert_eq!(live.spikes, later.spikes);
        assert_eq!((&live.culprits, &live.recorder), (&later.culprits, &later.recorder));
        let steal =
            live.culprits.iter().find(|culprit| culprit.rule.as_deref() == Some("stopped-from-outside"));
        assert_eq!(steal.map(|culprit| culprit.spikes), Some(40), "{:?}", live.culprits);
    }

    #[test]
    fn without_steal_and_without_spikes_too() {
        let (live, later, _) = both(20, &[3, 7, 14], 0);
        assert_eq!((&live.spikes, &live.culprits), (&later.spikes, &later.culprits));
        assert!(
            live.spikes.iter().filter(|spike| spike.notes.iter().any(|n| n.contains("reach back"))).count()
                == 2
        );
        let (live, later, _) = both(20, &[], 20);
        assert_eq!((live.culprits.len(), later.culprits.len()), (0, 0));
    }

    #[test]
    fn steal_that_finds_no_room_near_spikes_is_counted() {
        let (mut findings, host) = (Findings::default(), run().host);
        // One stop that lasts longer than the limit of kept seconds.
        let spike = Spike { cpu: Cpu(0), actual_ns: Nanos(30_000 * SECOND), ..Spike::default() };
        let latency = spike.actual_ns;
        findings.add(&mut Spike { latency_ns: latency, unexplained_ns: latency, ..spike }, &host);
        (0..MAX_STOLEN as i64 + 9)
            .for_each(|second| findings.second(&[block(0, second, 10), block(1, second, 10)]));
        assert!(findings.stolen_dropped >= 9 && findings.stolen.len() <= MAX_STOLEN);
        assert!(findings.notes().is_some_and(|note| note.contains("seconds with hypervisor steal")));
    }
}
