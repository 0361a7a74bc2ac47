//! What the kernel swaps to.
//!
//! Source: `/proc/swaps` in Documentation/filesystems/proc.rst, and mm/swapfile.c. Where it lies is nobody's
//! business: a path can name a user or a disk, and is neither kept nor recorded.

use super::whole;
use crate::host::record::Seen;
use crate::host::{Fact, Host};

/// How many areas of each kind are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swaps {
    /// Whole block devices, except for the next.
    pub partitions: u64,
    /// Compressed memory, `/dev/zramN`: no device is waited for.
    pub zram: u64,
    /// Files.
    pub files: u64,
}

const HEADER: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

/// Reads what is in use; absent in a kernel without swapping.
pub fn read_swaps(host: &Host) -> Fact<Swaps> {
    const PATH: &str = "/proc/swaps";
    let swaps = whole::bytes(&host.unrecorded(), PATH).parse(|bytes| parse_swaps(&String::from_utf8_lossy(&bytes)));
    host.keep(
        PATH,
        match &swaps {
            Fact::Known(swaps) => Seen::File(reduced(swaps).into_bytes()),
            Fact::Absent => Seen::Absent,
            Fact::Refused(errno) => Seen::Refused(*errno),
            // Whatever it is, it may hold a path.
            Fact::Malformed(_) => Seen::File(b"?\n".to_vec()),
        },
    );
    swaps
}

fn reduced(swaps: &Swaps) -> String {
    let lines = |line: &str, count: u64| line.repeat(count as usize);
    let partitions = lines("- partition 0 0 0\n", swaps.partitions);
    let zram = lines("/dev/zram partition 0 0 0\n", swaps.zram);
    format!("{HEADER}{partitions}{zram}{}", lines("- file 0 0 0\n", swaps.files))
}

/// Parses `/proc/swaps`; blanks in a path are written as `\040`.
pub fn parse_swaps(text: &str) -> Result<Swaps, String> {
    // One message for whatever is wrong: a record does not tell which it was.
    let expected = || "expected a table of paths, each a partition or a file".to_owned();
    let mut lines = text.lines();
    if !lines.next().is_some_and(|line| line.starts_with("Filename") && line.contains("Type")) {
        return Err(expected());
    }
    let mut swaps = Swaps::default();
    for line in lines {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some(path), Some("partition")) if path.starts_with("/dev/zram") => swaps.zram += 1,
            (Some(_), Some("partition")) => swaps.partitions += 1,
            (Some(_), Some("file")) => swaps.files += 1,
            _ => return Err(expected()),
        }
    }
    Ok(swaps)
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;
    use proptest::prelude::*;

    const TABLE: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
         | /dev/dm-1                               partition\t4194300\t\t4711\t\t-2
         | /srv/alice\\040b/swapfile\\040(deleted)     file\t\t1048572\t\t0\t\t-3
         | /dev/zram0                              partition\t2097148\t\t0\t\t100";

    /// What is told of a machine, and what its record holds; the record has to tell the same.
    fn told(text: &str) -> (Fact<Swaps>, String) {
        let (host, _dir) = tree(text);
        let host = host.recording();
        let live = read_swaps(&host);
        let accesses = host.recorded().unwrap().accesses();
        let kept = match &accesses["/proc/swaps"] {
            Seen::File(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            other => format!("{other:?}"),
        };
        assert_eq!(read_swaps(&Host::made(accesses)), live);
        (live, kept)
    }

    #[test]
    fn kinds_are_counted_and_paths_forgotten() {
        let (swaps, kept) = told(&format!("/proc/swaps: {TABLE}"));
        assert_eq!(swaps, Fact::Known(Swaps { partitions: 1, zram: 1, files: 1 }));
        for word in ["alice", "dm-1", "4711", "zram0"] {
            assert!(!kept.contains(word), "{kept}");
        }
        assert_eq!(told("/proc/swaps: Filename Type").0, Fact::Known(Swaps::default()));
    }

    #[test]
    fn other_outcomes() {
        assert_eq!(told("/proc/x: 1").0, Fact::Absent);
        assert_eq!(told("/proc/swaps -> swaps").0, Fact::Refused(libc::ELOOP));
        let (swaps, kept) = told("/proc/swaps: Filename Type\n| /srv/alice/swap tape 1");
        assert!(matches!(swaps, Fact::Malformed(_)) && !kept.contains("alice"), "{kept}");
    }

    proptest! {
        #[test]
        fn parser_is_total(text in "(Filename Type\n)?((/dev/zram|\\PC{0,5}) (partition|file|\\PC{0,3})\n?){0,6}") {
            if let Ok(swaps) = parse_swaps(&text) {
                prop_assert_eq!(parse_swaps(&reduced(&swaps)), Ok(swaps));
            }
        }
    }
}
