//! The kernel's message that it throttled real-time tasks.
//!
//! Source: Documentation/ABI/testing/dev-kmsg for the records; `sched_rt_runtime_exceeded()` in
//! `kernel/sched/rt.c` and `replenish_dl_entity()` in `kernel/sched/deadline.c` for the messages.

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttling {
    /// Real-time tasks used up their share of the period and were stopped.
    RtTasks,
    /// A deadline task or server fell so far behind that its deadline was given up.
    DeadlineLag,
}

/// Whether a record of `/dev/kmsg` reports throttling.
///
/// The kernel prints each of the two once per boot, so that only the first time can be seen:
/// silence proves nothing.
pub fn throttling(record: &[u8]) -> Option<Throttling> {
    let semicolon = record.iter().position(|&b| b == b';')?;
    // Facility 0 is the kernel; what a program writes to /dev/kmsg has another.
    let comma = record[..semicolon].iter().position(|&b| b == b',')?;
    if super::line::number(&record[..comma])? > 7 {
        return None;
    }
    let message = &record[semicolon + 1..];
    if message.starts_with(b"sched: RT throttling activated") {
        Some(Throttling::RtTasks)
    } else if message.starts_with(b"sched: DL replenish lagged") {
        Some(Throttling::DeadlineLag)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_kernels_word_counts() {
        for (record, expected) in [
            ("4,1234,5678,-;sched: RT throttling activated\n", Some(Throttling::RtTasks)),
            (
                "4,9,5,-,caller=T1;sched: RT throttling activated for rt_rq 0 (cpu 1)\n",
                Some(Throttling::RtTasks),
            ),
            ("4,9,5,-;sched: DL replenish lagged too much\n", Some(Throttling::DeadlineLag)),
            ("12,9,5,-;sched: RT throttling activated\n", None),
            ("6,9,5,-;eth0: link up; sched: RT throttling activated\n", None),
            ("sched: RT throttling activated", None),
            ("", None),
        ] {
            assert_eq!(throttling(record.as_bytes()), expected, "{record}");
        }
    }

    proptest! {
        #[test]
        fn parser_is_total(text in "[0-9,;]{0,8}(sched: )?\\PC{0,20}") {
            throttling(text.as_bytes());
        }
    }
}
