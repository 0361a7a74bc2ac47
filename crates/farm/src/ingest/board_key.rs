//! Key of a board in addresses and in the store, and its displayed name: both from the name of its
//! folder or host, the name that it enrols with, or the model of its machine.

use sha2::{Digest, Sha256};

use super::environment::hex;

/// Maximum length of a key and of a displayed name, in characters.
const LONGEST: usize = 64;
/// Digits of a name's digest.
const DIGITS: usize = 8;
/// Name of a board if neither its machine nor its folder has one.
const UNNAMED: &str = "unnamed machine";
/// Reason for refusing data that name no board: several machines would share one.
pub const NO_BOARD: &str = "no folder names its board and its machine has no model: import it with --board \
                            NAME, or put it into a folder with the board's name, DIR/BOARD/RUN";

/// The key and the name of a board. Two names are two boards, whatever letters they have.
pub fn board_of(named: &str) -> (String, String) {
    let named = if named.trim().is_empty() { UNNAMED } else { named };
    (board_key(named), board_name(named))
}

/// The name itself if it needs no escape in an address; otherwise its plain characters, and the
/// beginning of its digest.
pub fn board_key(name: &str) -> String {
    match plain_key(name) {
        plain if plain == name => plain,
        plain => format!("{}-{}", beginning(&plain), digest(name)),
    }
}

/// Characters of a name that need no escape in an address: several names may have the same.
pub fn plain_key(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let mut key = String::new();
    for c in name.chars().map(safe).take(LONGEST) {
        if c != '-' || !key.ends_with('-') {
            key.push(c);
        }
    }
    let key = trimmed(&key);
    if key.is_empty() { "board".to_owned() } else { key.to_owned() }
}

/// True if a key may belong to a name that may be truncated.
pub fn may_be_key_of(key: &str, name: &str) -> bool {
    let is_digest = |end: &str| end.len() == DIGITS && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    let without_digest = key.rsplit_once('-').filter(|(_, end)| is_digest(end)).map(|(plain, _)| plain);
    // Before keys had digests a name was cut first.
    let cut: String = name.chars().take(LONGEST).collect();
    [plain_key(cut.trim()), plain_key(name)]
        .iter()
        .any(|plain| key == plain.as_str() || without_digest == Some(beginning(plain)))
}

/// Displayed name of a board: the name if it is printable, otherwise one that is unique to it.
fn board_name(named: &str) -> String {
    let shown: String = model::text::clean(named).chars().take(LONGEST).collect();
    match shown.trim() {
        shown if shown == named => shown.to_owned(),
        shown => {
            let begins: String = shown.chars().take(LONGEST - DIGITS - 1).collect();
            format!("{}-{}", begins.trim_end(), digest(named))
        }
    }
}

/// Beginning of a plain key that leaves room for a digest.
fn beginning(plain: &str) -> &str {
    // It is ASCII.
    trimmed(&plain[..plain.len().min(LONGEST - DIGITS - 1)])
}

fn trimmed(key: &str) -> &str {
    key.trim_matches(|c| c == '-' || c == '.')
}

fn digest(name: &str) -> String {
    hex(&Sha256::digest(name)[..DIGITS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_name_that_needs_no_escape_is_its_key() {
        for name in ["rpi5-lab", "10.0.0.7", "press_3.lab", "board", "1", &"x".repeat(64)] {
            assert_eq!(board_of(name), (name.to_owned(), name.to_owned()));
        }
    }

    #[test]
    fn what_a_key_cannot_hold_does_not_make_two_boards_one() {
        let long = |end: &str| "x".repeat(64) + end;
        let names = [
            "\u{5317}\u{4eac}-1",
            "\u{4e0a}\u{6d77}-1",
            "\u{441}\u{442}\u{435}\u{43d}\u{434}",
            "\u{43f}\u{440}\u{438}\u{431}\u{43e}\u{440}",
            "a b",
            "a-b",
            "a--b",
            "a-b-",
            " a-b",
            "board",
            "1",
            "..",
            "a\u{202e}b",
            "a\u{fffd}b",
            "2001:db8::1:1",
            "2001:db8:1::1",
            &long(""),
            &long("y"),
            &long("z"),
        ];
        let boards: Vec<(String, String)> = names.iter().map(|name| board_of(name)).collect();
        let keys: BTreeSet<&str> = boards.iter().map(|one| one.0.as_str()).collect();
        let called: BTreeSet<&str> = boards.iter().map(|one| one.1.as_str()).collect();
        assert_eq!((keys.len(), called.len()), (names.len(), names.len()), "{boards:?}");
        // A digest of another version would make other boards of those that are there.
        assert_eq!(board_of("Press Board (2)").0, format!("Press-Board-2-{}", digest("Press Board (2)")));
        assert_eq!(digest(""), "e3b0c442");
        assert_eq!(board_of(" "), board_of(""));
        assert_eq!(board_of("").1, UNNAMED);
    }

    #[test]
    fn a_name_is_known_by_its_key_of_any_version() {
        let (qemu, long) = ("QEMU TCG CPU version 2.5+", "An M".repeat(90));
        assert!(may_be_key_of("QEMU-TCG-CPU-version-2.5", qemu) && may_be_key_of(&board_key(qemu), qemu));
        assert!(may_be_key_of(&plain_key(&long), &long) && may_be_key_of(&board_key(&long), &long));
        // A store has no more of it.
        assert!(may_be_key_of(&board_key(&long), &model::text::excerpt(&long)));
        assert!(!may_be_key_of("press-3", qemu) && !may_be_key_of("press-1a2b3c4d", qemu));
    }

    proptest! {
        #[test]
        fn a_key_needs_no_escape_and_is_its_own(name in "\\PC{0,80}") {
            let (key, called) = board_of(&name);
            let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            prop_assert!((1..=64).contains(&key.len()) && key.chars().all(fits), "{key}");
            prop_assert!(!key.starts_with(['-', '.']), "{key}");
            prop_assert!(called.chars().count() <= 64 && !called.trim().is_empty());
            prop_assert_eq!(&board_of(&key).0, &key);
            prop_assert!(may_be_key_of(&board_key(&name), &name));
        }
    }
}
