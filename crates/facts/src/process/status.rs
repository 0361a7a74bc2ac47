//! Status of a process, from `/proc/PID/status`.
//!
//! Source: Documentation/filesystems/proc.rst, table 1-2.

use crate::limits::Capabilities;

/// Fields of a process's status that rules use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStatus {
    /// Process that the thread belongs to.
    pub process: u32,
    /// Process that traces it, such as a debugger; 0 for none.
    pub tracer: u32,
    /// Real and effective user ID.
    pub users: [u32; 2],
    /// Process ID in each PID namespace, from that of the reader inwards.
    pub numbers: Vec<u32>,
    pub threads: u64,
    /// Locked, private writable, and swapped memory; all 0 for a kernel thread.
    pub locked_kib: u64,
    pub data_kib: u64,
    pub swapped_kib: u64,
    /// Resident anonymous memory; none before Linux 4.5.
    pub anonymous_kib: Option<u64>,
    pub has_memory: bool,
    pub capabilities: Capabilities,
    /// Seccomp mode: 0 none, 1 strict, 2 BPF filter; none if the kernel has no seccomp.
    pub seccomp: Option<u32>,
}

/// Parses `/proc/PID/status`.
pub fn parse_status(text: &str) -> Result<ProcessStatus, String> {
    let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let words = |key: &str| -> Result<Vec<u64>, String> {
        let line = line(key).ok_or_else(|| format!("expected a line '{key}'"))?;
        let words = line.split_whitespace().filter(|word| *word != "kB").take(64);
        words.map(|word| word.parse().map_err(|_| format!("expected numbers after '{key}'"))).collect()
    };
    let number = |key: &str| -> Result<u64, String> {
        words(key)?.first().copied().ok_or_else(|| format!("expected a number after '{key}'"))
    };
    let small =
        |key: &str| u32::try_from(number(key)?).map_err(|_| format!("'{key}' has too large a number"));
    let users = words("Uid:")?;
    let user = |at: usize| {
        users.get(at).and_then(|id| u32::try_from(*id).ok()).ok_or("expected four ids after 'Uid:'")
    };
    let has_memory = line("VmData:").is_some();
    let kib = |key: &str| if has_memory { number(key) } else { Ok(0) };
    // Kernels before 4.1 have no such line: the ID in this namespace is the only one known.
    let numbers = if line("NStgid:").is_some() { words("NStgid:")? } else { vec![number("Tgid:")?] };
    Ok(ProcessStatus {
        process: small("Tgid:")?,
        tracer: small("TracerPid:")?,
        users: [user(0)?, user(1)?],
        numbers: numbers.into_iter().filter_map(|id| u32::try_from(id).ok()).collect(),
        threads: number("Threads:")?,
        locked_kib: kib("VmLck:")?,
        data_kib: kib("VmData:")?,
        // The line is missing on kernels without swap.
        swapped_kib: if line("VmSwap:").is_some() { kib("VmSwap:")? } else { 0 },
        anonymous_kib: if line("RssAnon:").is_some() { Some(kib("RssAnon:")?) } else { None },
        has_memory,
        capabilities: crate::limits::parse_capabilities(text)?,
        seccomp: if line("Seccomp:").is_some() { Some(small("Seccomp:")?) } else { None },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Name:\trobot\nTgid:\t100\nTracerPid:\t0\nUid:\t1000\t0\t0\t0\nNStgid:\t100\t7\n\
        VmLck:\t      16 kB\nVmData:\t     200 kB\nVmSwap:\t       4 kB\nRssAnon:\t      96 kB\nThreads:\t3\n\
        CapEff:\t0000000000800000\nSeccomp:\t2\n";

    #[test]
    fn a_status_in_its_lines() {
        let status = parse_status(TEXT).unwrap();
        assert_eq!((status.process, status.tracer, status.users, status.threads), (100, 0, [1000, 0], 3));
        assert_eq!((status.locked_kib, status.data_kib, status.swapped_kib), (16, 200, 4));
        assert_eq!(status.anonymous_kib, Some(96));
        assert_eq!((status.numbers, status.seccomp, status.has_memory), (vec![100, 7], Some(2), true));
        assert!(status.capabilities.sys_nice() && !status.capabilities.ipc_lock());
    }

    #[test]
    fn a_thread_of_the_kernel_has_no_memory() {
        let text: String =
            TEXT.lines().filter(|line| !line.starts_with("Vm")).map(|line| format!("{line}\n")).collect();
        let status = parse_status(&text).unwrap();
        assert_eq!((status.has_memory, status.locked_kib), (false, 0));
    }

    #[test]
    fn what_is_missing_or_no_number_is_malformed() {
        for key in ["Tgid:", "Uid:", "VmLck:", "CapEff:", "Threads:"] {
            let without: String =
                TEXT.lines().filter(|line| !line.starts_with(key)).map(|line| format!("{line}\n")).collect();
            assert!(parse_status(&without).is_err(), "{key}");
        }
        for text in ["", "Tgid:\tx\n", "Uid:\n"] {
            assert!(parse_status(text).is_err());
        }
    }
}
