//! Answers next to the page that they are of, from outside: the real binary with a scripted model and a page with a table.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod support;

use larder_testkit::stub::Answer;
use serde_json::json;
use support::scholar::{Role, asked, call, say};
use support::{Shop, reply_text};

const PAGE: &str = r"<!doctype html><title>Bikes</title><main><h1>Bikes</h1><table><tr><th>Model</th><th>Price (CHF)</th>
<th>Weight (kg)</th><th>In stock</th></tr><tr><td>Velora City</td><td>2190.00</td><td>21.5</td><td>6</td></tr><tr>
<td>Velora Trek</td><td>2890.00</td><td>23.1</td><td>3</td></tr><tr><td>Cargo Jumbo</td><td>4390.00</td><td>34.2</td>
<td>11</td></tr></table><p>Each bike is put together by hand in a small shed behind the harbour. It is looked at twice
before it leaves, and it comes with a warranty of three years.</p><p>The tour of 118 km is on 6 March 2027. Helmet: was $89.90, now $74.90. The
guide is Ingeborg Vestergaard. Start the map with <code>tourd --workers 6</code>.</p></main>";
/// Answers that the page states or yields, and others of the same form.
const TRUE: [&str; 10] = [
    "The Velora City costs CHF 2,190 and the Velora Trek CHF 2,890.",
    "The Trek costs CHF 700 more than the City.",
    "There are 20 bikes in stock.",
    "The City weighs 21500 g.",
    "You save $15.00 on the helmet.",
    "Two helmets cost $149.80.",
    "The tour is on Saturday, 6 March 2027.",
    "The guide is I. Vestergaard.",
    "Start it with `tourd --workers 6`.",
    "The warranty is three years.",
];
const FALSE: [&str; 12] = [
    "The Velora City costs CHF 2,890 and the Velora Trek CHF 2,190.",
    "The Trek costs CHF 800 more than the City.",
    "There are 25 bikes in stock.",
    "The City weighs 21.5 g.",
    "The tour is 118 miles long.",
    "The helmet costs $89.90 now.",
    "Two helmets cost $159.80.",
    "The tour is on Sunday, 6 March 2027.",
    "The guide is Ingrid Vestergaard.",
    "The guide is E. Vestergaard.",
    "Start it with `tourd --workers 8`.",
    "There are four hundred bikes in stock.",
];

#[test]
fn an_answer_is_verified_if_the_page_states_or_yields_it() {
    let shop = Shop::responding(|seen| match seen.line.as_str() {
        "GET /robots.txt" => Answer::new(404, "text/plain", ""),
        "GET /bikes" => Answer::new(200, "text/html; charset=utf-8", PAGE),
        _ => {
            let text = seen.json()["messages"].to_string();
            if text.contains("You copy structured values from a web page") {
                return reply_text(
                    &json!({"products": [], "comments": [], "specifications": []}).to_string(),
                );
            }
            let (role, prompt) = asked(seen);
            let url = format!("http://{}/bikes", seen.header("host").unwrap());
            let case = prompt.split("Answer number ").last().unwrap_or_default();
            let case: String = case.chars().take_while(char::is_ascii_digit).collect();
            let answers = TRUE.iter().chain(&FALSE);
            reply_text(&match role {
                Role::Coordinator if !prompt.contains("Iteration 1") => {
                    call("web.visit", &json!({"url": url})).to_string()
                }
                Role::Synthesizer => {
                    format!("{} [1]", answers.into_iter().nth(case.parse().unwrap()).unwrap())
                }
                _ => say(role, &prompt),
            })
        }
    });
    shop.configure_scholar("[tools]\nprivate_hosts = [\"127.0.0.1\"]\n");
    for (at, answer) in TRUE.iter().chain(&FALSE).enumerate() {
        // Each is of somebody who knows nothing of the others.
        let user = format!("user{at}");
        let ran = shop.json(&["turn", &format!("Answer number {at}"), "--user", &user]);
        assert_eq!(ran["unverified"], at >= TRUE.len(), "{answer}: {ran}");
    }
}
