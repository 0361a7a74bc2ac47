//! Senders of requests, and the data that they may see.

use serde::Serialize;

use crate::users::{FarmUser, Role};

/// View of visitors without a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PublicReading {
    /// Nothing but the way to log in.
    None,
    /// Latencies, without names of programs, hosts and users.
    Read,
    /// Everything that a viewer sees.
    All,
}

/// Extent of the data that a visitor sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum FarmView {
    #[default]
    Nothing,
    /// Without names of programs, hosts and users.
    Unnamed,
    All,
}

/// Settings on visitors without a login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    /// None: on loopback everything while no account exists, else nothing.
    pub public: Option<PublicReading>,
    /// True if a monitoring system need not log in.
    pub metrics_open: bool,
}

impl AccessPolicy {
    /// View of visitors without a login.
    pub fn unknown_sees(&self, is_loopback: bool, has_users: bool) -> FarmView {
        match self.public {
            Some(PublicReading::None) => FarmView::Nothing,
            Some(PublicReading::Read) => FarmView::Unnamed,
            Some(PublicReading::All) => FarmView::All,
            None if is_loopback && !has_users => FarmView::All,
            None => FarmView::Nothing,
        }
    }
}

/// Sender of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visitor {
    /// `None` without a login.
    pub user: Option<FarmUser>,
    pub view: FarmView,
}

impl Visitor {
    pub fn role(&self) -> Option<Role> {
        self.user.as_ref().map(|user| user.role)
    }

    /// Name in the audit log.
    pub fn name(&self) -> &str {
        self.user.as_ref().map_or("", |user| &user.name)
    }

    /// True if names of programs, hosts and users are hidden.
    pub fn is_unnamed(&self) -> bool {
        self.view != FarmView::All
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_on_loopback_without_users_all_may_read_unasked() {
        let policy = |public| AccessPolicy { public, metrics_open: false };
        for (public, is_loopback, has_users, view) in [
            (None, true, false, FarmView::All),
            (None, true, true, FarmView::Nothing),
            (None, false, false, FarmView::Nothing),
            (None, false, true, FarmView::Nothing),
            (Some(PublicReading::None), true, false, FarmView::Nothing),
            (Some(PublicReading::Read), false, true, FarmView::Unnamed),
            (Some(PublicReading::All), false, true, FarmView::All),
        ] {
            assert_eq!(policy(public).unknown_sees(is_loopback, has_users), view, "{public:?}");
        }
    }
}
