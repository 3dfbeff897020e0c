//! Pages that turns visit, and what is known of them afterwards, from outside: the real binary with a scripted model, and a
//! shop whose page states nothing as data and has a short address.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use std::time::{SystemTime, UNIX_EPOCH};

use larder_store::{DocumentPlace, Documents, Store, StoreOptions};
use larder_testkit::lived_in::{self, YEAR};
use larder_testkit::stub::{Answer, Seen};
use larder_vault::DocumentTime;
use serde_json::{Value, json};
use support::scholar::{ANSWER, Role, asked, call, say};
use support::{Shop, reply_text};

const PUMP: &str = r#"<!doctype html><title>Pumps</title><nav><a href="/">All pumps</a></nav><h1>Rule 1100 pump</h1>
<div class="price">$74.00</div><p>This pump moves 1,100 gallons an hour and comes with a warranty of three years against
burnt motors and broken impellers, wherever you run it.</p>"#;
/// A page that states the price in a sentence.
const PRICED: &str = r#"<!doctype html><title>Pumps</title><main><h1>Rule 1100 pump</h1><p>Our price: $74.00. This pump moves
1,100 gallons an hour and comes with a warranty of three years against burnt motors and broken impellers.</p></main>"#;
/// A page that states the price of its product as data, and that of the shipping in its text.
const STATED: &str = r#"<!doctype html><title>Rule 1100 pump | free shipping over $100</title><script type="application/ld+json">
{"@type":"Product","name":"Rule 1100 pump","offers":{"price":"74.00","priceCurrency":"USD"}}</script>
<main><h1>Rule 1100 pump</h1><p>This pump moves 1,100 gallons an hour and comes with a warranty of three years against
burnt motors and broken impellers, wherever you run it.</p><p>Shipping is $9.50 for the mainland.</p></main>"#;
/// A page that states the price in a table, without a sign next to it, and nothing as data.
const LISTED: &str = r#"<!doctype html><title>Pumps</title><main><h1>Rule 1100 pump</h1>
<table><tr><th>Model</th><th>Price (USD)</th><th>Stock</th></tr><tr><td>Rule 1100</td><td>74.00</td><td>3</td></tr>
<tr><td>Rule 2000</td><td>129.00</td><td>0</td></tr></table><p>This pump moves 1,100 gallons an hour and comes with a
warranty of three years against burnt motors and broken impellers, wherever you run it.</p></main>"#;
const SHIPPING: &str = "What was the price of the shipping of the pump?";
/// A thread with comments between a banner and the number of its page.
const THREAD: &str = r#"<!doctype html><title>Which rope?</title><div class="cookie-banner"><p>We use cookies for comments.</p></div>
<main><h1>Which rope for the pump?</h1><p>Asked by gullwing on 14 October 2026</p></main><section><div class="comment">
<b>oldsalt</b> 54 points<p>Take 14 mm polyester, 12 m long. I paid 38 euros at Tauwerk Jensen.</p></div><div class="comment">
<b>hk</b> 3 points<p>Mine broke after two winters.</p></div><p>Comments: page 1 of 4</p></section>"#;
const COUNT: &str = "How many comments has the thread of the pump?";
const FIRST: &str = "How many pages has the thread of the pump?";
const VISIT: &str = "Visit the short address of the pump";
const FOLLOW_UP: &str = "What was the price of the pump?";
const WHEN: &str = "What was the price of the pump, and on which day?";
const STOCK: &str = "Is the pump still in stock?";

/// A shop on the web, and the model that visits it; `price` is what the model copies from the page.
fn shop(price: &'static str) -> Shop {
    shop_after(0, price)
}

/// The same; its vault will hold so many turns.
fn shop_after(turns: u32, price: &'static str) -> Shop {
    let shop = Shop::responding(move |seen| match seen.line.as_str() {
        "GET /robots.txt" => Answer::new(404, "text/plain", ""),
        "GET /short" => Answer::new(302, "text/html", "").header("location", "/moved"),
        "GET /moved" => Answer::new(302, "text/html", "").header("location", "/pump"),
        "GET /pump" => Answer::new(200, "text/html; charset=utf-8", PUMP),
        _ => reply_text(&reply(seen, turns + 1, price)),
    });
    shop.configure_scholar("[tools]\nprivate_hosts = [\"127.0.0.1\"]\n");
    shop
}

fn reply(seen: &Seen, visit: u32, price: &str) -> String {
    let text = seen.json()["messages"].to_string();
    if text.contains("You copy structured values from a web page") {
        let product = json!({"name": "Rule 1100 pump", "price": price, "quote": price});
        return json!({"products": [product], "comments": [], "specifications": []}).to_string();
    }
    let short = format!("http://{}/short", seen.header("host").unwrap());
    let (role, prompt) = asked(seen);
    let asks =
        [STOCK, SHIPPING, FOLLOW_UP, WHEN, COUNT, FIRST].into_iter().find(|query| prompt.contains(query));
    match role {
        Role::Coordinator if prompt.contains(VISIT) && !prompt.contains("Iteration 1") => {
            call("web.visit", &json!({"url": short})).to_string()
        }
        Role::Analyzer if asks.is_some() => json!({"resolved_query": asks, "was_resolved": true,
            "query_type": "specific_content", "intent": "informational", "entities": [], "reasoning": "It asks about the page.", "content_reference": {
                "title": "the pump", "content_type": "page", "site": "127.0.0.1", "source_turn": visit,
                "prior_findings": "", "source_url": short}})
        .to_string(),
        Role::Coordinator if asks.is_some() => json!({"action": "DONE", "goal": null,
            "reasoning": "It is known.", "calls": [], "goal_confidence": null, "progress": "Known.", "claims": []})
        .to_string(),
        _ => say(role, &prompt),
    }
}

fn file(shop: &Shop, turn: &str, name: &str) -> String {
    let shown = shop.json(&["turn", "show", turn, "--file", name]);
    shown["text"].as_str().unwrap().to_owned()
}

fn value(shop: &Shop, turn: &str, name: &str) -> Value {
    serde_json::from_str(&file(shop, turn, name)).unwrap()
}

#[test]
fn a_follow_up_finds_the_page_by_the_address_that_redirected_to_it() {
    follow_up(&shop("$74.00"), 0);
}

#[test]
fn the_whole_text_of_a_small_page_is_gathered_whatever_is_asked_about_it() {
    let shop = Shop::responding(|seen| match seen.line.as_str() {
        "GET /robots.txt" => Answer::new(404, "text/plain", ""),
        "GET /short" => Answer::new(302, "text/html", "").header("location", "/pump"),
        "GET /pump" => Answer::new(200, "text/html; charset=utf-8", THREAD),
        _ => reply_text(&reply(seen, 1, "none")),
    });
    shop.configure_scholar("[tools]\nprivate_hosts = [\"127.0.0.1\"]\n");
    shop.ok(&["turn", VISIT]);
    for (turn, asks) in [("2", COUNT), ("3", FIRST)] {
        shop.ok(&["turn", asks]);
        let context = file(&shop, turn, "context.md");
        let gathered = context.split("## 3. Task Plan").next().unwrap();
        let gathered = gathered.split("## 2. Gathered Context").nth(1).unwrap();
        for said in [
            "Asked by gullwing",
            "oldsalt 54 points",
            "38 euros at Tauwerk Jensen",
            "two winters",
            "page 1 of 4",
        ] {
            assert_eq!(gathered.matches(said).count(), 1, "{asks} {said}: {gathered}");
        }
        assert!(!gathered.contains("[…]"), "{gathered}");
        assert!(gathered.contains("page_content.md"), "{gathered}");
    }
}

/// Visits the page in turn `before + 1` and asks about it in the next.
fn follow_up(shop: &Shop, before: u32) {
    let (visit, next) = (before + 1, (before + 2).to_string());
    shop.ok(&["turn", VISIT]);
    let visits = |shop: &Shop| shop.seen().iter().filter(|seen| seen.line == "GET /pump").count();
    assert_eq!(visits(shop), 1);
    shop.ok(&["turn", FOLLOW_UP]);
    let reference = &value(shop, &next, "query_analysis.json")["content_reference"];
    assert_eq!(reference["source_turn"], visit);
    assert_eq!(reference["has_webpage_cache"], true, "{reference}");
    assert!(reference["source_url"].as_str().unwrap().ends_with("/pump"), "{reference}");
    let pages = shop.path().join(format!("home/documents/users/local/turns/turn_{visit:06}/webpage_cache"));
    let page = std::fs::read_dir(pages).unwrap().next().unwrap().unwrap().path().join("manifest.json");
    let manifest: Value = serde_json::from_slice(&std::fs::read(page).unwrap()).unwrap();
    let led_here: Vec<&str> =
        manifest["redirected_from"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(led_here[0].ends_with("/short") && led_here[1].ends_with("/moved"), "{led_here:?}");
    let context = file(shop, &next, "context.md");
    let gathered = context.split("## 3. Task Plan").next().unwrap();
    assert!(gathered.contains("From the capture of") && gathered.contains("$74.00"), "{gathered}");
    assert!(gathered.contains("a warranty of three years against"), "{gathered}");
    assert_eq!(visits(shop), 1, "the capture answers");
    shop.ok(&["turn", STOCK]);
    let context = file(shop, &(before + 3).to_string(), "context.md");
    let gathered = context.split("## 3. Task Plan").next().unwrap();
    let says = "and may have changed since; how it is now: http://127.0.0.1:";
    assert!(gathered.contains(says), "R1-14.7: {gathered}");
}

#[test]
fn an_old_price_is_verified_only_with_its_day() {
    old_price(PUMP, "Nothing is known.");
}

#[test]
fn so_is_one_that_only_a_table_of_the_page_states() {
    old_price(LISTED, "Nothing is known.");
}

#[test]
fn so_is_one_that_what_is_gathered_says_without_its_day() {
    old_price(PRICED, "The pump costs $74.00.");
}

#[test]
fn so_is_one_that_what_is_gathered_says_with_its_day() {
    old_price(PRICED, "On 5 January 2026 the pump cost $74.00.");
}

/// Asks for the price on `page` on its day, and later without and with that day; the model that gathers says `gathered`.
fn old_price(page: &'static str, gathered: &'static str) {
    const UNDATED: &str = "The pump costs $74.00. [p1]";
    const DATED: &str = "On 5 January 2026 the pump cost $74.00. [p1]";
    const AGAIN: &str = "And what did you say that it costs?";
    let shop = Shop::responding(move |seen| match seen.line.as_str() {
        "GET /robots.txt" => Answer::new(404, "text/plain", ""),
        "GET /short" => Answer::new(302, "text/html", "").header("location", "/pump"),
        "GET /pump" => Answer::new(200, "text/html; charset=utf-8", page),
        _ => {
            let text = seen.json()["messages"].to_string();
            let role = |role: Role| !text.contains("You copy structured values") && asked(seen).0 == role;
            reply_text(&match () {
                () if role(Role::Retrieval) && text.contains(AGAIN) => {
                    let link = json!({"path": "users/local/turns/turn_000002/context.md",
                        "sections_to_extract": []});
                    json!({"direct_info": [gathered], "links_to_follow": [link], "reasoning": "It was said."})
                        .to_string()
                }
                () if role(Role::Retrieval) => {
                    json!({"direct_info": [gathered], "links_to_follow": [], "reasoning": "The page says it."})
                        .to_string()
                }
                () if role(Role::Gathering) => {
                    json!({"information": gathered, "preferences": [], "prior_turns": [], "references": [],
                        "sufficiency": "SUFFICIENT"})
                    .to_string()
                }
                () if role(Role::Synthesizer) && text.contains(WHEN) => DATED.to_owned(),
                () if role(Role::Synthesizer) && [FOLLOW_UP, AGAIN].iter().any(|one| text.contains(one)) => {
                    UNDATED.to_owned()
                }
                () => reply(seen, 1, "$74.00"),
            })
        }
    });
    shop.configure_scholar("[tools]\nprivate_hosts = [\"127.0.0.1\"]\n");
    shop.ok(&["turn", VISIT]);
    assert!(!shop.ok(&["turn", FOLLOW_UP]).out.contains("nverified"), "the price of today");
    assert!(!shop.ok(&["turn", AGAIN]).out.contains("nverified"), "what was said today");
    // The clock cannot be set, so the capture is told to be old.
    let pages = shop.path().join("home/documents/users/local/turns/turn_000001/webpage_cache");
    let page = std::fs::read_dir(pages).unwrap().next().unwrap().unwrap().path().join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&page).unwrap()).unwrap();
    manifest["visited_at"] = json!("2026-01-05T10:00:00Z");
    std::fs::write(&page, manifest.to_string()).unwrap();
    shop.ok(&["reindex"]);
    for (number, query) in [("4", FOLLOW_UP), ("5", AGAIN)] {
        let undated = shop.run(&["turn", query]);
        assert!(format!("{undated:?}").contains("the answer states \\\"$74.00\\\""), "{query}: {undated:?}");
        let seen = shop.seen();
        let prompts = seen.iter().filter(|seen| seen.line.starts_with("POST"));
        let mut prompts = prompts.map(|seen| seen.json()["messages"].to_string());
        let prompt = prompts.rfind(|text| text.contains("You compile what is known before a query")).unwrap();
        assert!(prompt.contains("As of 2026-01-05"), "{query}: {prompt}");
        let context = file(&shop, number, "context.md");
        let section = context.split("## 3. Task Plan").next().unwrap();
        assert_eq!(section.contains("74.00"), gathered.starts_with("On 5 January"), "{query}: {section}");
    }
    let dated = shop.ok(&["turn", WHEN]);
    assert!(dated.out.contains(DATED.trim_end_matches(" [p1]")), "{dated:?}");
    assert!(!format!("{dated:?}").contains("the answer states"), "{dated:?}");
}

#[test]
fn after_a_year_pages_and_pasted_mails_are_asked_about_as_on_the_first_day() {
    let shop = shop_after(YEAR, "$74.00");
    let store = Store::open(&shop.path().join("home"), StoreOptions::default()).unwrap();
    let place = DocumentPlace::Folder(shop.path().join("home/documents"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let now = DocumentTime::from_millis(now.try_into().unwrap()).unwrap();
    lived_in::a_year(&Documents::open(&store, &place).unwrap(), ["local", "mara"], now);
    drop(store);
    follow_up(&shop, YEAR);
    for words in [5_000, 20_000] {
        let line =
            "The granary by the old harbour was painted last autumn, and nobody knows who had ordered it.";
        let line = format!("{line}\n");
        let lines = line.repeat(words / line.split_whitespace().count());
        let mail = format!("Dear Ms Krause,\n\n{lines}\nKind regards");
        let ran = shop.run_with(&["turn", "-"], format!("When is the ledger due?\n\n{mail}").as_bytes());
        assert_eq!((ran.code, ran.out.trim_end()), (0, ANSWER), "{ran:?}");
        let turn = shop.json(&["turn", "list"])["turns"][0]["number"].to_string();
        let attached = file(&shop, &turn, "attachments.md");
        let pointer = attached.lines().find_map(|line| line.strip_prefix("**Original:** ")).unwrap();
        assert_eq!(shop.ok(&["rehydrate", pointer]).out, mail);
    }
    assert_eq!(shop.documents().broken_links(|_| true), Vec::<String>::new());
    assert_eq!(shop.run(&["verify"]).code, 0);
    let prompts: String =
        shop.seen().iter().map(|seen| String::from_utf8_lossy(&seen.body).into_owned()).collect();
    for turn in 1..=lived_in::OTHER {
        let secret = lived_in::subject(lived_in::OTHERS_SUBJECTS + turn).secret;
        assert!(!prompts.contains(&secret), "of another user: {secret}");
    }
}

#[test]
fn a_capture_keeps_the_spaces_between_elements_and_nothing_that_the_page_hides() {
    const THREAD: &str = r#"<!doctype html><title>Pumps</title><h1>Rule 1100 pump</h1>
<div><span>ada</span> <span>12 points</span></div><p><b>Price:</b> <i>$5</i></p><p><span>Jan</span>
<span>Peters</span> sells <a href="/a">one</a> <a href="/b">two</a></p><p style="display:none">HIDDEN 555</p>
<div hidden>HIDDEN <div>556</div> 557</div><p style="visibility: hidden">HIDDEN 558</p><p aria-hidden="true">Shown.</p>"#;
    let shop = Shop::responding(|seen| match seen.line.as_str() {
        "GET /robots.txt" => Answer::new(404, "text/plain", ""),
        "GET /short" => Answer::new(200, "text/html; charset=utf-8", THREAD),
        _ => reply_text(&reply(seen, 1, "$5")),
    });
    shop.configure_scholar("[tools]\nprivate_hosts = [\"127.0.0.1\"]\n");
    shop.ok(&["turn", VISIT]);
    let shown = shop.json(&["turn", "show", "1", "--file", "context.md"]);
    let files = shown["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap());
    let page = files.clone().find(|file| file.ends_with("page_content.md")).unwrap();
    let text = file(&shop, "1", page);
    for line in ["ada 12 points", "Price: $5", "Jan Peters sells one two", "Shown."] {
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
    assert!(!text.contains("HIDDEN"), "{text}");
}

#[test]
fn a_price_that_the_page_does_not_state_is_not_offered_as_extracted() {
    let shop = shop("$47.00");
    shop.ok(&["turn", VISIT]);
    shop.ok(&["turn", FOLLOW_UP]);
    let considered = value(&shop, "2", "receipts.json")["considered"].clone();
    let capture = considered.as_array().unwrap().iter().find(|entry| entry["kind"] == "capture").unwrap();
    assert!(capture["document"].as_str().unwrap().ends_with("page_content.md"), "{capture}");
    let context = file(&shop, "2", "context.md");
    let gathered = context.split("## 3. Task Plan").next().unwrap();
    assert!(gathered.contains("$74.00") && !gathered.contains("$47.00"), "the text answers: {gathered}");
}

#[test]
fn the_price_of_a_product_is_not_offered_for_its_shipping() {
    let shop = Shop::responding(|seen| match seen.line.as_str() {
        "GET /robots.txt" => Answer::new(404, "text/plain", ""),
        "GET /short" => Answer::new(302, "text/html", "").header("location", "/pump"),
        "GET /pump" => Answer::new(200, "text/html; charset=utf-8", STATED),
        _ => reply_text(&reply(seen, 1, "$74.00")),
    });
    shop.configure_scholar("[tools]\nprivate_hosts = [\"127.0.0.1\"]\n");
    shop.ok(&["turn", VISIT]);
    let offered = |turn: &str, query: &str| {
        shop.ok(&["turn", query]);
        let considered = value(&shop, turn, "receipts.json")["considered"].clone();
        considered.as_array().unwrap().iter().find(|entry| entry["kind"] == "capture").unwrap().clone()
    };
    let price = offered("2", FOLLOW_UP);
    assert!(price["why"].as_str().unwrap().contains("that was extracted"), "{price}");
    let shipping = offered("3", SHIPPING);
    assert!(!shipping["why"].as_str().unwrap().contains("was extracted"), "{shipping}");
    let gathered = file(&shop, "3", "context.md").split("## 3. Task Plan").next().unwrap().to_owned();
    assert!(gathered.contains("Shipping is $9.50 for the mainland."), "the text answers: {gathered}");
}

#[test]
fn turns_are_summed_by_day_and_sites_are_learned() {
    let shop = shop("$74.00");
    shop.ok(&["turn", VISIT]);
    shop.ok(&["turn", FOLLOW_UP]);
    let trends = shop.json(&["trends"]);
    let days: Vec<&Value> = trends["days"].as_object().unwrap().values().collect();
    let turns: u64 = days.iter().map(|day| day["turns"].as_u64().unwrap()).sum();
    assert_eq!(turns, 2, "{trends}");
    assert!(days.iter().all(|day| day["tokens"].as_u64() > Some(0)), "{trends}");
    assert!(!trends["weeks"].as_object().unwrap().is_empty());
    assert!(shop.ok(&["trends"]).out.starts_with("day "));
    // Summed anew from the turns, the figures are the same.
    assert!(shop.ok(&["archive"]).out.contains("0 turns and 0 expired pieces of research"));
    assert_eq!(shop.json(&["trends"]), trends);
    let files = shop.documents().files();
    let site = files.iter().find(|(path, _)| path.starts_with("users/local/site_knowledge/")).unwrap();
    let site: Value = serde_json::from_slice(site.1).unwrap();
    let kinds: Vec<&str> = site["patterns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pattern| pattern["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["address", "price"], "{site}");
    // What is known of a site is in the prompts of a turn whose question names it.
    shop.ok(&["turn", "What do pumps cost at 127.0.0.1 now?"]);
    let prompts: String =
        shop.seen().iter().map(|seen| String::from_utf8_lossy(&seen.body).into_owned()).collect();
    assert!(prompts.contains("its pages state prices in their text only"));
}
