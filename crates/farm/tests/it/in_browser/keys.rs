//! Keyboard access: Tab reaches each link, button and field in the order of the page, with visible
//! focus, and Enter follows it. And a picture that both can zoom and move.

use fantoccini::actions::{InputSource, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};
use fantoccini::key::Key;

use super::browser::Browser;
use super::made_store::HUNT;

/// Stores the stops of a page, and returns their number.
const STOPS: &str = "
    window.stops = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, ' +
        'summary, textarea, [tabindex=\"0\"]')].filter((one) => one.checkVisibility());
    return stops.length";
/// Index of the focused stop, its visibility, and its markup. A date marks its parts.
const FOCUS: &str = "
    const one = document.activeElement;
    const { outlineStyle, outlineWidth } = getComputedStyle(one);
    const seen = one.type === 'date' || outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
    return [stops.indexOf(one), seen, one.outerHTML.slice(0, 80)]";

/// Checks pages with each kind of focusable element.
pub async fn the_whole_of_a_page_is_reached_by_tab(browser: &Browser) {
    let run = format!("/runs/{HUNT}");
    for page in ["/", "/b/kiln-9?span=all", "/changes", "/compare", run.as_str()] {
        browser.go(page).await;
        // The script of a hunt's page adds a form.
        browser
            .until("return !document.querySelector('#ask') || !!document.querySelector('#ask-heading')")
            .await;
        let stops: usize = browser.told(STOPS, Vec::new()).await;
        assert!(stops > 10, "{page}: {stops}");
        let mut reached = 0;
        // A date has several stops.
        for _ in 0..2 * stops + 9 {
            browser.key(Key::Tab).await;
            let (at, is_seen, what): (i64, bool, String) = browser.told(FOCUS, Vec::new()).await;
            if at < 0 {
                break;
            }
            assert!(is_seen, "{page}: {what}");
            let is_same = at + 1 == reached;
            assert!(is_same || at == reached, "{page}: {what} is the {at}, after {reached}");
            reached = at + 1;
        }
        assert_eq!(reached, stops as i64, "{page}");
    }
}

/// Presses Tab until an element has the focus.
async fn tab_to(browser: &Browser, words: &str) {
    let is_there = format!("return document.activeElement.matches(`{words}`)");
    for _ in 0..200 {
        browser.key(Key::Tab).await;
        if browser.told::<bool>(&is_there, Vec::new()).await {
            return;
        }
    }
    panic!("{words} is not reached on {}", browser.here().await);
}

/// Enter follows a link, submits a form, opens a folded part.
pub async fn enter_leads_on(browser: &Browser) {
    browser.go("/").await;
    tab_to(browser, "input[name=q]").await;
    for letter in "mill".chars() {
        browser.key(letter).await;
    }
    browser.and_wait(async { browser.key(Key::Enter).await }).await;
    assert!(browser.here().await.starts_with("/?q=mill&"));
    tab_to(browser, "tbody th a").await;
    browser.and_wait(async { browser.key(Key::Enter).await }).await;
    assert_eq!(browser.here().await, "/b/mill-001");
    tab_to(browser, "summary").await;
    browser.key(Key::Enter).await;
    browser.until("return document.activeElement.parentElement.open").await;
}

/// Time span in the address; empty if the whole is shown.
async fn stretch(browser: &Browser) -> String {
    let here = browser.here().await;
    here.split_once("time=").map(|(_, time)| time.to_owned()).unwrap_or_default()
}

/// Keys and the mouse zoom and move the time of a hunt's page, arrows go along its spikes, and the
/// address shows the same again.
pub async fn the_time_of_a_hunt_is_zoomed_and_moved(browser: &Browser) {
    let run = format!("/runs/{HUNT}");
    browser.go(&run).await;
    browser.until("return document.documentElement.classList.contains('asked')").await;
    browser
        .until("return document.querySelector('#ask-heading').textContent.startsWith('Spike 1 of 3')")
        .await;
    assert_eq!(browser.here().await, run);
    tab_to(browser, "svg.time").await;
    browser.key('+').await;
    let zoomed = stretch(browser).await;
    assert_ne!(zoomed, "");
    let picture = browser.find("svg.time").await;
    let from = PointerAction::MoveToElement { element: picture, duration: None, x: 10.0, y: 0.0 };
    let along = PointerAction::MoveBy { duration: None, x: -120.0, y: 0.0 };
    let drag = MouseActions::new("mouse".to_owned())
        .then(from)
        .then(PointerAction::Down { button: MOUSE_BUTTON_LEFT })
        .then(along)
        .then(PointerAction::Up { button: MOUSE_BUTTON_LEFT });
    browser.client.perform_actions(drag).await.unwrap();
    let moved = stretch(browser).await;
    let length = |stretch: &str| {
        let (from, to) = stretch.split_once('-').unwrap();
        to.parse::<f64>().unwrap() - from.parse::<f64>().unwrap()
    };
    assert!(moved != zoomed && (length(&moved) - length(&zoomed)).abs() < 1e-3, "{zoomed}, {moved}");

    browser.key('0').await;
    assert_eq!(browser.here().await, run);
    browser.key(Key::Right).await;
    let open = "return !document.querySelector('#ask-heading').textContent.startsWith('Spike 1')";
    browser.until(open).await;
    browser.key('+').await;
    let (here, heading) = (browser.here().await, browser.text("#ask-heading").await);
    assert!(here.contains("#spike=") && here.contains("&time="), "{here}");
    browser.go("/").await;
    browser.go(&here).await;
    browser.until(open).await;
    assert_eq!((browser.here().await, browser.text("#ask-heading").await), (here, heading));
}
