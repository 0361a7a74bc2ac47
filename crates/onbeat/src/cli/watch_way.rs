//! Recording of `onbeat watch`: its method, its limitations, its rights.

use crate::alarm::AlarmAction;
use host::capabilities;
use host::tracefs::{Tracing, start_keeper};
use recorder::{About, Reading};

/// Recording method for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RecordWay {
    /// BPF programs that read the kernel's types: the cheapest, and other programs cannot silence
    /// them
    Types,
    /// BPF programs that read the events' formats, for kernels without BTF
    Formats,
    /// Private trace ring without BPF programs: two to three times the cost, and no stacks
    Ring,
}

impl RecordWay {
    pub fn name(self) -> &'static str {
        match self {
            RecordWay::Types => "types",
            RecordWay::Formats => "formats",
            RecordWay::Ring => "ring",
        }
    }
}

/// The given method; the best that works if none is given.
pub fn reading(way: Option<RecordWay>) -> Reading {
    match way {
        None => Reading::Best,
        Some(RecordWay::Types) => Reading::Types,
        Some(RecordWay::Formats) => Reading::Format,
        Some(RecordWay::Ring) => Reading::Ring,
    }
}

/// Remarks on the recorder's limitations.
pub fn about(about: &About) -> Vec<String> {
    let mut lines = Vec::new();
    match (about.reading, &about.why_not_better) {
        (Reading::Ring, why) => {
            lines.extend(why.as_ref().map(|why| format!("the kernel cannot load BPF programs: {why}")));
            lines.push(format!(
                "events go through a trace ring of {} KiB: about 1 us per real-time wake-up and 0.4 us per \
                 other wake-up; this process wakes at least once a second; without stacks, a culprit is a \
                 thread or unknown",
                about.kernel_memory >> 10
            ));
        }
        (_, Some(why)) => lines.push(format!(
            "events are read by their formats, which loses wake-ups while other BPF programs run: {why}"
        )),
        (_, None) => {}
    }
    if !about.unlearned.is_empty() {
        lines.push(format!(
            "no T for threads that sleep with {}: the timer was not found",
            about.unlearned.join(", ")
        ));
    }
    if !about.sees_suspends {
        lines.push("a latency may include a suspend: this kernel does not report suspends".into());
    }
    if !about.compiled {
        let cost = "the kernel interprets BPF programs, at about six times the cost";
        lines.push(format!("{cost}: sysctl net.core.bpf_jit_enable=1"));
    }
    if about.other_numbers {
        lines.push("in a PID namespace threads have other numbers: coverage is unknown".into());
    }
    lines
}

/// Removes tracing of a killed onbeat, which slows down every wake-up.
pub fn remove_leftovers() -> Option<String> {
    let removed = Tracing::open().ok()?.remove_dead();
    (!removed.is_empty())
        .then(|| format!("removed tracing that a killed onbeat had left behind: {}", removed.join(", ")))
}

/// Starts a process that removes the ring after this one: programs end with their process, a ring
/// does not.
pub fn keep_after(about: &About) -> Option<String> {
    if about.reading != Reading::Ring {
        return None;
    }
    let error = start_keeper().err()?;
    Some(format!(
        "if this process is killed, its trace ring stays until onbeat starts again: cannot start a keeper \
         ({error})"
    ))
}

/// Drops capabilities that are no longer needed; the actions of an alarm may need any of them.
pub fn give_up_rights(actions: &[AlarmAction]) -> Option<String> {
    if !actions.is_empty() {
        return None;
    }
    capabilities::keep_only(&[]).err().map(|error| format!("cannot drop capabilities: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_says_why_and_what_it_lacks() {
        let ring = About { reading: Reading::Ring, compiled: true, sees_suspends: true, ..About::default() };
        let chosen = about(&ring);
        assert_eq!(chosen.len(), 1, "{chosen:?}");
        let lines = about(&About { why_not_better: Some("no map: CAP_BPF".into()), ..ring });
        assert_eq!(lines.len(), 2);
        assert!(lines[0].ends_with("cannot load BPF programs: no map: CAP_BPF"), "{lines:?}");
        assert!(lines[1].contains("without stacks") && lines[1].contains("1 us"), "{lines:?}");
    }

    #[test]
    fn programs_that_are_as_good_as_can_be_have_no_remark() {
        let best = About { reading: Reading::Types, compiled: true, sees_suspends: true, ..About::default() };
        assert_eq!(about(&best), Vec::<String>::new());
        assert_eq!(about(&About { why_not_better: Some("no BTF".into()), ..best }).len(), 1);
    }
}
