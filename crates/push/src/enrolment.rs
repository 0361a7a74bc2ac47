//! Token of the board, in a file that only its owner can read.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::PathBuf;

use host::dir::Dir;
use model::error::{Exit, Failure, Result};
use model::text::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::address::FarmAddress;

const FILE: &str = "farm.json";
/// Name of the file of an enrolment in progress.
const OPEN: &str = "enrolling.json";
const LIMIT: u64 = 64 << 10;

/// State folder of onbeat-push: the token, and the log of what was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushFolder(pub PathBuf);

/// Farm that the board sends to, and the board's name and token there.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolment {
    pub farm: String,
    pub board: String,
    pub token: String,
    /// File of the only certificate authorities to trust; `""` for the usual ones.
    #[serde(default)]
    pub authorities: String,
}

/// Enrolment whose answer is not stored yet. The farm derives the token from the code and this
/// secret, so that a repeated request gives the same token while the code is valid: a board that is
/// killed before it stores the answer does not lose its code.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenEnrolment {
    farm: String,
    /// SHA-256 of the code, in hexadecimal.
    code: String,
    pub secret: String,
}

impl OpenEnrolment {
    /// Resumes the enrolment with this farm and code, else begins one and writes it to the disk.
    pub fn begin(folder: &PushFolder, farm: &str, code: &str) -> Result<OpenEnrolment> {
        let code = hex(&Sha256::digest(code));
        let bytes = host::read_user_file(&folder.0.join(OPEN), LIMIT).unwrap_or_default();
        if let Ok(open) = serde_json::from_slice::<OpenEnrolment>(&bytes)
            && open.farm == farm
            && open.code == code
        {
            return Ok(open);
        }
        let secret = host::secret().map_err(|error| {
            Failure::internal(format!("cannot get random numbers from the kernel ({error}): try again"))
        })?;
        let open = OpenEnrolment { farm: farm.to_owned(), code, secret: hex(&secret) };
        folder.write(OPEN, &model::error::json(&open)?)?;
        Ok(open)
    }

    /// Removes the open enrolment, once the token is stored.
    pub fn end(folder: &PushFolder) {
        if let Ok(dir) = Dir::existing(&folder.0) {
            dir.remove(OPEN);
        }
    }
}

impl Enrolment {
    /// Reads the enrolment; refuses a file without a valid token and address.
    pub fn read(folder: &PushFolder) -> Result<Enrolment> {
        let file = folder.0.join(FILE);
        let shown = model::text::quoted(&file);
        let bytes = host::read_user_file(&file, LIMIT).map_err(|error| unread(&shown, &error))?;
        let enrolment: Enrolment = serde_json::from_slice(&bytes).map_err(|_| {
            Failure::usage(format!("{shown} is damaged: enrol this board again, with a new code"))
        })?;
        if !is_token(&enrolment.token) {
            return Err(Failure::usage(format!("{shown} holds no token: enrol this board again")));
        }
        FarmAddress::parse(&enrolment.farm)?;
        Ok(enrolment)
    }

    /// Writes the enrolment to a file that only its owner can read.
    pub fn write(&self, folder: &PushFolder) -> Result<()> {
        folder.write(FILE, &model::error::json(self)?)
    }
}

fn unread(shown: &str, error: &std::io::Error) -> Failure {
    let remedy = match error.kind() {
        // The board is enrolled, by another user.
        ErrorKind::PermissionDenied => "run this as its owner, which may be root",
        _ => "enrol this board first: onbeat-push enrol URL CODE",
    };
    Failure::of_call(format!("cannot read {shown}"), error, Exit::Usage, remedy)
}

/// True if the text can be a token: a line break in it would begin another HTTP header.
pub fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl PushFolder {
    fn make(&self) -> std::io::Result<Dir> {
        match host::is_dir(&self.0) {
            Ok(true) => Dir::existing(&self.0),
            _ => Dir::create(&self.0).map(|(dir, _)| dir),
        }
    }

    /// Checks that a token can be stored, before a code is used up.
    pub fn check(&self) -> Result<()> {
        let name = OsStr::new(".probe");
        let made = self.make().and_then(|dir| {
            dir.write_alone(name, b"", Some(0o600))?;
            dir.remove(".probe");
            Ok(())
        });
        made.map_err(|error| self.failed(&error))
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let made = self.make();
        let written = made.and_then(|dir| dir.write_alone(OsStr::new(name), text.as_bytes(), Some(0o600)));
        written.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        let what = format!("cannot write to {}", model::text::quoted(&self.0));
        Failure::of_call(what, error, Exit::Usage, "name a folder that you may write to with --state")
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests look at what was written.
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_enrolment_whose_answer_was_lost_has_the_same_secret_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = PushFolder(place.path().join("a"));
        let begin = |farm: &str, code: &str| OpenEnrolment::begin(&folder, farm, code).unwrap().secret;
        let first = begin("farm", "code");
        assert!(first.len() == 64 && begin("farm", "code") == first);
        let mode = std::fs::metadata(folder.0.join(OPEN)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!std::fs::read_to_string(folder.0.join(OPEN)).unwrap().contains("\"code\":\"code\""));
        // Another code or farm has another secret.
        let other = begin("farm", "next");
        assert!(other != first && begin("elsewhere", "next") != other);
        let last = begin("farm", "code");
        OpenEnrolment::end(&folder);
        assert!(!folder.0.join(OPEN).exists() && begin("farm", "code") != last);
        std::fs::write(folder.0.join(OPEN), "{").unwrap();
        assert_eq!(begin("farm", "code").len(), 64);
    }

    #[test]
    fn a_token_of_another_user_is_no_reason_to_enrol_again() {
        // EACCES and ENOENT.
        for (errno, exit, remedy) in [(13, Exit::NotPermitted, "as its owner"), (2, Exit::Usage, "enrol URL")]
        {
            let failure = unread("farm.json", &std::io::Error::from_raw_os_error(errno));
            assert!(failure.exit == exit && failure.message.contains(remedy), "{failure}");
        }
    }

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
