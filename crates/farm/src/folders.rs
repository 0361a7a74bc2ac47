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

/// Name of a bundle in the bucket that a folder caches; `None` if it is shown from a folder
/// elsewhere.
pub fn name_in_bucket(place: &Path, cache: &Path) -> Option<String> {
    let is_elsewhere = host::identity(&place.join("run.json")).is_some() && !lies_in(place, cache);
    if is_elsewhere { None } else { Some(place.file_name()?.to_str()?.to_owned()) }
}
