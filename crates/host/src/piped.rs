//! Another program whose output is read here. No shell sees its arguments.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{Builder, JoinHandle};

/// A pipe takes as much without a reader (pipe(7)), so that writing it first cannot wait for ever.
const MOST_INPUT: usize = 32 << 10;
/// How much of what it says on standard error is kept.
const MOST_SAID: u64 = 16 << 10;

/// The program; it is killed where it is dropped before its end.
pub struct PipedProgram {
    child: Child,
    output: ChildStdout,
    said: Option<JoinHandle<String>>,
}

impl PipedProgram {
    /// Starts a program, which is looked for in `$PATH`, and writes its input.
    ///
    /// # Errors
    /// There is none, it may not be executed, or the input is larger than a pipe.
    pub fn start(program: &str, arguments: &[&str], input: &[u8]) -> io::Result<PipedProgram> {
        if input.len() > MOST_INPUT {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (Some(output), Some(errors), Some(mut to)) =
            (child.stdout.take(), child.stderr.take(), child.stdin.take())
        else {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        };
        // Read meanwhile: a program that cannot say what is wrong would wait.
        let said = Builder::new().name("said".to_owned()).spawn(move || {
            let (mut errors, mut text) = (errors, Vec::new());
            let _ = errors.by_ref().take(MOST_SAID).read_to_end(&mut text);
            let _ = io::copy(&mut errors, &mut io::sink());
            String::from_utf8_lossy(&text).into_owned()
        })?;
        // One that ended says why by its exit code.
        let _ = to.write_all(input);
        Ok(PipedProgram { child, output, said: Some(said) })
    }

    /// What it prints.
    pub fn output(&mut self) -> &mut impl Read {
        &mut self.output
    }

    /// Waits for its end: its exit code, none where a signal ended it, and what it said on standard
    /// error. To be asked when its output was read to the end.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn end(mut self) -> io::Result<(Option<i32>, String)> {
        let status = self.child.wait()?;
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        Ok((status.code(), said))
    }
}

impl Drop for PipedProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_its_input_and_tells_its_end() {
        let mut program =
            PipedProgram::start("sh", &["-c", "cat; echo \"$0\" >&2; exit 7", "a b; c"], b"input").unwrap();
        let mut text = String::new();
        program.output().read_to_string(&mut text).unwrap();
        assert_eq!(text, "input");
        assert_eq!(program.end().unwrap(), (Some(7), "a b; c\n".to_owned()));
    }

    #[test]
    fn one_that_is_left_is_ended_and_none_is_an_error() {
        let program = PipedProgram::start("sleep", &["1000"], b"").unwrap();
        let pid = program.child.id();
        drop(program);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        assert!(PipedProgram::start("no-such-program", &[], b"").is_err());
        assert!(PipedProgram::start("cat", &[], &vec![0; MOST_INPUT + 1]).is_err());
    }
}
