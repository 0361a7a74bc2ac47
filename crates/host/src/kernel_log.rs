//! Kernel log messages during a run.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;

/// Reader of the kernel log (Documentation/ABI/testing/dev-kmsg).
pub struct KernelLog {
    file: File,
}

impl KernelLog {
    /// Starts with the oldest record; refused without CAP_SYSLOG if dmesg is restricted.
    pub fn from_the_start() -> io::Result<KernelLog> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
        Ok(KernelLog { file })
    }

    /// Skips the records that exist already.
    pub fn from_now_on() -> io::Result<KernelLog> {
        let mut log = KernelLog::from_the_start()?;
        log.file.seek(io::SeekFrom::End(0))?;
        Ok(log)
    }

    /// Calls `f` for each new record; at most as many as a log buffer can hold.
    pub fn each_record(&mut self, mut f: impl FnMut(&[u8])) {
        let mut record = [0u8; 8192];
        for _ in 0..100_000 {
            match self.file.read(&mut record) {
                Ok(0) => return,
                Ok(length) => f(&record[..length]),
                // Overwritten before it was read: continues with the oldest remaining record.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => return,
            }
        }
    }
}
