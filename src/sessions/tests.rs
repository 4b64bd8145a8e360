//! Crashes, damage, several writers, and windows of every size.

use std::{
    cell::Cell,
    collections::HashSet,
    fs,
    os::unix::fs::{FileExt, PermissionsExt, symlink},
    path::Path,
    process::Command,
};

use super::{backward::Backward, backward::RawLine, record::MAX_LINE, *};
use crate::core::{CallId, Message, Role, RunId, ToolCall, ToolResult};

/// Small and repeatable; the seed is the test's own.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

struct TestSessions {
    _dir: tempfile::TempDir,
    home: Home,
    sessions: Sessions,
    id: SessionId,
}

impl TestSessions {
    fn new() -> Self {
        // In memory where that exists: thousands of fdatasyncs on a disk take minutes.
        let shm = Path::new("/dev/shm");
        let dir = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.unwrap();
        let home = Home::find(Some(dir.path().join("data"))).unwrap();
        home.create().unwrap();
        let sessions = Sessions::new(&home);
        Self { _dir: dir, home, sessions, id: "s".parse().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.home.sessions().join("s.jsonl")
    }

    fn write(&self, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(), bytes).unwrap();
    }

    fn open(&self) -> SessionLog {
        self.sessions.open(&self.id).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.home.sessions())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn text(role: Role, content: &str, tokens: u32) -> Message {
    Message { tokens, ..Message::text(role, content) }
}

fn bytes_by_four(message: &Message) -> u32 {
    message.content.len() as u32 / 4
}

fn call(id: &str) -> ToolCall {
    ToolCall { id: CallId::new(id), name: "f".to_owned(), arguments: "{}".to_owned() }
}

fn calls(ids: &[&str]) -> Message {
    Message { tool_calls: ids.iter().map(|id| call(id)).collect(), ..text(Role::Assistant, "", 3) }
}

fn result(id: &str) -> Message {
    Message {
        tokens: 2,
        ..Message::result(ToolResult {
            call_id: CallId::new(id),
            name: "f".to_owned(),
            output: "done".to_owned(),
            is_error: false,
        })
    }
}

fn append(log: &mut SessionLog, messages: &[Message]) {
    let records: Vec<Record<'_>> = messages.iter().map(Record::Message).collect();
    log.append(&records).unwrap();
}

/// One letter a message: `u`ser, `a`ssistant, `a(ids)` with calls, `r(id)` results, `!` for errors.
fn shape(messages: &[Message]) -> String {
    let one = |message: &Message| match (&message.role, &message.tool_result) {
        (Role::User, _) => "u".to_owned(),
        (_, Some(result)) => format!("r({}){}", result.call_id, if result.is_error { "!" } else { "" }),
        (_, None) if message.tool_calls.is_empty() => "a".to_owned(),
        _ => {
            let ids: Vec<_> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
            format!("a({})", ids.join(","))
        }
    };
    messages.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_valid(tail: &Tail, budget: u32) {
    let shown = shape(&tail.messages);
    assert!(tail.tokens <= budget, "{shown}");
    assert_eq!(tail.tokens, tail.messages.iter().map(|message| message.tokens).sum::<u32>());
    assert!(tail.messages.first().is_none_or(|first| first.role == Role::User), "{shown}");
    let mut open: Vec<&CallId> = Vec::new();
    for message in &tail.messages {
        match &message.tool_result {
            Some(result) => {
                let at = open.iter().position(|id| **id == result.call_id);
                open.remove(at.unwrap_or_else(|| panic!("orphan in {shown}")));
            }
            None => assert!(open.is_empty(), "unanswered in {shown}"),
        }
        open.extend(message.tool_calls.iter().map(|call| &call.id));
    }
    assert!(open.is_empty(), "unanswered in {shown}");
}

#[test]
fn what_is_appended_is_read_back() {
    let test = TestSessions::new();
    let mut log = test.open();
    let run = RunId::new();
    let messages =
        [text(Role::User, "hé\n\u{2028}\"", 4), calls(&["c"]), result("c"), text(Role::Assistant, "x", 1)];
    append(&mut log, &messages[..2]);
    log.append(&[Record::ToolStarted { call: &CallId::new("c"), run: &run }]).unwrap();
    append(&mut log, &messages[2..]);
    let tail = log.tail(100, &bytes_by_four).unwrap();
    assert_eq!(tail, Tail { messages: messages.to_vec(), tokens: 10, has_older: false, damaged: 0 });
    let shown = test.sessions.transcript(&test.id).unwrap();
    assert_eq!(shown, Transcript { messages: messages.to_vec(), damaged: vec![] });
    assert_eq!(fs::read_to_string(test.path()).unwrap().lines().count(), 5);
}

#[test]
fn lines_that_others_wrote_are_understood() {
    let test = TestSessions::new();
    test.write(concat!(
        "{\"role\":\"user\",\"content\":\"explain this\",\"tokens\":15}\r\n",
        "\n",
        "{\"role\":\"assistant\",\"content\":\"This is...\",\"tokens\":42,\"extra\":[1]}\n",
        "{\"mark\":\"from a later version\",\"x\":1}\n",
        "{\"role\":\"system\",\"content\":\"you are\"}\n",
        "{\"role\":\"user\"}\n",
    ));
    let tail = test.open().tail(1000, &bytes_by_four).unwrap();
    assert_eq!((shape(&tail.messages).as_str(), tail.tokens, tail.damaged), ("u a u", 58, 0));
}

#[test]
fn a_deleted_session_leaves_no_cache_of_it() {
    let test = TestSessions::new();
    test.write("{\"role\":\"user\",\"content\":\"a\"}\n");
    let kv = test.home.create_kv().unwrap();
    for name in ["s@1-4096.kv", "s@2-4096.kv.part", "s.x@1-4096.kv"] {
        fs::write(kv.join(name), "").unwrap();
    }
    test.sessions.delete(&test.id, true).unwrap();
    let left: Vec<_> = fs::read_dir(kv).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["s.x@1-4096.kv"]);
}

#[test]
fn one_log_at_a_time() {
    let test = TestSessions::new();
    let log = test.open();
    assert!(matches!(test.sessions.open(&test.id), Err(SessionError::Busy(_))));
    assert!(matches!(test.sessions.delete(&test.id, true), Err(SessionError::Busy(_))));
    assert!(test.sessions.transcript(&test.id).is_ok(), "reading needs no lock");
    drop(log);
    test.open();
}

#[test]
fn a_torn_end_costs_itself_and_is_kept_as_evidence() {
    let test = TestSessions::new();
    test.write("{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"us");
    let mut log = test.open();
    append(&mut log, &[text(Role::User, "b", 1)]);
    let shown = test.sessions.transcript(&test.id).unwrap();
    assert_eq!((shown.messages.len(), shown.damaged.len()), (2, 0));
    let torn = test.files().into_iter().find(|name| name.contains(".torn-")).unwrap();
    let torn = test.home.sessions().join(torn);
    assert_eq!(fs::read_to_string(&torn).unwrap(), "{\"role\":\"us");
    assert_eq!(fs::metadata(torn).unwrap().permissions().mode() & 0o777, 0o600);
    drop(log);
    test.sessions.delete(&test.id, false).unwrap();
    assert_eq!(test.files(), Vec::<String>::new(), "the evidence goes with the session");
}

#[test]
fn a_cut_at_every_byte_loses_no_whole_record() {
    let test = TestSessions::new();
    let mut whole = Vec::new();
    let mut ends = vec![0];
    for number in 0..200 {
        let message = text(Role::User, &format!("{number}"), 1);
        Record::Message(&message).write(&mut whole).unwrap();
        ends.push(whole.len());
    }
    for cut in 0..=whole.len() {
        test.write(&whole[..cut]);
        // A record is whole with its newline or without.
        let kept = ends.iter().filter(|end| **end > 0 && **end <= cut + 1).count();
        let mut log = test.open();
        append(&mut log, &[text(Role::User, "x", 1)]);
        append(&mut log, &[text(Role::User, "y", 1)]);
        drop(log);
        let bytes = fs::read_to_string(test.path()).unwrap();
        let contents: Vec<String> =
            bytes.lines().map(|line| serde_json::from_str::<Message>(line).unwrap().content).collect();
        let mut expected: Vec<String> = (0..kept).map(|number| number.to_string()).collect();
        expected.extend(["x".to_owned(), "y".to_owned()]);
        assert_eq!(contents, expected, "cut at {cut}");
        let torn = cut > ends[kept];
        assert_eq!(test.files().len(), 1 + usize::from(torn), "cut at {cut}");
        for name in test.files() {
            fs::remove_file(test.home.sessions().join(name)).unwrap();
        }
    }
}

#[test]
fn eight_processes_write_2400_whole_lines() {
    let test = TestSessions::new();
    let mut children: Vec<_> = (0..8)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "sessions::tests::child_that_appends", "--quiet"])
                .env("KONTEKST_TEST_HOME", test.home.root())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let shown = test.sessions.transcript(&test.id).unwrap();
    assert_eq!((shown.messages.len(), shown.damaged.len()), (2400, 0));
    assert_eq!(test.files().len(), 1);
}

/// Started by the test above; by itself it does nothing.
#[test]
fn child_that_appends() {
    let Some(root) = std::env::var_os("KONTEKST_TEST_HOME") else { return };
    let home = Home::find(Some(root.into())).unwrap();
    let sessions = Sessions::new(&home);
    let id = "s".parse().unwrap();
    let message = text(Role::User, &"x".repeat(700), 1);
    let mut left = 300;
    while left > 0 {
        match sessions.open(&id) {
            Ok(mut log) => {
                append(&mut log, std::slice::from_ref(&message));
                left -= 1;
            }
            Err(SessionError::Busy(_)) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_full_disk_leaves_whole_records_and_a_usable_log() {
    let test = TestSessions::new();
    test.open();
    // The shell ignores SIGXFSZ for the child and caps files at 8 or 16 KiB, as shells differ.
    let status = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "sessions::tests::child_with_a_full_disk", "--quiet"])
        .env("KONTEKST_TEST_HOME", test.home.root())
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let mut log = test.open();
    append(&mut log, &[text(Role::User, "there is space again", 1)]);
    let shown = test.sessions.transcript(&test.id).unwrap();
    assert_eq!(shown.damaged, Vec::<u64>::new());
    assert_eq!(test.files().len(), 1, "nothing was torn");
}

/// Started by the test above; by itself it does nothing.
#[test]
fn child_with_a_full_disk() {
    let Some(root) = std::env::var_os("KONTEKST_TEST_HOME") else { return };
    let home = Home::find(Some(root.into())).unwrap();
    let mut log = Sessions::new(&home).open(&"s".parse().unwrap()).unwrap();
    let message = text(Role::User, &"x".repeat(3000), 1);
    let error = loop {
        if let Err(error) = log.append(&[Record::Message(&message), Record::Message(&message)]) {
            break error;
        }
    };
    assert!(matches!(error, SessionError::Append { .. }), "{error}");
    append(&mut log, &[text(Role::User, "small", 1)]);
    let tail = log.tail(1000, &bytes_by_four).unwrap();
    assert_eq!((tail.damaged, tail.messages.last().unwrap().content.as_str()), (0, "small"));
}

#[test]
fn a_record_that_no_reader_takes_is_refused_whole() {
    let test = TestSessions::new();
    let mut log = test.open();
    let huge = text(Role::User, &"x".repeat(MAX_LINE + 1), 1);
    let small = text(Role::User, "a", 1);
    let error = log.append(&[Record::Message(&small), Record::Message(&huge)]).unwrap_err();
    assert!(matches!(error, SessionError::TooLong { .. }), "{error}");
    append(&mut log, &[small]);
    assert_eq!(test.sessions.transcript(&test.id).unwrap().messages.len(), 1);
}

fn random_line(random: &mut Random, file: &mut Vec<u8>) {
    match random.below(20) {
        0 => file.extend(b"\n"),
        1 => file.extend(b"{\"role\":\"user\",\"conte\n"),
        2 => {
            let zeros = random.below(9000);
            file.extend(std::iter::repeat_n(0, zeros));
            file.push(b'\n');
        }
        kind => {
            let role = [Role::User, Role::Assistant][random.below(2)];
            let mut size = random.below(if kind == 3 { 40_000 } else { 300 });
            let message = |size| text(role, &"x".repeat(size), (size % 7) as u32);
            if kind > 16 {
                // So that the newline falls on a block boundary, counted from the end or the start.
                let mut line = Vec::new();
                Record::Message(&message(7)).write(&mut line).unwrap();
                let over = (file.len() + line.len() + random.below(2)) % 8192;
                size = 7 + (8192 - over) / 7 * 7;
            }
            Record::Message(&message(size)).write(file).unwrap();
        }
    }
}

/// The rule, without the blocks.
fn naive(file: &[u8], budget: u32) -> Tail {
    let mut tail = Tail::default();
    for line in file.split(|byte| *byte == b'\n').rev().filter(|line| !line.is_empty()) {
        let Ok(mut message) = serde_json::from_slice::<Message>(line) else {
            tail.damaged += 1;
            continue;
        };
        if message.tokens == 0 {
            message.tokens = bytes_by_four(&message).max(1);
        }
        if tail.tokens + message.tokens > budget {
            tail.has_older = true;
            break;
        }
        tail.tokens += message.tokens;
        tail.messages.insert(0, message);
    }
    while tail.messages.first().is_some_and(|first| first.role != Role::User) {
        tail.tokens -= tail.messages.remove(0).tokens;
        tail.has_older = true;
    }
    tail
}

fn load(file: &[u8], budget: u32) -> Tail {
    let read = |buf: &mut [u8], at: u64| {
        buf.copy_from_slice(&file[at as usize..][..buf.len()]);
        Ok(())
    };
    tail::load(file.len() as u64, &read, budget, &bytes_by_four).unwrap()
}

#[test]
fn a_tail_is_what_a_naive_reader_loads() {
    let mut random = Random(0x5eed);
    for _ in 0..200 {
        let mut file = Vec::new();
        for _ in 0..random.below(60) {
            random_line(&mut random, &mut file);
        }
        for _ in 0..6 {
            let budget = random.below(400) as u32;
            assert_eq!(load(&file, budget), naive(&file, budget));
        }
        assert_eq!(load(&file, u32::MAX), naive(&file, u32::MAX));
    }
}

#[test]
fn lines_come_backwards_whatever_their_length() {
    let mut random = Random(7);
    for limit in [0, 10, 9000, MAX_LINE] {
        for _ in 0..80 {
            let mut file = Vec::new();
            for _ in 0..random.below(8) {
                let size = [0, 1, 100, 8190, 8191, 8192, 8193, 20_000, 300_000][random.below(9)];
                file.extend(std::iter::repeat_n(b'x', size));
                file.push(b'\n');
            }
            file.extend(std::iter::repeat_n(b'y', random.below(3) * 5000));
            let read = |buf: &mut [u8], at: u64| {
                buf.copy_from_slice(&file[at as usize..][..buf.len()]);
                Ok(())
            };
            let mut lines = Backward::new(file.len() as u64, &read, limit);
            let mut end = file.len();
            for expected in file.split(|byte| *byte == b'\n').rev() {
                match lines.next().unwrap().unwrap() {
                    RawLine::Whole(line) => assert_eq!(line, expected),
                    RawLine::TooLong { bytes, has_nul: nul } => {
                        assert!(expected.len() > limit);
                        assert_eq!((bytes, nul), (expected.len() as u64, false));
                    }
                }
                assert_eq!(lines.position() as usize, end - expected.len());
                end = (end - expected.len()).saturating_sub(1);
            }
            assert!(lines.next().unwrap().is_none());
        }
    }
}

#[test]
fn the_cost_follows_the_budget_and_not_the_file() {
    // A terabyte that is not there: every kilobyte is one message of 100 tokens.
    let mut line = Vec::new();
    Record::Message(&text(Role::User, &"x".repeat(1024 - 48), 100)).write(&mut line).unwrap();
    assert!(line.len() <= 1024, "{}", line.len());
    line.pop();
    line.resize(1023, b' ');
    line.push(b'\n');
    let total = Cell::new(0);
    let read = |buf: &mut [u8], at: u64| {
        total.set(total.get() + buf.len());
        for (offset, byte) in (at..).zip(buf) {
            *byte = line[(offset % 1024) as usize];
        }
        Ok(())
    };
    let tail = tail::load(1 << 40, &read, 4096, &bytes_by_four).unwrap();
    assert_eq!((tail.messages.len(), tail.tokens, tail.has_older), (40, 4000, true));
    assert!(total.get() <= 56 * 1024, "{} bytes were read", total.get());
}

#[test]
fn a_line_far_beyond_the_budget_is_not_held() {
    let largest = Cell::new(0);
    // 50 MB without a newline before one short message.
    let short = b"\n{\"role\":\"user\",\"content\":\"a\",\"tokens\":1}\n";
    let len = 50_000_000 + short.len() as u64;
    let fill = |byte: u8| {
        let largest = &largest;
        move |buf: &mut [u8], at: u64| {
            largest.set(largest.get().max(buf.len()));
            buf.fill(byte);
            let over = (at + buf.len() as u64).saturating_sub(50_000_000) as usize;
            let from = buf.len() - over;
            buf[from..].copy_from_slice(&short[short.len() - over..]);
            Ok(())
        }
    };
    let tail = tail::load(len, &fill(b'x'), 4096, &bytes_by_four).unwrap();
    assert_eq!((tail.messages.len(), tail.has_older, tail.damaged), (1, true, 0));
    assert!(largest.get() <= 4 << 20, "{}", largest.get());
    let tail = tail::load(len, &fill(0), 4096, &bytes_by_four).unwrap();
    assert_eq!((tail.messages.len(), tail.has_older, tail.damaged), (1, false, 1), "zeros are damage");
}

#[test]
fn damage_costs_the_lines_it_touches() {
    let test = TestSessions::new();
    let mut random = Random(42);
    let mut whole = Vec::new();
    for number in 0..20 {
        let message = match number % 4 {
            0 => text(Role::User, &format!("question {number}"), 3),
            1 => calls(&[&format!("c{number}")]),
            2 => result(&format!("c{}", number - 1)),
            _ => text(Role::Assistant, "answer", 2),
        };
        Record::Message(&message).write(&mut whole).unwrap();
    }
    let lines: HashSet<&[u8]> = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let file = fs::OpenOptions::new().create(true).append(true).open(test.path()).unwrap();
    for case in 0..10_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len());
            let size = 1 + random.below(60).min(bytes.len() - at - 1);
            match random.below(5) {
                0 => bytes[at..at + size].fill(0),
                1 => bytes[at] ^= 1 << random.below(8),
                2 => drop(bytes.drain(at..at + size)),
                3 => drop(bytes.splice(at..at, b"}{".iter().copied())),
                _ => {
                    let from = random.below(bytes.len() - size);
                    let copy = bytes[from..from + size].to_vec();
                    drop(bytes.splice(at..at, copy));
                }
            }
        }
        file.set_len(0).unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        let intact = bytes.split(|byte| *byte == b'\n').filter(|line| lines.contains(line)).count();
        let nonblank =
            bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
        let shown = test.sessions.transcript(&test.id).unwrap();
        assert!(shown.messages.len() >= intact, "case {case}");
        assert_eq!(shown.messages.len() + shown.damaged.len(), nonblank, "case {case}");
        let tail = load(&bytes, 1000);
        assert_valid(&tail, 1000);
        assert!(tail.has_older || tail.damaged == shown.damaged.len(), "case {case}");
    }
}

#[test]
fn every_budget_gives_a_valid_conversation() {
    let test = TestSessions::new();
    let conversation = [
        text(Role::Assistant, "from nowhere", 3),
        text(Role::User, "one", 5),
        calls(&["a", "b"]),
        result("a"),
        result("b"),
        text(Role::Assistant, "done", 4),
        text(Role::User, "two", 5),
        calls(&["c"]),
        text(Role::User, "three, after a cancel", 6),
        calls(&["d", "e"]),
        result("d"),
    ];
    append(&mut test.open(), &conversation);
    let log = test.open();
    let all = log.tail(u32::MAX, &|_| 7).unwrap();
    assert_eq!(shape(&all.messages), "u a(a,b) r(a) r(b) a u a(c) r(c)! u a(d,e) r(d) r(e)!");
    for budget in 0..=all.tokens + 1 {
        let tail = log.tail(budget, &|_| 7).unwrap();
        assert_valid(&tail, budget);
        assert_eq!(tail.messages, all.messages[all.messages.len() - tail.messages.len()..]);
    }
    assert_eq!(log.tail(0, &|_| 7).unwrap(), Tail { has_older: true, ..Tail::default() });
}

#[test]
fn calls_without_results_say_what_is_known() {
    let test = TestSessions::new();
    let mut log = test.open();
    append(&mut log, &[text(Role::User, "go", 1), calls(&["ran", "not"])]);
    log.append(&[Record::ToolStarted { call: &CallId::new("ran"), run: &RunId::new() }]).unwrap();
    let tail = log.tail(100, &bytes_by_four).unwrap();
    let output = |at: usize| tail.messages[at].tool_result.as_ref().unwrap().output.as_str();
    assert_eq!(output(2), "interrupted: it may have run; its outcome is unknown");
    assert_eq!(output(3), "cancelled before it ran");
}

#[test]
fn results_without_calls_and_out_of_place_are_put_right() {
    let started = HashSet::new();
    #[track_caller]
    fn check(messages: &[Message], started: &HashSet<CallId>, expected: &str) {
        assert_eq!(shape(&history_repair::repair_history(messages.to_vec(), started)), expected);
    }
    let user = || text(Role::User, "u", 1);
    check(&[result("x"), user(), result("y")], &started, "u");
    check(&[calls(&["a"]), result("a"), result("a")], &started, "a(a) r(a)");
    check(&[calls(&["a"]), user(), result("a"), calls(&["b"])], &started, "a(a) r(a) u a(b) r(b)!");
    check(&[calls(&["a", "a"]), result("a")], &started, "a(a,a) r(a) r(a)!");
    check(&[calls(&["a"]), calls(&["b"]), result("a"), result("b")], &started, "a(a) r(a)! a(b) r(b)");
    check(&[Message::text(Role::Tool, "no result"), user()], &started, "u");
}

#[test]
fn listing_knows_ids_agents_and_the_active_one() {
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
    assert!(matches!(resolve("aa"), Err(SessionError::Ambiguous { ids, .. }) if ids.len() == 2));
    for none in ["", "zz", "../x", "link"] {
        assert!(matches!(resolve(none), Err(SessionError::NotFound(_))), "{none}");
    }
}

#[test]
fn metadata_of_others_is_kept() {
    let test = TestSessions::new();
    test.open();
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
    test.open();
    let other: SessionId = "s.torn-1".parse().unwrap();
    test.sessions.open(&other).unwrap();
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
fn everything_is_for_this_user_only() {
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
