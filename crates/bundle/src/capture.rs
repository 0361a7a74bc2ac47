//! A capture: a bundle of a machine without a run; also reads a machine back from a capture or
//! bundle.

use std::cell::Cell;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::folder_of;
use super::host_files::{HostFiles, read_notes};
use super::write::refusal;
use host::MachineFiles;
use host::access::AccessRecorder;
use host::dir::Dir;
use model::error::{Exit, Failure, Result, meaning_of};
use model::fact::{Fact, errno_name};
use model::text::quoted;

/// Name and version of `capture.json`.
pub const SCHEMA: &str = "onbeat.capture/1";

const CAPTURE: &str = "capture.json";
const RUN: &str = "run.json";

/// Divisor of the readable bytes for notes: in memory each takes several times its bytes.
const NOTE_SHARE: u64 = 8;

/// Description of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    pub schema: String,
    /// Version of onbeat that took it.
    #[serde(default)]
    pub version: String,
    /// Time at which it was taken, RFC 3339.
    #[serde(default)]
    pub taken: String,
    /// True if it was taken as root: otherwise some files are refused.
    #[serde(default)]
    pub root: bool,
}

/// Writes a capture into a new or empty folder; on failure, what was written is removed.
pub fn write(path: &Path, capture: &Capture, recorder: &AccessRecorder) -> Result<()> {
    let (dir, mut created_dirs) = Dir::create(path).map_err(|error| refusal(path, &error))?;
    let mut files = HostFiles::default();
    let written = files.write(&dir, recorder, &|_| true).and_then(|()| write_capture(&dir, capture));
    written.map_err(|error| {
        dir.remove(CAPTURE);
        files.remove(&dir);
        created_dirs.undo();
        refusal(path, &error)
    })
}

/// Writes the description last: a capture that has it is complete.
fn write_capture(dir: &Dir, capture: &Capture) -> io::Result<()> {
    let mut file = dir.new_file(CAPTURE)?;
    file.write_all(&serde_json::to_vec(capture)?)?;
    file.write_all(b"\n")?;
    file.sync_all()
}

/// True if a folder, or the file in it, is a capture.
pub fn is_capture(path: &Path) -> bool {
    let bundle = MachineFiles::folder(folder_of(path));
    match bundle.read(&format!("/{CAPTURE}")) {
        Fact::Known(_) => true,
        // An unreadable document may be a capture's, unless there is a run, or nothing is readable.
        Fact::Refused(_) => bundle.read(&format!("/{RUN}")) == Fact::Absent,
        Fact::Absent | Fact::Malformed(_) | Fact::NotCaptured | Fact::NotRunning => false,
    }
}

/// Opens the machine of a capture or a run's bundle; without `host.texts` it has fewer files.
pub fn open(path: &Path) -> Result<MachineFiles> {
    opened(path, u64::MAX)
}

/// Like [`open`], for a bundle from elsewhere: at most `bytes` of it are read, and notes that take
/// more memory than that are refused.
pub fn open_within(path: &Path, bytes: u64) -> Result<MachineFiles> {
    opened(path, bytes)
}

fn opened(path: &Path, most: u64) -> Result<MachineFiles> {
    let dir = folder_of(path);
    let bundle_path = quoted(path);
    let bundle = MachineFiles::folder(&dir).within(most / NOTE_SHARE);
    match bundle.read(&format!("/{CAPTURE}")) {
        Fact::Known(bytes) => {
            check_schema(&bytes).map_err(|what| Failure::usage(format!("{bundle_path}: {what}")))?
        }
        // The document of a hunt may be longer than any text that is read here.
        Fact::Absent if bundle.size(&format!("/{RUN}")).known().is_some() => {}
        // A component of the path is a device or a pipe.
        Fact::Absent | Fact::NotCaptured | Fact::NotRunning | Fact::Refused(libc::ENOTDIR) => {
            return Err(Failure::usage(format!(
                "{bundle_path} is not a bundle: expected a folder made by `onbeat capture -o` or `onbeat \
                 measure -o`"
            )));
        }
        Fact::Refused(errno) => return Err(cannot_read(&bundle_path.to_string(), CAPTURE, errno)),
        Fact::Malformed(what) => return Err(Failure::usage(format!("{bundle_path}: {what}"))),
    }
    if let Fact::Refused(errno) = bundle.list("/host") {
        return Err(cannot_read(&bundle_path.to_string(), "host", errno));
    }
    let failed = Cell::new(None);
    let notes = read_notes(|name| match bundle.read(&format!("/{name}")) {
        Fact::Known(bytes) => Ok(bytes),
        Fact::Absent | Fact::NotCaptured | Fact::NotRunning => Ok(Vec::new()),
        Fact::Refused(errno) => {
            failed.set(Some(cannot_read(&bundle_path.to_string(), name, errno)));
            Err(errno_name(errno))
        }
        Fact::Malformed(what) => Err(what),
    });
    let notes = notes
        .map_err(|what| failed.take().unwrap_or_else(|| Failure::usage(format!("{bundle_path}: {what}"))))?;
    Ok(MachineFiles::captured(dir, notes).within(most))
}

fn cannot_read(bundle_path: &str, name: &str, errno: i32) -> Failure {
    let exit = meaning_of(&io::Error::from_raw_os_error(errno)).map_or(Exit::Usage, |(exit, _)| exit);
    // A file that is too large is a fault of the capture, not of a limit.
    let exit = if errno == libc::EFBIG { Exit::Usage } else { exit };
    Failure { exit, message: format!("cannot read {name} in {bundle_path}: {}", errno_name(errno)) }
}

fn check_schema(bytes: &[u8]) -> Result<(), String> {
    let capture: Capture =
        serde_json::from_slice(bytes).map_err(|error| format!("invalid {CAPTURE}: {error}"))?;
    match capture.schema.as_str() {
        SCHEMA => Ok(()),
        other => {
            let other: String = other.chars().take(40).collect();
            Err(format!("{CAPTURE} has schema {other}, and this onbeat reads {SCHEMA}: use a newer onbeat"))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // Bundles have to be made to be read.

    use super::*;
    use crate::write::BundleWriter;
    use model::run::Run;
    use std::fs;

    fn capture() -> Capture {
        Capture { schema: SCHEMA.into(), version: "0".into(), taken: String::new(), root: true }
    }

    fn tree() -> (tempfile::TempDir, MachineFiles) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/sys")).unwrap();
        fs::write(dir.path().join("proc/sys/a"), "1\n").unwrap();
        std::os::unix::fs::symlink("../x/driver", dir.path().join("link")).unwrap();
        let host = MachineFiles::tree(dir.path()).recording();
        (dir, host)
    }

    fn ask(host: &MachineFiles) -> String {
        let names = (host.list("/proc"), host.list("/none"));
        format!("{:?} {:?} {names:?} {:?}", host.read("/proc/sys/a"), host.read("/b"), host.link("/link"))
    }

    #[test]
    fn a_capture_reads_as_the_machine_did() {
        let (dir, host) = tree();
        let before = ask(&host);
        let place = dir.path().join("bundle");
        write(&place, &capture(), host.recorded().unwrap()).unwrap();
        for path in [place.clone(), place.join("capture.json")] {
            let again = open(&path).unwrap();
            assert_eq!(ask(&again), before);
            assert_eq!(again.read("/proc/new"), Fact::NotCaptured);
            assert!(is_capture(&path));
        }
        assert_eq!(write(&place, &capture(), host.recorded().unwrap()).unwrap_err().exit, Exit::Usage);
    }

    #[test]
    fn what_was_read_for_an_audit_alone_is_in_one_file_and_reads_the_same() {
        let (dir, host) = tree();
        host.read("/proc/sys/a");
        let gathered = host.recorded().unwrap().paths();
        fs::write(dir.path().join("proc/sys/b"), "2\n").unwrap();
        let before = (ask(&host), host.read("/proc/sys/b"));
        let place = dir.path().join("bundle");
        let mut writer = BundleWriter::create(&place, 1).unwrap();
        writer.begin(&Run::default()).unwrap();
        writer.host(host.recorded().unwrap(), &gathered).unwrap();
        writer.finish(&Run::default(), &[(); 0]).unwrap();
        assert!(place.join("host/proc/sys/a").exists() && !place.join("host/proc/sys/b").exists());
        let again = open(&place).unwrap();
        assert_eq!((ask(&again), again.read("/proc/sys/b")), before);
        assert_eq!(again.read("/proc/new"), Fact::NotCaptured);
    }

    #[test]
    fn a_bundle_of_others_is_read_up_to_a_bound() {
        let (dir, host) = tree();
        let before = ask(&host);
        let place = dir.path().join("bundle");
        write(&place, &capture(), host.recorded().unwrap()).unwrap();
        let machine = open_within(&place, 32 << 10).unwrap();
        assert_eq!(ask(&machine), before);
        assert!((0..200).all(|_| !matches!(machine.read("/proc/sys/a"), Fact::Absent)));
        assert!(machine.is_spent() && machine.read("/proc/sys/a") == Fact::Refused(libc::EFBIG));
        let notes = (0..200).map(|n| format!("{{\"path\":\"/n{n}\",\"errno\":13}}\n"));
        fs::write(place.join("host.errors"), notes.collect::<String>()).unwrap();
        assert!(open(&place).is_ok());
        let refused = open_within(&place, 32 << 10).err().unwrap();
        assert!(refused.exit == Exit::Usage && refused.message.contains("host.errors"), "{refused}");
    }

    #[test]
    fn bundles_that_lead_elsewhere_give_nothing() {
        let (dir, _) = tree();
        let place = dir.path().join("evil");
        fs::create_dir(&place).unwrap();
        fs::write(place.join("capture.json"), serde_json::to_vec(&capture()).unwrap()).unwrap();
        std::os::unix::fs::symlink(dir.path(), place.join("host")).unwrap();
        let refused = open(&place).err().unwrap();
        assert!(
            refused.exit == Exit::Usage && refused.message.contains("leads out of the tree"),
            "{refused}"
        );
        fs::remove_file(place.join("capture.json")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", place.join("capture.json")).unwrap();
        assert_eq!(open(&place).err().unwrap().exit, Exit::Usage);
    }

    #[test]
    fn what_is_there_and_is_no_file_or_folder_is_malformed() {
        let (dir, host) = tree();
        ask(&host);
        for name in ["host", "host.errors", "host.lists", "host.links", "capture.json"] {
            let place = dir.path().join(format!("with-{name}"));
            write(&place, &capture(), host.recorded().unwrap()).unwrap();
            let there = place.join(name);
            if name == "host" {
                fs::remove_dir_all(&there).unwrap()
            } else {
                fs::remove_file(&there).unwrap()
            }
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mkfifoat(rustix::fs::CWD, &there, mode).unwrap();
            let refused = open(&place).err().unwrap();
            assert!(refused.exit == Exit::Usage && refused.message.contains(name), "{refused}");
            if name != "capture.json" {
                fs::remove_file(place.join("capture.json")).unwrap();
                fs::write(place.join("run.json"), "{}").unwrap();
                assert_eq!(open(&place).err().unwrap().exit, Exit::Usage, "a run's bundle with {name}");
            }
        }
    }

    #[test]
    fn what_is_no_bundle_or_of_another_schema_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(open(dir.path()).err().unwrap().exit, Exit::Usage);
        for text in ["{}", "{\"schema\":\"onbeat.capture/2\"}", "", "[1"] {
            fs::write(dir.path().join("capture.json"), text).unwrap();
            assert_eq!(open(dir.path()).err().unwrap().exit, Exit::Usage, "{text}");
        }
    }
}
