//! Where a bundle is, by the place that the store has for its run.

use std::path::Path;

use crate::folders::lies_in;

/// The name of a bundle in the bucket of which a folder is the cache; none where it is shown from a
/// folder elsewhere.
pub fn name_in_bucket(place: &Path, cache: &Path) -> Option<String> {
    let is_elsewhere = host::identity(&place.join("run.json")).is_some() && !lies_in(place, cache);
    if is_elsewhere { None } else { Some(place.file_name()?.to_str()?.to_owned()) }
}
