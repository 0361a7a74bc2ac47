//! Threads that a hunt follows: running ones, or those of a program that it starts.

use std::io::{self, IsTerminal};

use super::Environment;
use super::live::Live;
use super::program::ChosenProgram;
use crate::hunt::family::Family;
use crate::hunt::followed_program::FollowedProgram;
use crate::hunt::victims::{FollowedKind, Victim};
use model::run::{Host, Run};
use model::text::clean;

/// Followed threads, and their description.
pub struct FollowTarget {
    pub family: Family,
    pub program: Option<FollowedProgram>,
    title: String,
    notes: Vec<String>,
}

impl FollowTarget {
    /// A target of the threads found, or of a program that waits.
    pub fn of(found: Option<(FollowedKind, Vec<Victim>)>, program: Option<ChosenProgram>) -> FollowTarget {
        let (kind, victims) = found.unwrap_or((FollowedKind::Program, Vec::new()));
        let title = match &program {
            Some(chosen) => {
                let document = chosen.followed.document();
                let user =
                    if document.user.is_empty() { String::new() } else { format!(" as {}", document.user) };
                format!("following {} ({}){user}", clean(&document.name), document.pid)
            }
            None => following(&victims),
        };
        let (program, notes) = match program {
            Some(ChosenProgram { followed, notes }) => (Some(followed), notes),
            None => (None, Vec::new()),
        };
        let own = program.as_ref().map(FollowedProgram::pid);
        FollowTarget { family: Family::new(kind, victims, own), program, title, notes }
    }

    /// Describes a run without measuring threads: the followed ones take their place.
    pub fn describe(&self, run: &mut Run) {
        let limits = self.limits(&run.host);
        let document = &mut run.plan;
        (document.interval_ns, document.distance_ns) = (None, None);
        document.cpus.clear();
        (document.wake, document.expiry, document.phase) = Default::default();
        document.idle = "as-is".into();
        let followed = || self.family.followed();
        document.policy = followed().map(|victim| victim.policy).min().unwrap_or_default().into();
        document.priority = followed().map(|victim| victim.priority).max();
        document.notes = vec![
            self.title.clone(),
            "the recorder's cost per cycle is measured on a thread of onbeat itself".into(),
        ];
        document.notes.extend(self.notes.iter().cloned());
        document.notes.extend(limits);
    }

    /// Limits for another user's program: those of the caller (setrlimit(2)), which apply without
    /// privilege.
    fn limits(&self, host: &Host) -> Vec<String> {
        let user = self.program.as_ref().map(|program| program.document().user).unwrap_or_default();
        if matches!(user.as_str(), "" | "root") {
            return Vec::new();
        }
        let mut notes = Vec::new();
        if host.rtprio_limit == Some(0) {
            notes.push(format!(
                "{} cannot use real-time priorities (ulimit -r is 0): raise the limit before onbeat starts",
                clean(&user)
            ));
        }
        if let Some(bytes) = host.memlock_limit {
            notes.push(format!(
                "{} can lock {} KiB of memory (ulimit -l): a program cannot lock more",
                clean(&user),
                bytes >> 10
            ));
        }
        notes
    }

    /// Live view with this title. If the program writes to the same terminal, lines are added from
    /// time to time instead of drawing.
    pub fn live(&self, live: Option<Live>, environment: &Environment) -> Option<Live> {
        live?;
        match &self.program {
            Some(_) if io::stdout().is_terminal() => Some(Live::adding(environment)),
            _ => Live::titled(self.title.clone(), environment),
        }
    }
}

fn following(victims: &[Victim]) -> String {
    let name = |victim: &Victim| format!("{} ({})", clean(&victim.comm), victim.thread);
    let shown: Vec<String> = victims.iter().take(3).map(name).collect();
    let more = if victims.len() > 3 { format!(" and {} more", victims.len() - 3) } else { String::new() };
    format!("following {}{more}", shown.join(", "))
}
