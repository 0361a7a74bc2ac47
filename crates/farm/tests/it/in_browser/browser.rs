//! A browser, operated through WebDriver as by a reader, and its complaints.

use std::time::Duration;

use axum::http::Method;
use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::elements::Element;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::{ParseError, Url};

use super::driver::Driver;

/// Time limit for an event: long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval of polling.
const BETWEEN: Duration = Duration::from_millis(15);

/// The reader's settings of the browser.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReaderSettings {
    pub dark: bool,
    pub without_scripts: bool,
}

/// A log of Chromium's, which is emptied by asking for it; the standard has none.
#[derive(Debug)]
struct ChromiumLog(&'static str);

impl WebDriverCompatibleCommand for ChromiumLog {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/se/log", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({ "type": self.0 }).to_string()))
    }
}

/// A selector, or a path in XPath, which begins with `/`.
fn locator(words: &str) -> Locator<'_> {
    if words.starts_with('/') { Locator::XPath(words) } else { Locator::Css(words) }
}

/// A window on the pages of a farm.
pub struct Browser {
    pub client: Client,
    base: String,
    /// Held until the end.
    _driver: Driver,
}

impl Browser {
    /// Opens a browser for the server at an address.
    pub async fn open(driver: Driver, farm: &str, set: ReaderSettings) -> Browser {
        // The sandbox needs a user other than root, or a container without restrictions.
        let mut arguments = vec!["--headless=new", "--no-sandbox", "--hide-scrollbars"];
        arguments.push("--window-size=1280,900");
        if set.dark {
            arguments.push("--blink-settings=preferredColorScheme=0");
        }
        // 2 is `block`.
        let scripts = if set.without_scripts { 2 } else { 1 };
        let wanted = json!({
            "goog:chromeOptions": {
                "args": arguments,
                "prefs": { "profile.managed_default_content_settings.javascript": scripts },
            },
            "goog:loggingPrefs": { "browser": "WARNING", "performance": "ALL" },
        });
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(serde_json::from_value(wanted).unwrap());
        let client = builder.connect(&driver.address).await.unwrap();
        Browser { client, base: format!("http://{farm}"), _driver: driver }
    }

    /// Opens a page by its address within the farm.
    pub async fn go(&self, path: &str) {
        self.client.goto(&format!("{}{path}", self.base)).await.unwrap();
    }

    /// The address of the page within the farm.
    pub async fn here(&self) -> String {
        let address = self.client.current_url().await.unwrap();
        address.as_str().trim_start_matches(&self.base).to_owned()
    }

    /// The element, once it exists.
    pub async fn find(&self, words: &str) -> Element {
        let wait = self.client.wait().at_most(PATIENCE).every(BETWEEN);
        match wait.for_element(locator(words)).await {
            Ok(found) => found,
            Err(why) => panic!("{words} is not on {}: {why}", self.here().await),
        }
    }

    /// Visible text of an element.
    pub async fn text(&self, words: &str) -> String {
        self.find(words).await.text().await.unwrap()
    }

    /// Value of a field.
    pub async fn value(&self, words: &str) -> String {
        self.find(words).await.prop("value").await.unwrap().unwrap_or_default()
    }

    /// Number of elements now.
    pub async fn count(&self, words: &str) -> usize {
        self.client.find_all(locator(words)).await.unwrap().len()
    }

    /// Result of a script that is run on the page with `given` as its arguments.
    pub async fn told<T: DeserializeOwned>(&self, script: &str, given: Vec<Value>) -> T {
        let answer = self.client.execute(script, given).await.unwrap();
        serde_json::from_value(answer).unwrap()
    }

    /// Waits until a script returns true.
    pub async fn until(&self, script: &str) {
        let come = async {
            while !self.told::<bool>(script, Vec::new()).await {
                tokio::time::sleep(BETWEEN).await;
            }
        };
        tokio::time::timeout(PATIENCE, come).await.unwrap_or_else(|_| panic!("never so: {script}"));
    }

    /// Replaces the value of a field.
    pub async fn fill(&self, words: &str, text: &str) {
        let field = self.find(words).await;
        field.clear().await.unwrap();
        if !text.is_empty() {
            field.send_keys(text).await.unwrap();
        }
    }

    /// Chooses in a list by the value.
    pub async fn choose(&self, words: &str, value: &str) {
        self.find(words).await.select_by_value(value).await.unwrap();
    }

    /// Clicks on an element that does not leave the page.
    pub async fn click(&self, words: &str) {
        self.find(words).await.click().await.unwrap();
    }

    /// Clicks on an element that leads to another page, and waits for that.
    pub async fn press(&self, words: &str) {
        self.and_wait(async { self.click(words).await }).await;
    }

    /// Goes back by a page.
    pub async fn back(&self) {
        self.and_wait(async { self.client.back().await.unwrap() }).await;
    }

    /// Performs an action that leads to another page, and waits until that is complete.
    pub async fn and_wait(&self, act: impl Future<Output = ()>) {
        let before = self.begun().await;
        act.await;
        let come = async {
            loop {
                let now = self.begun().await;
                if now.is_some() && now != before {
                    return;
                }
                tokio::time::sleep(BETWEEN).await;
            }
        };
        let gone = tokio::time::timeout(PATIENCE, come).await;
        assert!(gone.is_ok(), "no other page came after {}", self.here().await);
    }

    /// Time of the request for the page, once it is complete: unique to each page.
    async fn begun(&self) -> Option<f64> {
        const BEGUN: &str = "return document.readyState === 'complete' ? performance.timeOrigin : null";
        // While one page replaces another, scripts cannot run.
        self.client.execute(BEGUN, Vec::new()).await.ok()?.as_f64()
    }

    /// Presses a key at the focus.
    pub async fn key(&self, key: impl Into<char>) {
        let value = key.into();
        let keys = KeyActions::new("keys".to_owned());
        let keys = keys.then(KeyAction::Down { value }).then(KeyAction::Up { value });
        self.client.perform_actions(keys).await.unwrap();
    }

    /// Makes the window another size.
    pub async fn resize(&self, width: u32, height: u32) {
        self.client.set_window_rect(0, 0, width, height).await.unwrap();
        self.until(&format!("return innerWidth === {width}")).await;
    }

    async fn log(&self, kind: &'static str) -> Vec<Value> {
        let all = self.client.issue_cmd(ChromiumLog(kind)).await.unwrap();
        all.as_array().cloned().unwrap_or_default()
    }

    /// Problems that the browser found since the last call: refused requests, violations of the
    /// policy, errors of scripts.
    pub async fn complaints(&self) -> Vec<String> {
        let all = self.log("browser").await;
        all.iter().map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Consumes the one complaint caused by an action: a response with this status.
    pub async fn was_refused(&self, status: &str) {
        let complaints = self.complaints().await;
        let told = format!("responded with a status of {status} ");
        assert!(complaints.len() == 1 && complaints[0].contains(&told), "{status}: {complaints:?}");
    }

    /// Addresses requested since the last call.
    async fn requests(&self) -> Vec<String> {
        let sent = |entry: &Value| {
            let event: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let event = &event["message"];
            let address = event["params"]["request"]["url"].as_str()?;
            (event["method"] == "Network.requestWillBeSent").then(|| address.to_owned())
        };
        self.log("performance").await.iter().filter_map(sent).collect()
    }

    /// Closes it. The browser must have found no problem, and requested nothing outside the farm.
    pub async fn close(self) {
        assert_eq!(self.complaints().await, Vec::<String>::new());
        let requests = self.requests().await;
        let own = format!("{}/", self.base);
        let is_own = |address: &str| address.starts_with(&own) || address.starts_with("data:");
        let elsewhere: Vec<&String> = requests.iter().filter(|address| !is_own(address)).collect();
        assert!(elsewhere.is_empty(), "{elsewhere:?}");
        assert!(requests.iter().any(|address| address.ends_with(".css")), "{requests:?}");
        self.client.close().await.unwrap();
    }
}
