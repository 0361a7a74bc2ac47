//! Places of bundles.

use std::path::{Path, PathBuf};

/// Folder of bundles of a store in a file: `NAME.bundles`, next to it.
pub fn bundles_beside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".bundles");
    file.with_file_name(name)
}

/// True if a bundle is in a folder, whose path may be written in several ways.
pub fn lies_in(place: &Path, folder: &Path) -> bool {
    let whole = |path: &Path| host::whole_path(path).ok();
    let is_it = |above: &Path| above == folder || whole(above).is_some_and(|at| Some(at) == whole(folder));
    place.parent().is_some_and(is_it)
}
