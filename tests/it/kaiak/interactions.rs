//! Questions to the user: who may answer them, in which form, and until when.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{FIXED, MAIN, TestProject, approval, edit_call, frame};
use crate::fake_llama::Reply;

fn respond(interaction: &str, response_type: &str, data: &Value) -> Value {
    json!({"interaction_id": interaction, "response_type": response_type, "response_data": data})
}

const RESPOND: &str = "kaiak/interaction/respond";

#[test]
fn a_rejection_reaches_the_model() {
    let (project, mut editor, session) =
        TestProject::with_session([edit_call(), Reply::text("Then I leave it.")]);
    editor.generate(&session);
    let question = editor.next_interaction();
    let data = json!({"approved": false, "comment": "not in this release"});
    let answer = editor.result(RESPOND, &respond(&question, "approval", &data));
    assert_eq!(answer["status"], "processed");
    let done = editor.system_event("request_completed");
    assert_eq!((&done["status"], &done["summary"]["proposals_applied"]), (&json!("success"), &json!(0)));
    assert_eq!(project.read("src/main.rs"), MAIN);
    let result = project.model.chats()[1]["messages"][3]["content"].to_string();
    assert!(result.contains("not in this release"), "{result}");
}

#[test]
fn a_decision_of_another_client_answers_the_question() {
    for (words, event, status, completion, text) in [
        (["approvals", "approve", "--all"], "proposal_applied", "applied", "success", FIXED),
        (["approvals", "deny", "--all"], "proposal_rejected", "discarded", "cancelled", MAIN),
    ] {
        let (project, mut editor, session) = TestProject::with_session([edit_call(), Reply::text("ok")]);
        editor.generate(&session);
        let question = editor.next_interaction();
        project.home.run(&words).success();
        assert_eq!(editor.system_event(event)["status"], status);
        assert_eq!(editor.completion_status(), completion);
        assert_eq!(project.read("src/main.rs"), text);
        let late = editor.approve(&question, true);
        assert!(late["error"].is_object(), "{late}");
    }
}

#[test]
fn an_invalid_response_leaves_the_question_open() {
    let (project, mut editor, session) = TestProject::with_session([edit_call(), Reply::text("ok")]);
    editor.generate(&session);
    let question = editor.next_interaction();
    for (response_type, data) in [
        ("approval", json!({"approved": "yes"})),
        ("approval", json!({})),
        ("choice", json!({"selected_indices": [0]})),
        ("rejection", json!({"approved": false})),
    ] {
        editor.error(RESPOND, &respond(&question, response_type, &data), -32011);
    }
    editor.error(RESPOND, &json!({"interaction_id": question, "response_type": "approval"}), -32602);
    editor.error(RESPOND, &json!({"response_type": "approval", "response_data": {}}), -32602);
    editor.error(RESPOND, &approval("int-none", true), -32009);
    assert_eq!(editor.approve(&question, true)["result"]["status"], "processed");
    assert_eq!(project.read("src/main.rs"), FIXED);
}

#[test]
fn the_model_can_ask_for_a_choice_and_for_text() {
    let ask = |arguments| Reply::calls([("ask_user", arguments)]);
    let (project, mut editor, session) = TestProject::with_session([
        ask(json!({"question": "Which ones?", "options": ["a", "b", "c"], "multiple": true})),
        ask(json!({"question": "Which name?"})),
        Reply::text("Thank you."),
    ]);
    editor.generate(&session);
    let choice = editor.notification("user_interaction");
    assert_eq!(choice["content"]["options"], json!(["a", "b", "c"]));
    assert_eq!(
        (&choice["content"]["interaction_type"], &choice["content"]["prompt"]),
        (&json!("choice"), &json!("Which ones?"))
    );
    let id = choice["interaction_id"].as_str().unwrap();
    for wrong in [json!([9]), json!([-1]), json!([0, 0]), json!([1.5])] {
        editor.error(RESPOND, &respond(id, "choice", &json!({"selected_indices": wrong})), -32011);
    }
    editor.result(RESPOND, &respond(id, "choice", &json!({"selected_indices": [0, 2]})));
    let input = editor.notification("user_interaction");
    assert_eq!(input["content"]["interaction_type"], "input");
    let id = input["interaction_id"].as_str().unwrap();
    editor.error(RESPOND, &respond(id, "input", &json!({"text": 5})), -32011);
    editor.result(RESPOND, &respond(id, "input", &json!({"text": "new_name"})));
    assert_eq!(editor.completion_status(), "success");
    let chats = project.model.chats();
    assert!(chats[1]["messages"][3]["content"].to_string().contains("a; c"));
    assert!(chats[2]["messages"][5]["content"].to_string().contains("new_name"));
}

#[test]
fn an_unanswered_question_is_denied() {
    let ask = Reply::calls([("ask_user", json!({"question": "Well?"}))]);
    let project = TestProject::with_config(
        [edit_call(), ask, Reply::text("Nobody is there.")],
        "[kaiak]\napproval_timeout_seconds = 1\n",
    );
    let mut editor = project.editor();
    let session = editor.create(&project);
    editor.generate(&session);
    let question = editor.notification("user_interaction");
    assert_eq!(question["content"]["timeout"], 1);
    let question = question["interaction_id"].as_str().unwrap().to_owned();
    let expired = editor.system_event("interaction_timeout");
    assert_eq!(expired["status"], "timeout_processed");
    assert_eq!(
        expired["summary"],
        json!({"interaction_id": question, "default_action": "deny", "interaction_type": "approval"})
    );
    let late = editor.approve(&question, true);
    assert_eq!(
        (&late["error"]["code"], &late["error"]["data"]["status"]),
        (&json!(-32010), &json!("expired"))
    );
    assert_eq!(editor.system_event("interaction_timeout")["summary"]["default_action"], "cancel");
    assert_eq!(editor.completion_status(), "success");
    assert_eq!(project.read("src/main.rs"), MAIN);
    let result = project.model.chats()[1]["messages"][3]["content"].to_string();
    assert!(result.contains("did not answer in time"), "{result}");
}

#[test]
fn answers_are_not_rate_limited() {
    let (_project, mut editor) = TestProject::with_editor([]);
    let all: Vec<u8> = (0..1000)
        .flat_map(|id| {
            let params = approval("int-none", true);
            frame(&json!({"jsonrpc": "2.0", "id": id, "method": RESPOND, "params": params}).to_string())
        })
        .collect();
    editor.write(&all);
    let ids: HashSet<u64> = (0..1000)
        .map(|_| {
            let frame = editor.frame();
            assert_eq!(frame["error"]["code"], -32009);
            frame["id"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(ids.len(), 1000);
}

#[test]
fn questions_of_a_cancelled_request_cannot_be_approved() {
    let (project, mut editor) = TestProject::with_editor([edit_call(), edit_call()]);
    let session = editor.create(&project);
    let request = editor.generate(&session);
    let question = editor.next_interaction();
    editor.result("kaiak/fix/cancel", &json!({"request_id": request}));
    let late = editor.approve(&question, true);
    assert_eq!(
        (&late["error"]["code"], &late["error"]["data"]["status"]),
        (&json!(-32010), &json!("cancelled"))
    );

    editor.generate(&session);
    let question = editor.next_interaction();
    editor.result("kaiak/session/terminate", &json!({"session_id": session}));
    assert_eq!(editor.approve(&question, true)["error"]["code"], -32010);
    assert_eq!(project.read("src/main.rs"), MAIN);
}

#[test]
fn a_disconnected_editor_approves_nothing() {
    let (project, mut editor, session) =
        TestProject::with_session([edit_call(), edit_call(), Reply::text("ok")]);
    editor.generate(&session);
    let question = editor.next_interaction();
    assert_eq!(editor.close(), (0, String::new()));
    let mut editor = project.editor();
    assert_eq!(editor.approve(&question, true)["error"]["code"], -32010);
    assert_eq!(project.read("src/main.rs"), MAIN);
    // The session still exists.
    editor.generate(&session);
    let question = editor.next_interaction();
    // Another connection of this user may answer. Notifications still go to the one that started the request.
    let mut other = project.editor();
    assert_eq!(other.approve(&question, true)["result"]["status"], "processed");
    assert_eq!(project.read("src/main.rs"), FIXED);
    assert_eq!(editor.completion_status(), "success");
    assert!(other.unread.is_empty());
}
