//! The commands under test, their input, and their permitted remains.

use std::path::{Path, PathBuf};

use super::LIMIT;
use super::calls::FailingCall;
use crate::tools::{Result, Tool, target};

/// End of a command.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// The exit code, 128 and more for signals.
    pub code: i32,
    /// Standard error, without the tracer's lines.
    pub stderr: String,
    /// The tracer's line of the call that failed; empty if none did.
    pub injected: String,
    /// True if it exceeded the time limit.
    pub timed_out: bool,
    /// Files that are there afterwards and should not be, or are empty and should not be.
    pub litter: Vec<String>,
    /// Requested results that are missing, empty or damaged.
    pub lacking: Vec<String>,
    /// The document, if the same input gives the same one.
    pub document: Vec<u8>,
}

/// A command with its output files.
#[derive(Clone)]
pub struct FailureCase {
    /// Name of the case.
    pub name: &'static str,
    args: Vec<&'static str>,
    /// Requested files; a name without an extension is a bundle.
    outputs: Vec<&'static str>,
    /// True if its exit code is a verdict, which may depend on the readable files.
    pub judges: bool,
    /// True if it writes the same document each time.
    steady: bool,
}

impl FailureCase {
    fn new(name: &'static str, args: &'static str, outputs: &[&'static str]) -> FailureCase {
        FailureCase {
            name,
            args: args.split(' ').collect(),
            outputs: outputs.to_vec(),
            judges: false,
            steady: false,
        }
    }

    /// A case of that name that does nothing.
    #[cfg(test)]
    pub fn named(name: &'static str) -> FailureCase {
        FailureCase::new(name, name, &[])
    }
}

/// A folder with inputs, removed at the end.
pub struct Scene {
    dir: PathBuf,
    program: PathBuf,
    /// Reason for the absence of a hunt, if there is none.
    no_hunt: Option<String>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Scene {
    /// Makes the inputs with runs of a second.
    pub fn make(program: &Path) -> Result<Scene> {
        let dir = target("failures")?.join(std::process::id().to_string());
        std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let mut scene = Scene { dir, program: program.to_owned(), no_hunt: None };
        for args in [
            "measure -p 0 -D 2s -q -o a --rt-tests-json cyclic.json",
            "measure -p 0 -D 2s -q -o b",
            "capture -q -o captured",
        ] {
            let made = scene.onbeat(&args.split(' ').collect::<Vec<_>>()).capture()?;
            if made.code != 0 {
                return Err(format!("onbeat {args}: exit {}: {}", made.code, made.stderr.trim()));
            }
        }
        let hunt = scene.onbeat(&"hunt -D 1s -q -o hunted".split(' ').collect::<Vec<_>>()).capture()?;
        if hunt.code != 0 {
            scene.no_hunt = Some(hunt.stderr.trim().trim_start_matches("onbeat: ").to_owned());
        }
        Ok(scene)
    }

    /// All commands.
    pub fn cases(&self) -> Vec<FailureCase> {
        let judging = |case: FailureCase| FailureCase { judges: true, steady: true, ..case };
        let steady = |case: FailureCase| FailureCase { steady: true, ..case };
        vec![
            FailureCase::new(
                "measure",
                "measure -l 30 -i 1000 -q -o out --json out.json --hist out.txt --rt-tests-json cyc.json",
                &["out", "out.json", "out.txt", "cyc.json"],
            ),
            FailureCase::new("hunt", "hunt -D 1s -a 0 -q -o out --json out.json", &["out", "out.json"]),
            FailureCase::new("capture", "capture -q -o new/out --json out.json", &["new/out", "out.json"]),
            FailureCase::new(
                "import",
                "import cyclic.json -i 1000 -q -o out --json out.json",
                &["out", "out.json"],
            ),
            steady(FailureCase::new(
                "report",
                "report a b -o out.html --json out.json -q",
                &["out.html", "out.json"],
            )),
            FailureCase::new("report-table", "report a -q", &[]),
            judging(FailureCase::new("bounds", "bounds a --json out.json", &["out.json"])),
            judging(FailureCase::new(
                "compare",
                "compare a b -o out.html --json out.json -q",
                &["out.html", "out.json"],
            )),
            FailureCase::new("audit", "audit --json out.json --junit out.xml -q", &["out.json", "out.xml"]),
            steady(FailureCase::new(
                "audit-capture",
                "audit --bundle captured --json out.json -q",
                &["out.json"],
            )),
            steady(FailureCase::new(
                "audit-tree",
                "audit --root captured/host --json out.json -q",
                &["out.json"],
            )),
            steady(FailureCase::new("explain", "explain hunted -q --json out.json", &["out.json"])),
            steady(FailureCase::new("rules", "rules --json out.json", &["out.json"])),
        ]
    }

    /// Reason for which a command cannot be run on this machine.
    pub fn unable(&self, case: &FailureCase) -> Option<String> {
        self.no_hunt.clone().filter(|_| ["hunt", "explain"].contains(&case.name))
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn onbeat(&self, args: &[&str]) -> Tool {
        Tool::new(&self.program).args(args).dir(&self.dir).within(LIMIT).quiet()
    }

    /// Runs it with a call that fails.
    pub fn run(&self, case: &FailureCase, fault: Option<&FailingCall>) -> Result<Ending> {
        let Some(fault) = fault else { return self.traced(case, &[]) };
        let (trace, inject) = (format!("trace={}", fault.call), format!("inject={fault}"));
        self.traced(case, &["-e", &trace, "-e", &inject])
    }

    /// Runs it under strace, checks its remains, and removes them.
    pub fn traced(&self, case: &FailureCase, flags: &[&str]) -> Result<Ending> {
        let log = self.path("injected");
        let logged =
            if flags.contains(&"-o") { Vec::new() } else { vec!["-o".into(), log.display().to_string()] };
        let program = self.program.display().to_string();
        let ended = Tool::new("strace")
            .args(["-f", "-qq", "-e", "signal=none"])
            .args(flags)
            .args(logged)
            .args([program.as_str()])
            .args(&case.args)
            .dir(&self.dir)
            .within(LIMIT)
            .quiet()
            .capture()?;
        let text = std::fs::read(&log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let injected = text.lines().find(|line| line.contains("(INJECTED)")).unwrap_or_default().to_owned();
        super::remove(&log);
        let mut ending = Ending {
            code: ended.code,
            stderr: ended.stderr,
            injected,
            timed_out: ended.timed_out,
            ..Ending::default()
        };
        self.look(case, &mut ending)?;
        Ok(ending)
    }

    /// Finds files that should not exist, and missing ones.
    fn look(&self, case: &FailureCase, ending: &mut Ending) -> Result<()> {
        for output in &case.outputs {
            let path = self.path(output);
            let fine = match path.extension() {
                None => self.is_bundle(&path),
                Some(ending) => is_whole(&path, ending == "json"),
            };
            if !fine {
                ending.lacking.push((*output).to_owned());
            }
            // An output is whole or not there at all; a bundle may be incomplete, but not
            // unreadable.
            if !fine && path.symlink_metadata().is_ok() {
                ending.litter.push((*output).to_owned());
            }
        }
        if case.steady {
            ending.document = std::fs::read(self.path("out.json")).unwrap_or_default();
        }
        for name in names_below(&self.dir) {
            let last = name.rsplit('/').next().unwrap_or_default();
            let left = last.starts_with(".onbeat.") || last == ".spare" || last == ".run.json.next";
            // Files of a running run are removed at a regular end.
            if left || (last == "tail" && ending.code == 0) {
                ending.litter.push(name);
            }
        }
        if ending.code != 0 && self.path("new").exists() && !self.path("new/out").exists() {
            ending.litter.push("new".into());
        }
        for output in case.outputs.iter().copied().chain(["new"]) {
            let path = self.path(output);
            let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        }
        for name in names_below(&self.dir).iter().filter(|name| name.starts_with(".onbeat.")) {
            super::remove(&self.path(name));
        }
        Ok(())
    }

    fn is_bundle(&self, path: &Path) -> bool {
        is_whole(&path.join("run.json"), true) || is_whole(&path.join("capture.json"), true)
    }
}

fn is_whole(path: &Path, json: bool) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return false };
    !bytes.is_empty() && (!json || serde_json::from_slice::<serde_json::Value>(&bytes).is_ok())
}

/// Files of the folder and of bundles in it, two levels down.
fn names_below(dir: &Path) -> Vec<String> {
    let names = |dir: &Path| {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let mut all = names(dir);
    for folder in ["out", "new", "new/out"] {
        all.extend(names(&dir.join(folder)).into_iter().map(|name| format!("{folder}/{name}")));
    }
    all
}
