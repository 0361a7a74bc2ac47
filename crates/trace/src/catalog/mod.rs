//! Catalogue of the requested events, one entry each: location, fields, and decoder.
//!
//! A kernel without some of them is still supported. Fields are looked up by name: their offsets
//! differ between kernels, and an array in one (`comm` of sched_migrate_task) is stored elsewhere
//! in the next. Each file names its header.

mod irq;
mod kernel;
mod program;
mod sched;
mod timer;
mod tracers;

use super::event::{Address, What};
use super::fields::Fields;

/// Event and the decoding of its records.
#[derive(Debug)]
pub struct EventSpec {
    /// Directory below `events/`.
    pub system: &'static str,
    pub event: &'static str,
    /// Fields that `decode` reads, by index in this list; the event is refused if one is missing.
    pub required: &'static [&'static str],
    /// Optional fields, with indices following those of `required`; not every kernel has them.
    pub optional: &'static [&'static str],
    /// Decodes a record; `None` if its fields do not match.
    pub decode: fn(&Fields) -> Option<What<Address>>,
    /// True for an event of newer kernels: older ones do not have the information, or it does not
    /// happen there, so that its absence is no loss.
    pub newer: bool,
}

impl EventSpec {
    const fn new(
        system: &'static str,
        event: &'static str,
        required: &'static [&'static str],
        decode: fn(&Fields) -> Option<What<Address>>,
    ) -> EventSpec {
        EventSpec { system, event, required, optional: &[], decode, newer: false }
    }

    const fn with_optional(self, optional: &'static [&'static str]) -> EventSpec {
        EventSpec { optional, ..self }
    }

    const fn of_newer_kernels(self) -> EventSpec {
        EventSpec { newer: true, ..self }
    }

    /// True if it is enabled by writing to its `enable` file; the stack event has none, it results
    /// from triggers and options.
    pub fn has_switch(&self) -> bool {
        self.system != "ftrace"
    }
}

pub use kernel::{MARK, SUSPEND};
pub use program::PROGRAM;
pub use tracers::{OSNOISE, TIMERLAT};

/// All events by subsystem, in the order of arming.
pub const ALL: &[&[EventSpec]] = &[sched::EVENTS, irq::EVENTS, irq::VECTORS, timer::EVENTS, kernel::EVENTS];

/// All events, in the order of arming.
pub fn all() -> impl Iterator<Item = &'static EventSpec> {
    ALL.iter().copied().flatten()
}

/// Event by system and name.
pub fn find(system: &str, event: &str) -> Option<&'static EventSpec> {
    all().find(|wanted| wanted.system == system && wanted.event == event)
}

/// Requested events whose formats a text contains, which is a series of `format` files; each with
/// its format.
pub fn formats(texts: &str) -> Vec<(&'static EventSpec, &str)> {
    const NAME: &str = "name: ";
    let begins = |at: &usize| *at == 0 || texts.as_bytes()[at - 1] == b'\n';
    let mut ends: Vec<usize> = texts.match_indices(NAME).map(|found| found.0).filter(begins).collect();
    ends.push(texts.len());
    let wanted = |text: &str| {
        let name = text.strip_prefix(NAME)?.lines().next()?.trim();
        all().find(|wanted| wanted.event == name)
    };
    let parts = ends.windows(2).map(|ends| &texts[ends[0]..ends[1]]);
    parts.filter_map(|text| Some((wanted(text)?, text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::MAX_FIELDS;

    #[test]
    fn each_event_is_there_once() {
        let mut names: Vec<_> = all().map(|wanted| wanted.event).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), count > 60), (count, true));
        let fields = |wanted: &EventSpec| wanted.required.len() + wanted.optional.len();
        assert!(
            all().chain(PROGRAM).chain(OSNOISE).chain(TIMERLAT).all(|wanted| fields(wanted) <= MAX_FIELDS)
        );
        let texts =
            formats("name: softirq_exit\nID: 1\nprint fmt: \"name: x\"\nname: other\nname: cpu_idle\n");
        let found: Vec<_> = texts.iter().map(|(wanted, text)| (wanted.event, text.len())).collect();
        assert_eq!(found, [("softirq_exit", 46), ("cpu_idle", 15)]);
        let newer: Vec<_> = all().filter(|wanted| wanted.newer).map(|wanted| wanted.event).collect();
        assert_eq!(newer, ["hrtimer_start_expired", "hrtimer_rearm", "contended_release"]);
        assert!(find("sched", "sched_switch").is_some() && find("sched", "sched_exit").is_none());
    }
}
