//! Machine's part of a bundle: the files that were read, at their paths, and records of the paths
//! that were not files.
//!
//! Next to `host/` are files of JSON lines: `host.errors` (refused or absent paths), `host.lists`
//! (directories that were listed), `host.links` (targets of links), and for a run `host.texts`
//! (texts that were read for its audit alone: hundreds of short ones, which as files would take a
//! disk block each).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use host::NAMES_LIMIT;
use host::access::{Access, AccessRecorder};
use host::dir::Dir;

const ERRORS: &str = "host.errors";
const LISTS: &str = "host.lists";
const LINKS: &str = "host.links";
const TEXTS: &str = "host.texts";

/// Maximum size of the texts of a run: those of 64 CPUs take 0.2 MB.
const TEXTS_LIMIT: usize = 6 << 20;

/// Maximum number of notes: no machine has more.
const NOTES_LIMIT: usize = 1 << 20;

/// Files and folders created in a bundle, so that they can be removed again.
#[derive(Default)]
pub struct HostFiles {
    /// Files and directories in the order of their creation.
    entries: Vec<(String, bool)>,
    dirs: BTreeSet<String>,
}

/// A line of one of these files, distinguished by its fields.
#[derive(Default, Serialize, Deserialize)]
struct Note {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl HostFiles {
    /// Writes the recorded accesses into a bundle; contents for which `is_file` is false go to the
    /// texts.
    pub fn write(
        &mut self,
        bundle: &Dir,
        recorder: &AccessRecorder,
        is_file: &dyn Fn(&str) -> bool,
    ) -> io::Result<()> {
        let mut notes = NoteLines::default();
        for (path, seen) in recorder.accesses() {
            match seen {
                Access::File(bytes) if is_file(&path) => {
                    self.write_at(bundle, &format!("host{path}"), &bytes)?;
                }
                other => notes.add(path, other)?,
            }
        }
        let NoteLines { errors, lists, links, texts } = notes;
        for (name, lines) in [(ERRORS, errors), (LISTS, lists), (LINKS, links)] {
            self.write_at(bundle, name, &lines)?;
        }
        // A capture has none.
        if texts.is_empty() { Ok(()) } else { self.write_at(bundle, TEXTS, &texts) }
    }

    /// Writes a new file below the bundle, and records it and the directories that it needed.
    fn write_at(&mut self, bundle: &Dir, path: &str, bytes: &[u8]) -> io::Result<()> {
        let mut deepest: Option<Dir> = None;
        let mut at = String::new();
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let name = parts.pop().unwrap_or_default();
        for part in parts {
            deepest = Some(deepest.as_ref().unwrap_or(bundle).subdir(part)?);
            at = format!("{at}{part}/");
            if self.dirs.insert(at.clone()) {
                self.entries.push((at.clone(), true));
            }
        }
        let mut file = deepest.as_ref().unwrap_or(bundle).new_file(name)?;
        self.entries.push((format!("{at}{name}"), false));
        file.write_all(bytes)
    }

    /// Removes what was written.
    pub fn remove(&self, bundle: &Dir) {
        for (path, is_dir) in self.entries.iter().rev() {
            if *is_dir { bundle.remove_dir(path.trim_end_matches('/')) } else { bundle.remove(path) }
        }
    }
}

/// Lines of each file.
#[derive(Default)]
struct NoteLines {
    errors: Vec<u8>,
    lists: Vec<u8>,
    links: Vec<u8>,
    texts: Vec<u8>,
}

impl NoteLines {
    fn add(&mut self, path: String, seen: Access) -> io::Result<()> {
        let note = Note { path, ..Note::default() };
        let refused = |note: Note, errno: i32| Note { errno: Some(errno), ..note };
        match seen {
            Access::Absent => push(&mut self.errors, &refused(note, libc::ENOENT)),
            Access::NotRunning => push(&mut self.errors, &refused(note, libc::ENODATA)),
            Access::Refused(errno) => push(&mut self.errors, &refused(note, errno)),
            Access::List(names) => push(&mut self.lists, &Note { names: Some(names), ..note }),
            Access::Link(target) => push(&mut self.links, &Note { target: Some(target), ..note }),
            Access::File(bytes) => match String::from_utf8(bytes) {
                // The error numbers are those that a recorder has for such a content.
                Err(_) => push(&mut self.errors, &refused(note, libc::EILSEQ)),
                Ok(text) if self.texts.len() + text.len() > TEXTS_LIMIT => {
                    push(&mut self.errors, &refused(note, libc::ENODATA))
                }
                Ok(text) => push(&mut self.texts, &Note { text: Some(text), ..note }),
            },
        }
    }
}

fn push(lines: &mut Vec<u8>, note: &Note) -> io::Result<()> {
    serde_json::to_writer(&mut *lines, note)?;
    lines.push(b'\n');
    Ok(())
}

/// Reads the notes of a bundle through `read`, which gives one of its files; reports unusable
/// notes.
pub fn read_notes(
    read: impl Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<BTreeMap<String, Access>, String> {
    let mut answers = BTreeMap::new();
    for file in [ERRORS, LISTS, LINKS, TEXTS] {
        for (number, line) in read(file)?.split(|&byte| byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let seen = parse_note(line).map_err(|what| format!("line {} of {file}: {what}", number + 1))?;
            answers.insert(seen.0, seen.1);
            if answers.len() > NOTES_LIMIT {
                return Err(format!("{file} has more notes than any machine"));
            }
        }
    }
    Ok(answers)
}

fn parse_note(line: &[u8]) -> Result<(String, Access), String> {
    let note: Note = serde_json::from_slice(line).map_err(|error| format!("invalid note: {error}"))?;
    if !note.path.starts_with('/') {
        return Err("expected an absolute path".to_owned());
    }
    let seen = match note {
        Note { errno: Some(libc::ENOENT), .. } => Access::Absent,
        Note { errno: Some(errno), .. } => Access::Refused(errno),
        Note { names: Some(names), .. } if names.len() > NAMES_LIMIT => {
            return Err("a list has more names than any directory".to_owned());
        }
        Note { names: Some(names), .. } => {
            if names.iter().any(|name| name.is_empty() || name.contains('/') || name == "." || name == "..") {
                return Err("a name of a directory points outside of it".to_owned());
            }
            Access::List(names)
        }
        Note { target: Some(target), .. } => Access::Link(target),
        Note { text: Some(text), .. } => Access::File(text.into_bytes()),
        _ => return Err("expected errno, names, target or text".to_owned()),
    };
    Ok((note.path, seen))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str) -> Result<BTreeMap<String, Access>, String> {
        read_notes(|name| Ok(if name == LISTS { text.as_bytes().to_vec() } else { Vec::new() }))
    }

    #[test]
    fn notes_are_read_as_they_were_written() {
        let mut lines = Vec::new();
        let note = Note { path: "/a".into(), names: Some(vec!["b".into()]), ..Note::default() };
        push(&mut lines, &note).unwrap();
        push(&mut lines, &Note { path: "/t".into(), text: Some("1\n".into()), ..Note::default() }).unwrap();
        let read = check(std::str::from_utf8(&lines).unwrap()).unwrap();
        assert_eq!(read.get("/a"), Some(&Access::List(vec!["b".into()])));
        assert_eq!(read.get("/t"), Some(&Access::File(b"1\n".to_vec())));
        assert_eq!(
            check("{\"path\":\"/a\",\"errno\":2}\n\n{\"path\":\"/b\",\"errno\":13}")
                .unwrap()
                .into_values()
                .collect::<Vec<_>>(),
            [Access::Absent, Access::Refused(13)]
        );
    }

    #[test]
    fn what_is_no_text_or_too_much_of_it_is_noted_as_such() {
        let mut notes = NoteLines::default();
        for (path, bytes) in [("/a", vec![0xff]), ("/b", vec![b'x'; TEXTS_LIMIT]), ("/c", vec![b'x'; 9])] {
            notes.add(path.into(), Access::File(bytes)).unwrap();
        }
        let files = BTreeMap::from([(ERRORS, notes.errors), (TEXTS, notes.texts)]);
        let read = read_notes(|name| Ok(files.get(name).cloned().unwrap_or_default())).unwrap();
        assert_eq!(read["/a"], Access::Refused(libc::EILSEQ));
        assert_eq!(read["/b"], Access::File(vec![b'x'; TEXTS_LIMIT]));
        assert_eq!(read["/c"], Access::Refused(libc::ENODATA));
    }

    #[test]
    fn notes_that_lead_elsewhere_are_refused() {
        for bad in [
            "{\"path\":\"a\",\"errno\":2}",
            "{\"path\":\"/a\",\"names\":[\"../b\"]}",
            "{\"path\":\"/a\"}",
            "x",
        ] {
            assert!(check(bad).unwrap_err().starts_with("line 1 of host.lists"), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn reading_is_total(text in "(\\{\"path\":\"/?[a-z]{0,3}\"(,\"errno\":[0-9]{0,3})?(,\"names\":\\[\\])?(,\"text\":\"1\")?\\}?\n?|\\PC{0,9}){0,5}") {
            let _ = check(&text);
        }
    }
}
