//! Newest run of this user, for commands called without one.

use std::path::PathBuf;

use super::Environment;
use super::named_run::named_run;
use super::outputs::{Outputs, remark};
use host::{MachineFiles, is_root};
use model::error::{Failure, Result};
use model::text::quoted;

/// Length of the part of a run.json that contains its command.
const HEAD: usize = 1 << 10;

/// Run that a command reads: the given one, or the newest.
pub struct ChosenRun {
    pub path: PathBuf,
    /// True if the user gave no run.
    pub newest: bool,
}

impl ChosenRun {
    /// The given run, or the user's newest one; the newest of a hunt if `hunted`.
    pub fn of(named: Option<&PathBuf>, hunted: bool, environment: &Environment) -> Result<ChosenRun> {
        if let Some(path) = named {
            return Ok(ChosenRun { path: named_run(path, environment)?, newest: false });
        }
        let folder = environment.runs();
        let found = newest(&MachineFiles::folder(&folder), hunted).ok_or_else(|| {
            let (of, command) = if hunted { (" of a hunt", "hunt") } else { ("", "measure") };
            let of_root = if is_root() { "" } else { "; for a run that sudo made, call this with sudo" };
            Failure::usage(format!(
                "no run{of} in {}: give the path of one, or make one with `onbeat {command} -D 10s`{of_root}",
                quoted(&folder)
            ))
        })?;
        Ok(ChosenRun { path: folder.join(found), newest: true })
    }

    /// Names the run in the first line, unless the user gave it.
    pub fn announce(&self, outputs: &mut Outputs, beside: bool) {
        if !self.newest {
            return;
        }
        let line = format!("the newest run: {}", quoted(&self.path));
        if outputs.prints() && !beside {
            outputs.print(&format!("{line}\n"))
        } else {
            remark(&format!("onbeat: {line}"))
        }
    }
}

/// The newest by its name, which begins with the time of its start.
fn newest(folder: &MachineFiles, hunted: bool) -> Option<String> {
    let mut names = folder.list_as_it_is("/").known().cloned()?;
    names.retain(|name| is_dated(name));
    names.sort_unstable_by(|a, b| b.cmp(a));
    names.into_iter().find(|name| {
        let head = folder.read_part(&format!("/{name}/run.json"), 0, HEAD);
        head.known().is_some_and(|head| !hunted || is_hunt(head))
    })
}

/// True if the name has the form of a run's name: `20261122T053837-0123abcd`.
fn is_dated(name: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match (name.get(..8), name.get(8..9), name.get(9..15), name.get(15..16)) {
        (Some(day), Some("T"), Some(time), Some("-")) => digits(day) && digits(time),
        _ => false,
    }
}

fn is_hunt(head: &[u8]) -> bool {
    let text: String = String::from_utf8_lossy(head).split_ascii_whitespace().collect();
    text.contains("\"command\":\"hunt\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::write::BundleWriter;
    use model::run::{Run, SCHEMA};

    #[test]
    fn the_newest_run_is_found_and_the_newest_hunt() {
        let folder = tempfile::tempdir().expect("a folder");
        let make = |name: &str, command: &str| {
            let run = Run { schema: SCHEMA.into(), command: command.into(), ..Run::default() };
            let writer = BundleWriter::create(&folder.path().join(name), 1).expect("a bundle");
            writer.finish(&run, &run.spikes).expect("written");
        };
        let files = || MachineFiles::folder(folder.path());
        assert_eq!(newest(&files(), false), None);
        make("20261122T053837-00000001", "hunt");
        make("20261123T053837-ffff0123456789ab", "measure");
        make("import-0123456789abcdef", "import");
        make("x", "hunt");
        assert_eq!(newest(&files(), false).as_deref(), Some("20261123T053837-ffff0123456789ab"));
        assert_eq!(newest(&files(), true).as_deref(), Some("20261122T053837-00000001"));
    }

    /// Home folder of the administrator.
    const ROOT: &str = "/root";

    #[test]
    fn what_sudo_wrote_is_read_with_sudo() {
        let caller = |user: &str, by| Some(super::super::Caller { user: user.to_owned(), by });
        let program = |invoked_by, path: &str| {
            let home = Some(ROOT.into());
            Environment { home, invoked_by, ..Environment::default() }.program(std::path::Path::new(path))
        };
        let bundle = format!("{ROOT}/.local/state/onbeat/runs/x");
        assert_eq!(program(caller("ann", "sudo"), &bundle), "sudo onbeat");
        assert_eq!(program(caller("ann", "doas"), &bundle), "doas onbeat");
        // A bundle of -o is in a folder of the caller's choice.
        assert_eq!(program(caller("ann", "sudo"), "x"), "onbeat");
        assert_eq!(program(caller("root", "sudo"), &bundle), "onbeat");
        assert_eq!(program(None, &bundle), "onbeat");
    }

    #[test]
    fn a_refusal_says_how_to_get_one() {
        let environment = Environment { home: Some("/nonexistent".into()), ..Environment::default() };
        let refused = ChosenRun::of(None, true, &environment).err().expect("none there");
        assert!(refused.message.contains("onbeat hunt"), "{}", refused.message);
        let named = |path: &str| ChosenRun::of(Some(&PathBuf::from(path)), false, &environment);
        assert!(named("src").is_ok_and(|run| !run.newest));
        assert!(named("no-such-run").is_err_and(|refused| refused.message.contains("no-such-run")));
    }
}
