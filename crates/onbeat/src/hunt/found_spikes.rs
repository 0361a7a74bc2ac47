//! The spikes that a hunt lists when it is over: still in their file; what too few of them support
//! is withdrawn as they are read.

use std::io;

use serde::ser::{Error, Serialize, SerializeSeq, Serializer};

use bundle::explained::{Explained, Listed};
use model::run::{Host, Spike};
use model::units::Nanos;
use study::findings::Findings;

/// Slices in memory at a time, of the spikes that are to be shown.
const SHOWN_SLICES: usize = 10_000;

/// The spikes of a hunt that is over.
#[derive(Default)]
pub struct FoundSpikes {
    listed: Listed,
    host: Host,
    findings: Findings,
}

impl FoundSpikes {
    /// Of a hunt that is over, with what all its spikes show together.
    pub fn of(explained: Explained, host: Host, findings: Findings) -> FoundSpikes {
        FoundSpikes { listed: explained.close(), host, findings }
    }

    /// Goes through them in order of time.
    pub fn each(&self, mut f: impl FnMut(Spike) -> io::Result<()>) -> io::Result<()> {
        self.listed.each(|mut spike| {
            self.findings.settle(&self.host, &mut spike);
            f(spike)
        })
    }

    /// All of them to be counted, the worst to be shown: only `most` of those have their slices,
    /// and some of those that contradict the thread's clock, which the ranking is made again
    /// without.
    pub fn to_show(&self, most: usize) -> Vec<Spike> {
        let mut sizes: Vec<(Nanos, usize)> = Vec::new();
        let _ = self.each(|spike| {
            sizes.push((spike.latency_ns, spike.slices.len()));
            Ok(())
        });
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
            spikes.push(if whole { spike } else { counted(&spike) });
            Ok(())
        });
        spikes
    }
}

/// What is counted of a spike that is not shown.
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
