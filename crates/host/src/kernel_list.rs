//! The kernel's symbol list, kept open: access to the addresses is decided when it is opened
//! (`kallsyms_show_value`, kernel/kallsyms.c).

use std::fs::File;
use std::io::{self, Read, Seek};

/// Size of a read, in bytes.
const PIECE: usize = 64 << 10;

/// Open /proc/kallsyms.
pub struct KernelList(File);

impl KernelList {
    /// Opens the list.
    ///
    /// # Errors
    /// The kernel was built without CONFIG_KALLSYMS.
    pub fn open() -> io::Result<KernelList> {
        Ok(KernelList(File::open("/proc/kallsyms")?))
    }

    /// Reads it from the beginning, at most `limit` bytes, in pieces.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&mut self, limit: u64, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        self.0.rewind()?;
        let mut rest = (&mut self.0).take(limit);
        let mut piece = vec![0; PIECE];
        loop {
            match rest.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(read) => take(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_from_its_beginning_each_time() {
        let Ok(mut list) = KernelList::open() else {
            assert!(!std::fs::exists("/proc/kallsyms").unwrap());
            return;
        };
        let mut lines = || {
            let mut lines = 0;
            list.read(1 << 20, |piece| lines += piece.iter().filter(|&&byte| byte == b'\n').count()).unwrap();
            lines
        };
        let first = lines();
        assert!(first > 100 && lines() == first, "{first}");
    }
}
