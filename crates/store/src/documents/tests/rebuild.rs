//! An index that is built anew is the one that grew.

use larder_vault::VaultPath;

use super::generate::turn;
use super::*;
use crate::documents::index::dump::dump;

#[test]
fn a_rebuilt_index_is_the_one_that_grew() {
    let home = Home::new();
    {
        let documents = home.open();
        let user = documents.user("Ünï x").unwrap();
        for number in 0..200_u64 {
            home.set(START + number * 3_600_000);
            user.drafts().commit(&turn(&user)).unwrap();
        }
        let facts = user.place().facts();
        user.files().write(&facts, b"# Facts\n- likes caf\xc3\xa9s (People, user)\n", None).unwrap();
        let grown = dump(user.index());
        let notes = [user.place().turns_index(), user.place().research_index(), user.place().memory_index()];
        let mut before = Vec::new();
        for note in &notes {
            before.push(user.files().read_text(note).unwrap().unwrap());
        }
        assert_eq!(before[0].lines().filter(|line| line.starts_with("- [[")).count(), 20);
        let report = documents.reindex(&|_| {}).unwrap();
        assert_eq!((report.users, report.turns, report.unreadable), (1, 200, 0));
        assert_same(&dump(user.index()), &grown);
        for (note, before) in notes.iter().zip(before) {
            assert_eq!(user.files().read_text(note).unwrap().unwrap(), before, "{note}");
        }
        // The same from nothing, as after somebody deleted the index.
        drop((user, documents));
        std::fs::remove_dir_all(home.dir.path().join("home/indexes")).unwrap();
        let documents = home.open();
        documents.recover().unwrap();
        let user = documents.user("Ünï x").unwrap();
        assert_same(&dump(user.index()), &grown);
        assert_eq!(user.drafts().begin(larder_vault::Mode::Chat, None, "q").unwrap().number, 201);
    };
}

fn assert_same(rebuilt: &[String], grown: &[String]) {
    for (rebuilt, grown) in rebuilt.iter().zip(grown) {
        assert_eq!(rebuilt, grown);
    }
    assert_eq!(rebuilt.len(), grown.len());
}

#[test]
fn a_damaged_index_is_built_anew() {
    let home = Home::new();
    {
        let user = home.open().user("u").unwrap();
        user.drafts().commit(&turn(&user)).unwrap();
        drop(user);
        let index = home.dir.path().join("home/indexes/documents/u.db");
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", index.display()));
        }
        std::fs::write(&index, vec![b'x'; 8_192]).unwrap();
        let documents = home.open();
        documents.recover().unwrap();
        assert_eq!(documents.user("u").unwrap().catalog().recent_turns(5, None, None).unwrap().len(), 1);
    };
}

#[test]
fn every_link_of_generated_turns_leads_somewhere() {
    let turns: u64 = std::env::var("LARDER_LINK_TURNS").map_or(40, |turns| turns.parse().unwrap());
    let home = Home::new();
    {
        let documents = home.open();
        let user = documents.user("u").unwrap();
        for number in 0..turns {
            home.set(START + number / 2);
            user.drafts().commit(&turn(&user)).unwrap();
        }
        resolve_all(&user, turns);
        let later = i64::try_from(START + 200 * 86_400_000).unwrap();
        let now = larder_vault::DocumentTime::from_millis(later).unwrap();
        home.set(START + 200 * 86_400_000);
        user.drafts().commit(&turn(&user)).unwrap();
        let report = documents.archive("u", now).unwrap();
        // One in eight has research that stays true.
        assert!(report.turns.len() as u64 >= turns * 8 / 10, "{report:?}");
        assert!(report.relinked > 0);
        resolve_all(&user, turns);
        let first = user.catalog().turn(report.turns[0]).unwrap().unwrap();
        assert!(first.archived && first.context.as_str().starts_with("archive/2026-01/u/"));
        assert!(user.files().read(&first.context).unwrap().is_some());
        let grown = dump(user.index());
        documents.reindex(&|_| {}).unwrap();
        assert_same(&dump(user.index()), &grown);
    };
}

fn resolve_all(user: &UserDocuments, turns: u64) {
    use larder_vault::links::{LinkDestination, Vault, links};
    let mut files = user.files().list("users/u").unwrap();
    for month in user.tree().level("archive").unwrap().folders {
        files.extend(user.files().list(&format!("archive/{month}/u")).unwrap());
    }
    let vault = Vault::new(files.clone());
    let (mut seen, mut indexed) = (0, 0);
    for file in files.iter().filter(|file| file.name().ends_with(".md")) {
        let text = user.files().read_text(file).unwrap().unwrap();
        for link in links(&text) {
            assert!(!matches!(vault.resolve(file, &link), LinkDestination::Missing), "{file}: {link:?}");
            seen += 1;
        }
        for target in user.catalog().links_from(file).unwrap() {
            assert!(vault.contains(&target), "{file}: {target}");
            indexed += 1;
        }
    }
    // Every turn but the first leads to earlier ones, in both styles.
    assert!(seen > 2 * turns && indexed >= turns - 1, "{seen}, {indexed}");
    let first = VaultPath::new("users/u/turns/turn_000001/context.md").unwrap();
    assert!(!vault.contains(&first) || !user.catalog().links_to(&first).unwrap().is_empty());
}
