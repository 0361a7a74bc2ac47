//! Run named by an argument: a path, or the name of a folder of the user's runs.

use std::path::{Path, PathBuf};

use super::Environment;
use bundle::capture::is_capture;
use model::error::{Failure, Result};
use model::text::quoted;

/// The path itself if it exists; otherwise that of the run or capture of this name in the user's
/// folder of runs, since texts and pages name runs so.
pub fn named_run(named: &Path, environment: &Environment) -> Result<PathBuf> {
    // An unreadable path is refused by its reader, with the reason.
    let there = host::identity(named).is_some() || host::is_dir(named).is_err();
    let text = named.as_os_str().as_encoded_bytes();
    if there || text.is_empty() || text.contains(&b'/') {
        return Ok(named.to_owned());
    }
    let runs = environment.runs();
    let kept = runs.join(named);
    if host::identity(&kept.join("run.json")).is_some() || is_capture(&kept) {
        return Ok(kept);
    }
    Err(Failure::usage(format!(
        "cannot read {}: not found in the current folder, nor as a run in {}: give the path of a run, or the \
         name of a run in that folder",
        quoted(named),
        quoted(&runs)
    )))
}

/// Like [`named_run`], for several, in their order.
pub fn named_runs(named: &[PathBuf], environment: &Environment) -> Result<Vec<PathBuf>> {
    named.iter().map(|path| named_run(path, environment)).collect()
}

/// Like [`named_run`], for an optional flag.
pub fn named_by_flag(named: Option<&PathBuf>, environment: &Environment) -> Result<Option<PathBuf>> {
    named.map(|path| named_run(path, environment)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bundle::capture::{self, Capture};
    use bundle::write::BundleWriter;
    use host::access::AccessRecorder;
    use model::error::Exit;
    use model::run::{Run, SCHEMA};

    const ID: &str = "20261122T053837-0123abcd";

    /// A user's folder of runs, in a folder that is removed with the test.
    fn environment() -> (tempfile::TempDir, Environment) {
        let state = tempfile::tempdir().expect("a folder");
        let state_home = Some(state.path().as_os_str().to_owned());
        (state, Environment { state_home, ..Environment::default() })
    }

    fn keep(folder: &Path) {
        let run = Run { schema: SCHEMA.into(), ..Run::default() };
        let writer = BundleWriter::create(folder, 1).expect("a bundle");
        writer.finish(&run, &run.spikes).expect("written");
    }

    #[test]
    fn a_run_is_found_by_its_name_where_runs_are_kept() {
        let (_state, environment) = environment();
        let kept = environment.runs().join(ID);
        assert!(named_run(Path::new(ID), &environment).is_err());
        keep(&kept);
        assert_eq!(named_run(Path::new(ID), &environment).expect("found"), kept);
        let both = named_runs(&[PathBuf::from(ID), PathBuf::from("src")], &environment).expect("found");
        assert_eq!(both, [kept.clone(), PathBuf::from("src")]);
        let flag = PathBuf::from(ID);
        assert_eq!(named_by_flag(Some(&flag), &environment).expect("found"), Some(kept));
        assert_eq!(named_by_flag(None, &environment).expect("none asked for"), None);
    }

    #[test]
    fn a_capture_is_found_as_a_run_is() {
        let (_state, environment) = environment();
        let kept = environment.runs().join("board");
        let capture = Capture {
            schema: capture::SCHEMA.into(),
            version: String::new(),
            taken: String::new(),
            root: false,
        };
        capture::write(&kept, &capture, &AccessRecorder::default()).expect("written");
        assert_eq!(named_run(Path::new("board"), &environment).expect("found"), kept);
    }

    #[test]
    fn what_is_there_goes_first_and_a_path_is_taken_as_it_is() {
        let (_state, environment) = environment();
        for name in ["src", "Cargo.toml", "run"] {
            keep(&environment.runs().join(name));
        }
        // Tests run in the folder of their crate.
        for path in ["src", "Cargo.toml", ".", "./run", "run/", "/nonexistent/run", ""] {
            assert_eq!(named_run(Path::new(path), &environment).expect(path).as_os_str(), path);
        }
    }

    #[test]
    fn a_refusal_names_both_places() {
        let (_state, environment) = environment();
        keep(&environment.runs().join("other").join(ID));
        for name in [ID, "other", "maxima.csv"] {
            let refused = named_run(Path::new(name), &environment).expect_err("nowhere");
            let text = refused.message;
            assert!(refused.exit == Exit::Usage && text.contains(&format!("cannot read {name}")), "{text}");
            assert!(text.contains("the current folder"), "{text}");
            assert!(text.contains(&quoted(environment.runs())), "{text}");
        }
    }
}
