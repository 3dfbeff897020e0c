//! Tests of the blob files themselves: layout, damage, idempotence.

use super::*;
use crate::files::TEMP_PREFIX;

fn blobs() -> (tempfile::TempDir, Blobs) {
    let dir = tempfile::tempdir().unwrap();
    let blobs = Blobs::new(dir.path().to_path_buf());
    (dir, blobs)
}

fn put(blobs: &Blobs, content: &[u8]) -> ContentHash {
    let hash = ContentHash::new(content);
    blobs.put_all("u-a", &BTreeMap::from([(hash, frame::compress(content).unwrap())])).unwrap();
    hash
}

fn get(blobs: &Blobs, hash: ContentHash) -> Result<Vec<u8>, StoreError> {
    let mut content = Vec::new();
    blobs.read("u-a", hash, |piece| content.extend_from_slice(piece)).map(|_| content)
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn contents_of_every_kind_come_back() {
    let (_dir, blobs) = blobs();
    let noise: Vec<u8> = (0..300_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    for content in [&b""[..], b"\0", b"\xff\xfe", "ユ".as_bytes(), &[b'a'; 1_000_000], &noise] {
        let hash = put(&blobs, content);
        assert_eq!(get(&blobs, hash).unwrap(), content);
    }
}

#[test]
fn a_batch_leaves_one_file_per_content_and_no_temporaries() {
    let (dir, blobs) = blobs();
    let contents: Vec<_> = (0..150u32).map(|n| n.to_string()).collect();
    let frame =
        |text: &String| (ContentHash::new(text.as_bytes()), frame::compress(text.as_bytes()).unwrap());
    let contents = contents.iter().map(frame).collect();
    blobs.put_all("u-a", &contents).unwrap();
    blobs.put_all("u-a", &contents).unwrap();
    let files = files_below(dir.path());
    assert_eq!(files.len(), 150);
    assert!(files.iter().all(|file| !file.to_string_lossy().contains(TEMP_PREFIX)));
}

#[test]
fn a_blob_is_one_zstd_frame_that_states_its_size() {
    let (_dir, blobs) = blobs();
    let hash = put(&blobs, &[b'x'; 5_000]);
    let path = blobs.path("u-a", hash);
    let hex = hash.to_hex();
    assert!(path.ends_with(format!("u-a/{}/{}", &hex[..2], &hex[2..])));
    let frame = std::fs::read(path).unwrap();
    assert!(matches!(zstd::zstd_safe::get_frame_content_size(&frame), Ok(Some(5_000))));
}

#[test]
fn a_damaged_blob_is_refused_by_name_and_mended_by_putting_it_again() {
    let (_dir, blobs) = blobs();
    let content = b"the quick brown fox";
    let hash = put(&blobs, content);
    let path = blobs.path("u-a", hash);
    let whole = std::fs::read(&path).unwrap();
    let other = zstd::bulk::compress(b"another content", 3).unwrap();
    let trailing = [&whole[..], b"x"].concat();
    for damaged in [&b""[..], b"no frame", &whole[..whole.len() - 1], &other, &trailing] {
        std::fs::write(&path, damaged).unwrap();
        let error = get(&blobs, hash).unwrap_err();
        assert!(matches!(error, StoreError::CorruptBlob { .. }), "{error}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        put(&blobs, content);
        assert_eq!(get(&blobs, hash).unwrap(), content);
    }
}

#[test]
fn a_missing_blob_names_where_it_should_be() {
    let (_dir, blobs) = blobs();
    let hash = ContentHash::new(b"never put");
    let error = get(&blobs, hash).unwrap_err();
    assert!(error.to_string().contains(&hash.to_hex()[2..]), "{error}");
}

#[cfg(unix)]
#[test]
fn blobs_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, blobs) = blobs();
    let path = blobs.path("u-a", put(&blobs, b"private"));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}
