//! The page of a suite, with the runs of its phases.

use std::path::Path;

use bundle::read::Bundle;
use model::error::{Result, json};
use model::run::Run;
use model::suite::SuiteRun;
use model::text::quoted;
use report::suite::page::{SuiteStory, html};

/// Page of a suite. A phase without a readable bundle has no curve; the table has its numbers.
pub fn page(folder: &Path, suite: &SuiteRun) -> Result<String> {
    let whole = suite.phases.iter().filter(|phase| phase.valid && phase.max_ns.is_some());
    // Bundles are confined to the folder, even if the document was edited.
    let below = |bundle: &str| {
        let path = Path::new(bundle);
        let plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        (!bundle.is_empty() && plain).then(|| folder.join(path))
    };
    let open = |bundle: &str| Bundle::open(&below(bundle)?).ok().map(|bundle| bundle.run);
    let runs: Vec<(&str, Run)> =
        whole.filter_map(|phase| Some((phase.id.as_str(), open(&phase.bundle)?))).collect();
    let story = SuiteStory {
        suite,
        runs: runs.iter().map(|(id, run)| (*id, run)).collect(),
        folder: &quoted(folder),
    };
    Ok(html(&story, &json(suite)?))
}
