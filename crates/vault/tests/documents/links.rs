//! Links in both styles from two paths and a label, and values that older documents spell otherwise.

use larder_vault::links::DualLink;
use larder_vault::*;

#[test]
fn a_link_has_both_forms_and_leads_back_from_any_file() {
    let path = |text: &str| VaultPath::new(text).unwrap();
    for (from, to, label, both) in [
        (
            "users/u/turns/turn_000815/context.md",
            "users/u/turns/turn_000759/research.md",
            "research",
            "[turn_000759/research.md](../turn_000759/research.md) | [[users/u/turns/turn_000759/research|research]]",
        ),
        (
            "users/u/turns/turn_000815/context.md",
            "users/u/turns/turn_000815/toolresults.md",
            "results",
            "[turn_000815/toolresults.md](toolresults.md) | [[users/u/turns/turn_000815/toolresults|results]]",
        ),
        (
            "users/u/index.md",
            "users/u/turns/turn_000001/metadata.json",
            "turn 1",
            "[turn_000001/metadata.json](turns/turn_000001/metadata.json) | [[users/u/turns/turn_000001/metadata.json|turn 1]]",
        ),
        (
            "archive/2026-01/u/turn_000002/context.md",
            "users/u/memory/facts.md",
            "x]]y|z",
            "[memory/facts.md](../../../../users/u/memory/facts.md) | [[users/u/memory/facts|x y z]]",
        ),
    ] {
        let (from, to) = (path(from), path(to));
        assert_eq!(DualLink::new(to.clone(), label).both(&from), both, "R1-9.4");
        assert_eq!(from.join(&from.relative(&to)), Some(to), "R1-9.4");
    }
}

#[test]
fn a_scope_is_read_by_its_older_names_and_written_by_its_own() {
    for (written, scope) in
        [("new", Scope::New), ("user", Scope::User), ("system", Scope::Global), ("global", Scope::Global)]
    {
        assert_eq!(written.parse(), Ok(scope), "R1-9.12");
    }
    assert_eq!(Scope::Global.as_str(), "global");
    assert!("nobody".parse::<Scope>().is_err(), "R1-9.12");
}
