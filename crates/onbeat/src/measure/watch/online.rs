//! Measured CPUs that go offline, from the kernel's list.

use crate::measure::integrity::entry;
use host::RereadFile;
use model::run::Integrity;
use model::units::CpuSet;
use model::vocabulary::IntegrityKind;

/// Measured CPUs that went offline.
pub struct Online {
    file: Option<RereadFile>,
    gone: CpuSet,
}

impl Online {
    /// Opens the kernel's list.
    pub fn new() -> Online {
        Online {
            file: RereadFile::open("/sys/devices/system/cpu/online", 4096).ok(),
            gone: CpuSet::default(),
        }
    }

    /// Entries for the measured CPUs that went offline since the last call.
    pub fn lost(&mut self, measured: &CpuSet) -> Vec<Integrity> {
        let text = self.file.as_mut().and_then(|file| file.read().ok());
        let Some(online) = text.and_then(|text| CpuSet::parse(std::str::from_utf8(text).ok()?).ok()) else {
            return Vec::new();
        };
        let lost = measured.without(&online).without(&self.gone);
        self.gone = self.gone.or(&lost);
        let words =
            "went offline during the run: its thread was moved, and its later samples are from another CPU";
        lost.iter().map(|cpu| entry(IntegrityKind::Offline, Some(cpu), true, words)).collect()
    }
}

impl Default for Online {
    fn default() -> Online {
        Online::new()
    }
}
