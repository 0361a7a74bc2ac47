//! Two messages of the kernel's log: throttled real-time tasks, and unknown words of the command
//! line.
//!
//! Source: Documentation/ABI/testing/dev-kmsg for the records; `sched_rt_runtime_exceeded()` in
//! `kernel/sched/rt.c` and `replenish_dl_entity()` in `kernel/sched/deadline.c` for the throttling,
//! `print_unknown_bootoptions()` in `init/main.c` for the words.

use host::access::Access;
use host::{KernelLog, MachineFiles};
use model::fact::Fact;

/// Log of the running kernel, or the part of it in a capture.
pub const KMSG: &str = "/dev/kmsg";
/// Log of the boot in a copy of a machine's files.
const DMESG: &str = "/var/log/dmesg";
/// The kernel's text before and after the words.
const UNKNOWN: (&str, &str) =
    ("Unknown kernel command line parameters \"", "\", will be passed to user space.");
/// Limits of words and their bytes, beyond any command line and any word of interest.
const WORDS_LIMIT: usize = 256;
const WORD_LIMIT: usize = 64;

/// Event that a message reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttling {
    /// Real-time tasks used up their share of the period and were stopped.
    RtTasks,
    /// A deadline task or server fell so far behind that its deadline was given up.
    DeadlineLag,
}

/// Throttling that a record of `/dev/kmsg` reports, if any.
///
/// The kernel prints each of the two once per boot, so that only the first occurrence can be seen:
/// silence proves nothing.
pub fn throttling(record: &[u8]) -> Option<Throttling> {
    let message = message_of_kernel(record)?;
    if message.starts_with(b"sched: RT throttling activated") {
        Some(Throttling::RtTasks)
    } else if message.starts_with(b"sched: DL replenish lagged") {
        Some(Throttling::DeadlineLag)
    } else {
        None
    }
}

/// Message of a record; none of one that a program wrote to `/dev/kmsg`: facility 0 is the kernel.
fn message_of_kernel(record: &[u8]) -> Option<&[u8]> {
    let semicolon = record.iter().position(|&b| b == b';')?;
    let comma = record[..semicolon].iter().position(|&b| b == b',')?;
    (super::line::number(&record[..comma])? <= 7).then(|| &record[semicolon + 1..])
}

/// Names of the words that the kernel reports as unknown in a message, with `_` for `-`.
pub fn unknown_words(message: &str) -> Option<Vec<String>> {
    let (_, rest) = message.split_once(UNKNOWN.0)?;
    let (words, _) = rest.rsplit_once(UNKNOWN.1)?;
    let names = words.split_whitespace().filter_map(|word| word.split('=').next());
    let names = names.filter(|name| (1..=WORD_LIMIT).contains(&name.len())).take(WORDS_LIMIT);
    Some(names.map(|name| name.replace('-', "_")).collect())
}

/// Unknown words by the machine's log; absent if the log does not report them, or no longer. A
/// capture contains only the names.
pub fn read_unknown_words(host: &MachineFiles) -> Fact<Vec<String>> {
    if !host.is_live() {
        let record = host.read_text(KMSG);
        let text = if record == Fact::Absent { host.unrecorded().read_text(DMESG) } else { record };
        return text.then(|text| text.lines().find_map(unknown_words).map_or(Fact::Absent, Fact::Known));
    }
    let mut found = None;
    let words = match KernelLog::from_the_start() {
        Err(error) => Fact::Refused(error.raw_os_error().unwrap_or(libc::EIO)),
        Ok(mut log) => {
            log.each_record(|record| {
                let message = message_of_kernel(record).map(String::from_utf8_lossy);
                found = found.take().or_else(|| unknown_words(&message?));
            });
            found.map_or(Fact::Absent, Fact::Known)
        }
    };
    let line = |names: &Vec<String>| format!("{}{}{}\n", UNKNOWN.0, names.join(" "), UNKNOWN.1).into_bytes();
    host.record_as(KMSG, Access::of(&words, |names| Access::File(line(names))));
    words
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

    #[test]
    fn words_that_the_kernel_did_not_know_are_read_by_name() {
        let words = "BOOT_IMAGE=/vmlinuz kthread-cpus=0-1 splash";
        let line = format!("{}{words}{}", UNKNOWN.0, UNKNOWN.1);
        let names = ["BOOT_IMAGE", "kthread_cpus", "splash"].map(String::from).to_vec();
        assert_eq!(unknown_words(&line), Some(names.clone()));
        assert_eq!(unknown_words("Kernel command line: quiet"), None);
        let of = |path: &str| {
            let text = format!("[    0.000000] Linux\n[    0.031415] {line}\n");
            let files = [(path.to_owned(), Access::File(text.into_bytes()))];
            read_unknown_words(&MachineFiles::in_memory(files.into_iter().collect()))
        };
        assert_eq!(of(KMSG), Fact::Known(names.clone()));
        assert_eq!(of(DMESG), Fact::Known(names));
        assert_eq!(of("/dev/null"), Fact::Absent);
        let program = format!("12,9,5,-;{line}\n");
        assert_eq!(message_of_kernel(program.as_bytes()), None);
    }

    proptest! {
        #[test]
        fn parser_is_total(text in "[0-9,;]{0,8}(sched: )?\\PC{0,20}") {
            throttling(text.as_bytes());
        }
    }
}
