//! A machine of any texts at any of the paths that are read, judged by every rule and drawn.
//!
//! The input is lines of `PATH=TEXT`, where a `~` in the text is a newline; `PATH!` is refused.

#![cfg_attr(fuzzing, no_main)]

use entry::fuzz_target;
use facts::survey::survey;
use host::MachineFiles;
use host::access::Access;
use report::map::Map;
use rules::audit::audit;
use rules::intent::{Profile, intent};
use rules::survey_request;

fuzz_target!(|bytes: &[u8]| {
    let answer = |line: &[u8]| {
        let end = line.iter().position(|&byte| byte == b'=' || byte == b'!')?;
        let path = std::str::from_utf8(&line[..end]).ok().filter(|path| path.starts_with('/'))?;
        let text = line[end + 1..].iter().map(|&byte| if byte == b'~' { b'\n' } else { byte }).collect();
        let seen = if line[end] == b'!' { Access::Refused(13) } else { Access::File(text) };
        Some((path.to_owned(), seen))
    };
    let host = MachineFiles::in_memory(bytes.split(|&byte| byte == b'\n').filter_map(answer).collect());
    let survey = survey(&host, &survey_request());
    for profile in [Profile::ControlLoop, Profile::BusyPoll, Profile::Audio, Profile::Guest] {
        let Ok(intent) = intent(&survey, profile, None) else { continue };
        audit(&survey, &intent);
        Map::of(&survey, &intent);
    }
});
