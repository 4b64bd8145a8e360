//! Tests of paths and links that lead out of the workspace.

use super::*;

#[test]
fn the_text_of_a_path_does_not_lead_out() {
    let dirs = TestDirs::new();
    let root = dirs.ws("").to_str().unwrap().trim_end_matches('/').to_owned();
    for ws in dirs.both() {
        for good in [
            "file",
            "./file",
            "sub/../file",
            "sub//../file",
            "./sub/.././file",
            "sub/deep/../../file",
            "missing/../file",
            &format!("{root}/file"),
            &format!("{root}//sub/../file"),
        ] {
            assert_eq!(read_all(&ws, good).unwrap(), "inside", "{good}");
        }
        for bad in [
            "",
            "/",
            ".",
            "..",
            "../ws/file",
            "../out/canary",
            "sub/../../out/canary",
            "/etc/passwd",
            "\\x",
            "file\0",
            "file\n",
            "sub/",
            "a/../../x",
            &"a/".repeat(3000),
            &"a".repeat(256),
            &format!("{root}-evil/canary"),
            &format!("{root}/../out/canary"),
            "//etc/passwd",
            "\u{9b}31m",
        ] {
            assert!(ws.path(bad).is_err(), "{bad}");
        }
        let error = ws.path("/etc/passwd").unwrap_err().message();
        assert!(error.contains("relative") && !error.contains(&root), "{error}");
    }
}

#[test]
fn names_that_only_look_like_dot_dot_are_plain_names() {
    let dirs = TestDirs::new();
    for ws in dirs.both() {
        for name in ["..hidden", "...", "a..b", ".. ", "~", "~x/y", "$HOME", "%2e%2e", "-x", "sub/..x/y"] {
            write_all(&ws, name, "x").unwrap();
            assert_eq!(read_all(&ws, name).unwrap(), "x", "{name}");
            fs::remove_file(dirs.ws(name)).unwrap();
        }
    }
    dirs.assert_untouched();
}

#[test]
fn links_are_followed_only_inside_the_workspace() {
    let dirs = TestDirs::new();
    let out = dirs.dir.path().join("out");
    let abs = |path: &str| out.join(path).to_str().unwrap().to_owned();
    // (name of the link, target, path that is read, whether it stays inside)
    let shapes: Vec<(&str, String, &str, bool)> = vec![
        ("l01", "file".into(), "l01", true),
        ("l02", "sub".into(), "l02/file", true),
        ("l03", "./sub/./file".into(), "l03", true),
        ("l04", "sub/../file".into(), "l04", true),
        ("sub/l05", "../file".into(), "sub/l05", true),
        ("sub/deep/l06", "../../sub/file".into(), "sub/deep/l06", true),
        ("l07", "l01".into(), "l07", true),
        ("l08", "l02/file".into(), "l08", true),
        ("l09", "sub/".into(), "l09/file", true),
        ("l10", ".".into(), "l10/l10/file", true),
        ("l11", "sub/deep/..".into(), "l11/file", true),
        ("l12", "../out/canary".into(), "l12", false),
        ("l13", "../out".into(), "l13/canary", false),
        ("l14", abs("canary"), "l14", false),
        ("l15", abs(""), "l15/canary", false),
        ("l16", "l12".into(), "l16", false),
        ("l17", "l13/canary".into(), "l17", false),
        ("l18", "..".into(), "l18/out/canary", false),
        ("l19", "../ws/file".into(), "l19", false),
        ("sub/l20", "../../out/canary".into(), "sub/l20", false),
        ("l21", "sub/../../out/canary".into(), "l21", false),
        ("l22", "/".into(), "l22/etc/passwd", false),
        ("l23", "/proc/self/root".into(), "l23/etc/passwd", false),
        ("l24", "/proc/self/cwd".into(), "l24/Cargo.toml", false),
        ("l25", "/dev/stdin".into(), "l25", false),
        ("l26", "l27".into(), "l26", false),
        ("l27", "l26".into(), "l27", false),
        ("l28", "../ws-evil/canary".into(), "l28", false),
        ("l29", dirs.ws("file").to_str().unwrap().into(), "l29", false),
        ("l30", "l18/out".into(), "l30/canary", false),
        ("l31", "sub/../..".into(), "l31/out/canary", false),
        ("l32", "file".into(), "l32/x", false),
    ];
    for (name, target, _, _) in &shapes {
        symlink(target, dirs.ws(name)).unwrap();
    }
    for ws in dirs.both() {
        for (name, target, path, inside) in &shapes {
            let read = read_all(&ws, path);
            assert_eq!(read.is_ok(), *inside, "read {name} -> {target}: {read:?}");
            if let Ok(text) = read {
                assert_eq!(text, "inside", "{name}");
            }
            let written = write_all(&ws, path, "inside");
            assert_eq!(written.is_ok(), *inside, "write {name} -> {target}: {written:?}");
            if !path.contains('/') {
                assert!(dirs.ws(name).is_symlink(), "{name} was replaced instead of what it names");
            }
        }
    }
    dirs.assert_untouched();
}

#[test]
fn a_dangling_link_creates_its_target_only_inside_the_workspace() {
    let dirs = TestDirs::new();
    symlink("sub/new", dirs.ws("good")).unwrap();
    symlink("../out/new", dirs.ws("bad")).unwrap();
    symlink("../out/inner", dirs.ws("dir")).unwrap();
    for ws in dirs.both() {
        write_all(&ws, "good", "x").unwrap();
        assert_eq!(fs::read(dirs.ws("sub/new")).unwrap(), b"x");
        assert!(write_all(&ws, "bad", "x").is_err());
        assert!(write_all(&ws, "dir/x", "x").is_err());
        assert!(write_all(&ws, "dir/x/y/z", "x").is_err());
        let path = ws.path("good").unwrap();
        assert_eq!(ws.locate(&path).unwrap().real_path(), "sub/new");
        let path = ws.path("sub/none/at/all").unwrap();
        assert_eq!(ws.locate(&path).unwrap().real_path(), "sub/none/at/all");
    }
    dirs.assert_untouched();
}
