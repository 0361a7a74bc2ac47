//! One boot under QEMU's software emulation: KVM may be unavailable, and the gate must not depend
//! on it.
//!
//! The console is logged to `target/lab/logs/NAME.log`; results use a separate port.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::faults::stops;
use super::machine::{Machine, SERIAL};
use crate::tools::{Result, Tool, read, target, write};

/// All checks of the slowest machine take a third of this.
const LIMIT: Duration = Duration::from_secs(900);

/// A scene on a disk may be killed and begin anew a dozen times within a boot.
const LIMIT_WITH_DISK: Duration = Duration::from_secs(2700);

/// Limit of a machine's boots if the emulator makes it panic.
const BOOTS: usize = 4;

/// The files a machine boots from.
pub struct Image {
    kernel: PathBuf,
    initrd: PathBuf,
    disk: Option<PathBuf>,
    words: CmdlineEdit,
}

/// Changes to the machine's command line for a boot.
#[derive(Debug, Default, PartialEq)]
pub struct CmdlineEdit {
    /// Words that are appended.
    pub added: Vec<String>,
    /// Words that are removed.
    pub removed: Vec<String>,
}

impl CmdlineEdit {
    /// The line with these words, and without those.
    pub fn of(&self, line: &str) -> String {
        let kept = line.split_whitespace().filter(|word| !self.removed.iter().any(|removed| removed == word));
        kept.chain(self.added.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    }
}

/// Results of a boot.
pub struct Boot {
    /// The results channel.
    pub results: String,
    /// The console's log.
    pub log: PathBuf,
    /// The end of the console's log in one line.
    pub last_words: String,
    /// True if the emulator, not the kernel, made it panic.
    pub emulator_fault: bool,
}

impl Image {
    /// Stores the RAM disk.
    pub fn write(machine: &Machine, kernel: PathBuf, archive: &[u8]) -> Result<Image> {
        let initrd = initrd(machine)?;
        write(&initrd, archive)?;
        Ok(Image { kernel, initrd, disk: None, words: CmdlineEdit::default() })
    }

    /// The same with an NVMe disk, whose contents persist after the boot.
    pub fn with_disk(self, disk: PathBuf) -> Image {
        Image { disk: Some(disk), ..self }
    }

    /// The same with another command line for the kernel.
    pub fn with_words(self, words: CmdlineEdit) -> Image {
        Image { words, ..self }
    }
}

fn initrd(machine: &Machine) -> Result<PathBuf> {
    Ok(target("lab/images")?.join(format!("{}.cpio", machine.name)))
}

/// Size of a disk of checks, which is only read.
const BLANK: u64 = 64 << 20;

fn blank(machine: &Machine) -> Result<PathBuf> {
    Ok(target("lab/images")?.join(format!("{}.blank", machine.name)))
}

/// A disk without contents.
pub fn blank_disk(machine: &Machine) -> Result<PathBuf> {
    let path = blank(machine)?;
    let created = std::fs::File::create(&path).and_then(|file| file.set_len(BLANK));
    created.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Removes the RAM disk and the disk; that they are not there is as good.
pub fn remove_image(machine: &Machine) {
    let _ = initrd(machine).map(std::fs::remove_file);
    let _ = blank(machine).map(std::fs::remove_file);
}

/// Boots, and boots again after a panic of the emulator's kind.
pub fn boot_again(machine: &Machine, image: &Image) -> Result<Boot> {
    let mut panics = 0;
    loop {
        let booted = boot(machine, image)?;
        if !booted.emulator_fault || panics + 1 == BOOTS {
            return Ok(booted);
        }
        panics += 1;
        println!("  a panic of the emulator's kind ({panics}); booting again");
    }
}

/// Boots, waits for the machine to switch itself off, and reads its output.
pub fn boot(machine: &Machine, image: &Image) -> Result<Boot> {
    let logs = target("lab/logs")?;
    let log = logs.join(format!("{}.log", machine.name));
    let channel = logs.join(format!("{}.results", machine.name));
    for stale in [&log, &channel] {
        write(stale, "")?;
    }
    let emulator = Tool::new(machine.emulator).args(arguments(machine, image, &log, &channel));
    let emulator = emulator.start(Some(&logs.join(format!("{}.qemu", machine.name))))?;
    let limit = if image.disk.is_some() { LIMIT_WITH_DISK } else { LIMIT };
    let (ended, stalls) = stops::attend(emulator, &channel, limit, machine.urgent);
    let console = String::from_utf8_lossy(&read(&log)?).into_owned();
    let results = stalls.with(&String::from_utf8_lossy(&read(&channel)?));
    let over = results.lines().any(|line| line == "=== DONE");
    let last_words = match (&ended, over) {
        (Err(why), _) => why.clone(),
        _ => last_words_of(&console),
    };
    Ok(Boot { results, log, last_words, emulator_fault: !over && is_emulator_fault(&console) })
}

fn arguments(machine: &Machine, image: &Image, log: &Path, channel: &Path) -> Vec<String> {
    let Machine { console, words, port, .. } = machine;
    let append = image.words.of(&format!("console={console} {words} panic=1 lab.port={port}"));
    let log = format!("file:{}", log.display());
    let port = format!("file,id=results,path={}", channel.display());
    let (kernel, initrd) = (image.kernel.display().to_string(), image.initrd.display().to_string());
    let mut args = vec!["-accel", machine.accel, "-m", machine.memory, "-smp", machine.smp];
    args.extend(["-nodefaults", "-no-user-config"]);
    args.extend(machine.board);
    args.extend(machine.devices);
    args.extend([
        "-display",
        "none",
        "-no-reboot",
        "-kernel",
        &kernel,
        "-initrd",
        &initrd,
        "-append",
        &append,
    ]);
    let drive = image.disk.as_ref().map(|disk| format!("if=none,id=disk,format=raw,file={}", disk.display()));
    if let Some(drive) = &drive {
        args.extend(["-drive", drive, "-device", "nvme,drive=disk,serial=lab,max_ioqpairs=4"]);
    }
    args.extend(["-serial", &log, "-chardev", &port]);
    if machine.port == SERIAL {
        args.extend(["-serial", "chardev:results"]);
    } else {
        args.extend(["-device", "virtio-serial-pci", "-device", "virtserialport,chardev=results"]);
    }
    args.into_iter().map(str::to_string).collect()
}

/// True for panics that the emulator causes: with several threads it may run a stale instruction
/// after the kernel patched its text, so that the patching's own breakpoint looks like a bug. And
/// if the host delays it while the kernel looks for its timer, the kernel finds none.
fn is_emulator_fault(console: &str) -> bool {
    console.lines().any(|line| line.contains("Oops: int3") || line.contains("IO-APIC + timer doesn't work"))
}

fn last_words_of(console: &str) -> String {
    let panic = console.lines().find(|line| line.contains("Kernel panic"));
    let last = panic.or_else(|| console.lines().rev().find(|line| !line.trim().is_empty()));
    last.unwrap_or("it said nothing").trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulators_panic_is_told_from_a_real_one() {
        let stale =
            "LAB: a\n[ 9.1] Oops: int3: 0000 [#1] PREEMPT_RT SMP\n[ 9.2] Kernel panic - not syncing\n";
        assert!(is_emulator_fault(stale));
        assert!(is_emulator_fault(
            "[ 0.05] Kernel panic - not syncing: IO-APIC + timer doesn't work!  Boot\n"
        ));
        assert!(!is_emulator_fault(
            "[ 9.1] BUG: unable to handle page fault\n[ 9.2] Kernel panic - not syncing\n"
        ));
    }

    #[test]
    fn words_are_added_and_taken_off() {
        let edit = |added: &[&str], removed: &[&str]| {
            let list = |words: &[&str]| words.iter().map(ToString::to_string).collect();
            CmdlineEdit { added: list(added), removed: list(removed) }.of("console=ttyS0 quiet panic=1")
        };
        assert_eq!(edit(&[], &[]), "console=ttyS0 quiet panic=1");
        assert_eq!(edit(&["psi=0", "a=b"], &["quiet", "console=tty"]), "console=ttyS0 panic=1 psi=0 a=b");
    }

    #[test]
    fn the_last_words_name_the_panic() {
        assert_eq!(last_words_of("a\n[1] Kernel panic - x\nb\n"), "[1] Kernel panic - x");
        assert_eq!(last_words_of("a\nb\n\n"), "b");
        assert_eq!(last_words_of(""), "it said nothing");
    }
}
