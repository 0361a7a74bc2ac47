//! Appearance of pages: in the dark, on a telephone, without scripts; and visibility of one sample.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::browser::Browser;
use super::links::on_each_kind;

/// Position of the dot of the largest latency in the window.
const HIGHEST_DOT: &str = include_str!("highest_dot.js");
/// Contrast of a point of a picture.
const CONTRAST: &str = include_str!("contrast.js");
/// Minimum contrast of a graphic (WCAG 2, 1.4.11).
const LEAST: f64 = 3.0;

/// The only late wake-up of a year is seen on the heat map, in a wide window and on a telephone.
pub async fn one_sample_of_a_year_stands_out(browser: &Browser) {
    for width in [1280, 360] {
        browser.resize(width, 900).await;
        browser.go("/b/mill-001").await;
        let lead = browser.text("p.lead").await;
        assert!(lead.contains("of a year: 9.40 ms"), "{lead}");
        let (x, y, dots, label): (f64, f64, usize, String) = browser.told(HIGHEST_DOT, Vec::new()).await;
        assert!(dots == 365 && label.contains("the largest 9400.0 us"), "{dots} dots: {label}");
        let shot = STANDARD.encode(browser.client.screenshot().await.unwrap());
        let given = vec![json!(shot), json!(x), json!(y)];
        let contrast = browser.client.execute_async(CONTRAST, given).await.unwrap();
        assert!(contrast.as_f64().is_some_and(|contrast| contrast >= LEAST), "{width}: {contrast}");
    }
}

/// Visible properties of a page: dark or not, the text of its lead, its width.
const SEEN: &str = "
    const lead = [...document.querySelectorAll('.lead')].find((one) => one.checkVisibility());
    const dark = matchMedia('(prefers-color-scheme: dark) and (scripting: none)').matches;
    return [dark, lead?.textContent ?? '', document.documentElement.scrollWidth, innerWidth]";

/// Pages with the most contents, which the first links do not lead to.
const RICH: [&str; 5] = [
    "/b/plc-001/env",
    "/b/plc-001?span=day",
    "/b/plc-001?span=week",
    "/b/plc-001/at/1795350000?series=measure",
    "/compare?a_board=press-001&b_board=plc-001",
];

/// Each kind of page has a lead, and is no wider than the window of a telephone.
pub async fn every_kind_of_page_fits_and_answers(browser: &Browser) {
    browser.resize(360, 800).await;
    let kinds = on_each_kind(browser, &RICH, async |page: &str| {
        let (dark, lead, width, window): (bool, String, u32, u32) = browser.told(SEEN, Vec::new()).await;
        assert!(dark && !lead.trim().is_empty(), "{page}: {lead}");
        assert!(width <= window && window == 360, "{page} is {width} wide");
    });
    let kinds = kinds.await;
    assert!(kinds >= 30, "{kinds}");
    // Without scripts a hunt's page shows its spikes as pictures, one below the other.
    browser.go(&format!("/runs/{}", super::made_store::HUNT)).await;
    let seen = "return [...document.querySelectorAll('section.spike svg[aria-label]')].filter((one) =>
        one.checkVisibility()).length";
    assert!(browser.told::<usize>(seen, Vec::new()).await >= 3);
}
