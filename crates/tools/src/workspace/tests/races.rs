//! Tests of files that are swapped during a call, and of random paths.

use super::*;
use crate::hostile_input::{Random, rounds};

/// A directory of the path is repeatedly swapped with a link to the outside.
#[test]
fn a_directory_swapped_with_a_link_leads_nowhere_outside() {
    let dirs = TestDirs::new();
    fs::write(dirs.dir.path().join("out/file"), "secret").unwrap();
    symlink("../out", dirs.ws("link")).unwrap();
    let (mut reads, mut refused, mut writes) = (0, 0, 0);
    let write_every = rounds(50, 2);
    while_swapping(&dirs.ws(""), "sub", "link", || {
        for ws in dirs.both() {
            for round in 0..rounds(4000, 15_000) {
                match read_all(&ws, "sub/file") {
                    Ok(text) => {
                        assert_ne!(text, "secret");
                        reads += 1;
                    }
                    Err(_) => refused += 1,
                }
                if round % write_every == 0 {
                    writes += usize::from(write_all(&ws, "sub/file", "inside").is_ok());
                    writes += usize::from(write_all(&ws, &format!("sub/d{round}/f"), "x").is_ok());
                }
            }
        }
    });
    assert!(
        reads > 0 && refused > 0,
        "the race was not run: {reads} reads, {refused} refused, {writes} writes"
    );
    assert_eq!(fs::read(dirs.dir.path().join("out/file")).unwrap(), b"secret");
    fs::remove_file(dirs.dir.path().join("out/file")).unwrap();
    dirs.assert_untouched();
}

/// The file itself is repeatedly swapped with a link to the outside.
#[test]
fn a_swapped_file_is_neither_read_nor_written_through() {
    let dirs = TestDirs::new();
    symlink("../out/canary", dirs.ws("link")).unwrap();
    let (mut reads, mut refused) = (0, 0);
    while_swapping(&dirs.ws(""), "file", "link", || {
        for ws in dirs.both() {
            let path = ws.path("file").unwrap();
            for _ in 0..rounds(4000, 15_000) {
                match ws.locate(&path).and_then(|location| location.read_existing(LIMIT)) {
                    Ok(old) => {
                        assert_eq!(old.unwrap().content, b"inside");
                        reads += 1;
                    }
                    Err(_) => refused += 1,
                }
                match read_all(&ws, "file") {
                    Ok(text) => assert_eq!(text, "inside"),
                    Err(_) => refused += 1,
                }
            }
        }
    });
    assert!(reads > 0 && refused > 0, "the race was not run: {reads} reads, {refused} refused");
    dirs.assert_untouched();
}

/// Random paths over a directory with links of all kinds. The kernel and the walk by hand must agree, and a path
/// whose text leads out is refused.
#[test]
fn random_paths_never_lead_outside() {
    let dirs = TestDirs::new();
    let links = [
        ("up", ".."),
        ("in", "sub"),
        ("esc", "../out"),
        ("abs", "/"),
        ("here", "."),
        ("loop", "loop"),
        ("ping", "pong"),
        ("pong", "ping"),
        ("chain", "in"),
        ("chain2", "chain/deep/.."),
        ("far", "sub/deep/../../.."),
        ("far2", "up/ws"),
        ("none", "missing/at/all"),
        ("slash", "sub/"),
        ("dots", "./sub/./deep/"),
        ("evil", "../ws-evil"),
        ("canary", "../out/canary"),
        ("text", "file"),
        ("text2", "./sub/../file"),
        ("proc", "/proc/self/root"),
        ("cwd", "/proc/self/cwd"),
        ("fd", "/proc/self/fd"),
        ("tmp", "/tmp"),
        ("etc", "/etc"),
        ("sub/back", ".."),
        ("sub/esc", "../../out"),
        ("sub/file2", "file"),
        ("sub/up", "../up"),
        ("sub/deep/root", "../.."),
        ("sub/deep/esc", "../../../out/canary"),
        ("sub/deep/in", "../../in"),
        ("sub/deep/self", "../deep"),
    ];
    for (name, target) in links {
        symlink(target, dirs.ws(name)).unwrap();
    }
    let mut words = vec!["..", ".", "", "sub", "deep", "file", "out", "passwd", "..x", "self", "ws", "root"];
    words.extend(links.iter().map(|(name, _)| name.rsplit('/').next().unwrap()));
    let mut random = Random::new(0x9E37);
    let workspaces = dirs.both();
    let mut opened = 0;
    for _ in 0..rounds(5000, 24_000) {
        let parts: Vec<&str> = (0..1 + random.below(7)).map(|_| words[random.below(words.len())]).collect();
        let path = format!("{}{}", ["", "", "", "/", "./"][random.below(5)], parts.join("/"));
        let depth = parts.iter().try_fold(0, |depth: u32, part| match *part {
            "" | "." => Some(depth),
            ".." => depth.checked_sub(1),
            _ => Some(depth + 1),
        });
        let [kernel, by_hand] = workspaces.each_ref().map(|ws| read_all(ws, &path));
        assert_eq!(kernel.is_ok(), by_hand.is_ok(), "{path}: {kernel:?} {by_hand:?}");
        if depth.is_none() {
            assert!(kernel.is_err(), "{path}");
        }
        if let Ok(text) = kernel {
            assert_eq!(text, "inside", "{path}");
            opened += 1;
        }
    }
    assert!(opened > 20, "only {opened} of the paths named a file");
    dirs.assert_untouched();
}
