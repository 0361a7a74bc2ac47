//! Where a bundle lies.

use std::path::Path;

/// Whether a bundle lies in a folder, which may be written in several ways.
pub fn lies_in(place: &Path, folder: &Path) -> bool {
    let whole = |path: &Path| host::whole_path(path).ok();
    let is_it = |above: &Path| above == folder || whole(above).is_some_and(|at| Some(at) == whole(folder));
    place.parent().is_some_and(is_it)
}
