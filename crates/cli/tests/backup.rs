//! `larder backup`, `restore` and `repair` through the command line.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod support;

use larder_store::{Store, StoreOptions};
use support::Shop;

fn insert(shop: &Shop, content: &str) -> String {
    let store = Store::open(&shop.path().join("home"), StoreOptions::default()).unwrap();
    let user = store.user("local").unwrap();
    user.pointers().insert(content.as_bytes(), "text", "a text").unwrap().pointer_id.to_string()
}

#[test]
fn a_backup_is_restored_and_a_lost_index_is_rebuilt() {
    let shop = Shop::new();
    let missing = shop.run(&["backup", "copy"]);
    assert!(missing.code == 1 && missing.err.contains("no store in"), "{missing:?}");
    let (small, large) = (insert(&shop, "small"), insert(&shop, &"large ".repeat(20_000)));
    assert!(shop.ok(&["backup", "copy"]).out.starts_with("2 pointers, 2 contents, "));
    let again = shop.run(&["backup", "copy"]);
    assert!(again.code == 1 && again.err.contains("not empty"), "{again:?}");
    let refused = shop.run(&["restore", "copy"]);
    assert!(refused.code == 1 && refused.err.contains("not empty"), "{refused:?}");

    assert!(shop.ok(&["repair"]).out.contains("nothing was changed"));
    std::fs::write(shop.path().join("home/index.sqlite"), [b'x'; 9_000]).unwrap();
    let damaged = shop.run(&["rehydrate", &small]);
    assert!(damaged.code != 0 && damaged.err.contains("run `larder repair`"), "{damaged:?}");
    let report = shop.json(&["repair"]);
    assert_eq!((&report["pointers"], &report["problems"]), (&2.into(), &serde_json::json!([])), "{report}");
    assert_eq!(shop.ok(&["rehydrate", &small]).out, "small");

    std::fs::remove_dir_all(shop.path().join("home")).unwrap();
    let report = shop.json(&["restore", "copy"]);
    assert_eq!(report["report"]["pointers"], 2, "{report}");
    assert_eq!(shop.ok(&["rehydrate", &large]).out, "large ".repeat(20_000));
    assert!(shop.ok(&["verify"]).out.contains("0 problems"));
}
