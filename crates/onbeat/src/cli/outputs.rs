//! Outputs of a command: text on the terminal, documents in files or on standard output.
//!
//! A command names its outputs once, in [`Outputs::of`], and gives each its content. Unwritable
//! outputs are refused before a measurement; of later failures, the first is reported as the
//! command's, after the rest is written.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use model::error::{Exit, Failure, Result, json, json_pretty};
use model::text::{clean, harmless, quoted};
use report::boundary::for_terminal;
use report::words::wrapped;
use serde::Serialize;

use super::Environment;

/// The flags that most commands share. A command whose document or silence is another says so with
/// `mut_arg`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct OutputFlags {
    /// Write the result as JSON to this file; `-` is standard output, which then holds nothing else
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print no notes on standard error
    #[arg(short, long)]
    pub quiet: bool,
}

/// Layout of text: its width, and the use of colours.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns.
    pub columns: usize,
    /// True if text on standard output is coloured.
    pub color: bool,
}

/// Outputs of one command.
pub struct Outputs {
    /// True if a document takes standard output, which then holds nothing else.
    taken: bool,
    /// True once text was printed: the first text has no empty line above it.
    printed: bool,
    /// Layout of text.
    pub screen: Screen,
    failure: Option<Failure>,
}

impl Outputs {
    /// Outputs to the files that the flags name, `-` for standard output. Refuses unwritable files,
    /// and two outputs to one place.
    pub fn of(files: &[&Option<PathBuf>], environment: &Environment) -> Result<Outputs> {
        let named: Vec<&Path> = files.iter().filter_map(|path| path.as_deref()).collect();
        let standard = named.iter().filter(|path| is_dash(path)).count();
        if standard > 1 {
            return Err(Failure::usage(
                "only one document can go to standard output: give a file for the other",
            ));
        }
        if named.iter().enumerate().any(|(at, path)| !is_dash(path) && named[..at].contains(path)) {
            return Err(Failure::usage("two outputs have the same file: give each a different one"));
        }
        for path in named.into_iter().filter(|path| !is_dash(path)) {
            host::check_writable(path)
                .or_else(|error| can_make_folder(path, error))
                .map_err(|error| unwritable(path, &error))?;
        }
        let screen = Screen { columns: environment.columns(), color: environment.color(&io::stdout()) };
        Ok(Outputs { taken: standard > 0, printed: false, screen, failure: None })
    }

    /// Layout for the present width of the terminal, which may have changed during a run.
    pub fn screen_now(&self, environment: &Environment) -> Screen {
        Screen { columns: environment.columns(), ..self.screen }
    }

    /// True if text is to be printed.
    pub fn prints(&self) -> bool {
        !self.taken
    }

    /// Prints text, unless a document takes standard output.
    pub fn print(&mut self, text: &str) {
        let text = if self.printed { text } else { text.trim_start_matches('\n') };
        if self.prints() && !text.is_empty() {
            self.printed = true;
            self.keep(print(for_terminal(text.to_owned(), self.screen.color).as_bytes()));
        }
    }

    /// Prints lines of any length, wrapped at the width of the terminal.
    pub fn print_lines(&mut self, text: &str) {
        let mut lines = String::new();
        text.lines().for_each(|line| wrapped(&mut lines, line, self.screen.columns));
        self.print(&lines);
    }

    /// Writes a document to the file of a flag, if it is given.
    pub fn write(&mut self, to: &Option<PathBuf>, content: impl FnOnce() -> Result<String>) {
        if let Some(path) = to {
            self.keep(content().and_then(|content| write(path, content.as_bytes())));
        }
    }

    /// Writes a value as JSON on one line.
    pub fn json(&mut self, to: &Option<PathBuf>, value: &impl Serialize) {
        self.write(to, || Ok(json(value)? + "\n"));
    }

    /// Writes a value as JSON on many lines.
    pub fn json_pretty(&mut self, to: &Option<PathBuf>, value: &impl Serialize) {
        self.write(to, || json_pretty(value));
    }

    /// Keeps the first failure.
    pub fn keep(&mut self, written: Result<()>) {
        self.failure = self.failure.take().or(written.err());
    }

    /// The first failure, for commands whose end depends on it.
    pub fn into_failure(self) -> Option<Failure> {
        self.failure
    }

    /// Exit status of the command, or the first write error.
    pub fn end(self, exit: Exit) -> Result<Exit> {
        self.failure.map_or(Ok(exit), Err)
    }
}

/// Refuses a document for output that has none.
///
/// # Errors
/// A document is requested.
pub fn no_document(json: &Option<PathBuf>, what: &str, instead: &str) -> Result<()> {
    match json {
        Some(_) => Err(Failure::usage(format!("--json: {what} has no JSON document: give {instead}"))),
        None => Ok(()),
    }
}

/// Prints a line on standard error, always one line, even if a file name or external text contains
/// line breaks. Write errors are ignored.
pub fn remark(line: &str) {
    let _ = writeln!(io::stderr(), "{}", clean(line.trim()));
}

/// Writes bytes to standard output; a closed pipe is not an error.
pub fn print(bytes: &[u8]) -> Result<()> {
    let bytes = safe(bytes);
    let mut out = io::stdout().lock();
    match out.write_all(&bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe && !was_closed(&error) => {
            let what = "cannot write to standard output";
            Err(Failure {
                exit: Exit::Internal,
                ..Failure::of_call(what, &error, Exit::Internal, "give a file")
            })
        }
        _ => Ok(()),
    }
}

/// Writes to the file that a flag names, `-` for standard output.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if host::is_standard_output(path) {
        return print(bytes);
    }
    make_folder(path)
        .and_then(|()| host::write_user_file(path, &safe(bytes)))
        .map_err(|error| unwritable(path, &error))
}

/// Creates the folder of an output, as for a bundle.
fn make_folder(path: &Path) -> io::Result<()> {
    match missing_folder(path) {
        Some(folder) => host::dir::Dir::create(folder).map(drop),
        None => Ok(()),
    }
}

fn missing_folder(path: &Path) -> Option<&Path> {
    path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
}

/// Refuses a missing folder that cannot be created, as far as that can be checked beforehand.
fn can_make_folder(path: &Path, error: io::Error) -> io::Result<()> {
    let Some(folder) = missing_folder(path) else { return Err(error) };
    let known = folder.ancestors().skip(1).find(|above| above.as_os_str().is_empty() || above.exists());
    let above = known.filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if host::is_dir(above)? { host::check_access(above) } else { Err(error) }
}

fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let what = format!("cannot write {}", quoted(path));
    Failure::of_call(what, error, Exit::Usage, "choose another file")
}

/// Escapes characters beyond ASCII that a terminal would interpret as controls.
fn safe(bytes: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(bytes).map(harmless) {
        Ok(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
        _ => Cow::Borrowed(bytes),
    }
}

/// True if standard output is a terminal that was closed: it returns EIO from then on
/// (tty_hung_up_p, tty(4)).
fn was_closed(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO) && host::is_character_device(io::stdout())
}

/// True if both streams are shown on one terminal.
pub fn is_one_terminal() -> bool {
    io::stdout().is_terminal() && io::stderr().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(files: &[&str]) -> Result<Outputs> {
        let files: Vec<Option<PathBuf>> = files.iter().map(|path| Some(path.into())).collect();
        Outputs::of(&files.iter().collect::<Vec<_>>(), &Environment::default())
    }

    #[test]
    fn standard_output_holds_one_document_or_the_text() {
        assert!(outputs(&[]).is_ok_and(|outputs| outputs.prints()));
        assert!(outputs(&["-"]).is_ok_and(|outputs| !outputs.prints()));
        assert_eq!(outputs(&["-", "-"]).err().map(|failure| failure.exit), Some(Exit::Usage));
        assert_eq!(outputs(&["a.json", "a.json"]).err().map(|failure| failure.exit), Some(Exit::Usage));
    }

    #[test]
    fn the_first_failure_is_the_commands_and_the_rest_is_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let (second, gone) = (Some(dir.path().join("second")), Some("/proc/gone/first".into()));
        let mut outputs = outputs(&[]).expect("nothing to refuse");
        outputs.write(&gone, || Ok("1".into()));
        outputs.write(&None, || Err(Failure::internal("is not asked")));
        outputs.json(&second, &[2]);
        outputs.write(&second, || Err(Failure::internal("comes too late")));
        let failure = outputs.end(Exit::Ok).expect_err("the first is not there");
        assert!(failure.message.contains("/proc/gone/first"), "{failure}");
        let written = host::read_user_file(second.as_deref().expect("a path"), 10).expect("written");
        assert_eq!(written, b"[2]\n");
    }

    #[test]
    fn missing_folders_are_made_with_the_file_and_not_before() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a/b/x.json");
        let named = Some(path.clone());
        let mut outputs = Outputs::of(&[&named], &Environment::default()).expect("it can be made");
        assert!(!dir.path().join("a").exists());
        outputs.json(&named, &[1]);
        outputs.end(Exit::Ok).expect("written");
        assert_eq!(host::read_user_file(&path, 10).expect("written"), b"[1]\n");
        // A folder cannot exist below a file.
        let below = Some(path.join("y.json"));
        assert!(Outputs::of(&[&below], &Environment::default()).is_err());
    }
}
