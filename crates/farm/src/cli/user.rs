//! `onbeat-farm user`: user accounts and roles.

use std::io::{BufRead, IsTerminal, Read, Write};

use clap::Subcommand;
use model::error::{Exit, Failure, Result};
use serde::Serialize;

use crate::cli::flags::store_flag::StoreFlag;
use crate::cli::output::document_flags::DocumentFlags;
use crate::cli::{FarmEnvironment, note, say};
use crate::pages::parts::date;
use crate::store::FarmStore;
use crate::users::{FarmUser, PasswordCost, Role, check_name, check_password, digest_password, make_secret};
use crate::wall_clock::now;

/// Manage user accounts and roles
///
/// A viewer reads everything; an operator also manages boards, budgets and changes; an admin also
/// adds users and boards. A script can only read /v1 and /metrics, with a token instead of a
/// password. The store keeps only digests of passwords (Argon2id) and tokens.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  onbeat-farm user add ann --role admin\n  onbeat-farm user add bob \
     --generate\n  onbeat-farm user add grafana --role script\n  onbeat-farm user password ann < \
     password.txt")]
pub struct Args {
    #[command(subcommand)]
    command: UserCommand,
    #[command(flatten)]
    store: StoreFlag,
}

#[derive(Subcommand)]
enum UserCommand {
    /// Add an account; the password is asked for, or read from standard input. The token of a
    /// script is printed once
    Add {
        name: String,
        /// Its role: viewer, operator, admin or script
        #[arg(long, value_parser = role, default_value = "viewer")]
        role: Role,
        /// Generate a password and print it once
        #[arg(long)]
        generate: bool,
    },
    /// Print all accounts
    List {
        #[command(flatten)]
        output: DocumentFlags,
    },
    /// Remove an account and end its sessions
    Remove { name: String },
    /// Change the role of an account, from its next request on
    Role {
        name: String,
        /// Its role: viewer, operator or admin
        #[arg(value_parser = role_of_user)]
        role: Role,
    },
    /// Change the password of an account and end its sessions, or the token of a script
    Password {
        name: String,
        /// Generate a password and print it once
        #[arg(long)]
        generate: bool,
    },
}

/// User accounts, by name.
#[derive(Serialize)]
struct UsersDocument {
    schema: &'static str,
    users: Vec<FarmUser>,
}

fn role(word: &str) -> std::result::Result<Role, String> {
    let invalid = || "invalid role: expected viewer, operator, admin or script".to_owned();
    Role::of_word(word).ok_or_else(invalid)
}

fn role_of_user(word: &str) -> std::result::Result<Role, String> {
    match role(word)? {
        Role::Script => {
            Err("a script has a token instead of a password: add it under another name".to_owned())
        }
        role => Ok(role),
    }
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    if let UserCommand::List { output } = &args.command {
        output.check()?;
    }
    let place = args.store.place(environment)?;
    let store = match &args.command {
        // The first user may come before the first start of the server.
        UserCommand::Add { .. } => place.open_told().await?,
        _ => place.open_existing().await?,
    };
    let (done, what) = match &args.command {
        UserCommand::List { output } => return list(&store, output).await,
        UserCommand::Add { name, role, generate } => {
            check_name(name).map_err(Failure::usage)?;
            if store.password_of(name).await?.is_some() {
                return Err(taken());
            }
            let user = FarmUser { name: name.clone(), role: *role, created: now() };
            add(&store, &user, &new_secret(*role, *generate).await?, &mut std::io::stdout()).await?;
            return Ok(Exit::Ok);
        }
        UserCommand::Remove { name } => (store.remove_user(name).await?, format!("removed {name}")),
        UserCommand::Role { name, role } => {
            (store.set_role(name, *role).await?, format!("set the role of {name} to {}", role.word()))
        }
        UserCommand::Password { name, generate } => {
            let users = store.users().await?;
            let user = users.iter().find(|user| &user.name == name).ok_or_else(unknown_name)?;
            let secret = new_secret(user.role, *generate).await?;
            if !store.set_password(name, &secret.digest).await? {
                return Err(unknown_name());
            }
            note(&store, format!("changed the {} of {name}", user.role.secret_name())).await?;
            secret.show(user, &mut std::io::stdout())?;
            return Ok(Exit::Ok);
        }
    };
    if !done {
        return Err(unknown_name());
    }
    note(&store, what).await?;
    Ok(Exit::Ok)
}

fn unknown_name() -> Failure {
    Failure::usage("no account with a login has this name: see `onbeat-farm user list`")
}

fn taken() -> Failure {
    Failure::usage("an account has this name: choose another")
}

/// Adds a user. If two commands add the same name at once, the later one fails and prints no
/// password: it would not be that of the stored user.
async fn add(store: &FarmStore, user: &FarmUser, secret: &NewSecret, out: &mut impl Write) -> Result<()> {
    if !store.add_user(user, &secret.digest).await? {
        return Err(taken());
    }
    note(store, format!("added {}, {}", user.name, user.role.word())).await?;
    secret.show(user, out)
}

async fn list(store: &FarmStore, output: &DocumentFlags) -> Result<Exit> {
    let users = store.users().await?;
    for user in &users {
        let (role, since) = (user.role.word(), date(user.created));
        output.print(&format!("{}\t{role}\tsince {since}", user.name))?;
    }
    output.write(&UsersDocument { schema: "onbeat.farm-users/1", users })?;
    Ok(Exit::Ok)
}

/// A password that is generated, typed or read, or a script's token.
struct NewSecret {
    digest: String,
    /// The secret, if it was generated here and has to be shown once.
    generated: Option<String>,
}

impl NewSecret {
    /// Prints a generated secret, once it is stored.
    fn show(&self, of: &FarmUser, out: &mut impl Write) -> Result<()> {
        let Some(generated) = &self.generated else { return Ok(()) };
        let (name, what) = (&of.name, of.role.secret_name());
        // A secret that could not be printed is useless.
        writeln!(out, "{generated}").map_err(|error| {
            Failure::internal(format!(
                "cannot print the {what} of {name} ({error}), which is stored: generate another with \
                 `onbeat-farm user password {name} --generate`"
            ))
        })?;
        let hint = if of.role == Role::Script { " (send `Authorization: Bearer TOKEN`)" } else { "" };
        say(&format!("onbeat-farm: {what} of {name}, shown only once{hint}:"));
        Ok(())
    }
}

async fn new_secret(role: Role, generate: bool) -> Result<NewSecret> {
    let random = host::secret().map_err(|error| {
        Failure::internal(format!("cannot get random numbers from the kernel ({error}): try again"))
    })?;
    let no_memory = || Failure::internal("not enough memory to compute the digest: try again");
    if generate || role == Role::Script {
        let (secret, digest) = make_secret(role, &random).ok_or_else(no_memory)?;
        return Ok(NewSecret { digest, generated: Some(secret) });
    }
    let password = asked().await?;
    check_password(&password).map_err(Failure::usage)?;
    let salt = std::array::from_fn(|at| random[at]);
    let digest = digest_password(&password, &salt, PasswordCost::Usual).ok_or_else(no_memory)?;
    Ok(NewSecret { digest, generated: None })
}

async fn asked() -> Result<String> {
    if !std::io::stdin().is_terminal() {
        return line().await;
    }
    let hidden = host::HiddenInput::begin();
    let mut typed = Vec::new();
    for words in ["Password: ", "Once more: "] {
        let _ = write!(std::io::stderr(), "{words}").and_then(|()| std::io::stderr().flush());
        // Its handler stays, so that the terminal echoes input again.
        let text = tokio::select! {
            text = line() => text?,
            _ = tokio::signal::ctrl_c() => {
                let message = "interrupted: nothing was changed".to_owned();
                return Err(Failure { exit: Exit::Interrupted, message });
            }
        };
        say("");
        typed.push(text);
    }
    drop(hidden);
    if typed[0] == typed[1] {
        Ok(typed.swap_remove(0))
    } else {
        Err(Failure::usage("the passwords differ: try again"))
    }
}

/// A line of standard input, without its end.
async fn line() -> Result<String> {
    let read = || {
        let mut text = String::new();
        std::io::stdin().lock().take(4_096).read_line(&mut text).map(|_| text)
    };
    let failed = |why: String| Failure::usage(format!("cannot read a password ({why}): give it as one line"));
    let text = tokio::task::spawn_blocking(read).await.map_err(|error| failed(error.to_string()))?;
    Ok(text.map_err(|error| failed(error.to_string()))?.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::engines::on_each_engine;

    #[test]
    fn who_comes_second_with_a_name_reads_that_it_is_taken_and_no_password() {
        on_each_engine(async |store| {
            let ann = FarmUser { name: "ann".into(), role: Role::Viewer, created: 5 };
            let of = |text: &str| NewSecret { digest: format!("of {text}"), generated: Some(text.into()) };
            let mut printed = Vec::new();
            add(&store, &ann, &of("first"), &mut printed).await.unwrap();
            let failure = add(&store, &ann, &of("second"), &mut printed).await.unwrap_err();
            assert!(failure.message.contains("choose another"), "{failure}");
            assert_eq!(printed, b"first\n");
            assert_eq!(store.password_of("ann").await.unwrap().as_deref(), Some("of first"));
            // It is stored before it is printed: if printing fails, another can be generated.
            let bob = FarmUser { name: "bob".into(), ..ann };
            let mut full: &mut [u8] = &mut [];
            let failure = add(&store, &bob, &of("third"), &mut full).await.unwrap_err();
            assert!(failure.message.contains("user password bob --generate"), "{failure}");
            assert_eq!(store.audit(1).await.unwrap()[0].what, "added bob, viewer");
        });
    }
}
