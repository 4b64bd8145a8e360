//! Undo of modification times and extended attributes.

use std::{
    fs::{self, File},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use rustix::{
    buffer::spare_capacity,
    fs::{Timespec, Timestamps, XattrFlags, fgetxattr, flistxattr, fsetxattr, futimens},
    io::Errno,
};
use serde_json::json;

use kontekst_core::CallId;

use super::{
    tests::{TestUndo, as_ordinary_user},
    tree::{TreeBefore, run_covered},
};

/// The modification time of a file in seconds and nanoseconds, and its attributes `user.*`.
pub(super) type Metadata = ((i64, i64), Vec<(String, Vec<u8>)>);

const OLD: (i64, i64) = (1_000_000_000, 123_456_789);

pub(super) fn metadata(path: &Path) -> Metadata {
    let meta = fs::metadata(path).unwrap();
    let attributes = with_file(path, |file| {
        let mut names = Vec::with_capacity(1 << 16);
        flistxattr(file, spare_capacity(&mut names)).ok();
        let names = names.split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
        let read = |name: &[u8]| {
            let mut value = Vec::with_capacity(1 << 16);
            fgetxattr(file, name, spare_capacity(&mut value)).unwrap();
            (String::from_utf8(name.to_vec()).unwrap(), value)
        };
        let mut attributes: Vec<_> = names.map(read).collect();
        attributes.sort();
        attributes
    });
    ((meta.mtime(), meta.mtime_nsec()), attributes)
}

/// Opens a file whose mode may deny that.
fn with_file<T>(path: &Path, work: impl FnOnce(&File) -> T) -> T {
    let permissions = fs::metadata(path).unwrap().permissions();
    fs::set_permissions(path, fs::Permissions::from_mode(permissions.mode() | 0o600)).unwrap();
    let done = work(&File::options().read(true).write(true).open(path).unwrap());
    fs::set_permissions(path, permissions).unwrap();
    done
}

fn set_time(path: &Path, (tv_sec, tv_nsec): (i64, i64)) {
    let time = Timespec { tv_sec, tv_nsec };
    let times = Timestamps { last_access: time, last_modification: time };
    with_file(path, |file| futimens(file, &times)).unwrap();
}

/// Does nothing on a file system that has no attributes.
pub(super) fn set_attribute(path: &Path, name: &str, value: &[u8]) {
    match with_file(path, |file| fsetxattr(file, name, value, XattrFlags::empty())) {
        Ok(()) | Err(Errno::NOTSUP) => {}
        Err(errno) => panic!("{errno}"),
    }
}

/// Changes the working directory as a command does.
fn command(test: &TestUndo, change: impl FnOnce(&Path)) {
    let work_dir = test.work_dir.for_call(&CallId::new("command".to_owned()), "run_command");
    run_covered(&work_dir, |_: TreeBefore<'_>| change(&test.file("")), |(), _| ()).unwrap();
}

/// Makes the file `d/a` with an old time and two attributes.
fn prepared() -> TestUndo {
    let test = TestUndo::new();
    fs::create_dir(test.file("d")).unwrap();
    test.put("d/a", "old\n");
    set_attribute(&test.file("d/a"), "user.origin", b"https://example.com/");
    set_attribute(&test.file("d/a"), "user.bytes", b"\0\xff");
    set_time(&test.file("d/a"), OLD);
    test
}

#[track_caller]
fn check(mode: u32, change: impl FnOnce(&Path) + Send) {
    let mut test = prepared();
    let path = test.file("d/a");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    let before = metadata(&path);
    assert_eq!(before.0, OLD);
    command(&test, change);
    let after = path.exists().then(|| (fs::read(&path).ok(), metadata(&path)));
    let run = test.run.clone();
    assert_eq!(test.undo(&run), []);
    assert_eq!(metadata(&path), before);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode);
    let undo = test.run.clone();
    assert_eq!(test.undo(&undo), []);
    assert_eq!(path.exists().then(|| (fs::read(&path).ok(), metadata(&path))), after);
}

#[test]
fn a_command_cannot_keep_times_and_attributes_from_being_restored() {
    as_ordinary_user(|| {
        for mode in [0o644, 0o600, 0o444] {
            check(mode, |root| {
                fs::remove_file(root.join("d/a")).unwrap();
                fs::write(root.join("d/a"), "evil\n").unwrap();
            });
            check(mode, |root| fs::remove_dir_all(root.join("d")).unwrap());
            check(mode, |root| fs::rename(root.join("d"), root.join("e")).unwrap());
            check(mode, |root| set_time(&root.join("d/a"), (5, 0)));
            check(mode, |root| set_attribute(&root.join("d/a"), "user.origin", b"evil"));
            check(mode, |root| set_attribute(&root.join("d/a"), "user.new", b"evil"));
            check(mode, |root| {
                set_attribute(&root.join("d/a"), "user.new", b"evil");
                fs::set_permissions(root.join("d/a"), fs::Permissions::from_mode(0o000)).unwrap();
            });
        }
    });
}

#[test]
fn attributes_that_are_too_large_to_be_recorded_do_not_keep_others_from_being_restored() {
    let mut test = prepared();
    let before = metadata(&test.file("d/a"));
    command(&test, |root| set_attribute(&root.join("d/a"), "user.new", &[0; 3000]));
    command(&test, |root| set_attribute(&root.join("d/a"), "user.origin", b"evil"));
    let run = test.run.clone();
    assert_eq!(test.undo(&run), []);
    assert_eq!(metadata(&test.file("d/a")), before);
}

#[test]
fn a_tool_that_writes_a_file_leaves_its_time_and_attributes_to_undo() {
    let mut test = prepared();
    let before = metadata(&test.file("d/a"));
    test.call("write_file", &json!({"path": "d/a", "content": "new\n"}));
    let run = test.run.clone();
    assert_eq!(test.undo(&run), []);
    assert_eq!(metadata(&test.file("d/a")), before);
}

#[test]
fn both_names_of_a_file_have_its_time_again() {
    let mut test = prepared();
    fs::hard_link(test.file("d/a"), test.file("b")).unwrap();
    let before = metadata(&test.file("b"));
    command(&test, |root| set_time(&root.join("b"), (5, 0)));
    let run = test.run.clone();
    assert_eq!(test.undo(&run), []);
    assert_eq!([metadata(&test.file("b")), metadata(&test.file("d/a"))], [before.clone(), before]);
}

#[test]
fn what_somebody_else_has_set_since_stays() {
    let mut test = prepared();
    command(&test, |root| set_time(&root.join("d/a"), (5, 0)));
    set_time(&test.file("d/a"), (7, 8));
    let run = test.run.clone();
    assert_eq!(test.undo(&run), []);
    assert_eq!(metadata(&test.file("d/a")).0, (7, 8));
}

#[test]
fn attributes_that_are_too_large_to_be_recorded_stay_with_the_name() {
    let mut test = prepared();
    set_attribute(&test.file("d/a"), "user.large", &[b'x'; 2000]);
    let before = metadata(&test.file("d/a")).1;
    command(&test, |root| fs::write(root.join("d/a"), "evil\n").unwrap());
    let run = test.run.clone();
    assert_eq!(test.undo(&run), []);
    assert_eq!(test.content("d/a"), "old\n");
    assert_eq!(metadata(&test.file("d/a")).1, before);
}
