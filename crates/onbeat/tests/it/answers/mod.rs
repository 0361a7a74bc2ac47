//! Commands as used by a script: the built binary, JSON, exit codes, one line per refusal.

mod auditing;
mod auditing_more;
mod bounding;
mod checking;
mod comparing;
mod curing;
mod documents;
mod following;
mod hunting;
mod kernel_texts;
mod loading;
mod measuring;
mod naming;
mod other_tools;
mod place;
mod probing;
mod proving;
mod recording;
mod scheduling;
mod suites;
mod watching;
mod words;
