//! Files by pattern: the hundreds of small files that hold one setting each.
//!
//! A rule names the files that it uses: a setting needs no code between the kernel's file and the
//! rule that judges it. In a pattern `#` matches a number and `*` any name, once in a component; a
//! final `/` asks for the names in a directory, a final `@` for the target of a link.

use std::collections::{BTreeMap, BTreeSet};

use super::topology::numbered;
use super::whole;
use host::MachineFiles;
use model::fact::Fact;
use model::sort::CompactSort;

/// Limit of a setting in bytes; a longer text is not one.
const TEXT_LIMIT: u64 = 64 << 10;

/// Limit of files, more than any machine has of one kind; a pattern with more is refused.
const FILES_LIMIT: usize = 100_000;

/// A file that matched a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pub path: String,
    /// The matches of each `#` and `*`, in their order, without the surrounding text.
    pub names: Vec<String>,
    /// Content; names and links as words with newlines between them. Never absent.
    pub content: Fact<String>,
}

/// Files that were read for each pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    found: BTreeMap<&'static str, Fact<Vec<Text>>>,
}

impl Texts {
    /// All files of a pattern, by number and name; absent if there is none.
    ///
    /// Not captured, if the pattern was not read.
    pub fn all(&self, pattern: &str) -> Fact<&[Text]> {
        match self.found.get(pattern) {
            Some(Fact::Known(texts)) => Fact::Known(texts.as_slice()),
            Some(Fact::Absent) => Fact::Absent,
            Some(Fact::Refused(errno)) => Fact::Refused(*errno),
            Some(Fact::Malformed(what)) => Fact::Malformed(what.clone()),
            Some(Fact::NotRunning) => Fact::NotRunning,
            None | Some(Fact::NotCaptured) => Fact::NotCaptured,
        }
    }

    /// True if another file of the same folder was found.
    pub fn has_neighbour(&self, path: &str) -> bool {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let texts = self.found.values().filter_map(Fact::known).flatten();
        texts.filter_map(|text| text.path.rsplit_once('/')).any(|(other, _)| other == folder)
    }

    /// Content of the file of a pattern without `#` and `*`.
    pub fn one(&self, path: &str) -> Fact<&str> {
        self.all(path).then(|texts| match texts.first().map(|text| &text.content) {
            Some(Fact::Known(content)) => Fact::Known(content.as_str()),
            Some(Fact::Refused(errno)) => Fact::Refused(*errno),
            Some(Fact::Malformed(what)) => Fact::Malformed(what.clone()),
            Some(Fact::NotCaptured) => Fact::NotCaptured,
            Some(Fact::NotRunning) => Fact::NotRunning,
            Some(Fact::Absent) | None => Fact::Absent,
        })
    }
}

/// Reads the files of some patterns, each pattern once.
pub fn read_texts(host: &MachineFiles, patterns: impl IntoIterator<Item = &'static str>) -> Texts {
    let mut reader = Reader { host, lists: BTreeMap::new() };
    let patterns: BTreeSet<&'static str> = patterns.into_iter().collect();
    Texts { found: patterns.into_iter().map(|pattern| (pattern, reader.read(pattern))).collect() }
}

struct Reader<'a> {
    host: &'a MachineFiles,
    /// Names in directories that several patterns share.
    lists: BTreeMap<String, Fact<Vec<String>>>,
}

impl Reader<'_> {
    fn read(&mut self, pattern: &'static str) -> Fact<Vec<Text>> {
        let mut places = vec![(String::new(), Vec::new())];
        let plain = pattern.trim_end_matches(['/', '@']);
        for part in plain.split('/').skip(1) {
            let Some((prefix, wild, suffix)) = wildcard(part) else {
                places.iter_mut().for_each(|(path, _)| *path = format!("{path}/{part}"));
                continue;
            };
            let mut further = Vec::new();
            for (dir, names) in places {
                let found = match self.list(&dir) {
                    Fact::Known(found) => found,
                    Fact::Absent => continue,
                    other => return other.clone().map(|_| Vec::new()),
                };
                for (name, matched) in matching(found, prefix, wild, suffix) {
                    let names: Vec<String> = names.iter().cloned().chain([matched]).collect();
                    further.push((format!("{dir}/{name}"), names));
                }
                if further.len() > FILES_LIMIT {
                    return Fact::Refused(libc::EFBIG);
                }
            }
            places = further;
        }
        let mut texts = Vec::new();
        for (path, names) in places {
            // Refused files take memory as well.
            if self.host.is_spent() {
                return Fact::Refused(libc::EFBIG);
            }
            let content = match &pattern[plain.len()..] {
                "/" => self.host.list(&path).map(|names| names.join("\n")),
                "@" => self.host.link(&path),
                _ => self.text(&path),
            };
            if content == Fact::NotRunning {
                return Fact::NotRunning;
            }
            if content != Fact::Absent {
                texts.push(Text { path, names, content });
            }
        }
        if texts.is_empty() { Fact::Absent } else { Fact::Known(texts) }
    }

    fn text(&self, path: &str) -> Fact<String> {
        let bytes = self.host.read_at_most(path, TEXT_LIMIT);
        let whole = bytes.parse(|bytes| whole::check(path, &bytes).map(|()| bytes));
        whole.parse(|bytes| String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned()))
    }

    fn list(&mut self, dir: &str) -> &Fact<Vec<String>> {
        let host = self.host;
        self.lists.entry(dir.to_owned()).or_insert_with(|| host.list(dir))
    }
}

/// Texts that the wildcards of a pattern match in a path; none if the path does not match.
pub fn matched(pattern: &str, path: &str) -> Option<Vec<String>> {
    let (wanted, parts) = (pattern.split('/'), path.split('/'));
    if wanted.clone().count() != parts.clone().count() {
        return None;
    }
    let mut names = Vec::new();
    for (wanted, part) in wanted.zip(parts) {
        match wildcard(wanted) {
            None if wanted == part => {}
            None => return None,
            Some((prefix, wild, suffix)) => {
                let (_, name) = matching(&[part.to_owned()], prefix, wild, suffix).pop()?;
                names.push(name);
            }
        }
    }
    Some(names)
}

/// A pattern with its wildcards replaced by names.
pub fn filled(pattern: &str, names: &[String]) -> String {
    let mut names = names.iter();
    let part = |part: &str| match wildcard(part) {
        Some((prefix, _, suffix)) => {
            format!("{prefix}{}{suffix}", names.next().map_or("", String::as_str))
        }
        None => part.to_owned(),
    };
    pattern.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Text before the wildcard of a component, the wildcard, and the text after it.
fn wildcard(part: &str) -> Option<(&str, char, &str)> {
    let at = part.find(['#', '*'])?;
    Some((&part[..at], part[at..].chars().next()?, &part[at + 1..]))
}

/// Names that match, each with the text matched by the wildcard; numbers in numerical order.
fn matching(names: &[String], prefix: &str, wild: char, suffix: &str) -> Vec<(String, String)> {
    let inner = |name: &str| Some(name.strip_prefix(prefix)?.strip_suffix(suffix)?.to_owned());
    let mut found: Vec<(String, String)> =
        names.iter().filter_map(|name| Some((name.clone(), inner(name)?))).collect();
    if wild == '#' {
        found.retain(|(_, number)| numbered(number, "").is_some());
        found.compact_sort_by_key(|(_, number)| numbered(number, ""));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::access::Access;
    use proptest::prelude::*;

    fn host(paths: &[(&str, Access)]) -> MachineFiles {
        MachineFiles::in_memory(paths.iter().map(|(path, seen)| ((*path).to_owned(), seen.clone())).collect())
    }

    fn file(text: &str) -> Access {
        Access::File(text.as_bytes().to_vec())
    }

    /// Checks `path=content` of each file, or the outcome of the pattern.
    fn check(host: &MachineFiles, pattern: &'static str, expected: &str) {
        let texts = read_texts(host, [pattern]);
        let text = match texts.all(pattern) {
            Fact::Known(texts) => {
                let one = |text: &Text| match &text.content {
                    Fact::Known(content) => {
                        format!("{}={}", text.names.join(","), content.replace('\n', "+"))
                    }
                    other => format!("{}:{other:?}", text.names.join(",")),
                };
                texts.iter().map(one).collect::<Vec<_>>().join(" ")
            }
            other => format!("{other:?}"),
        };
        assert_eq!(text, expected, "{pattern}");
    }

    #[test]
    fn patterns_find_files_names_and_links() {
        let host = host(&[
            ("/c/cpu10/f", file("x")),
            ("/c/cpu2/f", file("y")),
            ("/c/cpu3/g", file("z")),
            ("/c/cpuidle/f", file("no number")),
            ("/c/cpu4/f", Access::Refused(13)),
            ("/d", Access::List(vec!["a".into(), "b".into()])),
            ("/n/eth0/driver", Access::Link("e1000e".into())),
        ]);
        check(&host, "/c/cpu#/f", "2=y 4:Refused(13) 10=x");
        check(&host, "/c/*/g", "cpu3=z");
        check(&host, "/d/", "=a+b");
        check(&host, "/n/*/driver@", "eth0=e1000e");
        check(&host, "/c/cpu3/g", "=z");
        check(&host, "/none/*/x", "Absent");
        check(&host, "/c/cpu#/none", "Absent");
    }

    #[test]
    fn a_path_is_found_by_its_pattern_and_made_again() {
        let check = |pattern: &str, path: &str, expected: Option<&[&str]>| {
            let names = matched(pattern, path);
            let expected = expected.map(|names| names.iter().map(|&name| name.to_owned()).collect());
            assert_eq!(names, expected, "{pattern} {path}");
            assert!(names.is_none_or(|names| filled(pattern, &names) == path));
        };
        check("/c/cpu#/state#/off", "/c/cpu10/state2/off", Some(&["10", "2"]));
        check("/c/cpu#/off", "/c/cpufreq/off", None);
        check("/c/cpu#/off", "/c/cpu1/off/x", None);
        check("/n/*/mtu", "/n/eth0.1/mtu", Some(&["eth0.1"]));
        check("/a", "/a", Some(&[]));
        check("/a", "/b", None);
    }

    #[test]
    fn what_was_not_asked_for_is_no_absence() {
        let texts = read_texts(&host(&[]), ["/a"]);
        assert_eq!((texts.one("/a"), texts.one("/b")), (Fact::Absent, Fact::NotCaptured));
    }

    #[test]
    fn long_texts_and_non_texts_are_distinguished() {
        let long = Access::File(vec![b'a'; TEXT_LIMIT as usize + 1]);
        let host =
            host(&[("/long", long), ("/bytes", Access::File(vec![0xff])), ("/list", Access::Refused(1))]);
        let texts = read_texts(&host, ["/long", "/bytes", "/list/*/x"]);
        assert_eq!(texts.one("/long"), Fact::Refused(libc::EFBIG));
        assert_eq!(texts.one("/bytes"), Fact::Malformed("not UTF-8 text".into()));
        assert_eq!(texts.one("/list/*/x"), Fact::Refused(1));
    }

    proptest! {
        #[test]
        fn reading_is_total(paths in proptest::collection::btree_set("(/[a-c#*0-9]{0,3}){0,4}", 0..12)) {
            let host = MachineFiles::in_memory(paths.into_iter().map(|path| (path, file("1"))).collect());
            read_texts(&host, ["/a#/*/b", "/*/", "/#@", "//", "/a*c/#0"]);
        }
    }
}
