//! The state of the model server, asked once for all who want to know it at the same time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::watch;

use kontekst_core::{Mutex, blocking_apart};
use kontekst_provider::{Models, ServerStatus};

/// The time for which an answer counts as new. It only has to be long enough that a crowd of clients does not become a
/// crowd of questions to the model server.
const FRESH: Duration = Duration::from_millis(50);

/// Asks for the state of the model server, with one question at a time.
#[derive(Default)]
pub(crate) struct ServerStatusCache {
    latest: Mutex<Option<Question>>,
}

/// A question to the model server, and its answer once there is one.
struct Question {
    answer: watch::Receiver<Option<Answer>>,
}

#[derive(Clone)]
struct Answer {
    status: ServerStatus,
    at: Instant,
}

impl ServerStatusCache {
    /// Returns the state of the model server. It is at most [`FRESH`] older than the question that brought it, and that
    /// question may have been asked by somebody else. Takes up to two seconds if the server does not answer, no matter
    /// how many runs wait for a thread.
    pub(crate) async fn status(&self, models: &Arc<dyn Models>) -> ServerStatus {
        let mut answer = self.answer(models);
        let answered = answer.wait_for(Option::is_some).await;
        // The question has panicked, or there was no thread for it.
        answered.ok().and_then(|answer| answer.clone()).map(|answer| answer.status).unwrap_or_default()
    }

    /// Joins the question that is being asked, or asks a new one.
    fn answer(&self, models: &Arc<dyn Models>) -> watch::Receiver<Option<Answer>> {
        let mut latest = self.latest.lock();
        if let Some(question) = latest.as_ref().filter(|question| question.is_useful()) {
            return question.answer.clone();
        }
        let (sender, answer) = watch::channel(None);
        let models = Arc::clone(models);
        blocking_apart("status", move || {
            let status = models.status();
            sender.send_replace(Some(Answer { status, at: Instant::now() }));
        });
        *latest = Some(Question { answer: answer.clone() });
        answer
    }
}

impl Question {
    fn is_useful(&self) -> bool {
        match &*self.answer.borrow() {
            Some(answer) => answer.at.elapsed() < FRESH,
            // Without a sender, there will be no answer.
            None => self.answer.has_changed().is_ok(),
        }
    }
}
