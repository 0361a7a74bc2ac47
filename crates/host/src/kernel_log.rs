//! What the kernel logs while a run lasts.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;

/// The kernel's log from a point in time on (Documentation/ABI/testing/dev-kmsg).
pub struct KernelLog {
    file: File,
}

impl KernelLog {
    /// Begins with the oldest record that is left; refused without CAP_SYSLOG where dmesg is
    /// restricted.
    pub fn from_the_start() -> io::Result<KernelLog> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
        Ok(KernelLog { file })
    }

    /// Skips what was logged so far.
    pub fn from_now_on() -> io::Result<KernelLog> {
        let mut log = KernelLog::from_the_start()?;
        log.file.seek(io::SeekFrom::End(0))?;
        Ok(log)
    }

    /// Goes through the records that came since; at most as many as a log buffer can hold.
    pub fn each_record(&mut self, mut f: impl FnMut(&[u8])) {
        let mut record = [0u8; 8192];
        for _ in 0..100_000 {
            match self.file.read(&mut record) {
                Ok(0) => return,
                Ok(length) => f(&record[..length]),
                // Overwritten meanwhile: reading continues with the oldest record that is left.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => return,
            }
        }
    }
}
