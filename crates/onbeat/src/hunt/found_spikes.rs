//! Spikes listed by a finished hunt, still in their file; findings that too few of them support are
//! withdrawn as they are read.

use std::io;

use serde::ser::{Error, Serialize, SerializeSeq, Serializer};

use bundle::explained::{Explained, Listed};
use model::run::{Host, Run, Spike};
use model::units::Nanos;
use report::hunt::typical::{Involved, InvolvedSoFar};
use study::findings::Findings;

/// Maximum number of slices in memory, of the spikes that are to be shown.
const SHOWN_SLICES: usize = 10_000;

/// Spikes of a finished hunt.
#[derive(Default)]
pub struct FoundSpikes {
    listed: Listed,
    host: Host,
    findings: Findings,
    /// Notes on the actions at late wake-ups, for the user.
    pub actions: Vec<String>,
}

impl FoundSpikes {
    /// Spikes of a finished hunt; `findings` are those of all spikes together.
    pub fn of(explained: Explained, host: Host, findings: Findings, actions: Vec<String>) -> FoundSpikes {
        FoundSpikes { listed: explained.close(), host, findings, actions }
    }

    /// The run as stored in its document if there is no space for the list.
    pub fn left_in_file(&self, run: &Run) -> Run {
        self.listed.left_in_file(run)
    }

    /// Calls `f` for each spike, in order of time.
    pub fn each(&self, mut f: impl FnMut(Spike) -> io::Result<()>) -> io::Result<()> {
        self.listed.each(|mut spike| {
            self.findings.settle(&self.host, &mut spike);
            f(spike)
        })
    }

    /// All spikes, and each culprit's part in all of them. Slices are kept for the worst `most`,
    /// for some of those that contradict the thread's clock (the ranking is repeated without
    /// these), and for the typical spike of the first culprit.
    pub fn to_show(&self, run: &Run, most: usize) -> (Vec<Spike>, Vec<Involved>) {
        let (mut sizes, mut involved): (Vec<(Nanos, usize)>, _) = (Vec::new(), InvolvedSoFar::default());
        let _ = self.each(|spike| {
            sizes.push((spike.latency_ns, spike.slices.len()));
            involved.add(run, &spike);
            Ok(())
        });
        let involved = involved.finish(run);
        let drawn = involved.first().and_then(|first| first.typical);
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let mut slices = 0;
        let whole = sizes.iter().take(most).take_while(|size| {
            slices += size.1;
            slices <= SHOWN_SLICES
        });
        let least = whole.last().or(sizes.first()).map_or(Nanos(0), |size| size.0);
        let mut spikes = Vec::with_capacity(sizes.len());
        let mut room = SHOWN_SLICES;
        let _ = self.each(|spike| {
            let smaller = spike.latency_ns < least;
            let suspect = smaller && spike.cycle.is_some() && spike.switched_ns.is_none();
            let whole = !smaller || suspect && spike.slices.len() <= room;
            if smaller && whole {
                room -= spike.slices.len();
            }
            let whole = whole || drawn == Some(spikes.len());
            spikes.push(if whole { spike } else { counted(&spike) });
            Ok(())
        });
        (spikes, involved)
    }
}

/// Values of a spike that are counted without showing it.
fn counted(spike: &Spike) -> Spike {
    Spike {
        cpu: spike.cpu,
        cycle: spike.cycle,
        expected_ns: spike.expected_ns,
        actual_ns: spike.actual_ns,
        latency_ns: spike.latency_ns,
        unexplained_ns: spike.unexplained_ns,
        unexplained_why: spike.unexplained_why.clone(),
        stopped_ns: spike.stopped_ns,
        ..Spike::default()
    }
}

impl Serialize for FoundSpikes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let mut failed = None;
        let read = self.each(|spike| {
            list.serialize_element(&spike).map_err(|error| {
                failed = Some(error);
                io::ErrorKind::Other.into()
            })
        });
        match (failed, read) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(S::Error::custom(error)),
            (None, Ok(())) => list.end(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::write::BundleWriter;
    use model::run::{Culprit, Slice, Who};
    use report::hunt::typical;

    /// A few large spikes of one culprit, many small ones of another, and time without an event.
    #[test]
    fn the_typical_spikes_are_those_of_all_where_few_have_their_slices() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = BundleWriter::create(&folder.path().join("run"), 1).expect("a bundle");
        let mut events = writer.events().expect("a place for windows");
        let slice = |comm: &str, start_ns: Nanos, ns: i64| {
            let who = Who { comm: comm.into(), pid: 5, prio: 120, ..Who::default() };
            Slice { kind: "thread".into(), start_ns, ns: Nanos(ns), who, ..Slice::default() }
        };
        for at in 0..40i64 {
            let (comm, latency) = if at < 6 { ("large", 9_000 + at) } else { ("small", 1_000 + at) };
            let expected_ns = Nanos(at * 1_000_000);
            events.explained.add(&Spike {
                expected_ns,
                actual_ns: Nanos(expected_ns.0 + latency),
                latency_ns: Nanos(latency),
                slices: vec![slice(comm, expected_ns, latency - 100)],
                unexplained_ns: Nanos(100),
                ..Spike::default()
            });
        }
        let culprit =
            |name: &str, kind: &str| Culprit { name: name.into(), kind: kind.into(), ..Culprit::default() };
        let named = |comm: &str| rules::culprits::names::fallback_name(&slice(comm, Nanos(0), 1));
        let (small, large) = (named("small"), named("large"));
        let culprits = vec![culprit(&small, "thread"), culprit(&large, "thread")];
        let mut run = Run { culprits, ..Run::default() };
        let found = FoundSpikes::of(events.explained, Host::default(), Findings::default(), Vec::new());
        let (shown, involved) = found.to_show(&run, 3);
        (run.spikes, _) = found.to_show(&run, 1_000);
        assert_eq!(involved, typical::all(&run));
        assert!(involved.iter().all(|part| part.typical.is_some()), "{involved:?}");
        // The typical spike of the first culprit is drawn.
        let at = involved[0].typical.expect("one");
        assert_eq!(shown[at], run.spikes[at]);
        assert!(at >= 6 && shown.iter().filter(|spike| !spike.slices.is_empty()).count() == 4);
        run.spikes = shown;
        assert_ne!(involved, typical::all(&run));
    }
}
