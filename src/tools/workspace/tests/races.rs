//! Tests of files that are swapped during a call, and of random paths.

use super::*;

/// A directory of the path is repeatedly swapped with a link to the outside.
#[test]
fn a_directory_swapped_with_a_link_leads_nowhere_outside() {
    let dirs = TestDirs::new();
    fs::write(dirs.dir.path().join("out/file"), "secret").unwrap();
    symlink("../out", dirs.ws("link")).unwrap();
    let (mut reads, mut refused, mut writes) = (0, 0, 0);
    while_swapping(&dirs.ws(""), "sub", "link", || {
        for ws in dirs.both() {
            for round in 0..10_000 {
                match read_all(&ws, "sub/file") {
                    Ok(text) => {
                        assert_ne!(text, "secret");
                        reads += 1;
                    }
                    Err(_) => refused += 1,
                }
                if round % 50 == 0 {
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
            for _ in 0..10_000 {
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

/// Compares random paths with the simplest possible model, which counts the levels.
#[test]
fn random_paths_never_lead_outside() {
    let dirs = TestDirs::new();
    for (name, target) in [("up", ".."), ("in", "sub"), ("sub/back", ".."), ("esc", "../out"), ("abs", "/")] {
        symlink(target, dirs.ws(name)).unwrap();
    }
    let words = [
        "..", ".", "", "sub", "deep", "file", "up", "in", "back", "esc", "abs", "out", "canary", "etc",
        "passwd", "..x", "proc", "self", "root", "ws", "ws-evil",
    ];
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    let workspaces = dirs.both();
    let mut opened = 0;
    for _ in 0..20_000 {
        let parts: Vec<&str> = (0..1 + random(7)).map(|_| words[random(words.len())]).collect();
        let path = format!("{}{}", ["", "", "", "/", "./"][random(5)], parts.join("/"));
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
