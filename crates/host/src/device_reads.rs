//! Reads of a device past the page cache, each of which ends with an interrupt of the device.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Size and alignment of a read: no block device has larger blocks.
const SIZE: usize = 4096;

/// Bytes of a read of a character device.
const CHARACTERS: usize = 64;

#[repr(align(4096))]
struct Aligned([u8; SIZE]);

/// Open device.
pub struct DeviceReads {
    file: File,
    buffer: Box<Aligned>,
    /// Size of a block device; none for a character device.
    size: Option<u64>,
    next: u64,
}

impl DeviceReads {
    /// Opens a block or character device for reading.
    ///
    /// # Errors
    /// `InvalidInput` for a file of another kind, or for a block device without a block.
    pub fn open(path: &Path) -> io::Result<DeviceReads> {
        let kind = std::fs::metadata(path)?.file_type();
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let (mut file, size);
        if kind.is_block_device() {
            file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
            let end = file.seek(SeekFrom::End(0))? / SIZE as u64 * SIZE as u64;
            size = Some(end).filter(|end| *end > 0);
            if size.is_none() {
                return Err(invalid());
            }
        } else if kind.is_char_device() {
            (file, size) = (File::open(path)?, None);
        } else {
            return Err(invalid());
        }
        Ok(DeviceReads { file, buffer: Box::new(Aligned([0; SIZE])), size, next: 0 })
    }

    /// Reads the next block, or some bytes.
    pub fn read(&mut self) -> io::Result<()> {
        let read = match self.size {
            Some(size) => {
                let at = self.next;
                self.next = (at + SIZE as u64) % size;
                self.file.read_at(&mut self.buffer.0, at)?
            }
            None => self.file.read(&mut self.buffer.0[..CHARACTERS])?,
        };
        if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_and_other_files_are_refused() {
        let mut zero = DeviceReads::open(Path::new("/dev/zero")).unwrap();
        assert!(zero.read().is_ok() && zero.read().is_ok());
        let mut null = DeviceReads::open(Path::new("/dev/null")).unwrap();
        assert_eq!(null.read().map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
        for path in ["/", "/proc/self/stat"] {
            let kind = DeviceReads::open(Path::new(path)).map(drop).map_err(|error| error.kind());
            assert_eq!(kind, Err(io::ErrorKind::InvalidInput), "{path}");
        }
        assert!(DeviceReads::open(Path::new("/dev/none-such")).is_err());
    }
}
