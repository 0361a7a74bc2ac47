//! Standard output of long results: a closed pipe, as with `head`, ends the command silently.

use std::io::{self, ErrorKind, Write};

use model::error::{Exit, Result};

/// A writer that remembers if its reader has closed the pipe.
pub struct PrintedOutput<W> {
    to: W,
    is_closed: bool,
}

impl<W: Write> PrintedOutput<W> {
    pub fn new(to: W) -> PrintedOutput<W> {
        PrintedOutput { to, is_closed: false }
    }

    /// Result of a command that printed here.
    pub fn ended(&self, outcome: Result<Exit>) -> Result<Exit> {
        match outcome {
            Err(_) if self.is_closed => Ok(Exit::Ok),
            outcome => outcome,
        }
    }

    fn looked_at<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        self.is_closed |= outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
        outcome
    }
}

impl<W: Write> Write for PrintedOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let outcome = self.to.write(bytes);
        self.looked_at(outcome)
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = self.to.flush();
        self.looked_at(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::error::Failure;

    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_a_reader_that_has_gone_is_no_trouble() {
        for (kind, is_trouble) in [(ErrorKind::BrokenPipe, false), (ErrorKind::StorageFull, true)] {
            let mut out = PrintedOutput::new(Broken(kind));
            let failed = || Err(Failure::internal("cannot print it"));
            assert!(out.ended(failed()).is_err(), "nothing was printed yet");
            assert!(writeln!(out, "a line").is_err());
            assert_eq!(out.ended(failed()).is_err(), is_trouble);
        }
    }
}
