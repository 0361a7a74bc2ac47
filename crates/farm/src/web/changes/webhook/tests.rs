//! A receiver of its own, on a port of this machine.

use crate::fixture::run_folder;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::changes::ChangeKind;
use crate::changes::made::made_change;
use crate::ingest::bundle::read;
use crate::ingest::find::FoundBundle;
use crate::store::engines::on_page_engines;
use crate::web::FarmExposure;

const SECRET_TEXT: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

#[derive(Debug)]
struct Received {
    head: String,
    body: String,
}

/// Answers one request after the other with the next of these; what came is sent on.
fn receiver(answers: Vec<&'static str>) -> (String, Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http{}{}/hook?x=1", "://", listener.local_addr().unwrap());
    let (to, from): (Sender<Received>, _) = channel();
    std::thread::Builder::new()
        .spawn(move || {
            for answer in answers {
                let mut stream = BufReader::new(listener.accept().unwrap().0);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    stream.read_line(&mut head).unwrap();
                }
                let length = head.lines().find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned)
                });
                let mut body = vec![0; length.unwrap().parse().unwrap()];
                stream.read_exact(&mut body).unwrap();
                let more = "Content-Length: 0\r\nLocation: /elsewhere\r\nConnection: close";
                let answer = format!("HTTP/1.1 {answer}\r\n{more}\r\n\r\n");
                stream.get_mut().write_all(answer.as_bytes()).unwrap();
                to.send(Received { head, body: String::from_utf8(body).unwrap() }).unwrap();
            }
        })
        .unwrap();
    (url, from)
}

fn change(from: i64) -> FarmChange {
    FarmChange {
        from,
        says: "Nothing came.".into(),
        evidence: vec!["x".into()],
        address: "/b/a".into(),
        subject: "silent".into(),
        ..made_change("a", ChangeKind::Silent, from + 86_400)
    }
}

async fn app(store: FarmStore) -> App {
    let place = run_folder("hunt");
    store.put(&read(&FoundBundle { place, board: Some("a".into()) }).unwrap().0).await.unwrap();
    App::new(store, FarmExposure::Loopback, None)
}

fn field(head: &str, name: &str) -> String {
    let lower = head.to_ascii_lowercase();
    let at = lower.lines().position(|line| line.starts_with(&format!("{name}: "))).unwrap();
    head.lines().nth(at).unwrap().split_once(": ").unwrap().1.to_owned()
}

#[test]
fn a_change_is_told_once_signed_and_again_where_it_was_not_taken() {
    on_page_engines(async |store| {
        let app = app(store).await;
        let (url, came) = receiver(vec!["500 x", "302 x", "200 x", "204 x"]);
        let hook = Webhook::new(&url, SECRET_TEXT).unwrap();
        // What was there before is not told.
        note(&app, &[change(0)], 1).await.unwrap();
        deliver(&app, &hook, 1).await.unwrap();
        note(&app, &[change(864_000), change(0)], 2).await.unwrap();
        for now in [2, 3, 100_000, 100_001, 200_000, 200_001] {
            deliver(&app, &hook, now).await.unwrap();
            note(&app, &[change(864_000), change(0)], now).await.unwrap();
        }
        let all: Vec<Received> = (0..3).map(|_| came.recv().unwrap()).collect();
        assert!(came.try_recv().is_err(), "more than one try at a time, or one told twice");
        assert!(all.iter().all(|one| one.body == all[0].body && one.head.starts_with("POST /hook?x=1 ")));
        let document: serde_json::Value = serde_json::from_str(&all[2].body).unwrap();
        assert_eq!(document["data"]["kind"], "silent");
        assert_eq!(document["id"], field(&all[2].head, "webhook-id").as_str());
        assert_eq!(document["worse"], true);
        let now: i64 = field(&all[2].head, "webhook-timestamp").parse().unwrap();
        let signed = hook.signature(document["id"].as_str().unwrap(), now, &all[2].body);
        assert!(now == 200_000 && signed == field(&all[2].head, "webhook-signature"));
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &app.counters;
        assert_eq!((count(&counters.webhook_sent), count(&counters.webhook_failures)), (1, 2));
        assert_eq!((count(&counters.webhook_given_up), count(&counters.webhook_pending)), (0, 0));
    });
}

#[test]
fn what_nobody_takes_is_given_up_and_counted_and_the_queue_has_an_end() {
    on_page_engines(async |store| {
        let app = app(store).await;
        // A port that nobody listens on any more.
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let hook = Webhook::new(&format!("http{}{closed}/", "://"), SECRET_TEXT).unwrap();
        note(&app, &[], 1).await.unwrap();
        let all: Vec<FarmChange> = (1..=1_003).map(|day| change(day * 864_000)).collect();
        note(&app, &all, 2).await.unwrap();
        let given_up = || app.counters.webhook_given_up.load(Ordering::Relaxed);
        assert_eq!((given_up(), app.store.waiting_notices().await.unwrap()), (3, 1_000));
        // One that does not get there is the last of its look.
        for look in 1..=TRIES as i64 {
            deliver(&app, &hook, 2).await.unwrap();
            assert_eq!(app.counters.webhook_failures.load(Ordering::Relaxed), look as u64);
        }
        let first = app.store.due_notices(i64::MAX, 1).await.unwrap().remove(0);
        for tries in first.tries..TRIES {
            failed(&app, &app.store, &WaitingNotice { tries, ..first.clone() }, WebhookFault::Refused, 3)
                .await
                .unwrap();
        }
        assert_eq!((given_up(), app.store.waiting_notices().await.unwrap()), (4, 999));
        let gone = app.store.due_notices(i64::MAX, 1).await.unwrap().remove(0);
        failed(&app, &app.store, &gone, WebhookFault::Gone, 3).await.unwrap();
        assert_eq!(app.store.waiting_notices().await.unwrap(), 998);
    });
}

#[test]
fn waits_grow_to_an_end() {
    assert!((15..30).contains(&wait(0)) && (30..60).contains(&wait(1)));
    assert!((LONGEST_WAIT / 2..LONGEST_WAIT).contains(&wait(u64::MAX)));
}

#[test]
fn only_an_encrypted_address_or_this_machine_is_told_and_only_with_a_secret() {
    let of = |url: &str| Webhook::new(&url.replace('@', "://"), SECRET_TEXT);
    for url in ["https@hooks.example/x?y=z", "http@localhost:9/x", "http@127.0.0.1:9", "http@[::1]:9/"] {
        assert!(of(url).is_ok(), "{url}");
    }
    for url in
        ["", "hooks.example", "http@hooks.example/", "ftp@localhost/", "http@127.0.0.1.evil.test/", "/x"]
    {
        assert!(of(url).is_err_and(|failure| failure.message.contains("--webhook")), "{url}");
    }
    assert!(Webhook::new(concat!("https", "://user:word@hooks.example/"), SECRET_TEXT).is_err());
    for secret in ["", "whsec_", "whsec_MDEy", "0123456789abcdef0123456789abcdef", "whsec_%%%"] {
        let url = format!("http{}localhost/", "://");
        let message = Webhook::new(&url, secret).err().unwrap().message;
        assert!(message.contains("--webhook-secret") && !message.contains("MDEy"), "{message}");
    }
}

#[test]
fn a_signature_is_that_of_the_specification() {
    // The example of the specification's libraries (standard-webhooks/webhooks, "libraries").
    let hook =
        Webhook::new(&format!("http{}localhost/", "://"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signature = hook.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, "{\"test\": 2432232314}");
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}
