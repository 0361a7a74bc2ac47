//! Closed lists of words, as in flags and documents.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A closed list of words. [`keywords!`](crate::keywords) writes the implementation.
pub trait Keyword: Copy + Eq + Send + Sync + 'static {
    /// All keywords, in the order of the help.
    const ALL: &'static [Self];

    /// Word in flags and documents.
    fn name(self) -> &'static str;

    /// Meaning, for the help of the flags that take it.
    fn help(self) -> &'static str;

    /// Keyword of that name; case does not matter.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|word| word.name().eq_ignore_ascii_case(name))
    }
}

/// Declares an enum with the word of each variant; the variant's comment is its help.
/// `pub enum A, default B { ... }` gives it a default.
#[macro_export]
macro_rules! keywords {
    (
        $(#[doc = $about:literal])+
        pub enum $Name:ident $(, default $Default:ident)? {
            $( $(#[doc = $help:literal])+ $Variant:ident = $word:literal, )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Name {
            $( $(#[doc = $help])+ $Variant, )+
        }

        $(impl Default for $Name {
            fn default() -> Self {
                $Name::$Default
            }
        })?

        impl $Name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$($Name::$Variant),+];

            /// The word in documents and flags.
            pub const fn name(self) -> &'static str {
                match self { $($Name::$Variant => $word),+ }
            }
        }

        impl $crate::keyword::Keyword for $Name {
            const ALL: &'static [Self] = $Name::ALL;

            fn name(self) -> &'static str {
                $Name::name(self)
            }

            fn help(self) -> &'static str {
                match self { $($Name::$Variant => concat!($($help),+).trim_ascii()),+ }
            }
        }
    };
}

/// A keyword in a document: one that this version knows, or the text of another version.
///
/// The text is empty if nothing is stated.
#[derive(Clone, PartialEq, Eq)]
pub enum Word<K> {
    /// One of the list.
    Known(K),
    /// Any other text.
    Other(String),
}

impl<K: Keyword> Word<K> {
    /// Text in the document.
    pub fn as_str(&self) -> &str {
        match self {
            Word::Known(keyword) => keyword.name(),
            Word::Other(text) => text,
        }
    }

    /// The keyword, if this version knows it.
    pub fn known(&self) -> Option<K> {
        match self {
            Word::Known(keyword) => Some(*keyword),
            Word::Other(_) => None,
        }
    }

    /// True if nothing is stated.
    pub fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }
}

impl<K> Default for Word<K> {
    fn default() -> Self {
        Word::Other(String::new())
    }
}

impl<K: Keyword> PartialEq<K> for Word<K> {
    fn eq(&self, other: &K) -> bool {
        matches!(self, Word::Known(keyword) if keyword == other)
    }
}

impl<K: Keyword> PartialOrd for Word<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Orders by the text.
impl<K: Keyword> Ord for Word<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl<K: Keyword> From<K> for Word<K> {
    fn from(keyword: K) -> Self {
        Word::Known(keyword)
    }
}

impl<K: Keyword> From<String> for Word<K> {
    fn from(text: String) -> Self {
        let known = K::ALL.iter().find(|keyword| keyword.name() == text);
        known.map_or(Word::Other(text), |keyword| Word::Known(*keyword))
    }
}

impl<K: Keyword> From<&str> for Word<K> {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl<K: Keyword> fmt::Display for Word<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<K: Keyword> fmt::Debug for Word<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<K: Keyword> Serialize for Word<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, K: Keyword> Deserialize<'de> for Word<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Word::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    keywords! {
        /// Days.
        pub enum Day, default Tuesday {
            /// the first
            Monday = "monday",
            /// the day
            /// after
            Tuesday = "day-2",
        }
    }

    #[test]
    fn a_variant_has_its_word_and_its_help() {
        assert_eq!(Day::ALL, [Day::Monday, Day::Tuesday]);
        assert_eq!((Day::Tuesday.name(), Day::Tuesday.help()), ("day-2", "the day after"));
        assert_eq!(
            (Day::named("MONDAY"), Day::named("day"), Day::default()),
            (Some(Day::Monday), None, Day::Tuesday)
        );
    }

    #[test]
    fn a_document_keeps_words_that_this_version_does_not_know() {
        let read = |json: &str| serde_json::from_str::<Word<Day>>(json).unwrap();
        assert_eq!(read("\"day-2\""), Day::Tuesday);
        for text in ["", "Monday", "day-3"] {
            let json = format!("\"{text}\"");
            let word = read(&json);
            assert_eq!((word.known(), word.as_str()), (None, text));
            assert_eq!(serde_json::to_string(&word).unwrap(), json);
        }
        assert_eq!(format!("{:>8}|{:?}", read("\"monday\""), read("\"x\"")), "  monday|\"x\"");
        assert!(Word::<Day>::default().is_empty() && Word::<Day>::default() != Day::Monday);
    }
}
