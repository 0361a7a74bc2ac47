//! Roles, and stored passwords: a digest that is slow and takes memory (Argon2id, RFC 9106), so
//! that a stolen store reveals none. A script has a random token instead, whose digest is fast.

use argon2::password_hash::{Output, PasswordHash, PasswordHasher, SaltString};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::ingest::environment::hex;

/// Role of a user; each includes the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read data, with a token instead of a login.
    Script,
    /// Read everything.
    Viewer,
    /// Look after boards, acknowledge changes, set budgets.
    Operator,
    /// Let users and boards in, and out.
    Admin,
}

impl Role {
    /// Roles of users, who log in.
    pub const ALL: [Role; 3] = [Role::Viewer, Role::Operator, Role::Admin];

    pub fn word(self) -> &'static str {
        match self {
            Role::Script => "script",
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    /// Parses the word of a role.
    pub fn of_word(word: &str) -> Option<Role> {
        Role::ALL.into_iter().chain([Role::Script]).find(|role| role.word() == word)
    }

    /// Name of the secret that an account of this role has.
    pub fn secret_name(self) -> &'static str {
        if self == Role::Script { "token" } else { "password" }
    }
}

/// A user account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FarmUser {
    pub name: String,
    pub role: Role,
    /// Time of creation, in seconds since 1970.
    pub created: i64,
}

/// Prefix of a script's token.
pub const SCRIPT_TOKEN: &str = "obr_";

/// Fewer letters are tried out, however slow each try is.
const SHORTEST: usize = 12;
const LONGEST: usize = 256;
const LONGEST_NAME: usize = 64;

/// Parameters for Argon2id in OWASP's "Password Storage Cheat Sheet": 19 MiB, two passes.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;

/// Checks the name of a user.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@+".contains(c);
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain) {
        Ok(())
    } else {
        Err("a name has 1 to 64 letters, digits and - _ . @ +: choose another")
    }
}

/// Checks the length of a password.
pub fn check_password(password: &str) -> Result<(), &'static str> {
    match (password.chars().count() >= SHORTEST, password.len() <= LONGEST) {
        (false, _) => Err("a password has at least 12 characters: choose a longer one"),
        (_, false) => Err("a password has at most 256 bytes: choose a shorter one"),
        (true, true) => Ok(()),
    }
}

/// Cost of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordCost {
    Usual,
    /// For tests, whose passwords protect nothing.
    Least,
}

/// Digest of a password as stored: with its salt and its cost.
pub fn digest_password(password: &str, salt: &[u8; 16], cost: PasswordCost) -> Option<String> {
    let (memory, passes) = match cost {
        PasswordCost::Usual => (MEMORY_KIB, PASSES),
        PasswordCost::Least => (Params::MIN_M_COST, Params::MIN_T_COST),
    };
    let params = Params::new(memory, passes, 1, None).ok()?;
    let salt = SaltString::encode_b64(salt).ok()?;
    let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    hasher.hash_password(password.as_bytes(), &salt).ok().map(|digest| digest.to_string())
}

/// Digest of a script's token as stored; no password has it.
pub fn digest_token(token: &str) -> String {
    hex(&Sha256::digest(token))
}

/// Makes a secret for an account of this role from random bytes: the secret, which is shown once,
/// and its digest. `None` without enough memory.
pub fn make_secret(role: Role, random: &[u8; 32]) -> Option<(String, String)> {
    if role == Role::Script {
        let token = format!("{SCRIPT_TOKEN}{}", hex(random));
        let digest = digest_token(&token);
        return Some((token, digest));
    }
    let (salt, rest) = random.split_first_chunk()?;
    let password = hex(rest);
    let digest = digest_password(&password, salt, PasswordCost::Usual)?;
    Some((password, digest))
}

/// Scratch memory for comparing a password, kept for the next: the allocator would keep as much for
/// each thread that ever compared one.
#[derive(Debug, Default)]
pub struct PasswordMemory(Vec<Block>);

impl PasswordMemory {
    /// True if a password matches a digest. One that is too long never does.
    pub fn is_password(&mut self, password: &str, digest: &str) -> bool {
        password.len() <= LONGEST && self.compare(password, digest) == Some(true)
    }

    fn compare(&mut self, password: &str, digest: &str) -> Option<bool> {
        let digest = PasswordHash::new(digest).ok()?;
        let params = Params::try_from(&digest).ok()?;
        let wanted = digest.hash?;
        let mut salt = [0; 64];
        let salt = digest.salt?.decode_b64(&mut salt).ok()?;
        let blocks = params.block_count();
        if self.0.len() < blocks {
            self.0.resize(blocks, Block::default());
        }
        let mut found = [0; 64];
        let found = found.get_mut(..wanted.len())?;
        Argon2::new(Algorithm::try_from(digest.algorithm).ok()?, Version::V0x13, params)
            .hash_password_into_with_memory(password.as_bytes(), salt, found, &mut self.0[..blocks])
            .ok()?;
        // The duration does not depend on the length of an equal prefix.
        Some(Output::new(found).ok()? == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_by_its_digest_alone() {
        let digest = |salt: u8| digest_password("correct horse battery", &[salt; 16], PasswordCost::Least);
        let (one, other) = (digest(1).unwrap(), digest(2).unwrap());
        let mut memory = PasswordMemory::default();
        let mut is_password = |password: &str, digest: &str| memory.is_password(password, digest);
        assert!(one.starts_with("$argon2id$v=19$") && one != other && !one.contains("horse"));
        assert!(is_password("correct horse battery", &one) && is_password("correct horse battery", &other));
        for wrong in ["", "correct horse batter", "Correct horse battery", &"x".repeat(300)] {
            assert!(!is_password(wrong, &one), "{wrong}");
        }
        assert!(!is_password("x", "no digest") && !is_password("", ""));
        let usual = digest_password("correct horse battery", &[3; 16], PasswordCost::Usual).unwrap();
        assert!(usual.contains("m=19456,t=2,p=1") && is_password("correct horse battery", &usual));
    }

    #[test]
    fn a_script_has_a_token_that_is_no_password() {
        let (token, digest) = make_secret(Role::Script, &[7; 32]).unwrap();
        assert!(
            token.starts_with("obr_07") && token.len() == 68 && !digest.contains(&token[4..]),
            "{digest}"
        );
        assert_eq!(digest_token(&token), digest);
        let mut memory = PasswordMemory::default();
        assert!(!memory.is_password(&token, &digest) && !memory.is_password(&digest, &digest));
        let (password, digest) = make_secret(Role::Admin, &[7; 32]).unwrap();
        assert!(password.len() == 32 && memory.is_password(&password, &digest));
    }

    #[test]
    fn names_are_plain_and_passwords_long() {
        for name in ["a", "Ann.B-c_d+e@example.org", &"x".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "<b>", "a b", "a\n", "ä", "a/b", &"x".repeat(65), "\u{202e}a"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_password("twelve lette").is_ok() && check_password("eleven lett").is_err());
        assert!(check_password(&"x".repeat(257)).is_err() && check_password(&"é".repeat(12)).is_ok());
        let all = [Role::Script, Role::Viewer, Role::Operator, Role::Admin];
        assert_eq!(all.map(|role| Role::of_word(role.word())), all.map(Some));
        assert!(
            Role::of_word("root").is_none() && Role::Viewer < Role::Operator && Role::Operator < Role::Admin
        );
    }
}
