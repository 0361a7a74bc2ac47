//! Files of a package before they are packed.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::{Compression, GzBuilder};

use crate::tools::{Result, write};

/// A file and its place below the prefix.
#[derive(Clone)]
pub struct Packed {
    pub place: String,
    pub bytes: Vec<u8>,
    pub mode: u32,
}

impl Packed {
    /// An executable.
    pub fn program(place: &str, bytes: Vec<u8>) -> Packed {
        Packed { place: place.to_owned(), bytes, mode: 0o755 }
    }

    /// Any other file.
    pub fn file(place: &str, bytes: Vec<u8>) -> Packed {
        Packed { place: place.to_owned(), bytes, mode: 0o644 }
    }

    /// A text.
    pub fn text(place: &str, text: String) -> Packed {
        Packed::file(place, text.into_bytes())
    }

    /// A compressed file, without time and name in its head.
    pub fn gzipped(place: &str, bytes: &[u8]) -> Result<Packed> {
        Ok(Packed::file(place, gzip(bytes)?))
    }

    /// Writes it below a folder.
    pub fn stage(&self, folder: &Path) -> Result<()> {
        let path = folder.join(&self.place);
        let fault = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(fault)?;
        }
        write(&path, &self.bytes)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(self.mode)).map_err(fault)
    }
}

/// Compressed bytes, the same for the same input.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|error| error.to_string())
}
