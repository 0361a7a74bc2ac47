//! Source of a machine's files: this machine, a copy of its files, or a capture.

use std::path::Path;

use bundle::capture;
use bundle::read::check_run;
use host::MachineFiles;
use model::error::{Exit, Failure, Result};
use model::text::quoted;

/// The source of the settings.
#[derive(Clone, Copy, Debug)]
pub enum MachineSource<'a> {
    /// The machine that this process runs on.
    Live,
    /// A copy of a file system: missing files count as absent.
    Tree(&'a Path),
    /// A capture, or the machine's files in a run's bundle: missing files count as not captured.
    Captured(&'a Path),
    /// A capture from others: the effort of reading it is bounded, and the rest counts as unknown.
    Foreign(&'a Path),
}

/// Limit of the bytes read from a foreign bundle: enough for a thousand CPUs, as 64 take 1.3 MB.
const FOREIGN_BYTES: u64 = 64 << 20;

impl<'a> MachineSource<'a> {
    /// A capture or a tree if one is named, otherwise this machine.
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
            MachineSource::Captured(bundle) => {
                let files = capture::open(bundle)?;
                check_run(bundle).map(|()| files)
            }
            MachineSource::Foreign(bundle) => capture::open_within(bundle, FOREIGN_BYTES),
            MachineSource::Tree(root) => match host::is_dir(root) {
                Ok(true) => Ok(MachineFiles::tree(root)),
                Ok(false) => {
                    let file = match host::written_at(root) {
                        Some(_) => "; for a kernel configuration use `onbeat audit --kconfig FILE`",
                        None => "",
                    };
                    let root = quoted(root);
                    let what = format!("--root: {root} is not a folder: give a copy of a file system{file}");
                    Err(Failure::usage(what))
                }
                Err(error) => {
                    let what = format!("--root: cannot access {}", quoted(root));
                    Err(Failure::of_call(what, &error, Exit::Usage, "give a copy of a file system"))
                }
            },
        }
    }
}
