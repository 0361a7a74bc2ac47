//! Detection of running measurements: sending is load, and has to wait for them.

use host::MachineFiles;

/// Limit, in bytes, of a command line that is read.
const LINE: u64 = 64 << 10;
/// Commands whose results sending would change.
const MEASURING: [&str; 7] = ["measure", "hunt", "probe", "suite", "prove", "cure", "load"];

/// True if a process of onbeat is measuring.
pub fn is_measuring(files: &MachineFiles) -> bool {
    let names = files.list("/proc");
    let pids = names.known().into_iter().flatten().filter(|name| name.bytes().all(|b| b.is_ascii_digit()));
    let is_own = |pid: &&String| {
        files.read_text(&format!("/proc/{pid}/comm")).known().is_some_and(|comm| comm.starts_with("onbeat"))
    };
    pids.filter(is_own).any(|pid| {
        let line = files.read_at_most(&format!("/proc/{pid}/cmdline"), LINE);
        line.known().is_some_and(|line| measures(&String::from_utf8_lossy(line)))
    })
}

/// True if a command line as in `/proc`, words ended by zeros, is that of a measurement.
fn measures(line: &str) -> bool {
    let mut words = line.split('\0');
    let program = words.next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    // The names of static binaries end in the architecture.
    let is_onbeat = program == "onbeat" || program.starts_with("onbeat-");
    is_onbeat && words.next().is_some_and(|word| MEASURING.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_measures_is_waited_for() {
        for line in ["onbeat\0measure\0-D\0ten\0", "/usr/bin/onbeat\0hunt\0", "./onbeat-x86_64\0suite\0"] {
            assert!(measures(line), "{line:?}");
        }
        for line in
            ["", "onbeat\0", "onbeat\0watch\0", "onbeat\0report\0", "vi\0measure\0", "onbeat-push\0--once\0"]
        {
            assert!(!measures(line), "{line:?}");
        }
    }
}
