//! Tests of the segment files themselves: appending, damage, erasure, several writers.

use larder_text::hash::ContentHash;

use super::*;
use crate::frame;

fn segments() -> (tempfile::TempDir, Segments) {
    let dir = tempfile::tempdir().unwrap();
    let segments = Segments::new(dir.path().to_path_buf());
    (dir, segments)
}

fn record(content: &[u8]) -> Record {
    let frame = Some(frame::compress(content).unwrap());
    Record { owner: "a".to_owned(), hash: ContentHash::new(content), base: None, pointer: None, frame }
}

fn append(segments: &Segments, content: &[u8]) -> RecordPlace {
    segments.append("u-a", &[record(content)]).unwrap().places[0]
}

#[test]
fn records_share_a_file_and_come_back_in_order() {
    let (_dir, segments) = segments();
    let places: Vec<_> = (0..100_u32).map(|n| append(&segments, &n.to_be_bytes().repeat(100))).collect();
    assert_eq!(segments.list("u-a").unwrap(), [1]);
    for (n, place) in places.iter().enumerate() {
        assert_eq!(segments.read("u-a", *place).unwrap(), record(&(n as u32).to_be_bytes().repeat(100)));
    }
    let found = segments.scan("u-a", 1).unwrap();
    assert_eq!(found.iter().map(|(place, _)| *place).collect::<Vec<_>>(), places);
}

#[test]
fn a_segment_is_taken_over_when_its_process_has_gone_and_only_then() {
    let (dir, first) = segments();
    let other = Segments::new(dir.path().to_path_buf());
    append(&first, b"one");
    assert_eq!(append(&other, b"two").segment, 2, "the first is in use");
    drop(first);
    let third = Segments::new(dir.path().to_path_buf());
    assert_eq!(append(&third, b"three").segment, 1);
    assert!(third.lock("u-a", 1).unwrap().is_none() && third.lock("u-a", 2).unwrap().is_none());
}

#[test]
fn a_torn_end_and_damage_are_skipped() {
    let (_dir, segments) = segments();
    let places = [b"one", b"two", b"six"].map(|content| append(&segments, content));
    let path = segments.path("u-a", 1);
    let bytes = std::fs::read(&path).unwrap();
    for (cut, left) in [(9, 2), (places[2].length - 1, 2), (places[2].length + 9, 1)] {
        std::fs::write(&path, &bytes[..bytes.len() - cut as usize]).unwrap();
        assert_eq!(segments.scan("u-a", 1).unwrap().len(), left);
    }
    let mut noise = bytes.clone();
    noise[places[1].at as usize..(places[1].at + places[1].length) as usize].fill(b'x');
    std::fs::write(&path, noise).unwrap();
    assert_eq!(segments.scan("u-a", 1).unwrap().len(), 2);
    assert!(matches!(segments.read("u-a", places[1]), Err(StoreError::CorruptBlob { .. })));
    std::fs::write(&path, &bytes[..bytes.len() - 11]).unwrap();
    drop(segments);
    let segments = Segments::new(path.parent().unwrap().parent().unwrap().to_path_buf());
    let next = append(&segments, b"ten");
    assert_eq!(segments.read("u-a", next).unwrap(), record(b"ten"));
    assert_eq!(segments.scan("u-a", 1).unwrap().len(), 3);
}

#[cfg(unix)]
#[test]
fn an_erased_record_leaves_no_byte_and_no_blocks() {
    let (_dir, segments) = segments();
    let secret: String = (0..3_000).map(|n| ContentHash::new(&[n as u8, (n >> 8) as u8]).to_hex()).collect();
    let places = [append(&segments, b"one"), append(&segments, secret.as_bytes()), append(&segments, b"two")];
    let path = segments.path("u-a", 1);
    let blocks = || std::os::unix::fs::MetadataExt::blocks(&path.metadata().unwrap()) * 512;
    let (whole, before) = (std::fs::read(&path).unwrap(), blocks());
    segments.erase("u-a", &places[1..2]).unwrap();
    segments.erase("u-a", &places[1..2]).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len(), whole.len());
    let of = |at: u64, length: u64| at as usize..(at + length) as usize;
    let (from, length) = erasable(places[1].at, places[1].length);
    assert!(bytes[of(from, length)].iter().all(|byte| *byte == 0));
    for place in [places[0], places[2]] {
        assert_eq!(bytes[of(place.at, place.length)], whole[of(place.at, place.length)]);
    }
    assert_eq!(segments.scan("u-a", 1).unwrap().len(), 2);
    if cfg!(target_os = "linux") {
        assert!(blocks() + 90_000 < before, "the file system has the blocks back");
    }
}

#[test]
fn what_is_discarded_makes_room_for_the_next() {
    let (_dir, segments) = segments();
    append(&segments, b"one");
    let size = segments.size("u-a", 1);
    let appended = segments.append("u-a", &[record(b"two"), record(b"three")]).unwrap();
    appended.discard(&segments, "u-a");
    assert_eq!(segments.size("u-a", 1), size);
    let between = segments.append("u-a", &[record(b"two")]).unwrap();
    let place = append(&segments, b"four");
    between.discard(&segments, "u-a");
    assert_eq!(segments.scan("u-a", 1).unwrap().len(), 2);
    assert_eq!(segments.read("u-a", place).unwrap(), record(b"four"));
}

#[test]
fn the_number_of_a_removed_segment_is_not_used_again() {
    let (dir, segments) = segments();
    append(&segments, b"one");
    drop(segments);
    let segments = Segments::new(dir.path().to_path_buf());
    let lock = segments.lock("u-a", 1).unwrap();
    segments.remove("u-a", 1).unwrap();
    drop(lock);
    assert_eq!(append(&segments, b"two").segment, 2);
    assert_eq!(segments.list("u-a").unwrap(), [2]);
}

#[test]
fn a_moved_folder_is_noticed() {
    let (dir, segments) = segments();
    let appended = segments.append("u-a", &[record(b"one")]).unwrap();
    assert!(appended.is_current());
    std::fs::rename(dir.path().join("u-a"), dir.path().join(".deleted-x")).unwrap();
    assert!(!appended.is_current());
    let place = append(&segments, b"two");
    assert_eq!(segments.read("u-a", place).unwrap(), record(b"two"));
}

#[cfg(unix)]
#[test]
fn segments_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, segments) = segments();
    append(&segments, b"private");
    let path = segments.path("u-a", 1);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}
