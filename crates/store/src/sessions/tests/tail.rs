//! Loading the newest part of a conversation, with damaged lines and for every budget.

use std::{cell::Cell, collections::HashSet, os::unix::fs::FileExt as _};

use kontekst_core::RunId;

use super::{
    super::{
        backward::{Backward, RawLine},
        history_repair,
        record::MAX_LINE,
        tail,
    },
    *,
};

use crate::hostile_input::{Random, rounds};

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
                // The newline falls on a block boundary, counted from the start or the end of the file.
                let mut line = Vec::new();
                Record::Message(&message(7)).write(&mut line).unwrap();
                let over = (file.len() + line.len() + random.below(2)) % 8192;
                size = 7 + (8192 - over) / 7 * 7;
            }
            Record::Message(&message(size)).write(file).unwrap();
        }
    }
}

/// Loads a tail by the same rules, but in the simplest way and without blocks.
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
fn a_tail_equals_the_result_of_a_naive_reader() {
    let mut random = Random::new(0x5eed);
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
fn lines_of_any_length_are_read_backwards() {
    let mut random = Random::new(7);
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
fn the_cost_depends_on_the_budget_and_not_on_the_file_size() {
    // This simulates a file of a terabyte, in which every kilobyte is one message of 100 tokens.
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
fn a_line_far_beyond_the_budget_is_not_held_in_memory() {
    let largest = Cell::new(0);
    // The file has 50 MB without a newline before one short message.
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
fn damage_affects_only_the_lines_it_touches() {
    let test = TestSessions::new();
    let mut random = Random::new(42);
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
    for case in 0..rounds(2000, 10_000) {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len());
            let size = 1 + random.below(60).min(bytes.len() - at - 1);
            match random.below(5) {
                0 => bytes[at..at + size].fill(0),
                1 => bytes[at] ^= random.byte(),
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

/// Each flipped bit damages at most the line that it is in, or the two that it joins, and no byte is lost.
#[test]
fn a_flipped_bit_loses_no_undamaged_record() {
    let test = TestSessions::new();
    let mut random = Random::new(5);
    let mut whole = Vec::new();
    for number in 0..9 {
        let role = [Role::User, Role::Assistant][number % 2];
        Record::Message(&text(role, &format!("message {number} \u{e9}\n"), 4)).write(&mut whole).unwrap();
    }
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    for _ in 0..rounds(1000, 5000) {
        let (at, bit) = (random.below(whole.len()), random.below(8));
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        test.write(&bytes);
        let mut log = test.open();
        append(&mut log, &[text(Role::User, "after", 2)]);
        drop(log);
        let shown = test.sessions.transcript(&test.id).unwrap();
        let contents: Vec<&str> = shown.messages.iter().map(|message| &*message.content).collect();
        let mut start = 0;
        for (number, line) in lines.iter().enumerate() {
            // The line is undamaged if neither it nor the newline before it was hit.
            let is_hit = (start..start + line.len()).contains(&at) || (start > 0 && start - 1 == at);
            let content = format!("message {number} \u{e9}\n");
            assert!(is_hit || contents.contains(&&*content), "byte {at} bit {bit}: {content}");
            start += line.len();
        }
        assert_eq!(contents.last(), Some(&"after"), "byte {at} bit {bit}");
        let files = test.files();
        let kept: usize =
            files.iter().map(|name| fs::read(test.home.sessions().join(name)).unwrap().len()).sum();
        assert!(kept >= whole.len(), "byte {at} bit {bit}: {kept} bytes are left");
        for name in files {
            fs::remove_file(test.home.sessions().join(name)).unwrap();
        }
    }
}

#[test]
fn a_stored_count_that_cannot_be_true_hides_nothing() {
    let test = TestSessions::new();
    let mut log = test.open();
    append(&mut log, &[text(Role::User, "old", 1), text(Role::Assistant, "answer", u32::MAX)]);
    append(&mut log, &[text(Role::User, "new", 3_000_000), text(Role::Assistant, "done", 1)]);
    let tail = log.tail(4096, &bytes_by_four).unwrap();
    assert_eq!((shape(&tail.messages).as_str(), tail.has_older, tail.tokens), ("u a u a", false, 4));
    let run = RunId::new();
    log.append(&[Record::Compacted { summary: "we talked", tokens: u32::MAX, run: &run }]).unwrap();
    append(&mut log, &[text(Role::User, "next", 1)]);
    let tail = log.tail(4096, &bytes_by_four).unwrap();
    assert_eq!((tail.messages.len(), tail.has_older), (3, false), "the summary is part of the conversation");
    assert!(tail.messages[0].content.contains("we talked"));
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
fn misplaced_results_are_moved_and_orphans_removed() {
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
