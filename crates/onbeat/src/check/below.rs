//! Real-time threads of the checked process's children: a script has none itself.

use std::collections::BTreeSet;

use host::children;
use host::threads::{real_time_threads, thread_facts};
use model::text::quoted_value;

/// Maximum number of processes that are named.
const MAX_NAMED: usize = 4;

/// Remark on descendants with real-time threads, and how to check them; none if there are none.
/// Background processes of a program that was `started` here are children of onbeat.
pub fn remark(pid: u32, started: bool) -> Option<String> {
    let below = if started { children::left_beside(pid) } else { children::below(pid) };
    if below.is_empty() {
        return None;
    }
    let real_time: BTreeSet<u32> = real_time_threads().into_iter().map(|thread| thread.process).collect();
    let found = below.intersection(&real_time).take(MAX_NAMED);
    let found: Vec<(u32, String)> = found.filter_map(|pid| Some((*pid, thread_facts(*pid)?.comm))).collect();
    words(&found, started)
}

fn words(found: &[(u32, String)], started: bool) -> Option<String> {
    let (pid, comm) = found.first()?;
    let named: Vec<String> =
        found.iter().map(|(pid, comm)| format!("{} (process {pid})", quoted_value(comm))).collect();
    let (named, comm) = (named.join(", "), quoted_value(comm));
    Some(if started {
        // Once the program that was started for the check has ended, its PID is gone.
        format!(
            "It started a process with real-time threads, {named}, which was not checked: start the program \
             without the check, then run `onbeat check {comm}` or `onbeat check PID`."
        )
    } else {
        format!(
            "It started a process with real-time threads, {named}, which was not judged: type `onbeat check \
             {pid}`."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn the_process_and_what_to_type_are_named() {
        assert_eq!(words(&[], true), None);
        let found = [(12, "control".to_owned()), (13, "a b".to_owned())];
        let running = words(&found, false).unwrap();
        assert!(running.contains("control (process 12), 'a b' (process 13)"), "{running}");
        assert!(running.ends_with("`onbeat check 12`."), "{running}");
        assert!(words(&found, true).unwrap().contains("`onbeat check control`"));
    }
}
