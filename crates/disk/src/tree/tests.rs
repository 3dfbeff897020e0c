//! Tests of folders as trees.

use super::*;

fn path(path: &str) -> VaultPath {
    VaultPath::new(path).unwrap()
}

#[test]
fn files_come_back_and_listings_show_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Folder::open(&dir.path().join("vault")).unwrap();
    {
        assert_eq!(tree.read(&path("a/b/c.md")).unwrap(), None);
        assert_eq!(tree.list("a").unwrap(), []);
        for file in ["a/b/c.md", "a/d.md", "a/.hidden/x.md", "e.md"] {
            tree.write(&path(file), file.as_bytes()).unwrap();
        }
        tree.write(&path("e.md"), b"again").unwrap();
        assert_eq!(tree.read(&path("e.md")).unwrap().unwrap(), b"again");
        assert_eq!(tree.list("a").unwrap(), [path("a/b/c.md"), path("a/d.md")]);
        let level = Level { folders: vec!["b".to_owned()], files: vec![path("a/d.md")] };
        assert_eq!(tree.level("a").unwrap(), level);
        assert_eq!(tree.read(&path("a/b")).unwrap(), None, "a folder is no file");
        tree.sync(&[path("a/b/c.md"), path("gone.md")]).unwrap();
        tree.remove(&path("a/d.md")).unwrap();
        tree.remove(&path("a/d.md")).unwrap();
        tree.remove_folder("a").unwrap();
        tree.remove_folder("a").unwrap();
        assert_eq!(tree.list("").unwrap(), [path("e.md")]);
    };
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
    {
        for file in ["folder/secret.md", "folder/new.md", "file.md"] {
            let file = path(file);
            assert!(matches!(tree.read(&file), Err(StoreError::Symlink { .. })), "{file}");
            assert!(matches!(tree.write(&file, b"x"), Err(StoreError::Symlink { .. })), "{file}");
            assert!(matches!(tree.remove(&file), Err(StoreError::Symlink { .. })), "{file}");
        }
        assert!(matches!(tree.remove_folder("folder"), Err(StoreError::Symlink { .. })));
        assert!(matches!(tree.list("folder"), Err(StoreError::Symlink { .. })));
        assert_eq!(tree.list("").unwrap(), []);
    };
    assert_eq!(std::fs::read_to_string(outside.join("secret.md")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn what_a_killed_writer_left_is_removed_and_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Folder::open(dir.path()).unwrap();
    std::fs::create_dir(dir.path().join("a")).unwrap();
    std::fs::write(dir.path().join("a/.tmp-x"), "half").unwrap();
    {
        assert_eq!(tree.list("a").unwrap(), []);
        tree.tidy("a").unwrap();
        tree.tidy("none").unwrap();
    };
    assert!(!dir.path().join("a/.tmp-x").exists());
}
