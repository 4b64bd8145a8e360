//! Proposals: what is shown is what is written, and nothing else ever is.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use serde_json::json;

use super::*;

#[test]
fn a_change_is_proposed_approved_written_and_announced() {
    let room = Room::new([edit(), Reply::text("Done, the method is new.")]);
    fs::set_permissions(room.path("src/main.rs"), fs::Permissions::from_mode(0o640)).unwrap();
    let mut editor = room.editor();
    let session = editor.create(&room);
    let request = editor.generate(&session);
    let proposed = editor.told("file_modification");
    let asked = editor.told("user_interaction");
    assert_eq!((&proposed["session_id"], &proposed["request_id"]), (&json!(session), &json!(request)));
    let content = &proposed["content"];
    assert_eq!((&content["file_path"], &content["change_type"]), (&json!("src/main.rs"), &json!("edit")));
    assert_eq!((&content["original_content"], &content["proposed_content"]), (&json!(MAIN), &json!(FIXED)));
    assert!(proposed["proposal_id"].as_str().unwrap().strip_prefix("prop-").is_some_and(is_uuid));
    assert_eq!(asked["content"]["proposal_id"], proposed["proposal_id"]);
    assert_eq!(
        (&asked["content"]["interaction_type"], &asked["content"]["timeout"]),
        (&json!("approval"), &json!(300))
    );
    let interaction = asked["interaction_id"].as_str().unwrap();
    assert!(interaction.strip_prefix("int-").is_some_and(is_uuid));
    assert_eq!(room.read("src/main.rs"), MAIN);

    let answer = editor.approve(interaction, true);
    assert_eq!(
        (&answer["result"]["interaction_id"], &answer["result"]["status"]),
        (&json!(interaction), &json!("processed"))
    );
    assert_time(&answer["result"]["responded_at"]);
    assert_eq!(room.read("src/main.rs"), FIXED);
    assert_eq!(fs::metadata(room.path("src/main.rs")).unwrap().permissions().mode() & 0o777, 0o640);
    let applied = editor.system("proposal_applied");
    assert_eq!(applied["summary"]["proposal_id"], proposed["proposal_id"]);
    let done = editor.system("request_completed");
    assert_eq!(done["status"], "success");
    let summary = &done["summary"];
    assert_eq!(
        (&summary["incidents_processed"], &summary["proposals_generated"], &summary["user_interactions"]),
        (&json!(1), &json!(1), &json!(1))
    );

    // Whoever answers again changes nothing.
    for again in [true, false] {
        let answer = editor.approve(interaction, again);
        assert_eq!(answer["error"]["code"], -32010, "{answer}");
    }
    assert_eq!(room.read("src/main.rs"), FIXED);
    let terminated = editor.result("kaiak/session/terminate", &json!({"session_id": session}));
    assert_eq!(terminated["status"], "terminated");
    room.model.assert_clean();
}
