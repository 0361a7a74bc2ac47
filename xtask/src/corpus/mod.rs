//! The corpus of captured machines in `tests/corpus/`: each is booted, set up and captured again.
//!
//! A capture is kept only if the kernel confirms the setup: a machine that contradicts its record
//! would be audited for years.

mod machines;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::debian::{self, Need};
use crate::dist;
use crate::live::frames::{self, Reply};
use crate::live::image::ImageFile;
use crate::live::tree::{self, Tree};
use crate::live::{image, machine, modules, qemu};
use crate::tally::{StepOutcome, Tally};
use crate::tools::{Result, Tool, read, root, write};
use machines::{CORPUS, Captured};

const MAIN: &str = include_str!("guest/main.sh");
const CAPTURE: &str = include_str!("guest/capture.sh");

/// Files of every machine that the log shows.
const TOLD: &[&str] = &[
    "/proc/cmdline",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/nohz_full",
    "/sys/devices/system/node/online",
    "/sys/devices/system/cpu/smt/active",
    "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list",
    "/sys/devices/virtual/workqueue/cpumask",
    "/proc/irq/default_smp_affinity",
];

/// Boot the machines of tests/corpus under QEMU and capture them again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Keep the images.
    #[arg(long)]
    keep: bool,
    /// Only the machine of this name, or those whose name contains it.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

/// Captures the machines and closes with the count.
pub fn run(options: &Args) -> Result<()> {
    let mut tally = Tally::default();
    for captured in wanted(options.only.as_deref()) {
        println!("\n{}", captured.machine.name);
        let start = Instant::now();
        let outcome = StepOutcome::from(one(captured));
        println!("  {} s", start.elapsed().as_secs());
        tally.note(captured.machine.name, outcome);
        if !options.keep {
            qemu::remove_image(&captured.machine);
        }
    }
    tally.close()
}

/// The machine of that name, else those whose name contains it.
fn wanted(only: Option<&str>) -> Vec<&'static Captured> {
    let exact = CORPUS.iter().find(|captured| Some(captured.machine.name) == only);
    match (exact, only) {
        (Some(captured), _) => vec![captured],
        (None, Some(part)) => CORPUS.iter().filter(|captured| captured.machine.name.contains(part)).collect(),
        (None, None) => CORPUS.iter().collect(),
    }
}

fn one(captured: &Captured) -> Result<()> {
    let machine = &captured.machine;
    let image = prepare(captured)?;
    let start = Instant::now();
    let boot = qemu::boot_again(machine, &image)?;
    println!("  on and off in {} s", start.elapsed().as_secs());
    let report = frames::parse(&boot.results);
    let stopped = || format!("the machine stopped: {}; see {}", boot.last_words, boot.log.display());
    let reply = report.replies.get("corpus").filter(|reply| reply.over == Some(0)).ok_or_else(stopped)?;
    for (label, value) in &reply.values {
        println!("  {label}: {value}");
    }
    as_expected(captured, reply)?;
    let tree = tree::of(reply, "bundle", machine.name)?;
    println!("  {} files, {} KiB", tree.len(), tree.values().map(Vec::len).sum::<usize>() / 1024);
    keep(&tree, &readme(captured, reply)?, &place(captured)?)
}

fn prepare(captured: &Captured) -> Result<qemu::Image> {
    let machine = &captured.machine;
    debian::ensure(&[
        Need { program: machine.emulator, package: machine.package },
        Need { program: "xz", package: "xz-utils" },
    ])?;
    let kernel = machine::kernel(machine)?;
    let busybox = debian::busybox(machine.debian_arch)?;
    let onbeat = image::GuestProgram::fixed(read(&dist::build(machine.arch)?)?);
    let items = items_of(captured, modules::of(machine, captured.modules)?);
    qemu::Image::write(machine, kernel.image, &image::initramfs(&busybox, &onbeat, &kernel.config, &items))
}

fn items_of(captured: &Captured, modules: Vec<modules::Module>) -> Vec<ImageFile> {
    let lines =
        |names: &mut dyn Iterator<Item = &str>| names.map(|name| format!("{name}\n")).collect::<String>();
    let order = lines(&mut modules.iter().map(|module| module.0.as_str()));
    let told = lines(&mut TOLD.iter().copied().chain(captured.expects.iter().map(|expected| expected.0)));
    let mut items: Vec<ImageFile> =
        modules.into_iter().map(|(name, bytes)| (format!("lab/modules/{name}"), bytes)).collect();
    for (name, text) in [
        ("main.sh", MAIN),
        ("capture.sh", CAPTURE),
        ("setup.sh", captured.setup),
        ("modules.order", &order),
        ("told", &told),
    ] {
        items.push((format!("lab/{name}"), text.into()));
    }
    items
}

/// Checks that the setup completed, and that the kernel matches the record.
fn as_expected(captured: &Captured, reply: &Reply) -> Result<()> {
    for label in ["modules.err", "setup.err"] {
        let said = reply.file(label)?;
        if !said.is_empty() {
            return Err(format!("{label}: {}", said.trim().replace('\n', "; ")));
        }
    }
    for label in ["setup", "capture"] {
        let code = reply.number(&format!("{label}.exit"))?;
        if code != 0 {
            return Err(format!("the {label} ended with {code}"));
        }
    }
    for (path, wanted) in captured.expects {
        let found = reply.value(path)?.trim();
        if found != *wanted {
            return Err(format!("{path} is {found:?} instead of {wanted:?}"));
        }
    }
    Ok(())
}

fn readme(captured: &Captured, reply: &Reply) -> Result<String> {
    let emulator = Tool::new(captured.machine.emulator).args(["--version"]).quiet().text()?;
    let emulator = emulator.lines().next().unwrap_or_default();
    let version = emulator.split_whitespace().nth(3).unwrap_or("of an unknown version");
    let (kernel, program) = (reply.value("uname")?, captured.machine.emulator);
    Ok(format!("{}\n{}\nLinux {kernel} under {program} {version}.\n", captured.is, captured.why))
}

fn place(captured: &Captured) -> Result<PathBuf> {
    Ok(root().join("tests/corpus").join(captured.machine.name))
}

/// Replaces the capture and its description; other files next to them stay.
fn keep(tree: &Tree, readme: &str, dir: &Path) -> Result<()> {
    let fault = |error: std::io::Error| format!("{}: {error}", dir.display());
    std::fs::create_dir_all(dir).map_err(fault)?;
    for entry in std::fs::read_dir(dir).map_err(fault)?.filter_map(|entry| entry.ok()) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "host" {
            std::fs::remove_dir_all(entry.path()).map_err(fault)?;
        } else if name == "capture.json" || name.starts_with("host.") {
            std::fs::remove_file(entry.path()).map_err(fault)?;
        }
    }
    tree::store(tree, dir)?;
    write(&dir.join("README.md"), readme)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn reply(captured: &Captured) -> Reply {
        let mut reply = Reply::default();
        for label in ["setup.exit", "capture.exit"] {
            reply.values.insert(label.into(), "0".into());
        }
        reply.files.insert("setup.err".into(), Some(String::new()));
        reply.files.insert("modules.err".into(), Some(String::new()));
        for (path, content) in captured.expects {
            reply.values.insert((*path).to_string(), (*content).to_string());
        }
        reply
    }

    #[test]
    fn a_whole_name_is_one_machine_and_a_part_is_several() {
        assert_eq!(wanted(Some("debian-6.12-rt")).len(), 1);
        assert!(wanted(Some("6.12-rt")).len() > 1 && wanted(Some("none")).is_empty());
        assert_eq!(wanted(None).len(), CORPUS.len());
    }

    #[test]
    fn names_are_unique_and_every_record_says_what_it_is_and_how_it_is_known() {
        let names: BTreeSet<&str> = CORPUS.iter().map(|captured| captured.machine.name).collect();
        assert_eq!(names.len(), CORPUS.len());
        for captured in CORPUS {
            let name = captured.machine.name;
            assert!(captured.is.ends_with('.') && captured.why.ends_with('.'), "{name}");
            assert!(!captured.expects.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_machine_that_is_not_what_its_record_says_is_refused() {
        for captured in CORPUS {
            assert_eq!(as_expected(captured, &reply(captured)), Ok(()));
            for (path, _) in captured.expects {
                let mut other = reply(captured);
                other.values.insert((*path).to_string(), "something else".to_string());
                assert!(as_expected(captured, &other).is_err(), "{}: {path}", captured.machine.name);
            }
        }
        for (label, content) in [("modules.err", "insmod: no"), ("setup.err", "sh: no")] {
            let mut failed = reply(&CORPUS[0]);
            failed.files.insert(label.into(), Some(content.into()));
            assert!(as_expected(&CORPUS[0], &failed).unwrap_err().contains("no"));
        }
        for label in ["setup.exit", "capture.exit"] {
            let mut ended = reply(&CORPUS[0]);
            ended.values.insert(label.into(), "1".into());
            assert!(as_expected(&CORPUS[0], &ended).is_err(), "{label}");
        }
    }

    #[test]
    fn a_capture_is_replaced_and_what_lies_beside_it_stays() {
        let dir = crate::tools::target("tmp").unwrap().join(format!("corpus-{}", std::process::id()));
        let tree = |name: &str| Tree::from([(name.to_string(), b"x".to_vec())]);
        keep(&tree("host/old"), "a", &dir).unwrap();
        write(&dir.join("host.errors"), "").unwrap();
        write(&dir.join("audit.json"), "{}").unwrap();
        keep(&tree("host/new"), "b", &dir).unwrap();
        let there = |name: &str| dir.join(name).exists();
        assert!(there("host/new") && there("audit.json") && !there("host/old") && !there("host.errors"));
        assert_eq!(read(&dir.join("README.md")).unwrap(), b"b");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
