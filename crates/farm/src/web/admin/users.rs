//! Letting users and boards in, and out.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::board_settings::lab_tag;
use crate::ingest::environment::hex;
use crate::pages::parts::escaped;
use crate::users::{FarmUser, Role, check_name, make_secret};
use crate::wall_clock::{DAY, now};
use crate::web::admin::shown;
use crate::web::edge::answer::{Refusal, WebOutcome};
use crate::web::edge::visitor::Visitor;
use crate::web::login::moved;
use crate::web::login::sender::{digest_of, random};
use crate::web::state::app::App;

/// Validity of a code.
const CODE_GOOD_FOR_S: i64 = DAY;
const MOST_CODES: u32 = 100;

#[derive(Deserialize)]
pub struct CodesForm {
    count: u32,
    /// The lab that the boards stand in; empty for none.
    #[serde(default)]
    lab: String,
}

pub async fn make_codes(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Form(form): Form<CodesForm>,
) -> WebOutcome {
    if !(1..=MOST_CODES).contains(&form.count) {
        return Err(Refusal::bad("invalid number of codes: expected 1 to 100"));
    }
    let tags = lab_tag(&form.lab).map_err(Refusal::bad)?;
    let mut codes = Vec::new();
    for _ in 0..form.count {
        let code = hex(&random()?[..16]);
        app.store.add_code(&digest_of(&code), now() + CODE_GOOD_FOR_S, &tags).await?;
        codes.push(code);
    }
    let of = tags.first().map(|tag| format!(", {tag}")).unwrap_or_default();
    app.note(visitor.name(), &format!("created {} to enrol boards{of}", plural(codes.len()))).await?;
    let words = "Each enrols one board within 24 hours; they are not shown again:".to_owned();
    shown(&app, &visitor, "", Some((words, codes))).await
}

fn plural(codes: usize) -> String {
    report::words::several(codes as u64, "code", "codes")
}

pub async fn revoke(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(board): Path<String>,
) -> Result<Response, Refusal> {
    if app.store.revoke(&board, now()).await? == 0 {
        return Err(Refusal::not_found("no board of this name has a token: see the list of boards"));
    }
    app.note(visitor.name(), &format!("revoked the token of {board}")).await?;
    Ok(moved(&format!("/admin/boards/{}", escaped(&board)), None))
}

#[derive(Deserialize)]
pub struct UserForm {
    name: String,
    role: String,
}

pub async fn add(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Form(form): Form<UserForm>,
) -> WebOutcome {
    let (name, role) = (form.name.trim().to_owned(), role(&form.role)?);
    check_name(&name).map_err(Refusal::bad)?;
    let (secret, digest) = new_secret(&app, role).await?;
    let user = FarmUser { name: name.clone(), role, created: now() };
    if !app.store.add_user(&user, &digest).await? {
        let detail = "an account has this name: choose another";
        return Err(Refusal::new(StatusCode::CONFLICT, detail));
    }
    app.note(visitor.name(), &format!("added {name}, {}", role.word())).await?;
    let words = format!("The {} of {name}; it is not shown again:", role.secret_name());
    shown(&app, &visitor, "", Some((words, vec![secret]))).await
}

#[derive(Deserialize)]
pub struct ChangeUserForm {
    /// `role`, `password` or `remove`.
    what: String,
    #[serde(default)]
    role: String,
}

pub async fn change(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    Form(form): Form<ChangeUserForm>,
) -> Result<Response, Refusal> {
    let unknown_account = || Refusal::not_found("no account has this name: see the list of users");
    let users = app.store.users().await?;
    let known = users.iter().find(|user| user.name == name).ok_or_else(unknown_account)?;
    let admins = users.iter().filter(|user| user.role == Role::Admin).count();
    let is_last = known.role == Role::Admin && admins == 1;
    let keep_last =
        || Refusal::new(StatusCode::CONFLICT, "this is the last admin: make another account an admin first");
    match form.what.as_str() {
        "role" => {
            let role = role(&form.role)?;
            if is_last && role != Role::Admin {
                return Err(keep_last());
            }
            if role == Role::Script || !app.store.set_role(&name, role).await? {
                let detail = "a script has a token instead of a password: add it under another name";
                return Err(Refusal::new(StatusCode::CONFLICT, detail));
            }
            app.note(visitor.name(), &format!("set the role of {name} to {}", role.word())).await?;
        }
        "remove" => {
            if is_last {
                return Err(keep_last());
            }
            app.store.remove_user(&name).await?;
            app.note(visitor.name(), &format!("removed {name}")).await?;
        }
        "password" => {
            let (secret, digest) = new_secret(&app, known.role).await?;
            let of = known.role.secret_name();
            app.store.set_password(&name, &digest).await?;
            app.note(visitor.name(), &format!("changed the {of} of {name}")).await?;
            let words = format!("The new {of} of {name}, instead of the old one; it is not shown again:");
            let page = shown(&app, &visitor, "", Some((words, vec![secret]))).await?;
            return Ok(page.into_response());
        }
        _ => return Err(Refusal::bad("invalid `what`: expected role, password or remove")),
    }
    Ok(moved("/admin", None))
}

fn role(word: &str) -> Result<Role, Refusal> {
    let invalid = || Refusal::bad("invalid role: expected viewer, operator, admin or script");
    Role::of_word(word).ok_or_else(invalid)
}

/// Random password or token, with its digest.
async fn new_secret(app: &App, role: Role) -> Result<(String, String), Refusal> {
    let random = random()?;
    let no_memory = "not enough memory to compute the digest: try again";
    let unavailable = move || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, no_memory);
    app.heavy(move || make_secret(role, &random).ok_or_else(unavailable)).await
}
