//! A folder sent by a guest: a tar archive, compressed, in base64, as the contents of one label.
//!
//! Only regular files are accepted, under relative names that stay below the folder; anything else
//! in the archive is an error, and so is an archive without an end. Compression includes a
//! checksum.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::frames::Reply;
use crate::tools::{Result, Tool, read, target, write};

/// A machine's files are a few megabytes.
const MOST_BYTES: u64 = 256 << 20;
const MOST_FILES: usize = 200_000;
const BLOCK: usize = 512;

/// Contents by relative name.
pub type Tree = BTreeMap<String, Vec<u8>>;

/// The folder under a label, unpacked through a file called `scratch`.
pub fn of(reply: &Reply, label: &str, scratch: &str) -> Result<Tree> {
    untar(&unpacked(reply, label, scratch)?)
}

/// Decoded and decompressed contents of a label, through a file called `scratch`.
pub fn unpacked(reply: &Reply, label: &str, scratch: &str) -> Result<Vec<u8>> {
    let packed = target("lab/trees")?.join(format!("{scratch}.gz"));
    let archive = packed.with_extension("");
    write(&packed, base64(reply.file(label)?)?)?;
    Tool::new("gzip").args(["-d", "-f", &packed.display().to_string()]).quiet().text()?;
    let size = std::fs::metadata(&archive).map_err(|error| error.to_string())?.len();
    if size > MOST_BYTES {
        return Err(format!("{label} holds {size} bytes"));
    }
    let bytes = read(&archive)?;
    std::fs::remove_file(&archive).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Writes the files below an existing folder that contains none of them.
pub fn store(tree: &Tree, dir: &Path) -> Result<()> {
    for (name, content) in tree {
        let path = dir.join(name);
        let parent: PathBuf = path.parent().map(Path::to_path_buf).unwrap_or_default();
        std::fs::create_dir_all(&parent).map_err(|error| format!("{}: {error}", parent.display()))?;
        write(&path, content)?;
    }
    Ok(())
}

/// The regular files below a folder.
pub fn load(dir: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(name) = path.strip_prefix(dir) {
                tree.insert(name.display().to_string(), read(&path)?);
            }
        }
    }
    Ok(tree)
}

/// RFC 4648's alphabet, in lines.
fn base64(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut held, mut bits) = (0u32, 0);
    for symbol in text.bytes().filter(|byte| !b"\r\n=".contains(byte)) {
        let value = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            other => return Err(format!("base64 has no byte {other}")),
        };
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits & 0xff) as u8);
        }
    }
    Ok(bytes)
}

/// The regular files of an archive in the form that busybox writes: ustar with GNU's long names.
fn untar(bytes: &[u8]) -> Result<Tree> {
    let mut tree = Tree::new();
    let mut long: Option<String> = None;
    let mut rest = bytes;
    loop {
        let Some((header, after)) = rest.split_at_checked(BLOCK) else {
            return Err("the archive is cut short".to_string());
        };
        if header.iter().all(|&byte| byte == 0) {
            return Ok(tree);
        }
        checked(header)?;
        let size = octal(&header[124..136])?;
        let content = after.get(..size).ok_or("the archive is cut short")?;
        rest = after.get(size.next_multiple_of(BLOCK)..).ok_or("the archive is cut short")?;
        match header[156] {
            b'L' => long = Some(text(content)?),
            kind => {
                let name = match long.take() {
                    Some(name) => name,
                    None => text(&header[..100])?,
                };
                match kind {
                    b'5' => {}
                    b'0' | 0 => drop(tree.insert(safe(&name)?, content.to_vec())),
                    other => return Err(format!("{name} is not a regular file: {}", char::from(other))),
                }
            }
        }
        if tree.len() > MOST_FILES {
            return Err(format!("the archive has more than {MOST_FILES} files"));
        }
    }
}

fn checked(header: &[u8]) -> Result<()> {
    let blank = |at: usize, byte: u8| if (148..156).contains(&at) { b' ' } else { byte };
    let sum: usize = header.iter().enumerate().map(|(at, &byte)| usize::from(blank(at, byte))).sum();
    if sum == octal(&header[148..156])? { Ok(()) } else { Err("a header's checksum is wrong".to_string()) }
}

fn octal(field: &[u8]) -> Result<usize> {
    let digits = text(field)?;
    usize::from_str_radix(digits.trim(), 8).map_err(|_| format!("not an octal number: {digits:?}"))
}

fn text(field: &[u8]) -> Result<String> {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    String::from_utf8(field[..end].to_vec()).map_err(|_| "a name is not UTF-8".to_string())
}

/// The name without its `./`, if it stays below the folder.
fn safe(name: &str) -> Result<String> {
    let inner = name.strip_prefix("./").unwrap_or(name);
    let stays = |part: &str| !part.is_empty() && part != "." && part != "..";
    if inner.split('/').all(stays) {
        Ok(inner.to_string())
    } else {
        Err(format!("a name leads out of the folder: {name:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, size: usize, kind: u8) -> Vec<u8> {
        let mut header = vec![0; BLOCK];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        header[148..156].fill(b' ');
        header[156] = kind;
        let sum: usize = header.iter().map(|&byte| usize::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        header
    }

    fn entry(name: &str, content: &[u8], kind: u8) -> Vec<u8> {
        let mut bytes = header(name, content.len(), kind);
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }

    fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
        [entries.concat(), vec![0; 2 * BLOCK]].concat()
    }

    #[test]
    fn base64_is_read_in_lines_and_strangers_are_refused() {
        assert_eq!(base64("aGVs\nbG8=\n").unwrap(), b"hello");
        assert_eq!(base64("+/8=").unwrap(), [0xfb, 0xff]);
        assert!(base64("a-b").is_err());
    }

    #[test]
    fn files_are_taken_and_folders_passed_over() {
        let long = format!("./host/{}", "x".repeat(130));
        let bytes = archive(&[
            entry("./", b"", b'5'),
            entry("./host/a", b"one\n", b'0'),
            entry("././@LongLink", format!("{long}\0").as_bytes(), b'L'),
            entry("./host/xxx", b"two\0", b'0'),
        ]);
        let tree = untar(&bytes).unwrap();
        assert_eq!(tree["host/a"], b"one\n");
        assert_eq!(tree[long.strip_prefix("./").unwrap()], b"two\0");
        assert_eq!(tree.len(), 2);
    }

    #[test]
    fn what_would_leave_the_folder_or_is_no_file_is_refused() {
        for name in ["/etc/passwd", "./../a", "a/../../b", "a//b", "./", ""] {
            assert!(untar(&archive(&[entry(name, b"x", b'0')])).is_err(), "{name}");
        }
        for kind in [b'1', b'2', b'3', b'6'] {
            assert!(untar(&archive(&[entry("a", b"", kind)])).unwrap_err().contains("not a regular file"));
        }
    }

    #[test]
    fn a_damaged_archive_is_refused() {
        let whole = archive(&[entry("a", b"content", b'0')]);
        assert_eq!(untar(&whole).unwrap().len(), 1);
        assert!(untar(&whole[..600]).unwrap_err().contains("cut short"));
        assert!(untar(&whole[..1024]).unwrap_err().contains("cut short"));
        let mut flipped = whole;
        flipped[0] ^= 1;
        assert!(untar(&flipped).unwrap_err().contains("checksum"));
    }

    #[test]
    fn a_stored_tree_lies_at_its_names() {
        let dir = target("tmp").unwrap().join(format!("tree-{}", std::process::id()));
        let tree = Tree::from([("host/a/b".to_string(), b"x".to_vec()), ("c".to_string(), Vec::new())]);
        store(&tree, &dir).unwrap();
        assert_eq!(read(&dir.join("host/a/b")).unwrap(), b"x");
        assert_eq!(read(&dir.join("c")).unwrap(), b"");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
