//! Heads and padding of a tar archive whose files are written in parts by another task.

use tar::{Builder, EntryType, Header};

const BLOCK: u64 = 512;

/// What ends an archive.
pub const END: [u8; 2 * BLOCK as usize] = [0; 2 * BLOCK as usize];

/// What fills the last block of a file's content.
pub fn filling(bytes: u64) -> impl Iterator<Item = u8> {
    std::iter::repeat_n(0, (bytes.next_multiple_of(BLOCK) - bytes) as usize)
}

/// What stands before a file's content: its head, and a record of a path that has no place in that.
pub fn head_of(path: &str, bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_size(bytes);
    let mut archive = Builder::new(Vec::new());
    archive.append_data(&mut header, path, std::io::empty())?;
    Ok(archive.get_ref().clone())
}
