//! A recipe whose rows need two boots.

use serde::Deserialize;

use model::text::{clean, steers};

/// Two rows that differ in a word on the kernel's command line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeBoots {
    /// The word, as `threadirqs`.
    pub word: String,
    /// Name of the row with the word, and of the row without it.
    pub with: String,
    pub without: String,
    /// True if PREEMPT_RT has the same effect as the word.
    #[serde(default, rename = "rt-implies")]
    pub rt_implies: bool,
}

impl RecipeBoots {
    /// Name of this boot's row; and the other's, with the boot that it needs.
    pub fn rows(&self, has_word: bool, is_rt: bool) -> (&str, (&str, String)) {
        let join = "join the two with --with DIR";
        if self.rt_implies && is_rt {
            let kernel = format!("a kernel without PREEMPT_RT, without {} on its command line", self.word);
            (&self.with, (&self.without, format!("it needs another boot: {kernel}; {join}")))
        } else if has_word {
            let why = format!("it needs a boot without {} on the kernel's command line; {join}", self.word);
            (&self.with, (&self.without, why))
        } else {
            let why = format!("it needs a boot with {} on the kernel's command line; {join}", self.word);
            (&self.without, (&self.with, why))
        }
    }

    /// Returns the first invalid value as a message.
    pub(crate) fn check(&self) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        for id in [&self.with, &self.without] {
            if id.is_empty() || id.len() > 40 || !id.chars().all(plain) {
                return Err(format!(
                    "boots: invalid id '{}': expected lower-case letters and digits",
                    clean(id)
                ));
            }
        }
        let word = &self.word;
        if word.is_empty()
            || word.contains([' ', '"'])
            || word.chars().any(steers)
            || self.with == self.without
        {
            return Err("boots: expected one word of the command line, and two ids".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_row_says_what_to_boot() {
        let boots = RecipeBoots {
            word: "threadirqs".into(),
            with: "threaded".into(),
            without: "regular".into(),
            rt_implies: true,
        };
        for (has_word, is_rt, this, other, advice) in [
            (false, false, "regular", "threaded", "a boot with threadirqs"),
            (true, false, "threaded", "regular", "a boot without threadirqs"),
            (false, true, "threaded", "regular", "a kernel without PREEMPT_RT"),
            (true, true, "threaded", "regular", "a kernel without PREEMPT_RT"),
        ] {
            let (row, (left_out, why)) = boots.rows(has_word, is_rt);
            assert_eq!((row, left_out), (this, other));
            assert!(why.contains(advice) && why.contains("--with"), "{why}");
        }
        let unlike =
            |with: &str, word: &str| RecipeBoots { with: with.into(), word: word.into(), ..boots.clone() };
        assert!(boots.check().is_ok());
        for wrong in [unlike("regular", "threadirqs"), unlike("A", "b"), unlike("a", "two words")] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
