//! The board's token, in a file that its owner alone reads.

use std::ffi::OsStr;
use std::path::PathBuf;

use host::dir::Dir;
use model::error::{Exit, Failure, Result};
use serde::{Deserialize, Serialize};

use super::address::FarmAddress;

const FILE: &str = "farm.json";
const LIMIT: u64 = 64 << 10;

/// The folder in which it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushFolder(pub PathBuf);

/// Where the board sends, and by which name it is known there.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolment {
    pub farm: String,
    pub board: String,
    pub token: String,
    /// The only authorities whose certificates are taken, as a file; `""` for the usual ones.
    #[serde(default)]
    pub authorities: String,
}

impl Enrolment {
    /// Reads it; what was not written by an enrolment is refused.
    pub fn read(folder: &PushFolder) -> Result<Enrolment> {
        let file = folder.0.join(FILE);
        let shown = model::text::quoted(&file);
        let bytes = host::read_user_file(&file, LIMIT).map_err(|error| {
            let remedy = "enrol this board first: onbeat-push enrol URL CODE";
            Failure::of_call(format!("cannot read {shown}"), &error, Exit::Usage, remedy)
        })?;
        let enrolment: Enrolment = serde_json::from_slice(&bytes).map_err(|_| {
            Failure::usage(format!("{shown} is damaged: enrol this board again, with a new code"))
        })?;
        // A line break in it would be a header of its own.
        let is_token = enrolment.token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_token || enrolment.token.is_empty() {
            return Err(Failure::usage(format!("{shown} holds no token: enrol this board again")));
        }
        FarmAddress::parse(&enrolment.farm)?;
        Ok(enrolment)
    }

    /// Writes it where nobody else reads it.
    pub fn write(&self, folder: &PushFolder) -> Result<()> {
        let text = model::error::json(self)?;
        let written =
            folder.make().and_then(|dir| dir.write_alone(OsStr::new(FILE), text.as_bytes(), Some(0o600)));
        written.map_err(|error| folder.failed(&error))
    }
}

impl PushFolder {
    fn make(&self) -> std::io::Result<Dir> {
        match host::is_dir(&self.0) {
            Ok(true) => Dir::existing(&self.0),
            _ => Dir::create(&self.0).map(|(dir, _)| dir),
        }
    }

    /// Whether a token can be kept: asked before a code is used up.
    pub fn check(&self) -> Result<()> {
        let name = OsStr::new(".probe");
        let made = self.make().and_then(|dir| {
            dir.write_alone(name, b"", Some(0o600))?;
            dir.remove(".probe");
            Ok(())
        });
        made.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        let what = format!("cannot write to {}", model::text::quoted(&self.0));
        Failure::of_call(what, error, Exit::Usage, "name a folder of your own with --state")
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests look at what was written.
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_its_owners_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = PushFolder(place.path().join("a/b"));
        folder.check().unwrap();
        let farm = FarmAddress::parse(concat!("https", "://farm.example")).unwrap().base;
        let enrolment =
            Enrolment { farm, board: "press-3".into(), token: "obt_00".into(), authorities: String::new() };
        enrolment.write(&folder).unwrap();
        assert!(Enrolment::read(&folder).unwrap() == enrolment);
        let mode = std::fs::metadata(folder.0.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        for token in ["", "a b", "a\nb", "\u{e4}"] {
            Enrolment { token: token.into(), ..enrolment.clone() }.write(&folder).unwrap();
            assert!(Enrolment::read(&folder).is_err(), "{token:?}");
        }
        std::fs::write(folder.0.join(FILE), "{").unwrap();
        assert!(Enrolment::read(&folder).is_err());
        assert!(Enrolment::read(&PushFolder(place.path().join("none"))).is_err());
    }
}
