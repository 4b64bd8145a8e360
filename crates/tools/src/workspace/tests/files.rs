//! Tests of files that are not regular, are too large, or change meanwhile.

use super::*;

#[test]
fn a_write_to_a_hard_link_does_not_change_its_other_names() {
    let dirs = TestDirs::new();
    fs::hard_link(dirs.dir.path().join("out/canary"), dirs.ws("hard")).unwrap();
    let [ws, _] = dirs.both();
    let location = ws.locate(&ws.path("hard").unwrap()).unwrap();
    assert_eq!(location.read_existing(LIMIT).unwrap().unwrap().link_count(), 2);
    write_all(&ws, "hard", "new").unwrap();
    assert_eq!(fs::read(dirs.ws("hard")).unwrap(), b"new");
    dirs.assert_untouched();
}

#[test]
fn special_files_are_not_opened_and_never_block() {
    let dirs = TestDirs::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, dirs.ws("fifo"), Mode::from_raw_mode(0o600)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dirs.ws("socket")).unwrap();
    let workspaces = dirs.both();
    // Opening the FIFO to read it would block until a writer comes, which is never.
    returns(move || {
        for ws in workspaces {
            for name in ["fifo", "socket"] {
                assert!(matches!(read_all(&ws, name), Err(FileError::NotARegularFile(_))), "read {name}");
                assert!(
                    matches!(write_all(&ws, name, "x"), Err(FileError::NotARegularFile(_))),
                    "write {name}"
                );
            }
            for name in ["sub", "sub/deep"] {
                assert!(matches!(read_all(&ws, name), Err(FileError::Directory(_))), "read {name}");
                assert!(matches!(write_all(&ws, name, "x"), Err(FileError::Directory(_))), "write {name}");
            }
            assert!(matches!(read_all(&ws, "none"), Err(FileError::Missing(_))));
            assert!(matches!(read_all(&ws, "none/at/all"), Err(FileError::Missing(_))));
            assert!(read_all(&ws, "file/x").is_err() && write_all(&ws, "file/x", "").is_err());
        }
    });
}

#[test]
fn devices_are_not_opened_even_if_the_workspace_is_dev() {
    let ws = Workspace::open_root(Path::new("/dev"), Vec::new()).unwrap();
    for name in ["null", "zero", "full", "tty"] {
        assert!(read_all(&ws, name).is_err(), "{name}");
        assert!(write_all(&ws, name, "x").is_err(), "{name}");
    }
}

#[test]
fn a_huge_sparse_file_is_refused_before_it_is_read() {
    let dirs = TestDirs::new();
    fs::File::create(dirs.ws("sparse")).unwrap().set_len(1 << 40).unwrap();
    let [ws, _] = dirs.both();
    let location = ws.locate(&ws.path("sparse").unwrap()).unwrap();
    assert!(matches!(location.read_existing(LIMIT), Err(FileError::TooLarge { bytes: 0x100_0000_0000, .. })));
}

#[test]
fn replacing_a_file_keeps_its_mode_and_leaves_no_temporary_file() {
    let dirs = TestDirs::new();
    let [ws, _] = dirs.both();
    fs::set_permissions(dirs.ws("file"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::set_permissions(dirs.ws(""), fs::Permissions::from_mode(0o755)).unwrap();
    let mode = |name: &str| fs::metadata(dirs.ws(name)).unwrap().permissions().mode() & 0o777;
    write_all(&ws, "file", "new").unwrap();
    assert_eq!((mode("file"), fs::read(dirs.ws("file")).unwrap()), (0o751, b"new".to_vec()));
    write_all(&ws, "a/b/c", "x").unwrap();
    assert_eq!((mode("a"), mode("a/b"), mode("a/b/c")), (0o755, 0o755, 0o644));
    fs::set_permissions(dirs.ws("a/b"), fs::Permissions::from_mode(0o700)).unwrap();
    write_all(&ws, "a/b/private", "x").unwrap();
    assert_eq!(mode("a/b/private"), 0o600);
    fs::set_permissions(dirs.ws("file"), fs::Permissions::from_mode(0o444)).unwrap();
    assert!(matches!(write_all(&ws, "file", "x"), Err(FileError::ReadOnly(_))));
    let names: Vec<_> = fs::read_dir(dirs.ws("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_str().unwrap().contains(".kontekst-")), "{names:?}");
}

#[test]
fn a_file_that_changed_since_it_was_read_is_left_alone() {
    let dirs = TestDirs::new();
    let [ws, _] = dirs.both();
    let location = ws.locate(&ws.path("file").unwrap()).unwrap();
    let old = location.read_existing(LIMIT).unwrap();
    fs::write(dirs.ws("file"), "somebody else's").unwrap();
    assert!(matches!(
        location.replace(b"mine", old.as_ref(), &|_| Ok(()), &|_| Ok(())),
        Err(FileError::Stale(_))
    ));
    assert_eq!(fs::read(dirs.ws("file")).unwrap(), b"somebody else's");

    let location = ws.locate(&ws.path("new").unwrap()).unwrap();
    assert!(location.read_existing(LIMIT).unwrap().is_none());
    fs::write(dirs.ws("new"), "somebody else's").unwrap();
    assert!(matches!(location.replace(b"mine", None, &|_| Ok(()), &|_| Ok(())), Err(FileError::Stale(_))));
    assert_eq!(fs::read(dirs.ws("new")).unwrap(), b"somebody else's");
}
