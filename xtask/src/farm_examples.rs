//! The farm's own measurements, `crates/farm/examples`: programs of their own, because this one
//! shall not take SQLite. Each prints lines of what, value and limit with tabs between them.

use std::path::{Path, PathBuf};

use crate::tools::{Result, Tool, root, target};

/// A number, and what it may be at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarmLine {
    pub what: String,
    pub value: String,
    /// Empty where there is none.
    pub limit: String,
}

impl FarmLine {
    pub fn read(line: &str) -> Result<FarmLine> {
        let [what, value, limit] = line
            .split('\t')
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .try_into()
            .map_err(|_| format!("the farm's answer is no line of what, value and limit: {line}"))?;
        Ok(FarmLine { what, value, limit })
    }

    /// Whether the limit is kept; none where there is no limit. What is no number keeps none.
    pub fn holds(&self) -> Option<bool> {
        let number = |text: &str| text.parse::<f64>().ok();
        number(&self.limit).map(|limit| number(&self.value).is_some_and(|value| value <= limit))
    }
}

/// The programs of farm and board, and an example, as they are shipped.
pub struct FarmPrograms {
    pub farm: PathBuf,
    pub push: PathBuf,
    example: PathBuf,
}

impl FarmPrograms {
    pub fn build(example: &str) -> Result<FarmPrograms> {
        let build = ["build", "--quiet", "--profile", "farm", "--package", "onbeat-farm"];
        let with = ["--package", "onbeat-push", "--features", "onbeat-farm/fixture", "--bins"];
        let line = Tool::new("cargo").args(build).args(with).args(["--example", example]);
        line.dir(&root()).show()?;
        let built = target("farm")?;
        Ok(FarmPrograms {
            farm: built.join("onbeat-farm"),
            push: built.join("onbeat-push"),
            example: built.join("examples").join(example),
        })
    }

    /// What the example says, with a folder below `target/` of its own that goes with it.
    pub fn measure(&self, folder: &str, line: impl FnOnce(&Path) -> Vec<String>) -> Result<Vec<FarmLine>> {
        let folder = target(folder)?;
        // An old store has other boards, or another schema.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let text = Tool::new(&self.example).args(line(&folder)).text();
        let _ = std::fs::remove_dir_all(&folder);
        text?.lines().map(FarmLine::read).collect()
    }
}

/// A path as an argument.
pub fn word(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::FarmLine;

    #[test]
    fn a_limit_is_kept_or_missed_or_not_there() {
        let holds = |line| FarmLine::read(line).unwrap().holds();
        assert_eq!((holds("rows\t333\t"), holds("lost\t0\t0")), (None, Some(true)));
        assert_eq!((holds("p99\t500.1\t500"), holds("lost\tnone\t0")), (Some(false), Some(false)));
        assert!(FarmLine::read("something else").is_err());
    }
}
