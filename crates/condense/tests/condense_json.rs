//! What condensing JSON and tables guarantees, whatever the text, the target and the pins; and what it shows of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop and say why"
)]

mod guarantees;

use std::time::{Duration, Instant};

use guarantees::{Case, key, rehydrated};
use larder_condense::{CondenseError, Condensed, ContentType};
use larder_text::pointer::Fragment;
use larder_text::tokens::Counter;
use proptest::prelude::*;

fn run(
    text: &str,
    content_type: ContentType,
    target: usize,
    query: Option<&str>,
    pins: &[String],
) -> Result<Condensed, CondenseError> {
    Case { text, content_type, target, query, pins }.run(&Counter::o200k())
}

fn json(text: &str, target: usize) -> Condensed {
    let condensed = run(text, ContentType::Json, target, None, &[]).unwrap();
    check(text, &condensed, target, &[]);
    condensed
}

/// Everything that holds of a condensation, checked from outside.
fn check(text: &str, condensed: &Condensed, target: usize, pins: &[String]) {
    assert!(condensed.tokens <= target && condensed.tokens <= condensed.original_tokens);
    assert_eq!(condensed.tokens, Counter::o200k().count(&condensed.text));
    assert_eq!(condensed.probes.lost, 0);
    pins.iter().for_each(|pin| assert!(condensed.text.contains(pin.as_str()), "pin {pin:?} is gone"));
    if condensed.gaps.is_empty() && condensed.text == text {
        return;
    }
    let id = condensed.pointer.id.as_str();
    assert!(condensed.text.contains(id), "no way back");
    let mut at = 0;
    for gap in &condensed.gaps {
        assert!(gap.bytes.start >= at && gap.bytes.start < gap.bytes.end, "gaps overlap or are empty");
        assert_eq!(rehydrated(text, &gap.pointer), &text[gap.bytes.clone()]);
        let mark = match gap.pointer.fragment {
            Some(Fragment::Lines { first, last }) => format!("L{first}-{last}]"),
            Some(Fragment::Bytes { start, end }) => format!("B{start}-{end}]"),
            None => String::new(),
        };
        let bare = condensed.text.contains(&format!("{id}]"));
        assert!(bare || condensed.text.contains(&mark), "{mark} is not marked in {}", condensed.text);
        said(&text[at..gap.bytes.start], condensed);
        at = gap.bytes.end;
    }
    said(&text[at..], condensed);
}

/// Every number and word of what is in no gap stands in the text, unless a rule for all rows says it.
fn said(stretch: &str, condensed: &Condensed) {
    if condensed.text.contains("in every row: ") {
        return;
    }
    for word in stretch.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        assert!(condensed.text.contains(word), "{word:?} is neither told nor in a gap: {}", condensed.text);
    }
}

/// Values of all kinds, nested.
fn values() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "-?[0-9]{1,22}(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        "\"[a-zA-Z0-9 _#/.:|;,猫é-]{0,30}\"",
        "\"(\\\\u00e9|\\\\n|\\\\\"|x){0,8}\"",
        prop::sample::select(vec!["true", "false", "null", "\"\"", "{}", "[]"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 160, 12, |inner| {
        let gaps = prop::sample::select(vec!["", " ", "\n  ", "\r\n"]);
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..12), gaps.clone())
                .prop_map(|(items, gap)| format!("[{gap}{}{gap}]", items.join(&format!(",{gap}")))),
            (prop::collection::vec(("[a-d]{1,2}|id|error|user_id", inner.clone()), 0..8), gaps.clone())
                .prop_map(|(members, gap)| {
                    let members: Vec<String> =
                        members.iter().map(|(name, value)| format!("\"{name}\":{gap}{value}")).collect();
                    format!("{{{gap}{}{gap}}}", members.join(&format!(",{gap}")))
                }),
            (prop::collection::vec(inner, 1..6), 3..40_usize, gaps).prop_map(|(values, rows, gap)| {
                let row = |n: usize| {
                    let cells: Vec<String> = values
                        .iter()
                        .enumerate()
                        .map(|(at, value)| {
                            format!("\"c{at}\":{gap}{}", if at + n % 3 == 2 { "7" } else { value })
                        })
                        .collect();
                    format!("{{\"id\":{gap}{},{gap}{}}}", n * 7 % 41, cells.join(","))
                };
                format!("[{gap}{}]", (0..rows).map(row).collect::<Vec<_>>().join(&format!(",{gap}")))
            }),
        ]
    })
}

/// A text with what breaks texts done to it.
fn mutated() -> impl Strategy<Value = String> {
    let scraps = prop::sample::select(vec![
        "",
        "\0",
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\r\n",
        "NaN",
        "[… L3-9]",
        "lp1-",
        "\u{feff}",
        "'",
        "//x\n",
    ]);
    let places = prop::collection::vec((any::<prop::sample::Index>(), scraps, any::<bool>()), 0..4);
    (values(), values(), places).prop_map(|(first, second, places)| {
        let mut text = format!("{first}\n{second}");
        for (place, scrap, cut) in places {
            let at = text.floor_char_boundary(place.index(text.len() + 1));
            if cut && text.len() > 400 { text.truncate(at) } else { text.insert_str(at, scrap) }
        }
        text
    })
}

fn holds(text: &str, content_type: ContentType, share: usize, query: bool, pin: Option<(usize, usize)>) {
    let counter = Counter::o200k();
    let target = counter.count(text) * share / 100;
    let pins: Vec<String> = pin
        .map(|(at, len)| {
            let at = text.floor_char_boundary(at % (text.len() + 1));
            text[at..text.floor_char_boundary((at + len).min(text.len()))].to_owned()
        })
        .into_iter()
        .collect();
    let query = query.then_some("what error has id 7");
    match run(text, content_type, target, query, &pins) {
        Ok(condensed) => {
            check(text, &condensed, target, &pins);
            assert_eq!(
                run(text, content_type, target, query, &pins).as_ref(),
                Ok(&condensed),
                "not deterministic"
            );
            let again = run(&condensed.text, content_type, target, query, &pins).map(|again| again.text);
            assert_eq!(again.as_ref(), Ok(&condensed.text), "not idempotent");
        }
        Err(CondenseError::PinsExceedTarget { needed, target: told }) => {
            assert!(told == target && needed > target, "refused although {needed} fit into {target}");
            let enough = run(text, content_type, needed, query, &pins);
            assert!(enough.is_ok(), "{needed} tokens were asked for and are not enough");
        }
        Err(other) => panic!("refused for another reason: {other}"),
    }
}

proptest! {
    #[test]
    fn any_json_meets_its_target(text in values(), share in 1..100_usize, query: bool, pin in prop::option::of((any::<usize>(), 0..60_usize))) {
        holds(&text, ContentType::Json, share, query, pin.map(|(at, len)| (at % 100_000, len)));
    }

    #[test]
    fn any_broken_json_meets_its_target(text in mutated(), share in 1..100_usize, query: bool, pin in prop::option::of((any::<usize>(), 0..60_usize))) {
        holds(&text, ContentType::Json, share, query, pin.map(|(at, len)| (at % 100_000, len)));
    }

    #[test]
    fn any_table_meets_its_target(rows in prop::collection::vec(prop::collection::vec("[a-z0-9 ]{0,9}|\"[a-z,\n]{0,9}(\"\")?\"|-?[0-9]{1,9}(\\.[0-9]+)?", 1..5), 0..60), share in 1..100_usize, query: bool, bom: bool) {
        let rows: Vec<String> = rows.iter().map(|row| row.join(",")).collect();
        let text = format!("{}id,name,b,c\n{}\n", if bom { "\u{feff}" } else { "" }, rows.join("\n"));
        holds(&text, ContentType::Table, share, query, None);
    }
}

fn orders(count: usize) -> String {
    let order = |n: usize| {
        let status = if n == 57 { "lost in transit" } else { ["pending", "delivered", "cancelled"][n % 3] };
        format!(
            "{{\"order_id\": \"#W{:07}\", \"user\": {{\"name\": \"person {}\", \"country\": \"USA\"}}, \"status\": \"{status}\", \
             \"total\": {}.{:02}, \"url\": \"https://shop.example/orders/#W{:07}\", \"note\": \"{}\"}}",
            (n * 7_919 + 13) % 9_999_991,
            n % 17,
            n * 31 % 997 + 10,
            n % 100,
            (n * 7_919 + 13) % 9_999_991,
            "long words that say nothing of the order at all ".repeat(4)
        )
    };
    format!("[{}]", (0..count).map(order).collect::<Vec<_>>().join(", "))
}

#[test]
fn every_row_keeps_its_name_and_rare_values_are_marked() {
    let text = orders(200);
    let condensed = json(&text, Counter::o200k().count(&text) / 10);
    for n in 0..200 {
        assert!(condensed.text.contains(&format!("#W{:07}", (n * 7_919 + 13) % 9_999_991)), "{n}");
    }
    assert!(condensed.text.contains("lost in transit"), "{}", condensed.text);
    assert!(condensed.text.contains("user.country=USA"), "{}", condensed.text);
    assert!(condensed.text.contains("url=https://shop.example/orders/{order_id}"), "{}", condensed.text);
}

/// Posts as an API returns them: what people read among ids, addresses, colours and counters.
fn posts(count: usize) -> Vec<serde_json::Value> {
    let post = |n: usize| {
        let lang = ["en", "de", "fr"][n % 3];
        serde_json::json!({
            "created_at": format!("2024-05-{:02}T{:02}:15:00Z", n % 28 + 1, n % 24),
            "id": 505_874_924_095_815_680_u64 + n as u64 * 7_919,
            "text": format!("Post {n} tells\nof \"boats\" and {} other things, {}", n * 37, "and so on ".repeat(9)),
            "lang": lang,
            "favorite_count": n % 7,
            "user": {
                "id": 1_186_275_104 + n * 31,
                "screen_name": format!("writer_{}", n * 13 % 101),
                "profile_background_color": format!("{:06X}", n * 40_503 % 0xff_ffff),
                "profile_image_url": format!("https://img.example/{}/{n}.png", n * 7_919),
                "followers_count": n * 97 % 1_013,
            },
        })
    };
    (0..count).map(post).collect()
}

fn reads_well(text: &str, content_type: ContentType, query: Option<&str>, target: usize) {
    let condensed = run(text, content_type, target, query, &[]).unwrap();
    check(text, &condensed, target, &[]);
    for n in 0..100 {
        for wanted in [
            (505_874_924_095_815_680_u64 + n as u64 * 7_919).to_string(),
            format!("Post {n} tells of"),
            format!("writer_{}", n * 13 % 101),
            format!("2024-05-{:02}T{:02}:15", n % 28 + 1, n % 24),
        ] {
            assert!(condensed.text.contains(&wanted), "{wanted} in {}", condensed.text);
        }
    }
    let columns = condensed.text.lines().find(|line| line.starts_with("rows ")).unwrap();
    assert!(!columns.contains("image"), "{columns}");
}

#[test]
fn what_people_read_comes_before_colours_and_counters() {
    let text = serde_json::to_string(&posts(100)).unwrap();
    reads_well(&text, ContentType::Json, None, 5_000);
    reads_well(&text, ContentType::Json, Some("When did each author post which text?"), 5_000);
}

#[test]
fn a_table_of_fields_is_shown_like_json() {
    let cell = |value: &serde_json::Value| match value.as_str() {
        Some(text) => format!("\"{}\"", text.replace('"', "\"\"")),
        None => value.to_string(),
    };
    let row = |post: &serde_json::Value| {
        let user = post["user"].as_object().unwrap().values();
        let own = ["created_at", "id", "text", "lang", "favorite_count"].map(|name| &post[name]);
        own.into_iter().chain(user).map(cell).collect::<Vec<_>>().join(",") + "\n"
    };
    let posts = posts(100);
    let user: Vec<String> =
        posts[0]["user"].as_object().unwrap().keys().map(|name| format!("user.{name}")).collect();
    let text = format!(
        "created_at,id,text,lang,favorite_count,{}\n{}",
        user.join(","),
        posts.iter().map(row).collect::<String>()
    );
    reads_well(&text, ContentType::Table, None, 5_000);
}

#[test]
fn the_query_chooses_columns_by_name_and_by_value() {
    let row = |n: usize| {
        let (ware, place) = (["lamp", "desk", "sofa"][n % 3], ["Oslo", "Rome", "Bern"][n % 3]);
        format!(
            "{{\"id\": \"k-{n}\", \"title\": \"{} about order {n}\", \"extra\": {{\"avatar\": \"{:x}ffff{n}\", \"v\": \"{ware}\", \"w\": \"{place}\"}}, \"body\": \"{}\"}}",
            "words ".repeat(4),
            n * 40_503 + 0xab_cdef,
            "filler ".repeat(30)
        )
    };
    let text = format!("[{}]", (0..80).map(row).collect::<Vec<_>>().join(", "));
    let columns = |query| {
        let condensed = run(&text, ContentType::Json, 1_500, Some(query), &[]).unwrap().text;
        condensed.lines().find(|line| line.starts_with("rows ")).unwrap().to_owned()
    };
    assert!(columns("the avatar of each").contains("extra.avatar"), "{}", columns("the avatar of each"));
    assert!(columns("Which are in Bern?").contains("extra.w"), "{}", columns("Which are in Bern?"));
}

#[test]
fn the_share_of_marked_outlier_rows_is_stated() {
    let row = |n: usize| {
        let remark = match n % 50 {
            49 => {
                format!(
                    ", \"remark\": \"the parcel was weighed twice and found to be {} grams too light\"",
                    n * 3
                )
            }
            _ => String::new(),
        };
        let payload = format!("{} words {} and more", n * 7_919 % 9_973, n * 104_729 % 9_967).repeat(3);
        format!("{{\"id\": {n}, \"payload\": \"{payload}\"{remark}}}")
    };
    let text = format!("[{}]", (0..1_200).map(row).collect::<Vec<_>>().join(",\n"));
    let told = " of 24 rows that stand out are marked {}";
    let some = json(&text, 300).text;
    let (head, _) = some.split_once(told).expect(&some);
    let marked: usize = head.rsplit('\n').next().unwrap().parse().unwrap();
    assert!((1..24).contains(&marked), "{some}");
    assert_eq!(some.matches("remark=").count(), marked, "{some}");
    let all = json(&text, 6_000).text;
    assert!(!all.contains("that stand out"), "nothing is said where all are: {all}");
}

#[test]
fn rows_that_answer_the_query_are_shown_in_full() {
    let text = orders(400).replacen("person 11", "Zebedee", 1);
    assert!(text.contains("Zebedee"));
    let condensed = run(&text, ContentType::Json, 3_000, Some("What did Zebedee order?"), &[]).unwrap();
    check(&text, &condensed, 3_000, &[]);
    assert!(condensed.text.contains("Zebedee"), "{}", condensed.text);
}

#[test]
fn whole_numbers_that_count_up_are_a_range() {
    let rows: Vec<String> = (1..=900)
        .map(|n| format!("{{\"id\": {n}, \"text\": \"{}\"}}", "some words here ".repeat(5)))
        .collect();
    let condensed = json(&format!("{{\"total\": 900, \"rows\": [{}]}}", rows.join(",")), 400);
    assert!(condensed.text.contains("total: 900"), "{}", condensed.text);
    assert!(condensed.text.contains("-900"), "{}", condensed.text);
}

#[test]
fn numbers_keep_every_digit() {
    let text = format!(
        "{{\"big\": 123456789012345678901234567890, \"exact\": 0.10000000000000000555, \"e\": -1.50E+300, \"rest\": [{}]}}",
        "1.25, ".repeat(2_000) + "9"
    );
    let condensed = json(&text, 300);
    for number in ["123456789012345678901234567890", "0.10000000000000000555", "-1.50E+300"] {
        assert!(condensed.text.contains(number), "{}", condensed.text);
    }
}

#[test]
fn names_and_small_values_come_before_what_is_deeper() {
    let deep = format!("{{\"inner\": [{}]}}", "{\"x\": [1, 2, 3]}, ".repeat(400) + "0");
    let text = format!(
        "{{\"a\": 1, \"deep\": {deep}, \"story\": \"{}\", \"z\": \"last\"}}",
        "words and words ".repeat(600)
    );
    let condensed = json(&text, 250);
    for kept in ["a: 1", "deep: ", "story: \"words", "z: last"] {
        assert!(condensed.text.contains(kept), "{kept} in {}", condensed.text);
    }
}

#[test]
fn json_lines_are_rows_and_gaps_are_lines() {
    let text: String = (0..500)
        .map(|n| {
            format!(
                "{{\"ts\": {}, \"level\": \"{}\", \"msg\": \"request {n} done in the usual way\"}}\n",
                1_700_000_000 + n * 17,
                if n == 321 { "error" } else { "info" }
            )
        })
        .collect();
    let condensed = json(&text, 2_000);
    assert!(condensed.text.contains("level:error"), "{}", condensed.text);
    assert!(condensed.gaps.iter().all(|gap| matches!(gap.pointer.fragment, Some(Fragment::Lines { .. }))));
}

#[test]
fn tables_keep_names_of_columns_and_rows() {
    let row = |n: usize| {
        format!(
            "{n},\"person, {n}\",{},{}\r\n",
            if n == 70 { "failed" } else { "ok" },
            "filler words ".repeat(6)
        )
    };
    let text = format!("id,name,state,text\r\n{}", (0..150).map(row).collect::<String>());
    let condensed = run(&text, ContentType::Generic, 1_500, None, &[]).unwrap();
    check(&text, &condensed, 1_500, &[]);
    assert!(condensed.text.contains("id|") && condensed.text.contains("text"), "{}", condensed.text);
    assert!(condensed.text.contains("failed"), "{}", condensed.text);
}

/// A list deep inside, one number a line: a few names of fields and 5 MB of almost nothing.
#[test]
fn five_megabytes_of_json_shrink_to_237_tokens() {
    const DEPTH: usize = 46;
    let mut text: String =
        (0..DEPTH).map(|depth| format!("{{\n{}\"level{depth}\": ", " ".repeat(4 * depth + 4))).collect();
    text.push_str("[\n");
    let margin = " ".repeat(4 * DEPTH + 4);
    let numbers: Vec<String> = (0..26_000).map(|n| format!("{margin}{}", n % 97)).collect();
    text.push_str(&numbers.join(",\n"));
    text.push_str("\n]");
    text.push_str(&"}".repeat(DEPTH));
    assert!(text.len() > 4_900_000);
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        let condensed = run(&text, ContentType::Json, 237, None, &[]).unwrap();
        fastest = fastest.min(began.elapsed());
        check(&text, &condensed, 237, &[]);
        assert!(condensed.original_tokens > 100_000, "{}", condensed.original_tokens);
        assert!(condensed.text.contains("level0"), "{}", condensed.text);
    }
    // The best of five, since the machine may be busy with other tests.
    assert!(fastest < Duration::from_millis(700), "R3-5.18: {fastest:?}");
}

#[test]
fn hostile_texts_are_condensed() {
    let deep = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    let texts = [
        deep(10_000),
        "{\"a\":".repeat(10_000),
        "[".repeat(100_000),
        "]".repeat(10_000),
        "{\"a\":1,\"a\":2},".repeat(5_000),
        format!("{{\"k\": \"{}\"}}", "x".repeat(1 << 20)),
        format!("[{}]", "\0,".repeat(9_000)),
        "\"".repeat(30_001),
        "\\\"".repeat(30_000),
        "{\"\\".repeat(10_000),
        "[1,\r\n".repeat(20_000),
        format!("[{}1]", "{\"id\":\"[… B1-2]\"},".repeat(4_000)),
        (0..20_000).map(|n| format!("{{\"k{n}\": {n}}}\n")).collect(),
        format!(
            "{{{}\"z\":0}}",
            (0..20_000).map(|n| format!("\"k{n}\": {{\"v\": {n}}},")).collect::<String>()
        ),
    ];
    for text in &texts {
        for target in [40, 300, 2_000] {
            for content_type in [ContentType::Json, ContentType::Table] {
                let condensed = run(text, content_type, target, Some("k7"), &[]).unwrap();
                check(text, &condensed, target, &[]);
            }
        }
    }
}

#[test]
fn pins_and_pointers_are_kept_verbatim() {
    let pointer = key().mint(larder_text::hash::ContentHash::new(b"earlier"));
    let text = orders(150).replacen("person 3", &format!("{pointer}#L3-9"), 1);
    let pins = [String::from("\"status\": \"pending\", \"total\""), String::from("#W0063365\"")];
    let pins: Vec<String> = pins.into_iter().filter(|pin| text.contains(pin.as_str())).collect();
    let condensed = run(&text, ContentType::Json, 1_500, None, &pins).unwrap();
    check(&text, &condensed, 1_500, &pins);
    assert!(condensed.text.contains(&format!("{pointer}#L3-9")));
}

#[test]
fn whole_numbers_beyond_a_floats_reach_are_compared_exactly() {
    let rows = |n: u64| format!("{{\"id\": {n}, \"post\": {}}}", 1_790_000_000_000_000_000 + 7 * n);
    let text = format!("[{}]", (0..200).map(rows).collect::<Vec<_>>().join(",\n"));
    let condensed = json(&text, 300);
    assert!(
        condensed.text.contains("1790000000000000000 to 1790000000000001393"),
        "the largest is in row 199: {}",
        condensed.text
    );
}

#[test]
fn fields_of_a_table_do_not_run_into_their_neighbours() {
    let row = |n: usize| match n % 3 {
        0 => format!("{n},ls|wc,0\n"),
        1 => format!("{n},a {{y=1}},2\n"),
        _ => format!("{n},plain words,5\n"),
    };
    let text = "id,cmd,code\n".to_owned() + &(0..60).map(row).collect::<String>();
    let target = Counter::o200k().count(&text) - 40;
    let condensed = run(&text, ContentType::Table, target, None, &[]).unwrap();
    check(&text, &condensed, target, &[]);
    for bare in ["|ls|wc", "|a {y=1}"] {
        assert!(!condensed.text.contains(bare), "{bare} in {}", condensed.text);
    }
}

#[test]
fn values_with_a_comma_of_their_own_are_divided_by_semicolons() {
    let words = "words that nobody asks for ".repeat(8);
    let row = |n: usize| format!("{},{};{words}\n", n + 3, n % 90 + 10);
    let text = "preis;text\n".to_owned() + &(0..200).map(row).collect::<String>();
    let shown = |text: &str, content_type: ContentType| {
        let condensed = run(text, content_type, 150, None, &[]).unwrap();
        check(text, &condensed, 150, &[]);
        condensed.text
    };
    let table = shown(&text, ContentType::Table);
    assert!(table.contains("\n3,10; 4,11; 5,12"), "{table}");
    let object = |n: usize| format!("{{\"preis\": \"{},{}\", \"text\": \"{words}\"}}", n + 3, n % 90 + 10);
    let text = format!("[{}]", (0..200).map(object).collect::<Vec<_>>().join(",\n"));
    let json = shown(&text, ContentType::Json);
    assert!(json.contains("\n3,10; 4,11; 5,12"), "{json}");
    // Values without a comma are divided by one.
    let row = |n: usize| format!("n{}.{};{words}\n", n + 3, n % 90 + 10);
    let text = "preis;text\n".to_owned() + &(0..200).map(row).collect::<String>();
    let plain = shown(&text, ContentType::Table);
    assert!(plain.contains("\nn3.10, n4.11, n5.12"), "{plain}");
}

#[test]
fn names_of_members_do_not_run_into_their_neighbours() {
    let row = |n: usize| {
        format!("{{\"id\": {n}, \"a.b\": \"x{n}\", \"a\": {{\"b\": \"y{n}\"}}, \"c|d\": \"z{n}\"}}")
    };
    let text = format!("[{}]", (0..60).map(row).collect::<Vec<_>>().join(",\n"));
    let condensed = json(&text, Counter::o200k().count(&text) * 3 / 4);
    for name in ["\"a.b\"", "|a.b", "\"c|d\""] {
        assert!(condensed.text.contains(name), "{name} in {}", condensed.text);
    }
    let members = |n: usize| format!("\"k{n}|{n}\": {{\"state\": \"s{}\", \"size\": {n}}}", n % 7);
    let text = format!("{{{}}}", (0..60).map(members).collect::<Vec<_>>().join(",\n"));
    let condensed = json(&text, Counter::o200k().count(&text) * 3 / 4);
    assert!(condensed.text.contains("\n\"k7|7\""), "{}", condensed.text);
}
