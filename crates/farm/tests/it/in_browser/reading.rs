//! Finding a board, following a number to its evidence, comparing.

use super::browser::Browser;
use super::made_store::{HUNT, HUNTED};

const SHOW: &str = "form.line button";
/// The command that makes such a run once more.
const AGAIN: &str = "//p[starts-with(., 'The same again')]/code";

/// The boards of the list, in its order.
async fn boards(browser: &Browser) -> Vec<String> {
    const NAMES: &str =
        "return [...document.querySelectorAll('tbody th.name')].map((one) => one.textContent)";
    browser.told(NAMES, Vec::new()).await
}

/// The filter of the list of boards is in its address: a step back shows the previous one.
pub async fn the_list_of_boards_is_filtered_by_its_address(browser: &Browser) {
    browser.go("/").await;
    assert_eq!(boards(browser).await.len(), 6);
    browser.fill("input[name=q]", "lab=west").await;
    browser.choose("select[name=sort]", "name").await;
    browser.press(SHOW).await;
    let asked = browser.here().await;
    assert_eq!(asked, "/?q=lab%3Dwest&state=&sort=name");
    let west = ["press-001", "press-002"];
    assert_eq!(boards(browser).await, west);
    assert_eq!(browser.text("form.line + p").await, "2 of 6 boards.");
    browser.choose("select[name=state]", "retired").await;
    browser.press(SHOW).await;
    assert_eq!(browser.here().await, "/?q=lab%3Dwest&state=retired&sort=name");
    assert_eq!(
        (boards(browser).await.len(), browser.text("form.line + p").await),
        (0, "0 of 6 boards.".into())
    );
    browser.back().await;
    assert_eq!((browser.here().await, boards(browser).await), (asked, west.map(str::to_owned).to_vec()));
    assert_eq!(browser.value("input[name=q]").await, "lab=west");

    browser.fill("input[name=q]", "001").await;
    browser.choose("select[name=state]", "active").await;
    browser.press(SHOW).await;
    assert_eq!(boards(browser).await, ["mill-001", "plc-001", "press-001", "robot-001"]);
    browser.press("//tbody//a[.='mill-001']").await;
    assert_eq!((browser.here().await, browser.text("h1").await), ("/b/mill-001".into(), "mill-001".into()));
}

/// Names of the pictures that are seen.
async fn pictures(browser: &Browser) -> Vec<String> {
    const SEEN: &str = "return [...document.querySelectorAll('main svg[aria-label]')]
        .filter((one) => one.checkVisibility()).map((one) => one.getAttribute('aria-label'))";
    browser.told(SEEN, Vec::new()).await
}

/// From the largest latency of the list of boards to its five minutes, to a spike in them, to its
/// timeline and the command, to its run and the same command, and back to the board.
pub async fn a_number_leads_to_its_run_and_the_command_that_repeats_it(browser: &Browser) {
    browser.go("/").await;
    let page = browser.text("main").await;
    assert!(page.contains("20.8 ms on kiln-9, 2026-11-22"), "{page}");
    let largest = "//tr[th='kiln-9']/td[1]/a";
    assert_eq!(browser.text(largest).await, "20809.0");
    browser.press(largest).await;
    assert_eq!(browser.text("h1").await, "kiln-9, 2026-11-22 05:35 UTC");
    let lead = browser.text("p.lead").await;
    assert!(lead.contains("20.8 ms on CPU 1 at 05:38:43.225"), "{lead}");

    let row = "//tr[th/a[contains(@href, '/spike/')]][1]";
    let late: f64 = browser.text(&format!("{row}/td[1]")).await.parse().unwrap();
    browser.press(&format!("{row}/th/a")).await;
    let heading = browser.text("h1").await;
    assert!(heading.contains(&format!("{:.1} ms on CPU 1", late / 1e3)), "{late}: {heading}");
    let seen = pictures(browser).await;
    assert!(seen.iter().any(|name| name.contains(" ms late, in ")), "{seen:?}");
    let page = browser.text("main").await;
    assert!(page.contains("fault_hogger") && page.contains("Remedy"), "{page}");
    let again = browser.text(AGAIN).await;
    assert!(again.starts_with("onbeat hunt -a 1 -i 1ms"), "{again}");

    browser.press("p.path a[href^='/runs/']").await;
    assert_eq!(browser.here().await, format!("/runs/{HUNT}"));
    assert!(browser.text("h1").await.contains(HUNT));
    assert_eq!(browser.text(AGAIN).await, again);
    let lead = browser.text("p.lead").await;
    assert!(lead.contains("20.8 ms"), "{lead}");
    browser.press("p.path a").await;
    assert_eq!((browser.here().await, browser.text("h1").await), (format!("/b/{HUNTED}"), HUNTED.to_owned()));
}

/// From the pictures of a board, by their tables, to its worst five minutes and its worst day; from
/// the culprit to a run that shows it.
pub async fn a_board_leads_to_its_worst_and_who_did_it(browser: &Browser) {
    browser.go("/b/kiln-9?span=all").await;
    let seen = pictures(browser).await;
    for name in ["Latency over 1 day", "Histograms of latency behind each other"] {
        assert!(seen.iter().any(|one| one.starts_with(name)), "{name}: {seen:?}");
    }
    browser.click("//summary[.='The lines as a table']").await;
    browser.press("details[open] td.top a").await;
    assert_eq!(browser.text("h1").await, "kiln-9, 2026-11-22 05:35 UTC");
    browser.back().await;
    browser.press("//h3[.='The worst days']/following::tbody[1]//th/a").await;
    let lead = browser.text("p.lead").await;
    assert!(lead.starts_with("The largest latency of 2026-11-22: 20.8 ms"), "{lead}");

    browser.go("/b/kiln-9").await;
    let culprit = browser.text("a[href^='/culprits/']").await;
    browser.press("a[href^='/culprits/']").await;
    assert_eq!(browser.text("h1").await, culprit);
    assert!(culprit.contains("fault_hogger"), "{culprit}");
    browser.press("tbody a[href^='/runs/']").await;
    assert!(browser.text("h1").await.contains(HUNT));
}

/// Days of boards that differ have a verdict, and its address shows the same again.
pub async fn days_are_compared(browser: &Browser) {
    browser.go("/compare").await;
    browser.fill("input[name=a_board]", "press-001, press-002").await;
    browser.fill("input[name=b_board]", "plc-001").await;
    browser.press("//form[.//input[@name='a_board']]//button").await;
    let asked = browser.here().await;
    assert!(asked.contains("a_board=press-001%2C+press-002") && asked.contains("b_board=plc-001"), "{asked}");
    assert_eq!(browser.text("h1").await, "plc-001 against press-001, press-002");
    let said = browser.text("main").await;
    for words in ["B is worse than A.", "The unit is a day of a board", "Made-up PC with SMIs"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    browser.go("/").await;
    browser.go(&asked).await;
    assert_eq!(browser.text("main").await, said);
    assert_eq!(browser.value("input[name=a_board]").await, "press-001, press-002");
    // A day of it leads to the board's.
    browser.press("//table//a[starts-with(., 'plc-001 ')]").await;
    assert!(browser.here().await.starts_with("/b/plc-001/at/"));
}

/// Runs are compared by id; an invalid id is reported and stays in the form. Kernels link there.
pub async fn runs_are_compared(browser: &Browser) {
    let compare = "//form[.//textarea]//button";
    browser.go("/compare").await;
    browser.fill("textarea[name=a]", "no-such-run").await;
    browser.fill("textarea[name=b]", HUNT).await;
    browser.press(compare).await;
    let why = browser.text("p.banner").await;
    assert!(why.contains("o run or board is named no-such-run"), "{why}");
    assert_eq!(browser.value("textarea[name=b]").await, HUNT);
    browser.fill("textarea[name=a]", "20261122T053837-00000001").await;
    browser.press(compare).await;
    let asked = browser.here().await;
    assert_eq!(asked, format!("/compare?a=20261122T053837-00000001&b={HUNT}&limit="));
    let said = browser.text("main").await;
    assert!(said.contains("Inconclusive: one run each cannot separate"), "{said}");
    browser.go(&asked).await;
    assert_eq!(browser.text("main").await, said);

    browser.go("/kernels").await;
    let worst = browser.text("p.lead").await;
    assert!(worst.contains("20.8 ms") && worst.contains("6.12.117+deb12-rt-amd64"), "{worst}");
    browser.press("//tbody//a[starts-with(., 'with 6.')]").await;
    for side in ["a", "b"] {
        let runs = browser.value(&format!("textarea[name={side}]")).await;
        assert!(runs.lines().count() > 1, "{side}: {runs}");
    }
}
