//! State of the machine that a watch reads besides wake-ups: settings, clocks, other runs of
//! onbeat.

use super::marks::{MachineLook, OwnRunBeside};
use bundle::environment::environment_of;
use host::{MachineFiles, clock, process_start};
use model::run::Host;
use model::units::{CpuSet, Nanos};
use model::watch::WatchEnvironment;

/// Tick of times in /proc (USER_HZ, sysconf(3)): 100 Hz on all machines that onbeat runs on.
const TICK: i64 = 10_000_000;

/// Maximum length of a command line that is read.
const LINE: u64 = 4096;

/// Reader of the machine's state.
pub struct MachineReader {
    files: MachineFiles,
}

impl MachineReader {
    pub fn new() -> MachineReader {
        MachineReader { files: MachineFiles::live() }
    }

    /// State of the machine now.
    pub fn look(&self) -> MachineLook {
        let online = self.files.read_text("/sys/devices/system/cpu/online");
        let boot_offset = clock::boot_offset();
        MachineLook {
            at: clock::monotonic(),
            wall_offset: clock::wall_offset(),
            boot_offset,
            online: online.known().and_then(|text| CpuSet::parse(text.trim()).ok()).unwrap_or_default(),
            runs: self.runs(boot_offset),
        }
    }

    /// Other runs of onbeat.
    fn runs(&self, boot_offset: Nanos) -> Vec<OwnRunBeside> {
        let names = self.files.list("/proc");
        let pids = names.known().into_iter().flatten().filter_map(|name| name.parse::<u32>().ok());
        let is_own = |pid: &u32| {
            let comm = self.files.read_text(&format!("/proc/{pid}/comm"));
            comm.known().is_some_and(|comm| comm.starts_with("onbeat"))
        };
        pids.filter(is_own).filter_map(|pid| self.run(pid, boot_offset)).collect()
    }

    fn run(&self, pid: u32, boot_offset: Nanos) -> Option<OwnRunBeside> {
        let line = self.files.read_at_most(&format!("/proc/{pid}/cmdline"), LINE);
        let line = String::from_utf8_lossy(line.known()?).into_owned();
        let words: Vec<&str> = line.trim_end_matches('\0').split('\0').collect();
        // Ticks since the boot, including suspends.
        let start = process_start(pid)?;
        let begun = i64::try_from(start).ok()?.saturating_mul(TICK).saturating_sub(boot_offset.0);
        OwnRunBeside::of(pid, start, &words, Nanos(begun))
    }

    /// Kernel and settings that latencies depend on.
    pub fn environment(&self) -> WatchEnvironment {
        environment_of(&self.host())
    }

    /// Description of the machine as in a run.
    pub fn host(&self) -> Host {
        facts::describe(&facts::gather(&self.files))
    }
}

impl Default for MachineReader {
    fn default() -> MachineReader {
        MachineReader::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_read_and_this_process_is_no_run() {
        let beside = MachineReader::new();
        let state = beside.look();
        assert!(!state.online.is_empty() && state.at > Nanos(0));
        assert!(state.runs.iter().all(|run| run.pid != std::process::id()));
        assert!(!beside.environment().release.is_empty());
    }
}
