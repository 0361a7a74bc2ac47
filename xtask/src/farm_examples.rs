//! The farm's measurements, `xtask/farm`: separate programs, because this one must not
//! depend on SQLite. Each prints lines of description, value and limit, separated by tabs.

use std::path::{Path, PathBuf};

use crate::tools::{Result, Tool, root, target};

/// A measured value with its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarmLine {
    pub what: String,
    pub value: String,
    /// Empty for none.
    pub limit: String,
}

impl FarmLine {
    pub fn read(line: &str) -> Result<FarmLine> {
        let [what, value, limit] =
            line.split('\t').map(str::to_owned).collect::<Vec<_>>().try_into().map_err(|_| {
                format!("invalid line of the farm's answer: expected name, value and limit: {line}")
            })?;
        Ok(FarmLine { what, value, limit })
    }

    /// True if the value is within the limit, and a number; `None` without a limit.
    pub fn holds(&self) -> Option<bool> {
        let number = |text: &str| text.parse::<f64>().ok();
        number(&self.limit).map(|limit| number(&self.value).is_some_and(|value| value <= limit))
    }
}

/// The programs of farm and board, and an example, in their release builds.
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

    /// Output of the example, with a temporary folder below `target/`.
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
