//! Removes a folder with all that is in it.

use bundle::manifest::DEEPEST;
use host::MachineFiles;
use host::dir::Dir;
use model::fact::Fact;

/// No folder of a bundle is deeper, with the few in which it lies.
const DEEPEST_FOLDER: usize = DEEPEST + 8;

/// Removes a folder with all that is in it; links are removed, and not followed.
pub fn remove_tree(files: &MachineFiles, top: &Dir, path: &str, depth: usize) {
    // A link to a folder would be listed as one: it is removed first.
    top.remove(path);
    if let Fact::Known(names) = files.list_as_it_is(&format!("/{path}/."))
        && depth < DEEPEST_FOLDER
    {
        names.iter().for_each(|name| remove_tree(files, top, &format!("{path}/{name}"), depth + 1));
        top.remove_dir(path);
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders and links of their own.
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_and_what_its_links_lead_to_stays() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("into/enx001122aabbcc")).unwrap();
        std::fs::write(top.path().join("into/enx001122aabbcc/0ffff0123456789abcd"), b"x").unwrap();
        std::fs::create_dir(top.path().join("other")).unwrap();
        std::fs::write(top.path().join("other/stays"), b"x").unwrap();
        std::os::unix::fs::symlink("../other", top.path().join("into/link")).unwrap();
        remove_tree(&MachineFiles::folder(top.path()), &Dir::existing(top.path()).unwrap(), "into", 0);
        assert!(!top.path().join("into").exists() && top.path().join("other/stays").exists());
    }
}
