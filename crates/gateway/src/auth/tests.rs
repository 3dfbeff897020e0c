//! Tests of the door, with a clock that stands still.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::HeaderName;
use larder_models::price::Usd;
use larder_store::{Clock, RESERVATION_LIFETIME, StoreOptions};

use super::*;

/// 2026-11-21T00:00:00Z.
const START: u64 = 1_795_219_200_000;

struct FixedClock(AtomicU64);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

struct Door {
    dir: tempfile::TempDir,
    clock: Arc<FixedClock>,
    auth: Auth,
}

impl Door {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(FixedClock(AtomicU64::new(START)));
        let auth = Auth::new(open(&dir, &clock)).unwrap();
        Self { dir, clock, auth }
    }

    /// The store as another process opens it.
    fn other(&self) -> Store {
        open(&self.dir, &self.clock)
    }

    fn key(&self, user: &str, limits: KeyLimits) -> ApiKey {
        create_key(&self.other(), user, "", limits).unwrap().0
    }

    fn get(&self, given: &[(&str, &str)]) -> Result<Caller, AuthError> {
        self.auth.caller(&Method::GET, &headers(given), here(), None)
    }

    fn post(&self, given: &[(&str, &str)]) -> Result<Caller, AuthError> {
        self.auth.caller(&Method::POST, &headers(given), here(), None)
    }
}

fn open(dir: &tempfile::TempDir, clock: &Arc<FixedClock>) -> Store {
    let options = StoreOptions { clock: clock.clone(), ..StoreOptions::default() };
    Store::open(&dir.path().join("home"), options).unwrap()
}

fn headers(given: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        (name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    given.iter().map(pair).collect()
}

fn here() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 4_000))
}

fn away() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 4_000))
}

fn user(caller: Result<Caller, AuthError>) -> String {
    caller.unwrap().store.user().to_owned()
}

const HOST: (&str, &str) = ("host", "127.0.0.1:8080");

#[test]
fn without_keys_only_this_machine_is_local() {
    let door = Door::new();
    let provider = [("authorization", "Bearer sk-of-a-provider"), ("x-api-key", "lk-invented")];
    assert_eq!(user(door.get(&provider)), "local");
    assert_eq!(door.get(&[]).unwrap().key, None);
    for host in
        ["localhost", "LOCALHOST:80", "a.localhost:1", "127.1.2.3", "[::1]:8080", "[::ffff:127.0.0.1]"]
    {
        assert_eq!(user(door.post(&[("host", host)])), "local", "{host}");
    }
    let mapped = "[::ffff:127.0.0.1]:1".parse().unwrap();
    assert_eq!(user(door.auth.caller(&Method::GET, &headers(&[]), mapped, None)), "local");
    let from_away = door.auth.caller(&Method::GET, &headers(&[]), away(), None);
    assert!(matches!(from_away, Err(AuthError::NotLocal)));
    // A name that resolves to this machine, as a page in a browser may arrange, and a proxy in front of everyone.
    let strange = [
        ("host", "evil.example:8080"),
        ("host", "127.0.0.1.evil.example"),
        ("host", ""),
        ("x-forwarded-for", "127.0.0.1"),
        ("forwarded", "for=127.0.0.1"),
        ("x-real-ip", "127.0.0.1"),
    ];
    for header in strange {
        assert!(matches!(door.get(&[header]), Err(AuthError::NotLocal)), "{header:?}");
    }
}

#[test]
fn pages_of_other_sites_do_nothing_by_being_open_on_this_machine() {
    let door = Door::new();
    let foreign: [&[(&str, &str)]; 6] = [
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("origin", "http://127.0.0.1:9999"), ("sec-fetch-site", "same-site")],
        &[("origin", "http://127.0.0.1:8080.evil.example")],
        &[("sec-fetch-site", "cross-site")],
        &[("origin", "http://")],
    ];
    for given in foreign {
        let given: Vec<_> = given.iter().copied().chain([HOST]).collect();
        assert!(matches!(door.post(&given), Err(AuthError::Foreign)), "{given:?}");
    }
    let own: [&[(&str, &str)]; 5] = [
        &[],
        &[("origin", "http://127.0.0.1:8080")],
        &[("sec-fetch-site", "same-origin"), ("origin", "http://127.0.0.1:8080")],
        &[("sec-fetch-site", "none")],
        &[("origin", "vscode-webview://abc"), ("sec-fetch-site", "cross-site")],
    ];
    for given in own {
        let given: Vec<_> = given.iter().copied().chain([HOST]).collect();
        assert_eq!(user(door.post(&given)), "local", "{given:?}");
    }
    assert_eq!(user(door.post(&[("host", "localhost"), ("origin", "http://localhost:80")])), "local");
    // With a key it is a program of the user's that calls, from whatever page.
    let key = format!("Bearer {}", door.key("ada", KeyLimits::default()).reveal());
    assert_eq!(user(door.post(&[("authorization", &key), ("origin", "https://app.example")])), "ada");
}

#[test]
fn a_key_opens_the_documents_of_its_user_from_anywhere() {
    let door = Door::new();
    let limits = KeyLimits { tokens_per_day: Some(5), picos_per_day: None };
    let (ada, eve) = (door.key("ada", limits), door.key("eve", KeyLimits::default()));
    let bearer = format!("Bearer {}", ada.reveal());
    let sent = headers(&[("authorization", &bearer)]);
    let caller = door.auth.caller(&Method::POST, &sent, away(), None).unwrap();
    assert_eq!((caller.store.user(), caller.key.as_ref(), caller.limits), ("ada", Some(ada.id()), limits));
    assert_eq!(user(door.get(&[("authorization", &bearer.replace("Bearer", "bearer"))])), "ada");
    assert_eq!(user(door.get(&[("x-api-key", eve.reveal())])), "eve");
    assert_eq!(user(door.get(&[("authorization", "Bearer sk-other"), ("x-api-key", eve.reveal())])), "eve");
    assert_eq!(user(door.get(&[("authorization", &bearer), ("x-api-key", eve.reveal())])), "ada");
    assert!(matches!(door.get(&[]), Err(AuthError::Missing)), "from here on this machine needs one too");
    assert!(matches!(door.get(&[("authorization", "Bearer sk-other")]), Err(AuthError::Missing)));
}

#[test]
fn only_the_whole_text_of_a_key_opens() {
    let door = Door::new();
    let (ada, eve) = (door.key("ada", KeyLimits::default()), door.key("eve", KeyLimits::default()));
    user(door.get(&[("x-api-key", ada.reveal())]));
    let mixed = format!("lk-{}-{}", ada.id(), eve.reveal().rsplit('-').next().unwrap());
    let mut last = ada.reveal().to_owned();
    let digit = if last.ends_with('0') { '1' } else { '0' };
    last.pop();
    let cut = last.clone();
    last.push(digit);
    for wrong in [mixed.as_str(), &last, &cut, "lk-", "lk-000000000000-0", &format!("lk-{}-", ada.id())] {
        for _ in 0..2 {
            assert!(matches!(door.get(&[("x-api-key", wrong)]), Err(AuthError::Unknown)), "{wrong}");
        }
    }
    assert_eq!(user(door.get(&[("x-api-key", ada.reveal())])), "ada");
}

#[test]
fn the_slow_hash_is_made_once_and_revoking_works_at_once() {
    let door = Door::new();
    let key = door.key("ada", KeyLimits::default());
    let given = [("x-api-key", key.reveal())];
    assert_eq!(user(door.get(&given)), "ada");
    assert_eq!(lock(&door.auth.passed).len(), 1);
    // Whoever waits for the slow hash would wait for ever.
    let slow = lock(&door.auth.slow.memory);
    (0..100).for_each(|_| assert_eq!(user(door.get(&given)), "ada"));
    drop(slow);
    door.other().keys().revoke(key.id()).unwrap();
    let error = door.get(&given).unwrap_err();
    assert!(matches!(&error, AuthError::Revoked { id } if id == key.id()), "{error}");
    assert_eq!(error.status(), StatusCode::UNAUTHORIZED);
    assert!(matches!(door.get(&[]), Err(AuthError::Missing)), "no keys left is not no keys at all");
    door.other().delete_user("ada").unwrap();
    // A key was created once, so nobody is `local` again.
    assert!(matches!(door.get(&given), Err(AuthError::Unknown)));
    assert!(matches!(door.get(&[]), Err(AuthError::Missing)));
}

/// The key with another secret, and so a wrong one; `number` makes them differ.
fn wrong(key: &ApiKey, number: u8) -> String {
    format!("lk-{}-{}", key.id(), format!("{number:02x}").repeat(24))
}

#[test]
fn a_key_that_is_guessed_at_is_not_hashed_for_until_a_minute_is_over() {
    let door = Door::new();
    let (ada, eve, bob) = (
        door.key("ada", KeyLimits::default()),
        door.key("eve", KeyLimits::default()),
        door.key("bob", KeyLimits::default()),
    );
    assert_eq!(user(door.get(&[("x-api-key", ada.reveal())])), "ada");
    for key in [&ada, &eve] {
        for number in 0..5 {
            let guess = door.get(&[("x-api-key", &wrong(key, number))]);
            assert!(matches!(guess, Err(AuthError::Unknown)), "{number}");
        }
        let error = door.get(&[("x-api-key", &wrong(key, 5))]).unwrap_err();
        assert!(matches!(error, AuthError::Busy), "{error}");
        let status = (error.status(), error.retry_after(Timestamp::from_millis(START)));
        assert_eq!(status, (StatusCode::TOO_MANY_REQUESTS, Some(1)));
    }
    assert_eq!(user(door.get(&[("x-api-key", ada.reveal())])), "ada", "a key that has passed goes on");
    assert_eq!(user(door.get(&[("x-api-key", bob.reveal())])), "bob", "others are not in its way");
    door.clock.0.store(START + 59_999, Ordering::Relaxed);
    assert!(matches!(door.get(&[("x-api-key", eve.reveal())]), Err(AuthError::Busy)));
    door.clock.0.store(START + 60_000, Ordering::Relaxed);
    assert_eq!(user(door.get(&[("x-api-key", eve.reveal())])), "eve");
    assert!(matches!(door.get(&[("x-api-key", &wrong(&eve, 6))]), Err(AuthError::Unknown)));
}

#[test]
fn no_more_than_a_few_wait_for_the_slow_hash() {
    let door = Door::new();
    let (ada, eve) = (door.key("ada", KeyLimits::default()), door.key("eve", KeyLimits::default()));
    assert_eq!(user(door.get(&[("x-api-key", ada.reveal())])), "ada");
    let places: Vec<_> = (0..=slow::MAX_WAITING).map(|_| door.auth.slow.place().unwrap()).collect();
    assert!(matches!(door.get(&[("x-api-key", eve.reveal())]), Err(AuthError::Busy)));
    assert!(matches!(door.auth.sign_in(&headers(&[]), &eve), Err(AuthError::Busy)));
    assert_eq!(user(door.get(&[("x-api-key", ada.reveal())])), "ada", "who has passed does not wait");
    drop(places);
    assert_eq!(user(door.get(&[("x-api-key", eve.reveal())])), "eve", "a refusal leaves no place taken");
}

#[test]
fn all_guesses_are_hashed_in_one_block_of_memory() {
    let door = Door::new();
    let (ada, eve) = (door.key("ada", KeyLimits::default()), door.key("eve", KeyLimits::default()));
    let block = || {
        let memory = lock(&door.auth.slow.memory);
        (memory.as_ptr() as usize, memory.len())
    };
    assert_eq!(user(door.get(&[("x-api-key", ada.reveal())])), "ada");
    let first = block();
    for number in 0..3 {
        assert!(matches!(door.get(&[("x-api-key", &wrong(&eve, number))]), Err(AuthError::Unknown)));
    }
    assert_eq!((block(), first.1), (first, 19 << 10));
}

#[test]
fn stored_and_printed_values_contain_no_key() {
    let door = Door::new();
    let key = door.key("ada", KeyLimits::default());
    let secret = key.reveal().rsplit('-').next().unwrap();
    let given = [("x-api-key", key.reveal())];
    let caller = door.get(&given).unwrap();
    let cookie = door.auth.sign_in(&headers(&[]), &key).unwrap();
    let printed = format!("{caller:?} {key:?} {cookie:?} {:?}", door.other().keys().get(key.id()).unwrap());
    assert!(!printed.contains(secret) && !printed.contains("argon2") && !printed.contains("larder_session"));
    let mut kept = Vec::new();
    for file in std::fs::read_dir(door.dir.path().join("home")).unwrap() {
        kept.extend(std::fs::read(file.unwrap().path()).unwrap_or_default());
    }
    let token = cookie.to_str().unwrap().split(['=', ';']).nth(1).unwrap().to_owned();
    for text in [secret, &token] {
        assert!(!kept.windows(text.len()).any(|window| window == text.as_bytes()));
    }
    assert!(kept.windows(10).any(|window| window == b"$argon2id$"));
}

#[test]
fn a_browser_signs_in_and_out() {
    let door = Door::new();
    let key = door.key("ada", KeyLimits { tokens_per_day: Some(9), picos_per_day: None });
    let set = door.auth.sign_in(&headers(&[]), &key).unwrap();
    let text = set.to_str().unwrap();
    assert!(text.ends_with("; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200"), "{text}");
    let https = door.auth.sign_in(&headers(&[("x-forwarded-proto", "https")]), &key).unwrap();
    assert!(https.to_str().unwrap().ends_with("; Secure"));
    let pair = format!("theme=dark; {}; x", text.split(';').next().unwrap());
    let cookie = ("cookie", pair.as_str());
    let caller = door.get(&[cookie]).unwrap();
    assert_eq!((caller.store.user(), caller.limits.tokens_per_day), ("ada", Some(9)));
    let own = ("origin", "http://127.0.0.1:8080");
    assert_eq!(user(door.post(&[cookie, HOST, own])), "ada");
    for foreign in
        [("origin", "https://evil.example"), ("sec-fetch-site", "same-site"), ("x-a", "nothing said")]
    {
        assert!(matches!(door.post(&[cookie, HOST, foreign]), Err(AuthError::Foreign)), "{foreign:?}");
    }
    for forged in ["larder_session=", "larder_session=00", "larder_session"] {
        assert!(matches!(door.get(&[("cookie", forged)]), Err(AuthError::Missing)), "{forged}");
    }
    let evil = headers(&[HOST, cookie, ("origin", "https://evil.example")]);
    assert!(matches!(door.auth.sign_in(&evil, &key), Err(AuthError::Foreign)));
    assert!(matches!(door.auth.sign_out(&evil), Err(AuthError::Foreign)));
    let cleared = door.auth.sign_out(&headers(&[HOST, cookie, own])).unwrap();
    assert!(cleared.to_str().unwrap().starts_with("larder_session=; ") && cleared.is_sensitive());
    assert!(cleared.to_str().unwrap().contains("Max-Age=0"));
    assert!(
        matches!(door.get(&[cookie]), Err(AuthError::Missing)),
        "the cookie opens nothing, wherever it went"
    );
}

#[test]
fn a_sign_in_ends_after_its_time_and_with_its_key() {
    let door = Door::new();
    let key = door.key("ada", KeyLimits::default());
    let cookie = |door: &Door| {
        let set = door.auth.sign_in(&headers(&[]), &key).unwrap();
        set.to_str().unwrap().split(';').next().unwrap().to_owned()
    };
    let first = cookie(&door);
    let lifetime = SIGN_IN_LIFETIME.as_millis() as u64;
    door.clock.0.store(START + lifetime - 1, Ordering::Relaxed);
    assert_eq!(user(door.get(&[("cookie", &first)])), "ada");
    door.clock.0.store(START + lifetime, Ordering::Relaxed);
    assert!(matches!(door.get(&[("cookie", &first)]), Err(AuthError::Missing)));
    let second = cookie(&door);
    assert_eq!(user(door.get(&[("cookie", &second)])), "ada");
    door.other().keys().revoke(key.id()).unwrap();
    assert!(matches!(door.get(&[("cookie", &second)]), Err(AuthError::Missing)));
    assert!(matches!(door.auth.sign_in(&headers(&[]), &key), Err(AuthError::Revoked { .. })));
}

#[test]
fn a_budget_is_held_settled_and_refused_with_what_is_left() {
    let door = Door::new();
    let limits = KeyLimits { tokens_per_day: Some(100), picos_per_day: Some(2_000_000_000_000) };
    let key = door.key("ada", limits);
    let caller = door.get(&[("x-api-key", key.reveal())]).unwrap();
    let dollars = |dollars: u64| Usd::from_picos(dollars * 1_000_000_000_000);
    let used = || door.other().keys().day_spend(key.id()).unwrap();
    let held = door.auth.reserve(&caller, 60, dollars(1)).unwrap();
    assert_eq!((used().held.tokens, used().used.tokens), (60, 0));
    let error = door.auth.reserve(&caller, 41, dollars(1)).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(
            "may take 41 tokens and 1 US dollars: left today are 40 tokens and 1 US dollars; calls in progress have reserved the rest"
        ),
        "{text}"
    );
    assert!(text.contains("2026-11-22T00:00:00.000Z") && text.contains(key.id().as_str()), "{text}");
    assert_eq!(error.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(error.retry_after(Timestamp::from_millis(START + 1)), Some(1));
    let error = door.auth.reserve(&caller, 101, dollars(1)).unwrap_err();
    assert!(error.to_string().contains("a whole day"), "{error}");
    assert_eq!(error.retry_after(Timestamp::from_millis(START + 1)), None);
    assert_eq!(AuthError::Missing.retry_after(Timestamp::from_millis(0)), None);
    held.settle(10, Usd::default()).unwrap();
    assert_eq!((used().held.tokens, used().used.tokens), (0, 10));
    let error = door.auth.reserve(&caller, 95, dollars(1)).unwrap_err();
    assert!(!error.to_string().contains("in progress"), "{error}");
    assert_eq!(error.retry_after(Timestamp::from_millis(START + 1)), Some(86_400));
    door.auth.reserve(&caller, 90, Usd::default()).unwrap().release().unwrap();
    assert_eq!((used().held.tokens, used().used.tokens), (0, 10));
    drop(door.auth.reserve(&caller, 50, dollars(2)).unwrap());
    assert_eq!((used().held.tokens, used().used.tokens), (0, 60), "nobody knows what it used: all counts");
    assert!(matches!(door.auth.reserve(&caller, 1, dollars(1)), Err(AuthError::OverLimit(_))));
    door.other().keys().revoke(key.id()).unwrap();
    assert!(matches!(door.auth.reserve(&caller, 1, Usd::default()), Err(AuthError::Revoked { .. })));
}

#[test]
fn callers_without_limits_reserve_nothing() {
    let door = Door::new();
    let local = door.get(&[]).unwrap();
    let key = door.key("ada", KeyLimits::default());
    let unlimited = door.get(&[("x-api-key", key.reveal())]).unwrap();
    for caller in [local, unlimited] {
        door.auth
            .reserve(&caller, u64::MAX, Usd::from_picos(u64::MAX))
            .unwrap()
            .settle(9, Usd::default())
            .unwrap();
    }
    let today = door.other().keys().day_spend(key.id()).unwrap();
    assert_eq!((today.used.tokens, today.held.tokens), (0, 0));
}

#[test]
fn an_unsettled_reservation_counts_in_full() {
    let door = Door::new();
    let key = door.key("ada", KeyLimits { tokens_per_day: Some(100), picos_per_day: None });
    let caller = door.get(&[("x-api-key", key.reveal())]).unwrap();
    let held = door.auth.reserve(&caller, 60, Usd::default()).unwrap();
    // The first write fails, the next one does not: the trigger lets in what was held and nothing else.
    let index = rusqlite::Connection::open(door.dir.path().join("home/index.sqlite")).unwrap();
    let broken = "CREATE TRIGGER broken BEFORE INSERT ON key_days WHEN new.tokens <> 60
                  BEGIN SELECT raise(ABORT, 'broken'); END";
    index.execute_batch(broken).unwrap();
    assert!(held.settle(10, Usd::default()).is_err());
    let today = door.other().keys().day_spend(key.id()).unwrap();
    assert_eq!((today.used.tokens, today.held.tokens), (60, 0));
}

#[test]
fn reservations_of_running_calls_do_not_expire() {
    let door = Door::new();
    let key = door.key("ada", KeyLimits { tokens_per_day: Some(100), picos_per_day: None });
    let caller = door.get(&[("x-api-key", key.reveal())]).unwrap();
    let lifetime = RESERVATION_LIFETIME.as_millis() as u64;
    let held = door.auth.reserve(&caller, 60, Usd::default()).unwrap();
    for periods in 1..4 {
        door.clock.0.store(START + periods * (lifetime - 1), Ordering::Relaxed);
        door.auth.renew().unwrap();
    }
    assert!(matches!(door.auth.reserve(&caller, 41, Usd::default()), Err(AuthError::OverLimit(_))));
    held.settle(10, Usd::default()).unwrap();
    assert!(door.auth.open.is_empty(), "nothing is left to be renewed");
    drop(door.auth.reserve(&caller, 90, Usd::default()).unwrap());
    assert!(door.auth.open.is_empty());
}
