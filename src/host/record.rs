//! The recorder: what was read of a machine, refusals included, so that it can be read again elsewhere.
//!
//! A capture lists what the code really read, never what somebody thought it would read.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::Fact;

/// What came of one access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A file's content.
    File(Vec<u8>),
    /// A directory's names.
    List(Vec<String>),
    /// It is not there.
    Absent,
    /// The error number of the refusal.
    Refused(i32),
}

/// Accesses by path; a path read twice is kept as it was the first time.
#[derive(Default)]
pub struct Recorder {
    seen: RefCell<BTreeMap<String, Seen>>,
}

impl Recorder {
    pub(super) fn note_read(&self, path: &str, fact: &Fact<Vec<u8>>) {
        let seen = match fact {
            Fact::Known(bytes) => Seen::File(redact(path, bytes)),
            Fact::Absent => Seen::Absent,
            Fact::Refused(errno) => Seen::Refused(*errno),
            Fact::Malformed(_) => Seen::Refused(libc::EFBIG),
        };
        self.seen.borrow_mut().entry(path.to_owned()).or_insert(seen);
    }

    pub(super) fn note_list(&self, path: &str, fact: &Fact<Vec<String>>) {
        let seen = match fact {
            Fact::Known(names) => Seen::List(names.clone()),
            Fact::Refused(errno) => Seen::Refused(*errno),
            Fact::Absent | Fact::Malformed(_) => Seen::Absent,
        };
        self.seen.borrow_mut().entry(path.to_owned()).or_insert(seen);
    }

    /// The accesses so far, by path.
    pub fn accesses(&self) -> BTreeMap<String, Seen> {
        self.seen.borrow().clone()
    }
}

/// What of a file's content may be kept: no serial numbers, no MAC addresses, no other program's arguments.
///
/// Bundles are mailed around, and two files tell more than how the machine is set up: Arm boards print
/// their serial number in `/proc/cpuinfo`, and their firmware puts it and the MAC address on the command line.
pub fn redact(path: &str, bytes: &[u8]) -> Vec<u8> {
    match path {
        "/proc/cpuinfo" => redact_cpuinfo(bytes),
        "/proc/cmdline" => redact_cmdline(bytes),
        _ => bytes.to_vec(),
    }
}

fn redact_cpuinfo(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split_inclusive(|&b| b == b'\n');
    let kept = lines.filter(|line| !line.trim_ascii_start().to_ascii_lowercase().starts_with(b"serial"));
    kept.collect::<Vec<_>>().concat()
}

/// Blanks between double quotes do not end a word, and what follows the word `--` is init's.
fn redact_cmdline(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut quoted = false;
    let words = bytes.split_inclusive(|&b| {
        quoted ^= b == b'"';
        !quoted && b.is_ascii_whitespace()
    });
    for word in words {
        if word.trim_ascii() == b"--" {
            break;
        }
        let equals = word.iter().position(|&b| b == b'=').unwrap_or(word.len());
        let (name, value) = word.split_at(equals);
        if !value.is_empty() && name.to_ascii_lowercase().windows(6).any(|part| part == b"serial") {
            kept.extend_from_slice(name);
            kept.extend_from_slice(b"=redacted ");
        } else {
            kept.extend(mask_macs(word));
        }
    }
    kept
}

/// Puts x for the digits of six or more pairs of hexadecimal digits with `:` or `-` between them.
fn mask_macs(word: &[u8]) -> Vec<u8> {
    let mut masked = word.to_vec();
    let pair = |at: usize| word.get(at..at + 2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    let mut at = 0;
    while at < word.len() {
        let fresh = at == 0 || !word[at - 1].is_ascii_alphanumeric();
        let mut pairs = usize::from(fresh && pair(at));
        while pairs > 0 && matches!(word.get(at + 3 * pairs - 1), Some(b':' | b'-')) && pair(at + 3 * pairs) {
            pairs += 1;
        }
        if pairs >= 6 {
            for n in 0..pairs {
                masked[at + 3 * n..at + 3 * n + 2].fill(b'x');
            }
        }
        at += (3 * pairs).max(1);
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(path: &str, text: &str, expected: &str) {
        assert_eq!(String::from_utf8(redact(path, text.as_bytes())).unwrap(), expected);
    }

    #[test]
    fn serial_numbers_of_boards_are_dropped() {
        check(
            "/proc/cpuinfo",
            "Revision\t: c03\nSerial\t\t: 1000abc\nModel\t: Pi\n",
            "Revision\t: c03\nModel\t: Pi\n",
        );
        check("/proc/meminfo", "Serial: 1\n", "Serial: 1\n");
    }

    #[test]
    fn command_lines_keep_what_sets_the_machine_up() {
        let path = "/proc/cmdline";
        check(path, "isolcpus=2-3 console=serial0,115200\n", "isolcpus=2-3 console=serial0,115200\n");
        check(
            path,
            "bcm2708.serial=0x12ab macaddr=B8:27:EB:0:1 q\n",
            "bcm2708.serial=redacted macaddr=B8:27:EB:0:1 q\n",
        );
        check(path, "ifname=eth0:aa:bb:cc:dd:ee:ff a=1", "ifname=eth0:xx:xx:xx:xx:xx:xx a=1");
        check(path, "BOOTIF=01-aa-bb-cc-dd-ee-ff", "BOOTIF=xx-xx-xx-xx-xx-xx-xx");
        check(path, "a=\"b -- c\" quiet -- --secret=1\n", "a=\"b -- c\" quiet ");
    }

    proptest! {
        #[test]
        fn redaction_is_total(bytes in proptest::collection::vec(proptest::sample::select(b"0aF:-=\" x\n".to_vec()), 0..60)) {
            redact("/proc/cmdline", &bytes);
            redact("/proc/cpuinfo", &bytes);
        }
    }
}
