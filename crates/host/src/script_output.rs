//! Output of a script, read while it runs; only the end is kept, so that one that prints endlessly
//! neither blocks nor fills the memory.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// Bytes kept of the end of the output.
const LIMIT: usize = 64 << 10;

/// Size of the pipe, if the user may have it (pipe(7), pipe-max-size), and most bytes read at a
/// time: the script's time limit is checked in between.
const AT_A_TIME: usize = 1 << 20;

/// Reading end of a pipe.
pub struct ScriptOutput {
    from: OwnedFd,
    kept: Vec<u8>,
}

impl ScriptOutput {
    /// Creates a pipe: the reading end, and two copies of the writing end.
    ///
    /// # Errors
    /// This process may open no more files.
    pub fn open() -> io::Result<(ScriptOutput, [Stdio; 2])> {
        let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
        // Writers wait while the pipe is full; the reader never waits.
        rustix::io::ioctl_fionbio(&from, true)?;
        let _ = fcntl_setpipe_size(&to, AT_A_TIME);
        let ends = [to.try_clone()?.into(), to.into()];
        Ok((ScriptOutput { from, kept: Vec::new() }, ends))
    }

    /// Reads what is available, at most `AT_A_TIME` bytes, rounded up to a read.
    pub fn drain(&mut self) {
        let (mut room, mut taken) = ([0; LIMIT], 0);
        while taken < AT_A_TIME {
            let Ok(read @ 1..) = rustix::io::read(&self.from, &mut room) else { return };
            taken += read;
            self.kept.extend_from_slice(&room[..read]);
            let gone = self.kept.len().saturating_sub(LIMIT);
            self.kept.drain(..gone);
        }
    }

    /// Last line that is not blank.
    pub fn last_line(&mut self) -> String {
        self.drain();
        let text = String::from_utf8_lossy(&self.kept);
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn of_output_without_end_the_end_is_kept() {
        let (mut output, [out, errors]) = ScriptOutput::open().unwrap();
        let mut endless = Command::new("yes").stdout(out).stderr(errors).spawn().unwrap();
        while output.kept.len() < LIMIT {
            output.drain();
        }
        output.drain();
        assert_eq!(output.kept.len(), LIMIT);
        endless.kill().unwrap();
        endless.wait().unwrap();
        assert_eq!(output.last_line(), "y");
    }

    #[test]
    fn what_says_nothing_is_not_waited_for() {
        let (mut output, ends) = ScriptOutput::open().unwrap();
        assert_eq!(output.last_line(), "", "open, and empty");
        drop(ends);
        assert_eq!(output.last_line(), "", "closed");
    }
}
