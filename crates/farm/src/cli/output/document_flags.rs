//! `--json` and `-q`: the result of a command as a document, and its remarks.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use model::error::{Exit, Failure, Result, json_pretty};
use model::text::{harmless, quoted};
use serde::Serialize;

use crate::cli::output::progress::CommandProgress;
use crate::cli::{FarmEnvironment, say};

/// The flags of a command that has a result.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct DocumentFlags {
    /// Write the result as JSON to this file; `-` is standard output, which then holds nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print no remarks and no progress on standard error
    #[arg(short, long)]
    quiet: bool,
}

impl DocumentFlags {
    /// Refuses a file that cannot be written, before anything is done for it.
    pub fn check(&self) -> Result<()> {
        match &self.json {
            Some(path) if !is_dash(path) => {
                host::check_writable(path).map_err(|error| unwritable(path, &error))
            }
            _ => Ok(()),
        }
    }

    /// True if the result is printed as text: the document may occupy standard output.
    pub fn prints(&self) -> bool {
        !self.json.as_deref().is_some_and(is_dash)
    }

    /// Prints a line of a result; a closed pipe is not an error.
    pub fn print(&self, line: &str) -> Result<()> {
        if self.prints() { print_line(&mut std::io::stdout(), line) } else { Ok(()) }
    }

    /// Prints a line of the answer, which `-q` keeps; beside a document it is a remark.
    pub fn answer(&self, line: &str) -> Result<()> {
        if self.prints() {
            return print_line(&mut std::io::stdout(), line);
        }
        self.remark(line);
        Ok(())
    }

    /// Prints an item that was refused, with the reason, on standard error; `-q` keeps it.
    pub fn refusal(&self, line: &str) {
        say(&format!("onbeat-farm: {line}"));
    }

    /// A line on standard error, unless none is wanted.
    pub fn remark(&self, line: &str) {
        if !self.quiet {
            say(&format!("onbeat-farm: {line}"));
        }
    }

    /// Progress of the command, unless that is disabled.
    pub fn progress(&self, environment: &FarmEnvironment) -> CommandProgress {
        CommandProgress::begin(!self.quiet && !environment.dumb)
    }

    /// Writes the document to its destination.
    pub fn write(&self, document: &impl Serialize) -> Result<()> {
        let Some(path) = &self.json else { return Ok(()) };
        let text = json_pretty(document)?;
        host::write_document(path, &harmless(&text)).map_err(|error| unwritable(path, &error))
    }
}

fn print_line(out: &mut impl Write, line: &str) -> Result<()> {
    match writeln!(out, "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::internal(format!("cannot print it ({error}): try again")))
        }
        _ => Ok(()),
    }
}

fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::of_call(
        format!("--json: cannot write {}", quoted(path)),
        error,
        Exit::Usage,
        "name a file in a folder that you may write to",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_cannot_be_printed_is_a_failure_unless_its_reader_has_gone() {
        assert!(print_line(&mut Failing(ErrorKind::BrokenPipe), "a").is_ok());
        let failure = print_line(&mut Failing(ErrorKind::StorageFull), "a").unwrap_err();
        assert!(failure.exit == Exit::Internal && failure.message.contains("cannot print"), "{failure}");
    }

    #[test]
    fn a_document_goes_into_its_file_or_takes_standard_output() {
        let folder = tempfile::tempdir().unwrap();
        let of = |path: PathBuf| DocumentFlags { json: Some(path), quiet: true };
        let file = of(folder.path().join("a.json"));
        assert!(file.check().is_ok() && file.prints());
        file.write(&["\u{9b}2J"]).unwrap();
        let written = host::read_user_file(&folder.path().join("a.json"), 99).unwrap();
        assert!(written.is_ascii() && written.ends_with(b"]\n"), "{written:?}");
        let gone = of(folder.path().join("gone/a.json"));
        assert_eq!(gone.check().unwrap_err().exit, Exit::Usage);
        assert!(gone.write(&[1]).unwrap_err().message.contains("--json"));
        assert!(!of("-".into()).prints() && of("-".into()).check().is_ok());
        let none = DocumentFlags::default();
        assert!(none.check().is_ok() && none.prints() && none.write(&[1]).is_ok());
    }
}
