//! Login, and the account of the visitor.

use maud::{Markup, html};

use super::{Section, page};
use crate::users::{FarmUser, Role};

/// Contents of the page.
pub struct LoginView<'a> {
    pub user: Option<&'a FarmUser>,
    /// True if any account exists.
    pub has_users: bool,
    /// True if there is a store for accounts.
    pub keeps: bool,
    /// Address after the login.
    pub next: &'a str,
    /// Reason for which the login failed.
    pub refused: Option<&'a str>,
}

/// The page.
pub fn login(of: &LoginView) -> String {
    let body = match of.user {
        Some(user) => known(user),
        None if of.has_users => form(of),
        None if of.keeps => html! {
            p.lead { "No account exists yet." }
            p { "The farm's administrator adds the first account on the server: "
                code { "onbeat-farm user add NAME --role admin --store URL" }
                ", with the " code { "--store" } " of the server." }
        },
        None => html! {
            p.lead { "This farm has no store, so it has no accounts and no login." }
            p { "It only shows runs in folders. To add accounts, serve it with " code { "--store" }
                ", too." }
        },
    };
    page(Some(Section::Account), if of.user.is_some() { "Account" } else { "Log in" }, body)
}

fn known(user: &FarmUser) -> Markup {
    let may = match user.role {
        Role::Script | Role::Viewer => "may read everything",
        Role::Operator => "may read everything, manage boards and acknowledge changes",
        Role::Admin => "may do everything",
    };
    html! {
        p.lead { "You are " strong { (user.name) } " (" (user.role.word()) "), who " (may) "." }
        @if user.role >= Role::Operator {
            p { a href="/admin" { "Administration" } ": boards, budgets, refused requests"
                @if user.role == Role::Admin { ", users, enrolment of boards" } "." }
        }
        form.line action="/logout" method="post" { button type="submit" { "Log out" } }
    }
}

fn form(of: &LoginView) -> Markup {
    html! {
        @if let Some(reason) = of.refused { p.banner role="alert" { (reason) } }
        p.lead { "This farm requires a login." }
        form.fields action="/login" method="post" {
            input type="hidden" name="next" value=(of.next);
            label { "Name " input name="name" autocomplete="username" required maxlength="64"
                autocapitalize="none" spellcheck="false"; }
            label { "Password " input type="password" name="password" autocomplete="current-password"
                required maxlength="256"; }
            p { button type="submit" { "Log in" } }
        }
        p.muted { "The farm's administrator can replace a lost password: "
            code { "onbeat-farm user password NAME --store URL" }
            ", with the " code { "--store" } " of the server." }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_leads_stays_text_and_nobody_is_told_what_to_do() {
        let refused = Some("<i>no");
        let view = LoginView { user: None, has_users: true, keeps: true, next: "/x?\"><b>", refused };
        let text = login(&view);
        assert!(!text.contains("<b>") && !text.contains("<i>") && text.contains("name=\"next\""));
        assert!(login(&LoginView { has_users: false, ..view }).contains("user add"));
        let none = login(&LoginView { has_users: false, keeps: false, ..view });
        assert!(none.contains("no store") && !none.contains("user add"));
        let ann = FarmUser { name: "ann".into(), role: Role::Operator, created: 0 };
        let known = login(&LoginView { user: Some(&ann), ..view });
        assert!(known.contains("ann") && known.contains("/logout") && !known.contains("password"));
    }
}
