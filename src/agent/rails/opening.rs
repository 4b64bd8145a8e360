//! The opening: the listing of the working directory and the files that the prompt names come with the prompt.

use super::change_request::{asks_about_data, last_paragraph};
use crate::{
    agent::{model::RunModel, protocol::Event, run::EventSender, toolset::RunTools},
    core::Message,
    tools::builtin::opening,
};

/// The opening takes at most this share of the window, and at most this many bytes of a large one.
const SHARE: u32 = 4;
const MAX_BYTES: usize = 32 * 1024;

/// The bytes of a token, estimated low, because code has short tokens.
const BYTES_PER_TOKEN: u32 = 3;

/// Puts the opening before the prompt, if it is worth its tokens: the prompt names a file that exists, or it asks for a
/// change, or the model works in steps, as small models do, and the prompt is no question about its own data. `text` is
/// what the user wrote, `window` is in tokens. Tells the client what was read.
pub(in crate::agent) fn add_opening(
    prompt: &mut Message,
    text: &str,
    asks_for_change: bool,
    window: u32,
    model: &RunModel,
    tools: &RunTools,
    events: &EventSender,
) {
    if !model.agent.rails.opening || !tools.can_read_files() {
        return;
    }
    let max_bytes = MAX_BYTES.min((window / SHARE * BYTES_PER_TOKEN) as usize);
    // The names in data from stdin are not the user's.
    let instruction = last_paragraph(text);
    let Some(opening) = opening(&tools.work_dir, instruction, max_bytes, events.cancel()) else { return };
    let is_small = model.provider.works_in_steps(model.agent.tool_role) && !asks_about_data(text);
    if !asks_for_change && !is_small && opening.read.is_empty() {
        return;
    }
    prompt.add_context(&opening.text);
    let mut notice = format!("opening: listed {} file(s)", opening.listed);
    if !opening.read.is_empty() {
        notice.push_str(&format!(", read {}", opening.read.join(", ")));
    }
    events.send_blocking(Event::Notice(notice));
}
