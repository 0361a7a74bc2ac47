//! Kernel modules for a machine's RAM disk, with their dependencies, in the order of loading.
//!
//! Debian's packages bring no `modules.dep`: it is made when they are installed. Every module names
//! its dependencies itself (`depends=` in its `.modinfo`).

use std::path::{Path, PathBuf};

use super::image::ImageFile;
use super::machine::Machine;
use crate::tools::{Result, Tool, read, target};

/// A module's file name and bytes.
pub type Module = (String, Vec<u8>);

/// The modules of the machine's kernel, dependencies first. Built-in ones are not among them.
pub fn of(machine: &Machine, wanted: &[&str]) -> Result<Vec<Module>> {
    let mut loaded = Vec::new();
    if wanted.is_empty() {
        return Ok(loaded);
    }
    let dir = target("lab/modules")?.join(machine.kernel_key());
    if !dir.exists() {
        fetch(machine, &dir)?;
    }
    let mut files = Vec::new();
    files_of(&dir, &mut files)?;
    for name in wanted {
        add(name, &files, &mut loaded)?;
    }
    Ok(loaded)
}

/// The modules as files of an image, with `lab/modules.order`; none if none is wanted.
pub fn in_image(machine: &Machine, wanted: &[&str]) -> Result<Vec<ImageFile>> {
    let modules = of(machine, wanted)?;
    if modules.is_empty() {
        return Ok(Vec::new());
    }
    let order: String = modules.iter().map(|(name, _)| format!("{name}\n")).collect();
    let files = modules.into_iter().map(|(name, bytes)| (format!("lab/modules/{name}"), bytes));
    Ok(std::iter::once(("lab/modules.order".to_string(), order.into_bytes())).chain(files).collect())
}

fn fetch(machine: &Machine, dir: &Path) -> Result<()> {
    let scratch = target(&format!("lab/unpack-modules-{}", machine.kernel_key()))?;
    machine.archive()?.unpack_kernel(machine.metapackage, &scratch)?;
    let usr_merged = ["usr/lib/modules", "lib/modules"].map(|place| scratch.join(place));
    let found = usr_merged.iter().find(|place| place.exists()).ok_or("the kernel package has no modules")?;
    std::fs::rename(found, dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    std::fs::remove_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))
}

fn files_of(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    for entry in entries.filter_map(|entry| entry.ok()) {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_of(&entry.path(), files)?,
            _ => files.push(entry.path()),
        }
    }
    Ok(())
}

fn add(name: &str, files: &[PathBuf], loaded: &mut Vec<Module>) -> Result<()> {
    let file = format!("{}.ko", plain(name));
    if loaded.iter().any(|module| module.0 == file) {
        return Ok(());
    }
    let is_it = |path: &&PathBuf| {
        let found = plain(&path.file_name().unwrap_or_default().to_string_lossy());
        found == file || found == format!("{file}.xz")
    };
    let path = files.iter().find(is_it).ok_or_else(|| format!("the kernel has no module {name}"))?;
    let bytes = unpacked(path)?;
    for needed in depends(&bytes) {
        add(&needed, files, loaded)?;
    }
    loaded.push((file, bytes));
    Ok(())
}

/// Normalizes a module's name: the kernel treats `-` and `_` as equal.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

fn unpacked(path: &Path) -> Result<Vec<u8>> {
    if path.extension().is_none_or(|extension| extension != "xz") {
        return read(path);
    }
    Tool::new("xz").args(["-d", "-k", "-f", &path.display().to_string()]).quiet().text()?;
    let plain = path.with_extension("");
    let bytes = read(&plain)?;
    std::fs::remove_file(&plain).map_err(|error| format!("{}: {error}", plain.display()))?;
    Ok(bytes)
}

/// Names after `depends=` in `.modinfo`: separated by commas, ended by a zero byte.
fn depends(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else { return Vec::new() };
    let list: Vec<u8> = module[at + KEY.len()..].iter().copied().take_while(|&byte| byte != 0).collect();
    let list = String::from_utf8_lossy(&list).into_owned();
    list.split(',').filter(|name| !name.is_empty()).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_names_its_dependencies() {
        assert_eq!(depends(b"x\0license=GPL\0depends=nvme-core,crc16\0name=a\0"), ["nvme-core", "crc16"]);
        assert!(depends(b"x\0depends=\0y").is_empty() && depends(b"nothing").is_empty());
    }

    #[test]
    fn dependencies_come_first_and_once() {
        let dir = target("tmp").unwrap().join(format!("modules-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("drivers")).unwrap();
        for (name, needs) in [("a-b", ""), ("c", "a_b"), ("d", "c,a-b")] {
            let text = format!("\0depends={needs}\0");
            std::fs::write(dir.join(format!("drivers/{name}.ko")), text).unwrap();
        }
        let mut files = Vec::new();
        files_of(&dir, &mut files).unwrap();
        let mut loaded = Vec::new();
        add("d", &files, &mut loaded).unwrap();
        assert!(add("e", &files, &mut loaded).unwrap_err().contains("no module e"));
        std::fs::remove_dir_all(&dir).unwrap();
        let names: Vec<&str> = loaded.iter().map(|module| module.0.as_str()).collect();
        assert_eq!(names, ["a_b.ko", "c.ko", "d.ko"]);
    }
}
