//! The beginning of a run: with its own prompt, or with that of the parked run that it goes on with.

use kontekst_core::{Message, RunId, SessionId};
use kontekst_store::{config::ParkMode, sessions::SessionLog};

use super::{
    history::stored_messages,
    parking::{self, Beginning, Parking},
    protocol::RunError,
    request::{History, Prompt, StartRun},
    run::EventSender,
    session::SessionSlot,
    shared::{Origin, Shared},
};

/// Loads the parked run that the request goes on with, if it names one, and puts its prompt and its messages into the
/// request. The slot is then that of its session.
pub(super) fn beginning(
    shared: &Shared,
    id: &RunId,
    request: &mut StartRun,
    origin: &Origin,
    slot: &mut SessionSlot,
) -> Result<Beginning, RunError> {
    let Some(resume) = request.resume.take() else {
        let stored = matches!(request.history, History::New | History::Session(_));
        let may_park = matches!(origin, Origin::Client) && shared.config.approvals.park == ParkMode::Headless;
        return Ok(Beginning::New(Parking::of_client(id, &slot.id, request, stored && may_park)));
    };
    let mut resumed = parking::load(&shared.parked, &resume, &shared.storage.sessions, id)?;
    if slot.id != resumed.parked.session {
        // The copy of the session is new, so nobody else uses it.
        slot.id = resumed.parked.session.clone();
        slot.guard = shared.open_sessions.locks.try_lock(&slot.id).ok();
    }
    request.history = History::Session(slot.id.clone());
    request.prompt = Prompt::Text(std::mem::take(&mut resumed.prompt));
    request.images = std::mem::take(&mut resumed.images);
    request.context.after_prompt = std::mem::take(&mut resumed.after_prompt);
    let all = request.overrides.max_turns.unwrap_or(shared.config.max_turns);
    request.overrides.max_turns = Some(all.saturating_sub(resumed.parked.turns).max(1));
    Ok(Beginning::Resumed(Box::new(resumed)))
}

/// Reads the newest messages before those of the run that fit in `budget` tokens.
pub(super) fn messages_before(
    shared: &Shared,
    log: &SessionLog,
    session: &SessionId,
    budget: u32,
    beginning: &Beginning,
    events: &EventSender,
) -> Result<Vec<Message>, RunError> {
    let room = beginning.with_own_tokens(budget);
    Ok(beginning.without_own(stored_messages(shared, log, session, room, events)?))
}

/// Returns the name under which a model server keeps what it has read. `None` for messages that the client provides.
pub(super) fn cache_key(history: &History, session: &SessionId) -> Option<SessionId> {
    (!matches!(history, History::Provided(_))).then(|| session.clone())
}
