//! Location of a bundle, by the place of its run in the store.

use std::path::Path;

use crate::folders::lies_in;

/// Name of a bundle in the bucket that a folder caches; `None` if it is shown from a folder
/// elsewhere.
pub fn name_in_bucket(place: &Path, cache: &Path) -> Option<String> {
    let is_elsewhere = host::identity(&place.join("run.json")).is_some() && !lies_in(place, cache);
    if is_elsewhere { None } else { Some(place.file_name()?.to_str()?.to_owned()) }
}
