//! The texts that an audit uses if no kernel runs: a named configuration, and those in a file
//! system for the kernel that it contains.

use std::path::Path;

use super::machine_source::MachineSource;
use facts::boot_texts::{BootTexts, FoundTexts, find_cmdline, find_kconfig, is_running, is_system};
use facts::kconfig::KCONFIG_LIMIT;
use facts::kconfig_file::{KconfigFile, read_kconfig_file};
use host::MachineFiles;
use model::error::{Exit, Failure, Result};
use model::text::quoted;
use rules::audit::JudgedTexts;

/// Files read of a machine, and additional texts.
pub struct MachineTexts {
    pub files: MachineFiles,
    pub texts: BootTexts,
    /// The texts that are audited, if they are not those of a running kernel.
    pub judged: Option<JudgedTexts>,
}

/// Opens a machine; a configuration that is named replaces the machine's, or is all there is.
pub fn open_machine(machine: MachineSource, kconfig: Option<&Path>) -> Result<MachineTexts> {
    let named = kconfig.map(named_kconfig).transpose()?;
    match machine {
        MachineSource::Live if named.is_some() => {
            Ok(stopped(FoundTexts { kconfig: named, cmdline: None }, None))
        }
        MachineSource::Tree(root) => {
            let tree = machine.open()?;
            if is_running(&tree) { Ok(running(tree, named)) } else { not_running(&tree, root, named) }
        }
        _ => Ok(running(machine.open()?, named)),
    }
}

fn running(files: MachineFiles, named: Option<(String, KconfigFile)>) -> MachineTexts {
    let kconfig = named.map(|(_, file)| file.config);
    MachineTexts { files, texts: BootTexts { kconfig, ..BootTexts::default() }, judged: None }
}

/// A file system without any output of a running kernel.
fn not_running(
    tree: &MachineFiles,
    root: &Path,
    named: Option<(String, KconfigFile)>,
) -> Result<MachineTexts> {
    let refused = |why: &dyn std::fmt::Display| Failure::usage(format!("--root: {}: {why}", quoted(root)));
    let kconfig = match named {
        Some(named) => Some(named),
        None => find_kconfig(tree).map_err(|error| refused(&error))?,
    };
    let found = FoundTexts { kconfig, cmdline: find_cmdline(tree) };
    let is_system = is_system(tree);
    if found == FoundTexts::default() && !is_system {
        return Err(refused(
            &"it contains no machine state: expected /proc and /sys, or a kernel configuration such as \
              /boot/config-RELEASE, or a boot loader's text such as /boot/cmdline.txt",
        ));
    }
    Ok(stopped(found, is_system.then_some(root)))
}

fn stopped(found: FoundTexts, root: Option<&Path>) -> MachineTexts {
    let judged = JudgedTexts {
        kconfig: found.kconfig.as_ref().map(|(path, _)| path.clone()),
        is_excerpt: found.kconfig.as_ref().is_some_and(|(_, file)| file.is_excerpt),
        cmdline: found.cmdline.as_ref().map(|(path, _)| path.clone()),
    };
    let files = MachineFiles::stopped(root.map(Path::to_path_buf));
    MachineTexts { files, texts: found.texts(), judged: Some(judged) }
}

fn named_kconfig(path: &Path) -> Result<(String, KconfigFile)> {
    let bytes = host::read_user_file(path, KCONFIG_LIMIT).map_err(|error| {
        let what = format!("--kconfig: cannot read {}", quoted(path));
        Failure::of_call(what, &error, Exit::Usage, "give a kernel's .config")
    })?;
    match read_kconfig_file(&bytes) {
        Ok(file) => Ok((path.display().to_string(), file)),
        Err(why) => Err(Failure::usage(format!("--kconfig: {}: {why}", quoted(path)))),
    }
}
