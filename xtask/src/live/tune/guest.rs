//! Contents of the guests: the programs of `lab/machine_state` and `examples/robot`, the modules of
//! the disk and its file system, the helpers.

use std::path::PathBuf;
use std::time::Duration;

use super::debian_guest;
use super::scene::UndoScene;
use crate::debian::{self, Need};
use crate::live::faults::build;
use crate::live::image::{self, ImageFile};
use crate::live::machine::Machine;
use crate::live::{Base, Reason, modules, qemu};
use crate::tools::{Result, Tool, read, root, target, write};

const HELPERS: &str = include_str!("../guest/tune-helpers.sh");
const MAIN: &str = include_str!("../guest/tune.sh");
const MODULES: [&str; 3] = ["nvme", "ext4", "e1000e"];
/// Algorithm of ext4's checksums, which it requests by name; newer kernels have it built in.
const CHECKSUMS: &str = "crc32c_generic";
const DISK_BYTES: &str = "64M";

/// Contents of the images of a scene.
pub struct Guest<'a> {
    base: &'a Base,
    items: Vec<ImageFile>,
    root: Option<Vec<u8>>,
}

impl Guest<'_> {
    /// Builds and fetches it.
    pub fn prepare<'a>(
        machine: &Machine,
        scene: &UndoScene,
        base: &'a Base,
    ) -> std::result::Result<Guest<'a>, Reason> {
        let needs = [
            Need { program: "gcc", package: "gcc" },
            Need { program: "mke2fs", package: "e2fsprogs" },
            Need { program: "xz", package: "xz-utils" },
        ];
        debian::ensure(&needs).map_err(Reason::Missing)?;
        let root = if scene.systemd { Some(debian_guest::archive().map_err(Reason::Missing)?) } else { None };
        let mut items = vec![
            ("lab/tune-helpers.sh".to_string(), HELPERS.into()),
            ("lab/main.sh".to_string(), MAIN.into()),
        ];
        for program in ["machine_state", "kill_at_point", "in_terminal", "spin"] {
            let source = format!("lab/machine_state/{program}.c");
            items.push((format!("bin/{program}"), built(&source, program).map_err(Reason::Broken)?));
        }
        for robot in ["careless", "good"].iter().filter(|_| scene.robots) {
            let (source, name) = (format!("examples/robot/{robot}.c"), format!("robot-{robot}"));
            items.push((format!("bin/{name}"), built(&source, &name).map_err(Reason::Broken)?));
        }
        if scene.faults {
            let module = build::module(machine, &base.kernel).map_err(Reason::Broken)?;
            items.push(("lab/onbeat_fault.ko".to_string(), module));
            items.push((
                "bin/user_faults".to_string(),
                build::program("user_faults").map_err(Reason::Broken)?,
            ));
        }
        let checksums = machine.suite.is_empty().then_some(CHECKSUMS);
        let wanted: Vec<&str> = checksums.into_iter().chain(MODULES).collect();
        items.extend(modules::in_image(machine, &wanted).map_err(Reason::Missing)?);
        Ok(Guest { base, items, root })
    }

    /// The image of one boot.
    pub fn image(&self, machine: &Machine, scene: &UndoScene, script: &str) -> Result<qemu::Image> {
        let mut items = self.items.clone();
        items.push((format!("lab/{}.sh", scene.name), script.as_bytes().to_vec()));
        items.push(("lab/order".to_string(), format!("{}\n", scene.name).into_bytes()));
        let Base { kernel, busybox, onbeat } = self.base;
        let archive = match &self.root {
            None => image::initramfs(busybox, onbeat, &kernel.config, &items),
            Some(root) => {
                let own = image::beside(busybox, &onbeat.binary, &kernel.config, &items);
                [root.as_slice(), &own].concat()
            }
        };
        let image = qemu::Image::write(machine, kernel.image.clone(), &archive)?;
        Ok(image.with_disk(disk(machine)?))
    }
}

fn built(source: &str, program: &str) -> Result<Vec<u8>> {
    let source = root().join(source).display().to_string();
    let made = target("lab/module")?.join(program);
    let flags = ["-O2", "-Wall", "-static", "-s", "-pthread", &source, "-o", &made.display().to_string()];
    Tool::new("gcc").args(flags).quiet().within(Duration::from_secs(120)).text()?;
    read(&made)
}

fn disk(machine: &Machine) -> Result<PathBuf> {
    Ok(target("lab/images")?.join(format!("{}.disk", machine.name)))
}

/// An empty disk.
pub fn fresh_disk(machine: &Machine) -> Result<()> {
    let path = disk(machine)?;
    write(&path, "")?;
    let mkfs = ["-q", "-F", "-t", "ext4", &path.display().to_string(), DISK_BYTES];
    Tool::new("mke2fs").args(mkfs).quiet().text().map(drop)
}

/// Removes it; that it is not there is as good.
pub fn remove_disk(machine: &Machine) {
    let _ = disk(machine).map(std::fs::remove_file);
}
