//! `onbeat-farm person`: user accounts and roles.

use std::io::{BufRead, IsTerminal, Read, Write};

use clap::Subcommand;
use model::error::{Exit, Failure, Result};
use serde::Serialize;

use super::document_flags::DocumentFlags;
use super::store_flag::StoreFlag;
use super::{FarmEnvironment, note, say};
use crate::ingest::environment::hex;
use crate::pages::parts::date;
use crate::people::{FarmPerson, PasswordCost, Role, check_name, check_password, digest_password};
use crate::store::FarmStore;
use crate::wall_clock::now;

/// Manage user accounts and roles
///
/// A viewer reads everything; an operator also manages boards, budgets and changes; an admin also
/// adds people and boards. The store keeps only digests of passwords (Argon2id).
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  onbeat-farm person add ann --role admin\n  onbeat-farm person add bob \
     --generate\n  onbeat-farm person password ann < password.txt")]
pub struct Args {
    #[command(subcommand)]
    command: PersonCommand,
    #[command(flatten)]
    store: StoreFlag,
}

#[derive(Subcommand)]
enum PersonCommand {
    /// Add an account; the password is asked for, or read from standard input
    Add {
        name: String,
        /// Its role: viewer, operator or admin
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
        #[arg(value_parser = role)]
        role: Role,
    },
    /// Change the password of an account and end its sessions
    Password {
        name: String,
        /// Generate a password and print it once
        #[arg(long)]
        generate: bool,
    },
}

/// User accounts, by name.
#[derive(Serialize)]
struct PeopleDocument {
    schema: &'static str,
    people: Vec<FarmPerson>,
}

fn role(word: &str) -> std::result::Result<Role, String> {
    Role::of_word(word).ok_or_else(|| "invalid role: expected viewer, operator or admin".to_owned())
}

pub async fn run(args: &Args, environment: &FarmEnvironment) -> Result<Exit> {
    if let PersonCommand::List { output } = &args.command {
        output.check()?;
    }
    let place = args.store.place(environment)?;
    let store = match &args.command {
        // The first person may come before the first start of the server.
        PersonCommand::Add { .. } => place.open_told().await?,
        _ => place.open_existing().await?,
    };
    let (done, what) = match &args.command {
        PersonCommand::List { output } => return list(&store, output).await,
        PersonCommand::Add { name, role, generate } => {
            check_name(name).map_err(Failure::usage)?;
            if store.password_of(name).await?.is_some() {
                return Err(taken());
            }
            let person = FarmPerson { name: name.clone(), role: *role, created: now() };
            add(&store, &person, &new_password(*generate).await?, &mut std::io::stdout()).await?;
            return Ok(Exit::Ok);
        }
        PersonCommand::Remove { name } => (store.remove_person(name).await?, format!("removed {name}")),
        PersonCommand::Role { name, role } => {
            (store.set_role(name, *role).await?, format!("set the role of {name} to {}", role.word()))
        }
        PersonCommand::Password { name, generate } => {
            if store.password_of(name).await?.is_none() {
                return Err(unknown_name());
            }
            let password = new_password(*generate).await?;
            if !store.set_password(name, &password.digest).await? {
                return Err(unknown_name());
            }
            note(&store, format!("changed the password of {name}")).await?;
            password.show(name, &mut std::io::stdout())?;
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
    Failure::usage("no account has this name: see `onbeat-farm person list`")
}

fn taken() -> Failure {
    Failure::usage("an account has this name: choose another")
}

/// Adds a user. If two commands add the same name at once, the later one fails and prints no
/// password: it would not be that of the stored user.
async fn add(
    store: &FarmStore,
    person: &FarmPerson,
    password: &NewPassword,
    out: &mut impl Write,
) -> Result<()> {
    if !store.add_person(person, &password.digest).await? {
        return Err(taken());
    }
    note(store, format!("added {}, {}", person.name, person.role.word())).await?;
    password.show(&person.name, out)
}

async fn list(store: &FarmStore, output: &DocumentFlags) -> Result<Exit> {
    let people = store.people().await?;
    for person in &people {
        let (role, since) = (person.role.word(), date(person.created));
        output.print(&format!("{}\t{role}\tsince {since}", person.name))?;
    }
    output.write(&PeopleDocument { schema: "onbeat.farm-people/1", people })?;
    Ok(Exit::Ok)
}

/// A password that is made, typed or read.
struct NewPassword {
    digest: String,
    /// The password, if it was generated here and has to be shown once.
    made: Option<String>,
}

impl NewPassword {
    /// Prints a generated password, once it is stored.
    fn show(&self, name: &str, out: &mut impl Write) -> Result<()> {
        let Some(made) = &self.made else { return Ok(()) };
        // A password that could not be printed is useless.
        writeln!(out, "{made}").map_err(|error| {
            Failure::internal(format!(
                "cannot print the password of {name} ({error}), which is stored: generate another with \
                 `onbeat-farm person password {name} --generate`"
            ))
        })?;
        say(&format!("onbeat-farm: password of {name}, shown only once:"));
        Ok(())
    }
}

async fn new_password(generate: bool) -> Result<NewPassword> {
    let secret = host::secret().map_err(|error| {
        Failure::internal(format!("cannot get random numbers from the kernel ({error}): try again"))
    })?;
    let salt: [u8; 16] = std::array::from_fn(|at| secret[at]);
    let password = if generate { hex(&secret[16..]) } else { asked().await? };
    check_password(&password).map_err(Failure::usage)?;
    let digest = digest_password(&password, &salt, PasswordCost::Usual)
        .ok_or_else(|| Failure::internal("not enough memory to compute the digest: try again"))?;
    Ok(NewPassword { digest, made: generate.then_some(password) })
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
            let ann = FarmPerson { name: "ann".into(), role: Role::Viewer, created: 5 };
            let of = |made: &str| NewPassword { digest: format!("of {made}"), made: Some(made.into()) };
            let mut printed = Vec::new();
            add(&store, &ann, &of("first"), &mut printed).await.unwrap();
            let failure = add(&store, &ann, &of("second"), &mut printed).await.unwrap_err();
            assert!(failure.message.contains("choose another"), "{failure}");
            assert_eq!(printed, b"first\n");
            assert_eq!(store.password_of("ann").await.unwrap().as_deref(), Some("of first"));
            // It is stored before it is printed: if printing fails, another can be generated.
            let bob = FarmPerson { name: "bob".into(), ..ann };
            let mut full: &mut [u8] = &mut [];
            let failure = add(&store, &bob, &of("third"), &mut full).await.unwrap_err();
            assert!(failure.message.contains("person password bob --generate"), "{failure}");
            assert_eq!(store.audit(1).await.unwrap()[0].what, "added bob, viewer");
        });
    }
}
