//! Labels of a run or of rows, such as a build, a commit, a job's address.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::text::{excerpt, steers};

/// Maximum length of a name in bytes.
pub const LONGEST_NAME: usize = 32;
/// Maximum length of a value in bytes.
pub const LONGEST_VALUE: usize = 256;
/// Maximum number of labels of a run.
pub const MOST: usize = 16;

/// Values by name, in the order of the names.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// Parses texts such as `build=123`; refuses invalid, repeated and too many labels.
    pub fn parse(texts: &[String]) -> Result<Labels, String> {
        let mut labels = BTreeMap::new();
        for text in texts {
            let (name, value) = parse_label(text)?;
            if labels.insert(name.clone(), value).is_some() {
                return Err(format!("duplicate {name}: give each name once"));
            }
        }
        if labels.len() > MOST { Err(format!("expected at most {MOST} labels")) } else { Ok(Labels(labels)) }
    }

    /// Labels of a foreign document that are valid, up to [`MOST`], and the number of the others.
    pub fn fit(&self) -> (Labels, usize) {
        let fits = |(name, value): &(&String, &String)| check(name, value).is_ok();
        let labels = self.0.iter().filter(fits).take(MOST);
        let labels: BTreeMap<_, _> = labels.map(|(name, value)| (name.clone(), value.clone())).collect();
        let left_out = self.0.len() - labels.len();
        (Labels(labels), left_out)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names with values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// True if a name has this value.
    pub fn has(&self, name: &str, value: &str) -> bool {
        self.0.get(name).is_some_and(|known| known == value)
    }

    /// Labels in their text form, separated by blanks.
    pub fn words(&self) -> String {
        self.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }
}

impl FromIterator<(String, String)> for Labels {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(all: I) -> Labels {
        Labels(all.into_iter().collect())
    }
}

/// Parses a label such as `build=123`.
pub fn parse_label(text: &str) -> Result<(String, String), String> {
    let refused = |why: &str| format!("invalid label {:?}: {why}", excerpt(text));
    let (name, value) =
        text.split_once('=').ok_or_else(|| refused("expected NAME=VALUE, as in build=123"))?;
    let (name, value) = (name.trim(), value.trim());
    check(name, value).map_err(refused)?;
    Ok((name.to_owned(), value.to_owned()))
}

fn check(name: &str, value: &str) -> Result<(), &'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain);
    if !is_name || name.len() > LONGEST_NAME {
        return Err("expected a name of 1 to 32 letters, digits and - _ ., a letter first");
    }
    if value.is_empty() || value.len() > LONGEST_VALUE || value.contains(steers) {
        Err("expected a value of 1 to 256 bytes without control characters")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[&str]) -> Result<Labels, String> {
        Labels::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn labels_are_names_with_values() {
        let job = "job=https://ci.example/j?id=7";
        let labels = parse(&["build=123", job, " commit = 1a2b "]).unwrap();
        assert_eq!(labels.words(), format!("build=123 commit=1a2b {job}"));
        assert!(labels.has("build", "123") && !labels.has("build", "12") && !labels.has("x", ""));
        assert_eq!(serde_json::to_string(&parse(&["a=b"]).unwrap()).unwrap(), r#"{"a":"b"}"#);
    }

    #[test]
    fn what_is_none_is_refused_in_a_line() {
        let long = format!("a={}", "x".repeat(LONGEST_VALUE + 1));
        let name = format!("{}=x", "a".repeat(LONGEST_NAME + 1));
        for text in ["", "build", "=x", "a=", "a= ", "1a=x", "a b=x", "a=\u{202e}x", "a=y\nx", &long, &name] {
            let refused = parse(&[text]).unwrap_err();
            assert!(!refused.contains('\n') && refused.len() < 400, "{refused}");
        }
        assert!(parse(&["a=1", "a=1"]).unwrap_err().contains("duplicate"));
        let many: Vec<String> = (0..=MOST).map(|n| format!("a{n}=x")).collect();
        assert!(Labels::parse(&many[1..]).is_ok() && Labels::parse(&many).is_err());
    }

    #[test]
    fn of_a_foreign_document_what_fits_is_kept() {
        let document = r#"{"build":"1","":"x","b c":"x","d":"","e":"\u001b[2J"}"#;
        let labels: Labels = serde_json::from_str(document).unwrap();
        let (valid, left_out) = labels.fit();
        assert_eq!((valid.words().as_str(), left_out), ("build=1", 4));
        let many: Labels = (0..40).map(|n| (format!("a{n}"), "x".to_owned())).collect();
        assert_eq!((many.fit().0.iter().count(), many.fit().1), (MOST, 24));
    }
}
