//! Typing while an answer is printed.

use serde_json::json;

use super::{PROMPT, chat, exchange, leave, user_texts};
use crate::{
    fake_llama::{FakeLlama, Gate, GateKey, Reply, gate},
    pseudo_terminal::{TerminalCommand, rows_of},
    test_home::TestHome,
};

/// The line editor writes it before it draws its line.
const BEGINNING_OF_UPDATE: &str = "\x1b[?2026h";

/// Starts a chat with Markdown and colours on a terminal of this width.
fn wide_chat(home: &TestHome, columns: u16) -> TerminalCommand {
    let mut chat = home.on_terminal_with(&["chat"], columns, &[("TERM", "xterm")]);
    chat.wait_for("/help");
    chat.wait_for(PROMPT);
    chat
}

fn gates(count: usize) -> (Vec<Gate>, impl Iterator<Item = GateKey>) {
    let (gates, keys): (Vec<_>, Vec<_>) = (0..count).map(|_| gate()).unzip();
    (gates, keys.into_iter())
}

/// Leaves the chat and returns the rows on the terminal below the first line, without blanks at their ends.
#[track_caller]
fn rows_at_end(mut chat: TerminalCommand, columns: u16) -> Vec<String> {
    chat.type_keys("\x15\x04");
    let screen = chat.ends_with(0);
    let rows = rows_of(&screen, columns);
    let header = rows.iter().position(|row| row.ends_with("/help") || row.ends_with("help")).unwrap();
    rows[header + 1..].iter().map(|row| row.trim_end().to_owned()).collect()
}

#[test]
fn it_is_shown_and_the_answer_stays_whole() {
    for columns in [40, 200] {
        let (gates, mut keys) = gates(4);
        let [first, second, third, fourth] = <[Gate; 4]>::try_from(gates).unwrap_or_else(|_| panic!());
        let (model, home) = TestHome::with_model([Reply::text("")
            .then_wait(first)
            .then_text("The first li")
            .then_text("ne is ")
            .then_wait(second)
            .then_text("short.\n\nThe sec")
            .then_wait(third)
            .then_text("ond\n\nThe third")
            .then_wait(fourth)
            .then_text(" ends.")]);
        let mut chat = wide_chat(&home, columns);
        chat.type_keys("one\r");
        model.wait_for_chats(1);
        // In place of the line that says what the answer waits for.
        chat.type_keys("日本語\x7f no");
        chat.wait_for("\x1b[0m日本 no");
        chat.type_keys("\x15");
        keys.next().unwrap().open();
        chat.wait_for("The first line");
        // Below a line that has begun.
        chat.type_keys("ty");
        chat.wait_for("\x1b[0mty");
        keys.next().unwrap().open();
        chat.wait_for("The first line is short.");
        chat.wait_for("\x1b[0mty");
        chat.type_keys("ped\x7f\x7f\x7fx\n");
        chat.wait_for("\x1b[0mtyx\\n");
        keys.next().unwrap().open();
        chat.wait_for("The second");
        // Without it the beginning of the line comes at once.
        chat.type_keys("\x15");
        chat.wait_for("The");
        chat.type_keys("last 日本");
        chat.wait_for("\x1b[0mlast 日本");
        keys.next().unwrap().open();
        chat.wait_for("The third ends.");
        // The line editor goes on with it.
        chat.wait_for(BEGINNING_OF_UPDATE);
        chat.wait_for("last 日本");
        chat.type_keys("!");
        chat.wait_for("!");
        let rows = rows_at_end(chat, columns);
        let expect = ["> one", "The first line is short.", "", "The second", "", "The third ends.", ">"]
            .map(str::to_owned);
        assert_eq!(rows, expect, "{columns}");
        assert_eq!(model.chats().len(), 1);
    }
}

#[test]
fn prompts_that_were_sent_follow_one_after_the_other() {
    let (gate, key) = gate();
    let (model, home) = TestHome::with_model([
        Reply::text("").then_wait(gate).then_text("the answer"),
        Reply::text("the next answer"),
        Reply::text("the last answer"),
    ]);
    let mut chat = chat(&home, &[]);
    chat.type_keys("one\r");
    model.wait_for_chats(1);
    // Ctrl-\\ does not end the chat.
    chat.type_keys("\x1ctyped early\rand thiss\r\x7f\x7f\rdraft");
    chat.wait_for("> typed early⏎ and this⏎ draft");
    key.open();
    for expect in
        ["the answer", "\x1b[K> typed early\r\n", "the next answer", "> and this\r\n", "the last answer"]
    {
        chat.wait_for(expect);
    }
    chat.wait_for("> draft");
    chat.type_keys("\x15/exit\r");
    assert_eq!(chat.end().0, 0);
    assert_eq!(user_texts(&model.chats()[2]), ["one", "typed early", "and this"]);
    let history = home.read("chat_history");
    assert!(history.contains("typed early\n") && history.contains("and this\n"), "{history}");
}

#[test]
fn a_text_that_is_pasted_stays_one_prompt() {
    let (gate, key) = gate();
    let (model, home) = TestHome::with_model([
        Reply::text("").then_wait(gate).then_text("the answer"),
        Reply::text("the next answer"),
    ]);
    let mut chat = chat(&home, &[]);
    chat.type_keys("one\r");
    model.wait_for_chats(1);
    chat.type_keys("\x1b[200~first line\rsecond line\r");
    chat.wait_for("> first line\\nsecond line\\n");
    // Its end comes after the end of the answer.
    key.open();
    chat.wait_for("the answer");
    chat.type_keys("third line\x1b[201~");
    chat.wait_for("third line");
    exchange(&mut chat, "\r", "the next answer");
    leave(chat);
    assert_eq!(user_texts(&model.chats()[1])[1], "first line\nsecond line\nthird line");
}

#[test]
fn ctrl_c_keeps_it_and_sends_nothing() {
    let (model, home) = TestHome::with_model([Reply::text("").then_hang(), Reply::text("the next answer")]);
    let mut chat = chat(&home, &[]);
    chat.type_keys("one\r");
    model.wait_for_chats(1);
    chat.type_keys("two\rthree");
    chat.wait_for("> two⏎ three");
    chat.type_keys("\x03");
    chat.wait_for("stopped");
    chat.wait_for("three");
    exchange(&mut chat, "\r", "the next answer");
    leave(chat);
    // The prompt without an answer comes before it.
    let texts = user_texts(&model.chats()[1]);
    assert!(texts.last().unwrap().ends_with("\n\ntwo\nthree"), "{texts:?}");
}

#[test]
fn a_question_does_not_take_it_for_an_answer() {
    let (gate, key) = gate();
    let call = Reply::text("")
        .then_wait(gate)
        .then_calls([("write_file", json!({"path": "a.txt", "content": "x\n"}))]);
    let model =
        FakeLlama::start([call.finish("tool_calls"), Reply::text("written"), Reply::text("the next answer")]);
    let home = TestHome::new(&model.url());
    let mut chat = chat(&home, &[]);
    chat.type_keys("write it\r");
    model.wait_for_chats(1);
    chat.type_keys("yes");
    chat.wait_for("> yes");
    key.open();
    chat.wait_for("or type a reason to refuse: ");
    chat.type_keys("y\n");
    chat.wait_for("written");
    chat.wait_for("> yes");
    exchange(&mut chat, " and no\r", "the next answer");
    leave(chat);
    assert_eq!(user_texts(&model.chats()[2])[1], "yes and no");
}

#[test]
fn no_line_of_an_answer_is_lost_or_doubled_by_it() {
    let lines: Vec<String> =
        (0..400).map(|number| format!("{number} {}", "日本 w".repeat(number % 23))).collect();
    for (columns, variables) in
        [40, 200].into_iter().flat_map(|columns| [(columns, ("TERM", "xterm")), (columns, ("NO_COLOR", "1"))])
    {
        let (gates, mut keys) = gates(40);
        let mut reply = Reply::text("");
        for (part, gate) in lines.chunks(10).zip(gates) {
            // The parts end within words and lines.
            let text: String = part.iter().map(|line| format!("- {line}\n")).collect();
            let middle = text.floor_char_boundary(text.len() * 2 / 3);
            reply = reply.then_text(&text[..middle]).then_wait(gate).then_text(&text[middle..]);
        }
        let (model, home) = TestHome::with_model([reply]);
        let mut chat = home.on_terminal_with(&["chat"], columns, &[("TERM", "xterm"), variables]);
        chat.wait_for("/help");
        chat.wait_for(PROMPT);
        chat.type_keys("go\r");
        model.wait_for_chats(1);
        let mut typed = String::new();
        for number in 0..40 {
            let text = format!("{number}語");
            chat.type_keys(&text);
            chat.wait_for(&text);
            typed.push_str(&text);
            // Now and then the text is taken away, so that the beginning of a line is shown.
            if number % 3 == 0 {
                chat.type_keys("\x15");
                typed.clear();
            }
            keys.next().unwrap().open();
        }
        chat.wait_for("399");
        // The line editor has it.
        chat.wait_for(BEGINNING_OF_UPDATE);
        chat.wait_for(&typed);
        let rows = rows_at_end(chat, columns);
        // Lines are broken in other places than those where the model did it.
        let letters =
            |text: &str| text.chars().filter(|c| !c.is_whitespace() && !"•-".contains(*c)).collect();
        let shown: String = letters(&rows[1..rows.len() - 1].concat());
        let expect: String = letters(&lines.concat());
        assert_eq!((&*rows[0], rows.last().map(String::as_str)), ("> go", Some(">")));
        assert_eq!(shown, expect, "{columns} {variables:?}");
    }
}
