//! What a board is asked over ssh: which runs it has, then some of them as a tar archive.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use bundle::manifest::is_digest;
use host::PipedProgram;
use host::dir::Dir;
use model::text::excerpt;
use model::units::Nanos;

use crate::ingest::bundle::is_id;
use crate::ingest::unpack::{UnpackedRuns, unpack};

/// No questions, no forwarding, no session that hangs for ever; keys, ports and jumps are those of
/// the user's own configuration (`ssh_config(5)`).
const OPTIONS: [&str; 11] = [
    "-T",
    "-x",
    "-a",
    "-C",
    "-oBatchMode=yes",
    "-oConnectTimeout=20",
    "-oServerAliveInterval=15",
    "-oServerAliveCountMax=4",
    "-oClearAllForwardings=yes",
    "-oPermitLocalCommand=no",
    "--",
];

/// To the folder of the user's runs, or to that of the machine.
macro_rules! go {
    () => {
        "cd \"${XDG_STATE_HOME:-$HOME/.local/state}/onbeat/runs\" 2>/dev/null || cd /var/lib/onbeat/runs \
         2>/dev/null || exit 44; "
    };
}
macro_rules! unless_measuring {
    () => {
        "for p in /proc/[0-9]*; do { read -r n <$p/comm; } 2>/dev/null || continue; case $n in onbeat*) \
         case \" $(tr \"\\0\" \" \" <$p/cmdline 2>/dev/null)\" in *onbeat*\" measure \"*|*onbeat*\" hunt \
         \"*|*onbeat*\" probe \"*|*onbeat*\" suite \"*|*onbeat*\" prove \"*|*onbeat*\" cure \"*|*onbeat*\" \
         load \"*) exit 45;; esac;; esac; done; "
    };
}
macro_rules! list {
    () => {
        "for r in */run.json; do if test -f \"$r\"; then d=./${r%/*}; ls -nd \"$d/blocks.jsonl\" \"$d/tail\" \
         2>/dev/null; sha256sum \"./$r\"; fi; done"
    };
}

/// Whatever shell the user has there, a plain one reads it.
const LIST: &str = concat!("exec sh -c '", unless_measuring!(), go!(), list!(), "'");
const LIST_ALWAYS: &str = concat!("exec sh -c '", go!(), list!(), "'");
/// Names come on standard input, each with `./` before it: none is an option.
const FETCH: &str = concat!("exec sh -c '", go!(), "exec tar -cf - -T -'");

const NO_RUNS: i32 = 44;
const MEASURES: i32 = 45;
/// ssh's own trouble (ssh(1), "EXIT STATUS").
const NO_CONNECTION: i32 = 255;
/// GNU tar where a file changed meanwhile; what came of it is compared with its digest.
const CHANGED: i32 = 1;
const LIST_LIMIT: u64 = 24 << 20;

/// A run that a board has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRun {
    pub name: String,
    /// Of its `run.json`.
    pub digest: String,
    /// How long the files are that go on while that stays the same.
    pub growing: GrowingBytes,
}

/// How long `blocks.jsonl` and `tail` of a run are, 0 where there is none: the last seconds of one
/// that was killed are in them alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrowingBytes {
    pub blocks: u64,
    pub tail: u64,
}

impl GrowingBytes {
    /// Whether a run has more than these.
    pub fn is_more_than(self, other: GrowingBytes) -> bool {
        self.blocks > other.blocks || self.tail > other.tail
    }
}

/// Why a board does not give its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteFault {
    /// It measures: reading would be load.
    Measures,
    /// It cannot be asked.
    Failed(String),
    /// ssh does not get there, or lost the connection.
    Unreached(String),
    /// It was reached, and nothing comes any more.
    Silent(String),
    /// What came is refused.
    Refused(String),
}

/// Runs on a board.
#[derive(Clone, Debug)]
pub struct RemoteRuns<'a> {
    /// As ssh takes it.
    pub target: &'a str,
    /// Whether it is asked while it measures too.
    pub always: bool,
    /// How long it is waited for where nothing comes.
    pub silence: Nanos,
}

impl RemoteRuns<'_> {
    /// The runs of the board, and how many names there are that no run has.
    pub fn list(&self) -> Result<(Vec<ListedRun>, u64), RemoteFault> {
        let mut program = self.start(if self.always { LIST_ALWAYS } else { LIST }, b"")?;
        let mut text = Vec::new();
        let read = program.output().take(LIST_LIMIT + 1).read_to_end(&mut text);
        read.map_err(|error| self.unread(&error))?;
        if text.len() as u64 > LIST_LIMIT {
            return Err(RemoteFault::Refused("its list of runs is longer than any".to_owned()));
        }
        match self.ended(program)? {
            (Some(0), _) => {}
            (Some(MEASURES), _) => return Err(RemoteFault::Measures),
            (Some(NO_RUNS), _) => {
                let why = "it has no folder of runs: measure there, as the user that ssh logs in";
                return Err(RemoteFault::Failed(why.to_owned()));
            }
            (code, said) => return Err(self.failed(code, &said)),
        }
        Ok(all_listed(&String::from_utf8_lossy(&text)))
    }

    /// Writes these runs below a folder, no more than so many bytes.
    pub fn fetch(
        &self,
        names: &BTreeSet<String>,
        into: &Dir,
        most: u64,
    ) -> Result<UnpackedRuns, RemoteFault> {
        let input: String = names.iter().map(|name| format!("./{name}\n")).collect();
        let mut program = self.start(FETCH, input.as_bytes())?;
        let unpacked = unpack(program.output(), into, names, most);
        match unpacked {
            Ok(unpacked) => match self.ended(program)? {
                (Some(0 | CHANGED), _) => Ok(unpacked),
                (code, said) => Err(self.failed(code, &said)),
            },
            Err(_) if program.is_silent() => Err(self.silent()),
            // What is refused is not read to its end. What was cut may have its reason over there.
            Err(why) if why.contains("cut") => match self.ended(program)? {
                (Some(0), _) => Err(RemoteFault::Refused(why)),
                (code, said) => Err(self.failed(code, &said)),
            },
            Err(why) => Err(RemoteFault::Refused(why)),
        }
    }

    fn start(&self, command: &str, input: &[u8]) -> Result<PipedProgram, RemoteFault> {
        let mut arguments = OPTIONS.to_vec();
        arguments.extend([self.target, command]);
        PipedProgram::start("ssh", &arguments, input, self.silence)
            .map_err(|error| RemoteFault::Failed(format!("ssh cannot be started ({error}): install it")))
    }

    fn ended(&self, program: PipedProgram) -> Result<(Option<i32>, String), RemoteFault> {
        program.end().map_err(|error| self.unread(&error))
    }

    fn unread(&self, error: &io::Error) -> RemoteFault {
        match error.kind() {
            io::ErrorKind::TimedOut => self.silent(),
            _ => RemoteFault::Failed(format!("what ssh says cannot be read ({error}): try again")),
        }
    }

    fn failed(&self, code: Option<i32>, said: &str) -> RemoteFault {
        let last = excerpt(said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default());
        match code {
            Some(NO_CONNECTION) => RemoteFault::Unreached(format!(
                "host not reached ({last}): try `ssh -oBatchMode=yes {}` by hand",
                excerpt(self.target)
            )),
            Some(code) => RemoteFault::Failed(format!(
                "it cannot be asked, code {code} ({last}): it takes sh, tar and sha256sum"
            )),
            None => RemoteFault::Failed("ssh was ended by a signal: try again".to_owned()),
        }
    }

    fn silent(&self) -> RemoteFault {
        RemoteFault::Silent(format!(
            "nothing came from it for {}: log in by hand and see what holds it up, or wait longer with \
             --silence",
            self.silence.spoken()
        ))
    }
}

/// The runs of a list, and how many of its lines name none.
fn all_listed(text: &str) -> (Vec<ListedRun>, u64) {
    let (mut runs, mut foreign, mut growing) = (Vec::new(), 0, BTreeMap::<&str, GrowingBytes>::new());
    for line in text.lines() {
        // Of a name that no run has the line of its document is counted.
        if let Some((path, is_tail)) = growing_path(line) {
            let of = path.strip_prefix("./").filter(|name| is_id(name)).zip(size(line));
            if let Some((name, bytes)) = of {
                let all = growing.entry(name).or_default();
                *(if is_tail { &mut all.tail } else { &mut all.blocks }) = bytes;
            }
            continue;
        }
        match listed(line) {
            Some(run) => runs.push(run),
            None => foreign += 1,
        }
    }
    for run in &mut runs {
        run.growing = growing.get(run.name.as_str()).copied().unwrap_or_default();
    }
    (runs, foreign)
}

/// `DIGEST  ./NAME/run.json`.
fn listed(line: &str) -> Option<ListedRun> {
    let (digest, path) = line.split_once("  ")?;
    let name = path.strip_prefix("./")?.strip_suffix("/run.json")?;
    let growing = GrowingBytes::default();
    let run = || ListedRun { name: name.to_owned(), digest: digest.to_owned(), growing };
    (is_digest(digest) && is_id(name)).then(run)
}

/// The folder that a line of `ls` names, and whether its file is `tail`:
/// `MODE LINKS USER GROUP BYTES TIME ./NAME/tail`, and behind that what a link leads to.
fn growing_path(line: &str) -> Option<(&str, bool)> {
    let line = line.split_once(" -> ").map_or(line, |(file, _)| file);
    let folder = |file: &str| line.strip_suffix(file).and_then(|all| all.split(' ').next_back());
    folder("/tail").map(|at| (at, true)).or_else(|| folder("/blocks.jsonl").map(|at| (at, false)))
}

/// How long the plain file is that a line of `ls` is of.
fn size(line: &str) -> Option<u64> {
    let mut words = line.split_whitespace();
    words.next().filter(|mode| mode.starts_with('-'))?;
    words.nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_there_is_one_word_to_any_shell() {
        for command in [LIST, LIST_ALWAYS, FETCH] {
            let inner = command.strip_prefix("exec sh -c '").unwrap().strip_suffix('\'').unwrap();
            // A quote would end it, and an exclamation mark is history to some shells.
            assert!(!inner.contains(['\'', '!', '\n']), "{inner}");
        }
        assert_eq!(OPTIONS.last(), Some(&"--"));
    }

    #[test]
    fn what_is_to_be_tried_by_hand_names_the_host() {
        let runs = RemoteRuns { target: "operator@press-4", always: false, silence: Nanos::SECOND };
        let RemoteFault::Unreached(why) = runs.failed(Some(NO_CONNECTION), "Connection refused\n") else {
            panic!("it was reached");
        };
        assert!(why.contains("(Connection refused)"), "{why}");
        assert!(why.contains("`ssh -oBatchMode=yes operator@press-4`"), "{why}");
    }

    #[test]
    fn a_list_names_runs_and_nothing_else() {
        let digest = "a".repeat(64);
        let of = |name: &str| listed(&format!("{digest}  {name}"));
        assert_eq!(of("./r1/run.json").unwrap().name, "r1");
        for name in
            ["r1/run.json", "./../run.json", "./a/b/run.json", "./-x y/run.json", "./r1", "", "./.h/x"]
        {
            assert!(of(name).is_none(), "{name}");
        }
        assert!(listed(&format!("\\{digest}  ./r1/run.json")).is_none() && listed("x").is_none());
    }

    #[test]
    fn a_list_says_how_far_runs_go_beyond_their_documents() {
        let digest = "a".repeat(64);
        let mode = "-rw-r--r-- 1 1000 1000";
        let text = format!(
            "{mode} 77 Nov 26 22:00 ./r1/blocks.jsonl\n{mode}  9 2026-11-26 22:00 ./r1/tail\n{digest}  \
             ./r1/run.json\n{mode} 5 Nov 26 22:00 ./a b/tail\n{digest}  ./a b/run.json\nlrwxrwxrwx 1 0 0 7 \
             Nov 26 22:00 ./r2/tail -> /etc/passwd\n{digest}  ./r2/run.json\n"
        );
        let (runs, foreign) = all_listed(&text);
        let growing: Vec<_> = runs.iter().map(|run| (run.name.as_str(), run.growing)).collect();
        let of = |blocks, tail| GrowingBytes { blocks, tail };
        assert_eq!((growing, foreign), (vec![("r1", of(77, 9)), ("r2", of(0, 0))], 1));
        assert!(of(78, 0).is_more_than(of(77, 9)) && of(0, 10).is_more_than(of(77, 9)));
        assert!(!of(77, 9).is_more_than(of(77, 9)));
    }
}
