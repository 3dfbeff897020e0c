//! What a capture finds on pages, and that hostile ones cost no more than their length.

use super::*;
use proptest::prelude::*;

const THREAD: &str = r#"<!doctype html><html><head><title>Best glass scraper? | GarageJournal</title>
<meta property="og:site_name" content="GarageJournal"><meta name="description" content="A thread &amp; more">
<link rel="next" href="/t/1?page=2">
<script type="application/ld+json">{"@context":"https://schema.org","@type":"DiscussionForumPosting",
"headline":"Best glass scraper?","author":{"@type":"Person","name":"RustyAuto"},"commentCount":8,
"comment":[{"@type":"Comment","author":{"name":"Tom"},"upvoteCount":12,"text":"Get a Jorgensen."}]}</script>
</head><body><nav><a href="/">Home</a></nav><main><h1>Best glass scraper?</h1>
<p>I want to scrape glass without scratching it, and the plastic ones all break after a week or two of use.</p>
<table><tr><th>Name</th><th>Price</th></tr><tr><td>Jorgensen</td><td>$12</td></tr></table></main>
<div>Page 1 of 3</div></body></html>"#;

/// All that is shown of a page.
fn shown(page: &str) -> String {
    let texts: Vec<String> = web_page(page).text.into_iter().map(|text| text.text).collect();
    texts.join("\n\n")
}

/// What pages are put together from, with a word at `§`.
const PIECES: [&str; 44] = [
    "<p>",
    "</p>",
    "<p>§",
    "<br>",
    "§",
    " § ",
    "5",
    "<b>6</b>",
    "日本",
    "$",
    "<sup>99</sup>",
    "&nbsp;",
    "&amp;§",
    "<s>",
    "</s>",
    "<s>&nbsp;</s>",
    "<s>§</s>",
    "<del>§",
    "</del>",
    "<i style='text-decoration:line-through'>§</i>",
    "<i style='text-decoration:line-through'>&#160;</i>",
    "<img alt=x>",
    "<img alt='<script>'>",
    "<img alt='</td><td>' hidden>",
    "<i hidden><img alt=x></i>",
    "<table>",
    "<table>",
    "</table>",
    "<tr>",
    "<tr>",
    "</tr>",
    "<td>",
    "<td>§",
    "</td>",
    "<th>§",
    "<td colspan=2>§",
    "<td colspan=3>",
    "<td rowspan=2>§",
    "<td rowspan=0 colspan=2>",
    "<thead><tr>",
    "<ul><li>§",
    "</ul>",
    "<a href=https://a.example/>§</a>",
    "<pre>§</pre>",
];

/// The text of a page as it is condensed.
fn readable(page: &str) -> String {
    crate::types::html::readable(page, &[]).text
}

/// All that is shown of a page, on one line.
fn words_shown(page: &str) -> String {
    shown(page).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_thread_is_captured_with_its_facts() {
    let page = web_page(THREAD);
    assert_eq!(page.kind, "forum_thread");
    assert_eq!(page.title, "Best glass scraper?");
    assert_eq!(page.site.as_deref(), Some("GarageJournal"));
    assert_eq!((page.pagination, page.comments, page.continues), (Some((1, 3)), Some(8), true));
    let texts: Vec<(bool, &str)> = page.text.iter().map(|text| (text.main, text.text.as_str())).collect();
    let [(false, home), (true, main), (false, foot)] = texts.as_slice() else { panic!("{texts:?}") };
    assert_eq!((*home, *foot), ("Home\n\n# Best glass scraper?", "Page 1 of 3"));
    assert!(main.starts_with("I want to scrape glass") && main.contains("| Jorgensen | $12 |"), "{main}");
    for element in ["comments", "headings", "navigation", "pagination", "tables", "title"] {
        assert!(page.elements.contains(&element), "{:?}", page.elements);
    }
    assert_eq!(page.data["author"], "RustyAuto");
    assert_eq!(
        page.data["top_comments"],
        json!([{"author": "Tom", "points": 12, "text": "Get a Jorgensen."}])
    );
    assert_eq!(page.data["tables"], json!([{"headers": ["Name", "Price"], "rows": [["Jorgensen", "$12"]]}]));
    assert_eq!(page.data["meta"]["description"], "A thread & more");
    assert_eq!(page.data["pagination"], json!({"current_page": 1, "total_pages": 3}));
}

#[test]
fn a_product_says_what_it_costs() {
    let page = web_page(
        r#"<title>LOQ 15</title><script type="application/ld+json">{"@graph":[{"@type":["Product"],"name":"LOQ 15",
"offers":[{"@type":"Offer","price":697,"priceCurrency":"USD","availability":"https://schema.org/InStock"}]}]}</script>"#,
    );
    assert_eq!(page.kind, "product");
    let product = &page.data["products"][0];
    assert_eq!((&product["price"], &product["availability"]), (&json!("697"), &json!("InStock")));
    for offers in [
        r#"{"@type":"AggregateOffer","lowPrice":19.9,"highPrice":"29.90"}"#,
        r#"[{"price":"29.90","itemCondition":"New"},{"price":19.9},{"price":24}]"#,
    ] {
        let page = web_page(&format!(
            r#"<script type="application/ld+json">{{"@type":"Product","name":"Kettle","offers":{offers}}}</script>"#
        ));
        assert_eq!(page.data["products"][0]["price"], "19.9 to 29.90");
    }
}

#[test]
fn a_price_in_attributes_alone_is_captured() {
    let price = |body: &str| {
        let data =
            web_page(&format!("<h1>Kettle</h1><p>It boils a litre of water in two minutes.</p>{body}")).data;
        let of = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        format!("{} {}", of("price"), of("currency")).trim().to_owned()
    };
    for (body, stated) in [
        (r#"<div data-price="299.90"></div>"#, "299.90"),
        (r#"<div data-product-price="1.299,00 &euro;"></div>"#, "1.299,00 €"),
        (
            r#"<b data-price="299.90" data-currency="EUR"></b><i data-price-amount="299.9" data-currency="EUR"></i>"#,
            "299.90 EUR",
        ),
        (r#"<button data-amount="19.50" data-currency="USD">Buy</button>"#, "19.50 USD"),
        (r#"<button data-amount="$40">Buy</button>"#, "$40"),
        (
            r#"<div data-price="299.90"></div><i data-price="0.00"></i><footer>Free shipping on orders over $50</footer>"#,
            "299.90",
        ),
        (
            r#"<div data-price="299.90"></div><p>Free shipping from $50</p><p>Versand ab 50 € frei, dès 50 € offert</p>"#,
            "299.90",
        ),
        (
            r#"<header>Sale: all socks $5.00</header><nav>Socks $5.00</nav><div data-price="299.90"></div>"#,
            "299.90",
        ),
        (r#"<h1>Sofa</h1><p>Free shipping on orders over $50</p><div data-price="299.90"></div>"#, "299.90"),
        (r#"<h1>Sofa</h1><p>Kostenloser Versand ab 50 €</p><div data-price="299.90"></div>"#, "299.90"),
        (
            r#"<header><h1>Sofa</h1><p>We deliver free over $50</p></header><i data-price="299.90"></i>"#,
            "299.90",
        ),
        // Beside one of another product, or of another day.
        (r#"<nav><a data-price="5.00">Socks</a></nav><div data-price="299.90"></div>"#, "299.90"),
        (
            r#"<del data-price="349.00"></del><s><i data-price="339.00"></i></s><b data-price="299.90"></b>"#,
            "299.90",
        ),
        (r#"<b class="price old" data-price="349.00"></b><b class=price data-price="299.90"></b>"#, "299.90"),
        (r#"<footer><a data-price="5.00">Socks</a></footer><strike data-price="349.00"></strike>"#, ""),
        // An accessory's, where the text has that of the product.
        (r#"<p>From $299</p><button data-price="19.90">Add a warranty</button>"#, ""),
        (r#"<p>Tape recorder, ab 299 €</p><button data-price="19.90">Garantie</button>"#, ""),
        (r#"<p>Free shipping. From $299</p><button data-price="19.90">Add a warranty</button>"#, ""),
        (
            r#"<header><h1>Sofa</h1><p>$299</p></header><button data-price="19.90">Add a warranty</button>"#,
            "",
        ),
        (r#"<h1>Sofa</h1><p>Delivered from $299</p><button data-price="19.90">Add a warranty</button>"#, ""),
        (r#"<h1>Sofa</h1><p>Lieferbar ab 299 €</p><button data-price="19.90">Garantie</button>"#, ""),
        (r#"<p>Sofas made to order from $299</p><button data-price="19.90">Add a warranty</button>"#, ""),
        // The price of nothing, of several things, in cents or of what is shown.
        (r#"<div data-price="0.00"></div><div data-price=""></div><div data-price="12.3.4x"></div>"#, ""),
        (r#"<div data-price="299.90"></div><div data-price="19.90"></div>"#, ""),
        (r#"<b data-price="9.90" data-currency="EUR"></b><b data-price="9.90" data-currency="USD"></b>"#, ""),
        (r#"<div data-price="29990" data-currency="USD"></div>"#, ""),
        (r#"<div data-amount="4.50"></div>"#, ""),
        (r#"<form>$349.00 <button data-price="19.90">Add a bag</button></form>"#, ""),
        (r#"<nav>Shop<p>$349.00</p><button data-price="19.90">Add a bag</button>"#, ""),
        (
            r#"<main><article><header>$349.00</header></article></main><button data-price="19.90">Add a bag</button>"#,
            "",
        ),
        (r#"<p>From $400 down to $349.00</p><button data-price="19.90">Add a bag</button>"#, ""),
        // Beside one that cannot be read, which may be the page's.
        (r#"<button data-price="299"></button><a data-price="19.90"></a>"#, ""),
        (
            r#"<b data-product-price="29990" data-currency="USD"></b><a data-price="19.90" data-currency="USD"></a>"#,
            "",
        ),
        (
            r#"<b data-price="1.299" data-currency="EUR"></b><a data-price="19.90" data-currency="EUR"></a>"#,
            "",
        ),
        (r#"<b data-price='{"from": 1299, "currency": "EUR"}'></b><a data-price="19.90"></a>"#, ""),
        (r#"<p>$349.00</p><div data-price="299.90"></div>"#, ""),
        (
            r#"<p>Our kettle costs $349.00 with free shipping and two years of warranty.</p><i data-price="19.90"></i>"#,
            "",
        ),
        (r#"<meta itemprop="price" content="349.00"><div data-price="299.90"></div>"#, "349.00"),
    ] {
        assert_eq!(price(body), stated, "{body}");
    }
}

#[test]
fn the_price_and_the_heading_of_a_page_are_in_its_text_wherever_they_are() {
    let page = web_page(
        "<nav><a href=/>Shop</a></nav><h1>Rule 1100 pump</h1><div class=price>$74.00</div><p>In stock: the pump moves \
         1,100 gallons an hour and has a three year warranty against burnt motors and broken impellers of any kind.</p>",
    );
    let all: Vec<&str> = page.text.iter().map(|text| text.text.as_str()).collect();
    let all = all.join("\n\n");
    assert!(all.starts_with("Shop\n\n# Rule 1100 pump\n\n$74.00\n\nIn stock: the pump moves"), "{all}");
}

#[test]
fn a_price_below_the_heading_belongs_to_the_main_text() {
    let words =
        "It was drawn by our own people and is put together by hand in a small shed behind the harbour. "
            .repeat(6);
    let page = web_page(&format!(
        "<nav><a href=/>Home</a> <a href=/cart>Cart (0)</a></nav><main><h1>Kayak Tern 14</h1><div class=\"price\">$1,284.00</div>\
         <p>Was $1,520.00. In stock: 4. Length 4.27 m, weight 23.5 kg.</p><p>{words}</p></main><footer>Tel 0381 998877</footer>"
    ));
    let of = |is_main: bool| -> String {
        page.text
            .iter()
            .filter(|text| text.main == is_main)
            .map(|text| format!("{}\n\n", text.text))
            .collect()
    };
    assert!(of(true).starts_with("# Kayak Tern 14\n\n$1,284.00\n\nWas $1,520.00."), "{:?}", page.text);
    assert!(of(false).contains("Cart (0)") && !of(false).contains("1,284"), "{:?}", page.text);
    // What is sold elsewhere on the page does not become its main text.
    let page = web_page(&format!(
        "<main><h1>How we paddle</h1><p>{words}</p></main><aside><h3>Popular</h3><div class=price>$12.00</div></aside>"
    ));
    let main: String = page.text.iter().filter(|text| text.main).map(|text| text.text.as_str()).collect();
    assert!(!main.contains("$12.00"), "{main}");
}

#[test]
fn the_heading_of_a_page_with_a_price_is_main_text() {
    let words =
        "The lamp stands on a foot of oiled oak and turns its shade of brushed brass to any side. ".repeat(8);
    for body in [
        format!("<h1>Lamp X</h1><div data-price=\"299.90\"></div><p>{words}</p>"),
        format!(
            "<nav><a href=/>Shop</a></nav><h1>Lamp X</h1><div>$299.90</div><p>{words}</p><footer>Imprint</footer>"
        ),
        format!(
            "<div><h1>Lamp X</h1><span data-price=\"299.90\"></span></div><div><p>{words}</p><p>{words}</p></div>"
        ),
        format!(
            "<div><h1>Lamp X</h1></div><div><div>Item 4471</div><div>$299.90</div></div><article><p>{words}</p></article>"
        ),
    ] {
        let page = web_page(&body);
        let first =
            page.text.iter().find(|text| text.main).map(|text| text.text.as_str()).unwrap_or_default();
        assert!(first.starts_with("# Lamp X"), "{body}: {:?}", page.text);
    }
}

#[test]
fn cells_that_span_are_in_every_column_of_theirs() {
    let page = web_page(
        "<h1>Plans</h1><table><tr><th rowspan=2>Plan</th><th colspan=2>Price</th></tr><tr><th>Monthly</th><th>Yearly</th></tr>\
         <tr><td>Pro</td><td>$19</td><td>$190</td></tr><tr><td rowspan=2>Team</td><td>$49</td><td>$490</td></tr>\
         <tr><td>$59</td><td>$590</td></tr></table>",
    );
    let text: String = page.text.iter().map(|text| text.text.as_str()).collect();
    let table = "| Plan | Price Monthly | Price Yearly |\n|---|---|---|\n| Pro | $19 | $190 |\n| Team | $49 | $490 |\n| Team | $59 | $590 |";
    assert!(text.contains(table), "{text}");
    let rows = json!([["Pro", "$19", "$190"], ["Team", "$49", "$490"], ["Team", "$59", "$590"]]);
    assert_eq!(
        page.data["tables"],
        json!([{"headers": ["Plan", "Price Monthly", "Price Yearly"], "rows": rows}])
    );
}

#[test]
fn blank_cells_keep_the_columns() {
    let table = |rows: &str| {
        let rows = rows.replace("\n", "</tr>\n<tr>");
        shown(&format!("<h1>Fees</h1><table><tr>{rows}</tr></table>"))
            .replace("# Fees", "")
            .trim_start()
            .to_owned()
    };
    let head = "<th>Item</th><th>Member</th><th>Guest</th>\n";
    for (rows, written) in [
        ("<td>Course 7</td><td></td><td>$21</td>", "| Course 7 |  | $21 |"),
        ("<td>Course 7<td><i class=no></i><td><p>$21</p>", "| Course 7 |  | $21 |"),
        ("<td>Course 7</td><td><p></p>&nbsp;</td><td><div></div>$21</td>", "| Course 7 |  | $21 |"),
        ("<td>Course 7</td><td>$12</td><td></td>", "| Course 7 | $12 |"),
        ("<td></td><td></td><td>$21</td>", "|  |  | $21 |"),
        // The lines and paragraphs of a cell are in one.
        (
            "<td>Price<br>per month</td><td></td><td><p>$21</p><p>net</p></td>\n<td>Users</td><td>5</td><td>30</td>",
            "| Price per month |  | $21 net |\n| Users | 5 | 30 |",
        ),
        (
            "<td>Pool<ul><li>warm</ul></td><td></td><td>$21</td>\n<td>Gym</td><td>$5</td><td>$6</td>",
            "Pool\n- warm\n|  |  | $21 |\n| Gym | $5 | $6 |",
        ),
        // Pictures, of which those of a row without text are left out.
        (
            "<td>Sauna</td><td><img alt=no></td><td><img alt=\"yes &amp; free\"></td>",
            "| Sauna | no | yes & free |",
        ),
        ("<td>Sauna</td><td><img alt=x>$12</td><td>$21</td>", "| Sauna | $12 | $21 |"),
        ("<td>Sauna</td><td><img alt=No hidden><img alt=Yes></td><td>$21</td>", "| Sauna | Yes | $21 |"),
        (
            "<td>Sauna</td><td><i style='display:none'><img alt='$99'></i></td><td>$21</td>",
            "| Sauna |  | $21 |",
        ),
        ("<td><img alt=x></td><td></td>\n<td>Sauna</td><td>$1</td>", "| Sauna | $1 |"),
        // Nothing is written for what is blank as a whole, nor for the name of the rows below it.
        ("<td></td><td></td>\n<td>Sauna</td><td>$1</td>", "| Sauna | $1 |"),
        ("<td>Sports</td><td></td><td></td>", "Sports"),
    ] {
        let expected = format!("| Item | Member | Guest |\n|---|---|---|\n{written}");
        assert_eq!(table(&format!("{head}{rows}")), expected, "{rows}");
    }
    // Headings begin anew, other than the name of the rows below it.
    let rows = format!(
        "{head}<td>Sauna</td><td>$1</td><td>$2</td>\n<th>Gym</th>\n<td>Bench</td><td>$3</td><td>$4</td>\n<td></td><td></td>\n\
         <th>Plan</th><th>Users</th>\n<th></th><th>at most</th>\n<td>Pro</td><td>30</td></tr></table>\
         <table><tr><td>Plan</td><td>Seats</td>\n<td>Team</td><td>9</td>"
    );
    assert_eq!(
        table(&rows),
        "| Item | Member | Guest |\n|---|---|---|\n| Sauna | $1 | $2 |\nGym\n| Bench | $3 | $4 |\n\n| Plan | Users |\n|---|---|\n\
         |  | at most |\n| Pro | 30 |\n\n| Plan | Seats |\n|---|---|\n| Team | 9 |"
    );
    for (rows, written) in [
        (
            "<td>Alpha</td><td>$5</td></tr></table><table><td>Beta</td><td>$7</td>\n<td>Gamma</td><td>$9</td>",
            "| Alpha | $5 |\n|---|---|\n\n| Beta | $7 |\n|---|---|\n| Gamma | $9 |",
        ),
        (
            "<td>Alpha</td><td>$5</td>\n<td>Beta<table><tr><td>x</td><td>y</td></tr></table></td><td>$7</td>\n<td>Gamma</td><td>$9</td>",
            "| Alpha | $5 |\n|---|---|\nBeta\n\n| x | y |\n|---|---|\n\n|  | $7 |\n| Gamma | $9 |",
        ),
        (
            "<td colspan=2></td><td>Price (€)</td>\n<td>Sauna</td><td>60</td><td>21</td>",
            "|  |  | Price (€) |\n|---|---|---|\n| Sauna | 60 | 21 |",
        ),
        (
            "<th></th><th>Basic</th><th>Pro</th>\n<th>API</th><td></td><td>yes</td>",
            "|  | Basic | Pro |\n|---|---|---|\n| API |  | yes |",
        ),
        ("<td><img alt=Logo></td><td>About us</td>\n<td></td><td>Home</td>", "About us\nHome"),
        (
            "<td></td><td>1.</td><td>News</td>\n<td></td><td>2.</td><td>More</td>",
            "| 1. | News |\n|---|---|\n| 2. | More |",
        ),
        (
            "<th>Plan</th><th colspan=2>Price</th><th>Seats</th>\n<td>Pro</td><td><img alt=no></td><td>$9</td><td>3</td>",
            "| Plan | Price | Price | Seats |\n|---|---|---|---|\n| Pro | no | $9 | 3 |",
        ),
    ] {
        assert_eq!(table(rows), written, "{rows}");
    }
    let page = web_page("<table><tr><th>Plan<th>SSO</tr><tr><td>Free<td><img alt=no></tr></table>");
    assert_eq!(page.data["tables"][0]["rows"], json!([["Free", "no"]]));
    let page = web_page(
        "<table><tr><th>Plan<th>Price</tr><tr><td>Pro<td><img alt='was $20'> <b>$12</b> <i>net</i></tr></table>",
    );
    assert_eq!(page.data["tables"][0]["rows"], json!([["Pro", "$12 net"]]));
}

#[test]
fn the_columns_of_a_sparse_table_hold_to_its_end() {
    let cells = "<td>".repeat(40);
    let rows = format!("<tr><td>a<td>b{cells}c").repeat(2_000);
    for page in [format!("<table><tr>{}{rows}</table>", "<th>h".repeat(42)), format!("<table>{rows}</table>")]
    {
        let text = shown(&page);
        let row = text.lines().next_back().unwrap_or_default();
        assert_eq!(row.matches(" | ").count(), if page.contains("<th>") { 41 } else { 2 }, "{row}");
    }
    // So many blank cells are not written for a page of this size, and no value is moved for it.
    let page =
        format!("<table><tr>{}{}</table>", "<td>h".repeat(43), "<tr><td colspan=42>a<td>c".repeat(460));
    let text = shown(&page);
    let rows = text.lines().filter(|line| line.starts_with("| a "));
    assert!(rows.clone().count() > 50 && text.ends_with("a\nc"), "{text}");
    rows.for_each(|row| assert_eq!(row.matches(" | ").count(), 42, "{row}"));
}

#[test]
fn text_that_is_struck_through_is_marked() {
    for (page, text) in [
        ("<del>€189.00</del> <ins>€139.00</ins>", "~~€189.00~~ €139.00"),
        ("Was <strike> <b>€</b>189 </strike>, now 139", "Was ~~€189~~ , now 139"),
        ("<span style='color:red; TEXT-DECORATION: Line-Through'>$5<b>5</b></span>$50", "~~$5 5~~$50"),
        ("<p style=text-decoration-line:line-through>$55<p>$50", "~~$55~~\n\n$50"),
        ("<s><p>One</p><p>Two</p></s><s></s><s>&nbsp;</s>", "~~One~~\n\n~~Two~~"),
        ("<p>a <s>&nbsp;</s>5<b>6</b>", "a 5 6"),
        ("<p>a<s>&nbsp;</s>日本<b>6</b>", "a 日本6"),
        ("<p>$<s></s>129<sup>99</sup>, <s>&nbsp;</s>5<b>6</b>", "$129.99, 5 6"),
        ("<s>See <a href=https://a.example/>A</a></s>", "~~See~~ ~~A~~"),
        ("<s>open <p>$5", "open\n\n$5"),
        (
            "<table><tr><th>A<th>B<tr><td rowspan=2><s>$5</s> $4<td>x<tr><td>y</table>",
            "| A | B |\n|---|---|\n| ~~$5~~ $4 | x |\n| ~~$5~~ $4 | y |",
        ),
        (
            "<table><tr><th>A<th>B<tr><td rowspan=2><i style='text-decoration:line-through'>$5</i> $4<td>x<tr><td>y</table>",
            "| A | B |\n|---|---|\n| ~~$5~~ $4 | x |\n| ~~$5~~ $4 | y |",
        ),
    ] {
        assert_eq!(shown(page), text, "{page}");
    }
    let page = web_page("<table><tr><th>A<th>B<tr><td><s>$5</s> $4<td>x</table>");
    assert_eq!(page.data["tables"][0]["rows"], json!([["~~$5~~ $4", "x"]]));
    // The price of a page is not the one that it had.
    let page = web_page("<h1>Kettle</h1><p><s>$349.00</s></p><div data-price=\"299.90\"></div>");
    assert_eq!(page.data["price"], "299.90");
}

#[test]
fn what_a_page_hides_is_not_shown() {
    for (page, visible) in [
        ("<p>a</p><p style=\"display:none\">X</p><p>b</p>", "a b"),
        ("<p style='color: red; DISPLAY : none !important'>X <b>X</b><p>b", "b"),
        ("<div hidden>X<div>X</div>X</div>b", "b"),
        ("<span style=visibility:hidden>X</span> b", "b"),
        (
            "<table><tr><td>a<td><img alt=X hidden><td>b<tr><td>c<td>d<td>e</table>",
            "| a | | b | |---|---|---| | c | d | e |",
        ),
        ("<table><tr><td>a<td hidden><img alt=X><td>b</table>", "| a | b | |---|---|"),
        ("<ul><li hidden>X<ul><li>X<li>X</ul>X<li>b</ul>", "- b"),
        (
            "<table><tr><td hidden>X<table><tr><td>X</table><td>b<tr style='display:none'><td>X</table>c",
            "b c",
        ),
    ] {
        assert_eq!(words_shown(page), visible, "{page}");
    }
}

#[test]
fn what_only_looks_hidden_is_shown() {
    for (page, visible) in [
        ("<p aria-hidden=true>a</p><p class=hidden>b</p>", "a b"),
        ("<body style='visibility:hidden'><p hidden=until-found>a</p></body>", "a"),
        ("<input type=hidden hidden><p data-hidden>a</p><p style='display:nonesuch'>b</p>", "a b"),
        ("<div hidden>a<p>b", "a b"),
    ] {
        assert_eq!(words_shown(page), visible, "{page}");
    }
}

#[test]
fn many_elements_that_nothing_closes_cost_no_more_than_their_length() {
    let page: String = (0..100_000).map(|number| format!("<x{number} hidden>a")).collect();
    assert!(!words_shown(&page).is_empty());
}

#[test]
fn a_page_that_would_show_nothing_shows_everything() {
    assert!(words_shown("<div id=app style='display:none'><p>All of it</p></div>").contains("All of it"));
}

#[test]
fn numbers_that_only_markup_separates_stay_apart() {
    for (page, text) in [
        ("<span>$</span><span>129</span><sup>99</sup> was <s>$159.99</s>", "$129.99 was ~~$159.99~~"),
        ("<b>1.249</b><sup>90</sup> <i>€</i>", "1.249,90 €"),
        ("$ <b>1,249</b><i>00</i>", "$ 1,249.00"),
        ("In 2019<sup>12</sup> it was 10<sup>6</sup>", "In 2019 12 it was 10 6"),
        ("$<b>129.</b><b>99</b>, x<sup>2</sup>", "$129.99, x2"),
    ] {
        assert_eq!(web_page(page).text[0].text, text, "{page}");
    }
}

#[test]
fn hostile_pages_are_bounded() {
    let deep = "<table><tr><td>x</td><td>y</td></tr>".repeat(20_000);
    assert!(
        web_page(&deep).data.get("tables").is_none_or(|tables| tables.as_array().unwrap().len() <= MAX_META)
    );
    let wide = format!("<table>{}</table>", "<tr><td>a</td><td>b</td></tr>".repeat(50_000));
    assert!(web_page(&wide).data["tables"][0]["rows"].as_array().unwrap().len() <= 200);
    let metas: String = (0..5_000).map(|at| format!("<meta name=m{at} content=x>")).collect();
    assert!(web_page(&metas).data["meta"].as_object().unwrap().len() <= MAX_META);
    let thresholds = "shipping over $5 ".repeat(40_000);
    let page = web_page(&format!("<h1>Sofa</h1><p>Nice</p><i data-price=\"299.90\"></i><p>{thresholds}</p>"));
    assert_eq!(page.data["price"], "299.90");
    for (_, page) in crate::types::html::tests::hostile() {
        web_page(&page);
    }
}

proptest! {
    #[test]
    fn every_visible_word_is_shown(pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..60)) {
        let mut words = Vec::new();
        let mut page = String::new();
        for (number, piece) in pieces.into_iter().enumerate() {
            let word = format!("w{number}x");
            words.extend(piece.contains('§').then(|| word.clone()));
            page.push_str(&piece.replace('§', &word));
        }
        let text = shown(&page);
        for word in words {
            prop_assert!(text.contains(&word), "{word} of {page} is not in {text}");
        }
        readable(&page);
    }
}
