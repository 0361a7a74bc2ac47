//! What the page faults of a thread tell: where they are, and whether they come with memory that is
//! taken.

use super::view::ProgramView;
use crate::words::truncate_words;
use facts::process::ProgramThread;

/// So few are seldom paths, and no loop.
pub const FEW: u64 = 4;

/// Whether the memory of the process changes while a thread faults.
pub fn takes_memory(program: &ProgramView, thread: &ProgramThread) -> bool {
    let changes = program.growth().is_ok_and(|growth| growth.changes + growth.given_back > 0);
    changes && program.counted(thread).is_ok_and(|counted| counted.minor_faults > FEW)
}

/// Where they happened, most often first: what was touched, and from where.
pub fn places(program: &ProgramView, thread: &ProgramThread) -> String {
    let Ok(Some(own)) = program.done(thread, "exceptions:page_fault_user") else { return String::new() };
    let mut faults: Vec<_> = own.faults.iter().collect();
    faults.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
    let named = faults.into_iter().map(|(place, _)| {
        let (page, from) = (program.process.mapping_at(place.page), program.process.place(place.instruction));
        let page = page.map_or_else(|| "memory that is gone".to_owned(), |mapping| mapping.label());
        if from.is_empty() { page } else { format!("{page} from {from}") }
    });
    let named = truncate_words(named.take(8));
    if named.is_empty() { named } else { format!(": {named}") }
}
