//! The recorder: what was read of a machine, refusals included, so that it can be read again elsewhere.
//!
//! A capture lists what the code really read, never what somebody thought it would read.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// What came of one access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A file's content.
    File(Vec<u8>),
    /// A directory's names.
    List(Vec<String>),
    /// The last component of a link's target.
    Link(String),
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
    pub(super) fn note(&self, path: &str, seen: Seen) {
        self.seen.borrow_mut().entry(path.to_owned()).or_insert(seen);
    }

    pub(super) fn keep(&self, path: &str, seen: Seen) {
        self.seen.borrow_mut().insert(path.to_owned(), seen);
    }

    /// The accesses so far, by path.
    pub fn accesses(&self) -> BTreeMap<String, Seen> {
        self.seen.borrow().clone()
    }
}

/// What of a file's content may be kept: no serial numbers, no MAC addresses, no other program's arguments.
///
/// Bundles are mailed around, and some files tell more than how the machine is set up: Arm boards print
/// their serial number in `/proc/cpuinfo`, their firmware puts it and the MAC address on the command line, and
/// interrupts are called after interfaces, which may be called after their addresses.
pub fn redact(path: &str, bytes: Vec<u8>) -> Vec<u8> {
    match path {
        "/proc/cpuinfo" => redact_cpuinfo(&bytes),
        "/proc/cmdline" => redact_cmdline(&bytes),
        _ if bytes.len() <= SHORT && has_address(&bytes) => mask_name(&bytes, 0),
        _ => bytes,
    }
}

/// Longer texts are no lists of interfaces.
const SHORT: usize = 64 << 10;

/// What systemd puts before a MAC address to name an interface (systemd.net-naming-scheme(7)).
const BY_ADDRESS: [&[u8]; 4] = [b"enx", b"wlx", b"wwx", b"usx"];

fn address_at(bytes: &[u8], at: usize) -> bool {
    let digits = |text: &[u8]| text.len() == 12 && text.iter().all(u8::is_ascii_hexdigit);
    BY_ADDRESS.contains(&bytes.get(at..at + 3).unwrap_or_default())
        && bytes.get(at + 3..at + 15).is_some_and(digits)
}

fn has_address(bytes: &[u8]) -> bool {
    (0..bytes.len().saturating_sub(14)).any(|at| address_at(bytes, at))
}

/// Puts a number for the address in each name by address; 0 is none.
fn mask_name(bytes: &[u8], number: usize) -> Vec<u8> {
    let mut masked = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if address_at(bytes, at) {
            masked.extend_from_slice(&bytes[at..at + 3]);
            masked.extend_from_slice(b"-address");
            if number > 0 {
                masked.extend_from_slice(format!("-{number}").as_bytes());
            }
            at += 15;
        } else {
            masked.push(bytes[at]);
            at += 1;
        }
    }
    masked
}

/// The names with numbers for the MAC addresses in them, so that each stays a name of its own.
pub(super) fn mask_names(names: &[String]) -> Vec<String> {
    let mut number = 0;
    let masked = names.iter().map(|name| match has_address(name.as_bytes()) {
        false => name.clone(),
        true => {
            number += 1;
            String::from_utf8_lossy(&mask_name(name.as_bytes(), number)).into_owned()
        }
    });
    masked.collect()
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
        assert_eq!(String::from_utf8(redact(path, text.as_bytes().to_vec())).unwrap(), expected);
    }

    #[test]
    fn serial_numbers_of_boards_are_dropped() {
        check(
            "/proc/cpuinfo",
            "Revision\t: c03\nSerial\t\t: 1000abc\nModel\t: Pi\n",
            "Revision\t: c03\nModel\t: Pi\n",
        );
        check("/proc/meminfo", "Serial: 1\n", "Serial: 1\n");
        check("/sys/kernel/irq/9/actions", "enx0123456789ab-rx-0\n", "enx-address-rx-0\n");
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
            redact("/proc/cmdline", bytes.clone());
            redact("/proc/cpuinfo", bytes.clone());
            redact("/sys/x", bytes);
        }
    }
}
