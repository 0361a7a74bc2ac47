//! Verdict on the end of a command with a failing call.

use model::error::meaning_of;

use super::calls::FailingCall;
use super::scene::{Ending, FailureCase};

/// Visible effects of failing calls that are not faults of the program, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("unlink", "what cannot be removed stays"),
    ("unlinkat", "what cannot be removed stays"),
    // A directory that cannot even be reopened keeps its contents.
];

/// Fault of that ending; `None` if it is correct.
pub fn judge(case: &FailureCase, fault: &FailingCall, ending: &Ending, usual: &Ending) -> Option<String> {
    if ending.timed_out {
        return Some("it hangs".into());
    }
    if ending.stderr.contains("panicked at") {
        return Some(format!("it panics: {}", ending.stderr.trim().replace('\n', " ")));
    }
    if !(0..=7).contains(&ending.code) {
        return Some(format!("exit code {}: {}", ending.code, ending.stderr.trim()));
    }
    if ending.injected.is_empty() {
        // Runs differ: this one ended before the call.
        return None;
    }
    if fault.nth == 0 {
        let same =
            ending.code == usual.code && ending.lacking.is_empty() && ending.document == usual.document;
        let said = ending.stderr.trim();
        return (!same).then(|| format!("not the same without it: exit code {}: {said}", ending.code));
    }
    let excused = EXCEPTIONS.iter().any(|(call, _)| *call == fault.call);
    if !ending.litter.is_empty() && !excused {
        return Some(format!("exit code {}, and left: {}", ending.code, ending.litter.join(" ")));
    }
    let verdict = |code: i32| code == usual.code || (case.judges && [0, 3, 7].contains(&code));
    if verdict(ending.code) {
        let lacking = !ending.lacking.is_empty() && ending.code == usual.code;
        return lacking
            .then(|| format!("exit code {} without a result: {}", ending.code, ending.lacking.join(" ")));
    }
    if fault.call.starts_with("sched_") && fault.call.ends_with("attr") {
        // A policy that was not requested is optional (the contract).
        return Some(format!("exit code {} instead of the fallback: {}", ending.code, ending.stderr.trim()));
    }
    let expected =
        number_of(fault.errno).and_then(|errno| meaning_of(&std::io::Error::from_raw_os_error(errno)));
    // A result that was measured and cannot be stored is an internal error, whatever the reason:
    // the bundle could be created.
    let begun = ["cannot write a checkpoint to", "cannot write block records to"];
    let expected = expected.filter(|_| !begun.iter().any(|what| ending.stderr.contains(what)));
    let expected = expected.map_or(1, |(exit, _)| exit as i32);
    if ending.code != expected {
        return Some(format!("exit code {} instead of {expected}: {}", ending.code, ending.stderr.trim()));
    }
    let told = ending.stderr.lines().filter(|line| line.starts_with("onbeat: ")).collect::<Vec<_>>();
    let silenced = ending.injected.contains("write(2,");
    match told.last() {
        _ if silenced => None,
        None => Some(format!("exit code {} without a word", ending.code)),
        Some(line) if !line["onbeat: ".len()..].contains(": ") => Some(format!("no remedy: {line}")),
        Some(_) => None,
    }
}

fn number_of(name: &str) -> Option<i32> {
    use rustix::io::Errno;
    let errno = match name {
        "EMFILE" => Errno::MFILE,
        "EACCES" => Errno::ACCESS,
        "EPERM" => Errno::PERM,
        "EROFS" => Errno::ROFS,
        "EIO" => Errno::IO,
        "ENOMEM" => Errno::NOMEM,
        "EAGAIN" => Errno::AGAIN,
        "ENOSPC" => Errno::NOSPC,
        "EFBIG" => Errno::FBIG,
        "ENOSYS" => Errno::NOSYS,
        "EINTR" => Errno::INTR,
        _ => return None,
    };
    Some(errno.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_told_apart() {
        let case = FailureCase::named("report");
        let fault = |errno| FailingCall { call: "openat".into(), nth: 3, errno };
        let ending = |code, stderr: &str| Ending {
            code,
            stderr: stderr.into(),
            injected: "openat(..) = -1 (INJECTED)".into(),
            ..Ending::default()
        };
        let usual = Ending::default();
        let wrong = |errno, ending: &Ending| judge(&case, &fault(errno), ending, &usual).is_some();
        assert!(!wrong("EMFILE", &ending(0, "")));
        assert!(!wrong("EMFILE", &ending(1, "onbeat: cannot read x (Too many): raise the limit\n")));
        assert!(wrong("EMFILE", &ending(2, "onbeat: cannot read x (Too many): raise the limit\n")));
        assert!(wrong("EMFILE", &ending(1, "")));
        assert!(wrong("EMFILE", &ending(1, "onbeat: failed\n")));
        assert!(wrong("EIO", &ending(134, "")) && wrong("EIO", &ending(101, "thread panicked at x")));
        assert!(wrong("EIO", &Ending { litter: vec![".spare".into()], ..ending(1, "onbeat: a: b") }));
        assert!(wrong("EIO", &Ending { lacking: vec!["out.json".into()], ..ending(0, "") }));
        assert!(wrong("EIO", &Ending { timed_out: true, ..ending(0, "") }));
        let without = FailingCall { nth: 0, ..fault("ENOSYS") };
        assert_eq!(judge(&case, &without, &ending(0, ""), &usual), None);
        assert!(judge(&case, &without, &ending(5, "onbeat: a: b"), &usual).is_some());
        assert!(!wrong("EACCES", &ending(4, "onbeat: cannot read x (no): run as root")));
    }
}
