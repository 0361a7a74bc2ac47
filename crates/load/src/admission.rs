//! Refusals before a load starts that would harm the machine: memory, disk space, processes.

use std::path::{Path, PathBuf};

use model::error::{Failure, Result};
use model::units::Nanos;

use crate::load::{Needs, Wanted};
use crate::spec::LoadSpec;
use model::size;

/// Least memory left to the machine, in bytes; also while the load runs.
pub const MEMORY_LEFT: u64 = 32 << 20;

/// Least space left on a disk, in bytes; also while the load runs.
pub const SPACE_LEFT: u64 = 32 << 20;

/// Limit of processes and threads of all loads together.
const TASKS: u64 = 8192;

/// Load with all of its parameters set.
pub struct Planned {
    pub spec: LoadSpec,
    pub wanted: Wanted,
    /// Folder of its files.
    pub folder: PathBuf,
}

impl Planned {
    /// Number of processes that it starts.
    pub fn processes(&self) -> u64 {
        u64::from(self.wanted.count) * u64::from((self.spec.load.needs)(&self.wanted).tasks)
    }

    /// Plans a load on `cpus` CPUs; its files are in `folder` unless it names another.
    pub fn new(spec: LoadSpec, cpus: usize, folder: &Path) -> Planned {
        let wanted = spec.wanted(cpus);
        let folder = wanted.key("folder").map_or_else(|| folder.to_owned(), PathBuf::from);
        Planned { spec, wanted, folder }
    }

    /// Refuses a rate at which windows of the proof would be empty.
    fn check_rate(&self) -> Result<()> {
        let load = self.spec.load;
        let chunks = 2 * u64::from(self.wanted.count).saturating_mul((load.chunk)(&self.wanted));
        let window = u64::try_from(load.window.0 / Nanos::SECOND.0).unwrap_or(1).max(1);
        let least = chunks.div_ceil(window);
        match self.wanted.rate {
            Some(rate) if rate < least => Err(Failure::usage(format!(
                "{}: the rate is too low to be checked in windows of {window} s: use @{} or more",
                self.spec,
                size::text(least)
            ))),
            _ => Ok(()),
        }
    }

    /// Requirements of all of its processes.
    pub fn needs(&self) -> Needs {
        let each = (self.spec.load.needs)(&self.wanted);
        let count = u64::from(self.wanted.count);
        Needs {
            memory: each.memory.saturating_mul(count),
            disk: each.disk.saturating_mul(count),
            tasks: each.tasks.saturating_mul(self.wanted.count),
        }
    }
}

/// Refuses loads that do not fit: they must leave a tenth of the available memory, and half of the
/// free space of each disk. Unreadable properties of the machine refuse nothing.
pub fn admit(
    loads: &[Planned],
    available: Option<u64>,
    free: impl Fn(&Path) -> Option<u64>,
    device: impl Fn(&Path) -> Option<u64>,
) -> Result<()> {
    loads.iter().try_for_each(Planned::check_rate)?;
    let sum =
        |of: fn(&Needs) -> u64| loads.iter().fold(0u64, |sum, load| sum.saturating_add(of(&load.needs())));
    let (memory, tasks) = (sum(|needs| needs.memory), sum(|needs| u64::from(needs.tasks)));
    if let Some(available) = available {
        let most = available.saturating_sub((available / 10).max(MEMORY_LEFT));
        if memory > most {
            return Err(Failure::usage(format!(
                "the loads would take {} of memory, but only {} are safely available: use fewer or smaller \
                 ones",
                rounded(memory),
                rounded(most)
            )));
        }
    }
    if tasks > TASKS {
        return Err(Failure::usage(format!(
            "the loads would start {tasks} processes, more than the limit of {TASKS}: use fewer"
        )));
    }
    for load in loads.iter().filter(|load| load.needs().disk > 0) {
        // Two paths may be on the same disk.
        let on = |load: &Planned| device(&load.folder);
        let same =
            |other: &&Planned| other.folder == load.folder || on(other).is_some() && on(other) == on(load);
        let disk = loads.iter().filter(same).fold(0u64, |sum, load| sum.saturating_add(load.needs().disk));
        if let Some(free) = free(&load.folder)
            && disk > (free / 2).min(free.saturating_sub(SPACE_LEFT))
        {
            return Err(Failure::usage(format!(
                "{} would write {} where {} are free, of which half may be used: use less, or another disk \
                 with folder=PATH",
                load.spec,
                rounded(disk),
                rounded(free)
            )));
        }
    }
    Ok(())
}

/// Size in whole units, for messages.
fn rounded(bytes: u64) -> String {
    let shift = [30, 20, 10].into_iter().find(|shift| bytes >> shift >= 10).unwrap_or(0);
    size::text((bytes >> shift) << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::parse;

    fn admitted(spec: &str, available: u64, free: u64) -> Result<()> {
        let planned = |spec| Planned::new(spec, 2, Path::new("/x"));
        let loads: Vec<Planned> = parse(&[spec]).unwrap().into_iter().map(planned).collect();
        admit(&loads, Some(available), |_| Some(free), |_| Some(7))
    }

    #[test]
    fn what_the_machine_cannot_carry_is_refused_with_the_numbers() {
        const GIB: u64 = 1 << 30;
        assert!(admitted("mem:2x1G", 3 * GIB, GIB).is_ok());
        for (spec, available, free, reason) in [
            ("mem:2x1G", 2 * GIB, GIB, "2050M of memory"),
            ("mem:1024x1T", 2 * GIB, GIB, "of memory"),
            ("vm:2x60M", 140 << 20, GIB, "safely available"),
            ("hdd:4x200M", 2 * GIB, GIB, "would write 800M where 1G are free"),
            ("hdd:2x200M,folder=/a hdd:2x200M,folder=/b", 2 * GIB, GIB, "would write 800M where 1G are free"),
            ("messaging:100x1M", 4 * GIB, GIB, "of memory"),
            ("cpu@1", GIB, GIB, "use @"),
            ("vm:1x4M@256", GIB, GIB, "use @1K or more"),
            ("io:4@1", GIB, GIB, "use @2 or more"),
            ("messaging:300", 64 * GIB, GIB, "processes"),
        ] {
            let failure = admitted(spec, available, free).expect_err(spec);
            assert!(failure.message.contains(reason), "{spec}: {failure}");
        }
        for spec in ["hdd:1x1M@10K", "rtc@10", "io@1", "net:1x1400@93 hdd:1x1M@1M vm:1x1M@256"] {
            assert!(admitted(spec, GIB, GIB).is_ok(), "{spec}");
        }
        assert!(admitted("hdd:2x200M", 2 * GIB, GIB).is_ok());
        let unknown = Planned::new(parse(&["mem:2x1G"]).unwrap().remove(0), 2, Path::new("/x"));
        assert!(admit(&[unknown], None, |_| None, |_| None).is_ok());
    }
}
