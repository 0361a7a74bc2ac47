//! The recorded pages in `tests/pages/`: each machine is booted, recorded in a busy second, and its
//! pages brought back.
//!
//! The kernel renders the same buffer as text before it is read; the decoder is compared with that.

use std::path::PathBuf;

use crate::debian::{self, Need};
use crate::live::image::ImageFile;
use crate::live::machine::{ARM, Machine, OLD_RT, RT, X86};
use crate::live::tree::{self, Tree};
use crate::live::{frames, image, machine, qemu};
use crate::tools::{Result, root};

const MAIN: &str = include_str!("guest/main.sh");

/// A machine whose pages are kept.
struct Recorded {
    machine: Machine,
    /// KiB of a sub-buffer; other than 4 from 6.8 on.
    subbuf: u32,
    /// KiB of records per CPU.
    buffer: u32,
}

const RECORDED: &[Recorded] = &[
    Recorded { machine: Machine { name: "debian-6.12-rt", ..RT }, subbuf: 4, buffer: 16 },
    Recorded {
        machine: Machine { name: "debian-6.12", metapackage: "linux-image-6.12-amd64", ..X86 },
        subbuf: 8,
        buffer: 16,
    },
    Recorded { machine: Machine { name: "debian-6.1-rt", ..OLD_RT }, subbuf: 4, buffer: 16 },
    Recorded { machine: Machine { name: "debian-6.12-arm64", ..ARM }, subbuf: 4, buffer: 16 },
];

/// Boot the machines of tests/pages under QEMU and record their trace buffers again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only the machine of this name.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

/// Records the machines, each into its folder.
pub fn run(options: &Args) -> Result<()> {
    let wanted =
        |recorded: &&Recorded| options.only.as_ref().is_none_or(|name| recorded.machine.name == name);
    for recorded in RECORDED.iter().filter(wanted) {
        println!("{}", recorded.machine.name);
        let outcome = one(recorded);
        qemu::remove_image(&recorded.machine);
        outcome?;
    }
    Ok(())
}

fn one(recorded: &Recorded) -> Result<()> {
    let machine = &recorded.machine;
    debian::ensure(&[Need { program: machine.emulator, package: machine.package }])?;
    let kernel = machine::kernel(machine)?;
    let busybox = debian::busybox(machine.debian_arch)?;
    let archive =
        image::initramfs(&busybox, &image::GuestProgram::fixed(Vec::new()), &kernel.config, &items(recorded));
    let boot = qemu::boot_again(machine, &qemu::Image::write(machine, kernel.image, &archive)?)?;
    let report = frames::parse(&boot.results);
    let stopped = || format!("the machine stopped: {}; see {}", boot.last_words, boot.log.display());
    let reply = report.replies.get("pages").filter(|reply| reply.over == Some(0)).ok_or_else(stopped)?;
    keep(recorded, &tree::of(reply, "pages", &format!("{}-pages", machine.name))?)
}

fn items(recorded: &Recorded) -> Vec<ImageFile> {
    let events: String =
        trace::catalog::all().map(|wanted| format!("{}/{}\n", wanted.system, wanted.event)).collect();
    vec![
        ("lab/main.sh".to_string(), MAIN.into()),
        ("lab/events".to_string(), events.into_bytes()),
        ("lab/subbuf".to_string(), recorded.subbuf.to_string().into_bytes()),
        ("lab/buffer".to_string(), recorded.buffer.to_string().into_bytes()),
    ]
}

fn keep(recorded: &Recorded, tree: &Tree) -> Result<()> {
    let dir: PathBuf = root().join("tests/pages").join(recorded.machine.name);
    for (name, content) in tree {
        println!("  {name}: {} bytes", content.len());
        if name.ends_with(".raw") && content.is_empty() {
            return Err(format!("{name} is empty: nothing was recorded"));
        }
    }
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    tree::store(tree, &dir)
}
