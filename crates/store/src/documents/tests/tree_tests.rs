//! Tests of folders as trees.

use futures::executor::block_on;

use super::folder::Folder;
use super::*;

fn path(path: &str) -> VaultPath {
    VaultPath::new(path).unwrap()
}

#[test]
fn files_come_back_and_listings_show_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Folder::open(&dir.path().join("vault")).unwrap();
    block_on(async {
        assert_eq!(tree.read(&path("a/b/c.md")).await.unwrap(), None);
        assert_eq!(tree.list("a").await.unwrap(), []);
        for file in ["a/b/c.md", "a/d.md", "a/.hidden/x.md", "e.md"] {
            tree.write(&path(file), file.as_bytes()).await.unwrap();
        }
        tree.write(&path("e.md"), b"again").await.unwrap();
        assert_eq!(tree.read(&path("e.md")).await.unwrap().unwrap(), b"again");
        assert_eq!(tree.list("a").await.unwrap(), [path("a/b/c.md"), path("a/d.md")]);
        let level = Level { folders: vec!["b".to_owned()], files: vec![path("a/d.md")] };
        assert_eq!(tree.level("a").await.unwrap(), level);
        assert_eq!(tree.read(&path("a/b")).await.unwrap(), None, "a folder is no file");
        tree.sync(&[path("a/b/c.md"), path("gone.md")]).await.unwrap();
        tree.remove(&path("a/d.md")).await.unwrap();
        tree.remove(&path("a/d.md")).await.unwrap();
        tree.remove_folder("a").await.unwrap();
        tree.remove_folder("a").await.unwrap();
        assert_eq!(tree.list("").await.unwrap(), [path("e.md")]);
    });
}

#[cfg(unix)]
#[test]
fn no_link_is_gone_through() {
    let dir = tempfile::tempdir().unwrap();
    let (vault, outside) = (dir.path().join("vault"), dir.path().join("outside"));
    let tree = Folder::open(&vault).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret.md"), "secret").unwrap();
    std::os::unix::fs::symlink(&outside, vault.join("folder")).unwrap();
    std::os::unix::fs::symlink(outside.join("secret.md"), vault.join("file.md")).unwrap();
    block_on(async {
        for file in ["folder/secret.md", "folder/new.md", "file.md"] {
            let file = path(file);
            assert!(matches!(tree.read(&file).await, Err(StoreError::Symlink { .. })), "{file}");
            assert!(matches!(tree.write(&file, b"x").await, Err(StoreError::Symlink { .. })), "{file}");
            assert!(matches!(tree.remove(&file).await, Err(StoreError::Symlink { .. })), "{file}");
        }
        assert!(matches!(tree.remove_folder("folder").await, Err(StoreError::Symlink { .. })));
        assert!(matches!(tree.list("folder").await, Err(StoreError::Symlink { .. })));
        assert_eq!(tree.list("").await.unwrap(), []);
    });
    assert_eq!(std::fs::read_to_string(outside.join("secret.md")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn what_a_killed_writer_left_is_removed_and_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Folder::open(dir.path()).unwrap();
    std::fs::create_dir(dir.path().join("a")).unwrap();
    std::fs::write(dir.path().join("a/.tmp-x"), "half").unwrap();
    block_on(async {
        assert_eq!(tree.list("a").await.unwrap(), []);
        tree.tidy("a").await.unwrap();
        tree.tidy("none").await.unwrap();
    });
    assert!(!dir.path().join("a/.tmp-x").exists());
}
