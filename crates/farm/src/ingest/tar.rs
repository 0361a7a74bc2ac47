//! Headers and padding of a tar archive whose files are written in parts by another task.

use tar::{Builder, EntryType, Header};

const BLOCK: u64 = 512;

/// End of an archive.
pub const END: [u8; 2 * BLOCK as usize] = [0; 2 * BLOCK as usize];

/// Padding of the last block of a file's content.
pub fn filling(bytes: u64) -> impl Iterator<Item = u8> {
    std::iter::repeat_n(0, (bytes.next_multiple_of(BLOCK) - bytes) as usize)
}

/// The head of a file, after a record of its path if that is too long for a head.
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
