//! Tarballs, to be unpacked over `/usr/local`, and for `cargo binstall`.

use std::path::{Path, PathBuf};

use super::Product;
use super::contents::{PackageFormat, files};
use super::staged::gzip;
use crate::tools::{Result, write};

/// Writes the tarball: sorted, of root, with the time of the release.
pub fn pack(product: &Product, out: &Path) -> Result<PathBuf> {
    let name = format!("{}-{}-{}", product.package.name, product.release.version, product.program.triple);
    let mut archive = tar::Builder::new(Vec::new());
    for file in files(product, PackageFormat::Tarball)? {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(file.mode);
        header.set_mtime(product.release.epoch);
        let place = format!("{name}/{}", file.place);
        archive.append_data(&mut header, &place, file.bytes.as_slice()).map_err(|error| error.to_string())?;
    }
    let path = out.join(format!("{name}.tar.gz"));
    write(&path, gzip(&archive.into_inner().map_err(|error| error.to_string())?)?)?;
    Ok(path)
}
