//! Causes of a thread's page faults: their locations, and whether they come with memory that is
//! allocated.

use std::collections::BTreeMap;

use super::view::{FAULT, ProgramView, REMAPPING};
use crate::words::truncate_phrases;
use facts::process::{Growth, ProgramThread};
use model::sort::CompactSort;
use trace::activity::ThreadActivity;

/// Number of faults that rare code paths cause, without a loop.
pub const FEW: u64 = 4;

/// True if a thread's page faults come with memory that it allocates or frees; none if this is not
/// visible.
pub fn takes_memory(program: &ProgramView, thread: &ProgramThread) -> Option<bool> {
    let growth = program.growth().ok()?;
    let counted = program.counted(thread).ok()?;
    if counted.minor_faults <= FEW {
        return Some(false);
    }
    let remapped = remappings(program, thread);
    if remapped.is_some_and(|times| times > FEW) {
        return Some(true);
    }
    if growth.changes + growth.given_back == 0 {
        return Some(false);
    }
    match program.done(thread, FAULT) {
        Ok(own) => by_places(program, own, growth, remapped),
        // A thread that allocates memory touches it: if only one thread faults, it is this one.
        Err(_) => {
            let faults =
                |other: &ProgramThread| other.counted.known().is_none_or(|own| own.minor_faults > FEW);
            (program.process.threads.iter().filter(|other| faults(other)).count() == 1).then_some(true)
        }
    }
}

fn by_places(
    program: &ProgramView,
    own: &ThreadActivity,
    growth: &Growth,
    remapped: Option<u64>,
) -> Option<bool> {
    let mut pages: BTreeMap<u64, u64> = BTreeMap::new();
    own.faults.iter().for_each(|(place, times)| *pages.entry(place.page).or_default() += times);
    // A page faults twice if it is first read and later written (copy on write).
    let again = pages.values().filter(|times| **times > 2).count() as u64;
    let twice = pages.values().filter(|times| **times > 1).count() as u64;
    let mapped = program.process.mappings.known().is_some();
    let gone =
        pages.keys().filter(|page| mapped && program.process.mapping_at(**page).is_none()).count() as u64;
    if again > 0 || gone > FEW || (growth.given_back > 0 && twice > FEW) {
        return Some(true);
    }
    // No memory was given back, and this thread requested none.
    let all = program.activity().is_ok_and(|activity| activity.lost == 0) && own.uncounted == 0;
    (all && growth.given_back == 0 && remapped == Some(0)).then_some(false)
}

/// Number of times that a thread changed its process's memory mappings (brk, mmap, munmap,
/// mprotect); none if the kernel does not show it.
pub fn remappings(program: &ProgramView, thread: &ProgramThread) -> Option<u64> {
    Some(program.done(thread, REMAPPING).ok()?.remappings)
}

/// Locations of the faults, most frequent first: the accessed memory, and the instruction.
pub fn places(program: &ProgramView, thread: &ProgramThread) -> String {
    let Ok(own) = program.done(thread, FAULT) else { return String::new() };
    let mut faults: Vec<_> = own.faults.iter().collect();
    faults.compact_sort_by_key(|(_, times)| std::cmp::Reverse(**times));
    let named = faults.into_iter().map(|(place, _)| {
        let (page, from) = (program.process.mapping_at(place.page), program.process.place(place.instruction));
        let page = page.map_or_else(
            || "memory that is no longer mapped".to_owned(),
            |mapping| program.process.words_for(mapping),
        );
        if from.is_empty() { page } else { format!("{page} from {from}") }
    });
    let named = truncate_phrases(named.take(8));
    if named.is_empty() { named } else { format!(": {named}") }
}
