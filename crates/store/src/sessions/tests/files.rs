//! Listing, choosing and deleting sessions.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

#[test]
fn deleting_a_session_deletes_its_kv_caches() {
    let test = TestSessions::new();
    test.write("{\"role\":\"user\",\"content\":\"a\"}\n");
    let kv = test.home.kv();
    test.home.create_dirs(&[test.home.cache(), kv.clone()]).unwrap();
    for name in ["s@1-4096.kv", "s@2-4096.kv.part", "s.x@1-4096.kv"] {
        fs::write(kv.join(name), "").unwrap();
    }
    test.sessions.delete(&test.id, true).unwrap();
    let left: Vec<_> = fs::read_dir(kv).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["s.x@1-4096.kv"]);
}

#[test]
fn a_listing_has_ids_agents_and_the_active_session() {
    let test = TestSessions::new();
    assert_eq!(test.sessions.list().unwrap(), []);
    assert!(matches!(test.sessions.resolve("last"), Err(SessionError::NotFound(_))));
    let ids: Vec<SessionId> = ["aa1", "aa2", "b", "b2", "last.x"].map(|id| id.parse().unwrap()).into();
    for (age, id) in ids.iter().rev().enumerate() {
        append(&mut test.sessions.open(id).unwrap(), &[text(Role::User, "x", 1)]);
        let file = fs::File::open(test.home.sessions().join(format!("{id}.jsonl"))).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000 + age as u64))
            .unwrap();
    }
    for stray in ["x.torn-1", ".hidden.jsonl", "a b.jsonl", "y.json", "aa1.meta.json"] {
        fs::write(test.home.sessions().join(stray), "garbage").unwrap();
    }
    symlink("/etc/passwd", test.home.sessions().join("link.jsonl")).unwrap();
    test.sessions.set_active(&ids[1]).unwrap();
    test.sessions.set_default_agent(&ids[1], &"coder".parse().unwrap()).unwrap();

    let listed = test.sessions.list().unwrap();
    assert_eq!(listed.iter().map(|session| session.id.clone()).collect::<Vec<_>>(), ids);
    assert_eq!(listed.iter().filter(|session| session.active).count(), 1);
    assert!(listed[1].active);
    assert_eq!(listed[1].default_agent, Some("coder".parse().unwrap()));
    assert_eq!(listed[0].default_agent, None, "broken metadata is no metadata");

    let resolve = |text| test.sessions.resolve(text);
    assert_eq!(resolve("aa2").unwrap(), ids[1]);
    assert_eq!(resolve("b").unwrap(), ids[2], "an id is itself, also as the start of another");
    assert_eq!(resolve("la").unwrap(), ids[4]);
    assert_eq!(resolve("last").unwrap(), ids[0]);
    assert!(matches!(resolve("aa"), Err(SessionError::Ambiguous { found, .. }) if found.len() == 2));
    for none in ["", "zz", "../x", "link"] {
        assert!(matches!(resolve(none), Err(SessionError::NotFound(_))), "{none}");
    }
}

#[test]
fn unknown_metadata_keys_are_kept() {
    let test = TestSessions::new();
    test.write("");
    let path = test.home.sessions().join("s.meta.json");
    fs::write(&path, "{\"title\":\"x\",\"default_agent\":\"old\"}").unwrap();
    test.sessions.set_default_agent(&test.id, &"new".parse().unwrap()).unwrap();
    let meta: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(meta, serde_json::json!({"title": "x", "default_agent": "new"}));
    let missing = test.sessions.set_default_agent(&"none".parse().unwrap(), &"a".parse().unwrap());
    assert!(matches!(missing, Err(SessionError::NotFound(_))));
    fs::write(&path, "{\"default_agent\":\"../../x\"}").unwrap();
    assert_eq!(test.sessions.default_agent(&test.id), None, "not a name");
}

#[test]
fn deleting_the_active_session_needs_force_and_leaves_none_active() {
    let test = TestSessions::new();
    assert!(matches!(test.sessions.delete(&test.id, true), Err(SessionError::NotFound(_))));
    test.write("");
    let other: SessionId = "s.torn-1".parse().unwrap();
    append(&mut test.sessions.open(&other).unwrap(), &[text(Role::User, "a", 1)]);
    test.sessions.set_active(&test.id).unwrap();
    test.sessions.set_default_agent(&test.id, &"a".parse().unwrap()).unwrap();
    assert!(matches!(test.sessions.delete(&test.id, false), Err(SessionError::Active(_))));
    assert!(test.sessions.exists(&test.id));
    test.sessions.delete(&test.id, true).unwrap();
    assert_eq!((test.sessions.active(), test.sessions.exists(&test.id)), (None, false));
    assert_eq!(test.files(), ["s.torn-1.jsonl"]);
}

#[test]
fn only_regular_files_in_the_directory_are_opened() {
    let test = TestSessions::new();
    let outside = test.home.root().join("outside");
    fs::write(&outside, "").unwrap();
    symlink(&outside, test.path()).unwrap();
    assert!(matches!(test.sessions.open(&test.id), Err(SessionError::Path(_))));
    assert!(test.sessions.transcript(&test.id).is_err());
    assert!(!test.sessions.exists(&test.id));
    fs::remove_file(test.path()).unwrap();
    fs::create_dir(test.path()).unwrap();
    assert!(matches!(test.sessions.open(&test.id), Err(SessionError::Path(_))));
    fs::write(test.home.active_session(), "../../etc/passwd").unwrap();
    assert_eq!(test.sessions.active(), None);
}

#[test]
fn all_files_are_readable_only_by_their_owner() {
    let test = TestSessions::new();
    test.write("{\"role\":\"user\"}\n{\"torn");
    fs::set_permissions(test.path(), fs::Permissions::from_mode(0o644)).unwrap();
    append(&mut test.open(), &[text(Role::User, "x", 1)]);
    append(&mut test.sessions.open(&SessionId::new()).unwrap(), &[text(Role::User, "x", 1)]);
    test.sessions.set_active(&test.id).unwrap();
    test.sessions.set_default_agent(&test.id, &"a".parse().unwrap()).unwrap();
    crate::config::Config::load(&test.home).unwrap();
    crate::config::agents::create_default(&test.home).unwrap();
    let mut dirs = vec![test.home.root().to_owned()];
    let mut checked = std::collections::BTreeSet::new();
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let (path, meta) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
            assert_eq!(meta.permissions().mode() & 0o077, 0, "{}", path.display());
            checked.insert(path.strip_prefix(test.home.root()).unwrap().display().to_string());
            if meta.is_dir() {
                dirs.push(path);
            }
        }
    }
    for kind in [
        "active_session",
        "agents/default/agent.md",
        "config.toml",
        "run",
        "sessions/s.jsonl",
        "sessions/s.meta.json",
    ] {
        assert!(checked.contains(kind), "{kind} is not in {checked:#?}");
    }
    assert!(checked.iter().any(|path| path.starts_with("sessions/s.torn-")), "{checked:#?}");
}
