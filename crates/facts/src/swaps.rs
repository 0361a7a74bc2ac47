//! Swap areas.
//!
//! Source: `/proc/swaps` in Documentation/filesystems/proc.rst, and mm/swapfile.c. Paths of areas
//! can name a user or a disk; they are neither kept nor recorded.

use super::whole;
use host::MachineFiles;
use host::access::Access;
use model::fact::Fact;

/// Number of areas in use, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swaps {
    /// Whole block devices other than zram.
    pub partitions: u64,
    /// Compressed memory, `/dev/zramN`, where no device is waited for.
    pub zram: u64,
    pub files: u64,
}

const HEADER: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

/// File with the size of all areas: the table has no end mark by which truncation could be
/// detected.
const MEMORY: &str = "/proc/meminfo";
const PATH: &str = "/proc/swaps";

/// Reads the areas in use; absent in a kernel without swapping.
pub fn read_swaps(host: &MachineFiles) -> Fact<Swaps> {
    let total = read_total(host);
    let swaps = whole::bytes(&host.unrecorded(), PATH).parse(|bytes| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let swaps = parse_swaps(&text)?;
        agree(&text, swaps, total.known().copied()).map(|()| swaps)
    });
    host.record_as(
        PATH,
        match &swaps {
            // Unknown content may include a path.
            Fact::Malformed(_) => Access::File(b"?\n".to_vec()),
            other => Access::of(other, |swaps| Access::File(reduced(swaps).into_bytes())),
        },
    );
    swaps
}

/// Size of all areas in KiB, by the other file; only that line of it is recorded.
fn read_total(host: &MachineFiles) -> Fact<u64> {
    let total = whole::text(&host.unrecorded(), MEMORY).parse(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("SwapTotal:"));
        let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        number.ok_or_else(|| "expected a line 'SwapTotal:' with a number".to_owned())
    });
    if let Fact::Known(total) = total {
        host.record_as(MEMORY, Access::File(format!("SwapTotal: {total} kB\n").into_bytes()));
    }
    total
}

/// Checks the table against the sum. A capture has no sizes; a sum without areas is refused.
fn agree(text: &str, swaps: Swaps, total: Option<u64>) -> Result<(), String> {
    let sizes = text.lines().skip(1).map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok());
    let sum: u64 = sizes.flatten().sum();
    let none = swaps == Swaps::default();
    match total {
        Some(total) if total > 0 && (none || sum > 0 && sum != total) => Err(expected()),
        // Nothing else distinguishes an empty table from one truncated after its header.
        None if none => Err(expected()),
        _ => Ok(()),
    }
}

/// One message for all errors: a capture does not contain which of them occurred.
fn expected() -> String {
    "expected a table of paths, each a partition or a file, that adds up to /proc/meminfo's SwapTotal"
        .to_owned()
}

fn reduced(swaps: &Swaps) -> String {
    let lines = |line: &str, count: u64| line.repeat(count as usize);
    let partitions = lines("- partition 0 0 0\n", swaps.partitions);
    let zram = lines("/dev/zram partition 0 0 0\n", swaps.zram);
    format!("{HEADER}{partitions}{zram}{}", lines("- file 0 0 0\n", swaps.files))
}

/// Parses `/proc/swaps`; blanks in a path are written as `\040`.
pub fn parse_swaps(text: &str) -> Result<Swaps, String> {
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

    /// Facts of a machine, and the content of its capture; the capture has to give the same.
    fn read_tree(text: &str) -> (Fact<Swaps>, String) {
        let (host, _dir) = tree(text);
        let host = host.recording();
        let live = read_swaps(&host);
        let accesses = host.recorded().unwrap().accesses();
        let recording = match &accesses["/proc/swaps"] {
            Access::File(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            other => format!("{other:?}"),
        };
        assert_eq!(read_swaps(&MachineFiles::in_memory(accesses)), live);
        (live, recording)
    }

    #[test]
    fn kinds_are_counted_and_paths_forgotten() {
        let (swaps, recording) = read_tree(&format!("/proc/swaps: {TABLE}"));
        assert_eq!(swaps, Fact::Known(Swaps { partitions: 1, zram: 1, files: 1 }));
        for word in ["alice", "dm-1", "4711", "zram0"] {
            assert!(!recording.contains(word), "{recording}");
        }
        let none = "/proc/meminfo: SwapTotal: 0 kB\n/proc/swaps: Filename Type";
        assert_eq!(read_tree(none).0, Fact::Known(Swaps::default()));
        assert!(matches!(read_tree("/proc/swaps: Filename Type").0, Fact::Malformed(_)));
    }

    #[test]
    fn a_table_that_was_cut_does_not_add_up() {
        let table = format!("/proc/swaps: {TABLE}");
        let total = "/proc/meminfo: MemTotal: 8 kB\n| SwapTotal:       7340020 kB\n";
        assert!(read_tree(&format!("{total}{table}")).0.known().is_some());
        let lines: Vec<&str> = table.lines().collect();
        for count in 1..4 {
            let cut = format!("{total}{}", lines[..count].join("\n"));
            assert!(matches!(read_tree(&cut).0, Fact::Malformed(_)), "{cut}");
        }
        assert!(read_tree("/proc/meminfo: SwapTotal: 0 kB\n/proc/swaps: Filename Type").0.known().is_some());
    }

    #[test]
    fn other_outcomes() {
        assert_eq!(read_tree("/proc/x: 1").0, Fact::Absent);
        assert_eq!(read_tree("/proc/swaps -> swaps").0, Fact::Refused(libc::ELOOP));
        let (swaps, recording) = read_tree("/proc/swaps: Filename Type\n| /srv/alice/swap tape 1");
        assert!(matches!(swaps, Fact::Malformed(_)) && !recording.contains("alice"), "{recording}");
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
