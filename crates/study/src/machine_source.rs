//! A machine to be judged: this one, a copy of its files, a capture.

use std::path::Path;

use bundle::capture;
use host::MachineFiles;
use model::error::{Exit, Failure, Result};
use model::text::quoted;

/// The source of the settings.
#[derive(Clone, Copy, Debug)]
pub enum MachineSource<'a> {
    /// The one that this runs on.
    Live,
    /// A copy of a file system: what it lacks counts as absent.
    Tree(&'a Path),
    /// A capture, or what a run's bundle holds of its machine: what it lacks is not captured.
    Captured(&'a Path),
    /// The same from others: what it takes to read it is bounded, and beyond that it is unknown.
    Foreign(&'a Path),
}

/// The most that is read of a bundle from others: enough for a thousand CPUs, for 64 take 1.3 MB.
const FOREIGN_BYTES: u64 = 64 << 20;

impl<'a> MachineSource<'a> {
    /// A capture or a tree where one is named, else this machine.
    pub fn of(bundle: Option<&'a Path>, root: Option<&'a Path>) -> MachineSource<'a> {
        match (bundle, root) {
            (Some(bundle), _) => MachineSource::Captured(bundle),
            (None, Some(root)) => MachineSource::Tree(root),
            (None, None) => MachineSource::Live,
        }
    }

    pub(crate) fn open(self) -> Result<MachineFiles> {
        match self {
            MachineSource::Live => Ok(MachineFiles::live()),
            MachineSource::Captured(bundle) => capture::open(bundle),
            MachineSource::Foreign(bundle) => capture::open_within(bundle, FOREIGN_BYTES),
            MachineSource::Tree(root) => match host::is_dir(root) {
                Ok(true) => Ok(MachineFiles::tree(root)),
                Ok(false) => {
                    let file = match host::written_at(root) {
                        Some(_) => "; `onbeat audit --kconfig FILE` judges a kernel configuration",
                        None => "",
                    };
                    let root = quoted(root);
                    let what = format!("--root: {root} is no folder: give a copy of a file system{file}");
                    Err(Failure::usage(what))
                }
                Err(error) => {
                    let what = format!("--root: cannot look at {}", quoted(root));
                    Err(Failure::of_call(what, &error, Exit::Usage, "give a copy of a file system"))
                }
            },
        }
    }
}
