//! `kontekst.UndoService`.

use std::path::{Path, PathBuf};

use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Request, Response, Status};

use kontekst_agent::{self as agent, AgentCore, UndoError};
use kontekst_core::error_chain;
use kontekst_pb::{
    ChangedCall, ChangedRun, ListChangedRunsRequest, ListChangedRunsResponse, MESSAGE_LIMIT, PlannedPath,
    UndoPlan, UndoPlanPart, UndoRequest, UndoTarget, UndonePath,
    undo_service_server::{UndoService, UndoServiceServer},
    undo_target::Target,
};
use kontekst_store::journal::{EntryHead, JournalError};
use kontekst_tools::{RestoreResult, Restored, UndoStep};

/// The most bytes of previews in one plan. Further files are named without one.
const MAX_PREVIEWS: usize = 4 << 20;

/// The paths in one part of a plan.
const IN_PART: usize = 1000;

/// Serves undo.
pub struct UndoDoor {
    core: AgentCore,
}

impl UndoDoor {
    pub fn service(core: AgentCore) -> UndoServiceServer<Self> {
        UndoServiceServer::new(Self { core }).max_encoding_message_size(MESSAGE_LIMIT)
    }
}

#[tonic::async_trait]
impl UndoService for UndoDoor {
    type PlanUndoInPartsStream = UnboundedReceiverStream<Result<UndoPlanPart, Status>>;
    type UndoStream = UnboundedReceiverStream<Result<UndonePath, Status>>;

    async fn list_changed_runs(
        &self,
        request: Request<ListChangedRunsRequest>,
    ) -> Result<Response<ListChangedRunsResponse>, Status> {
        let ListChangedRunsRequest { dir, run_id } = request.into_inner();
        let runs = if run_id.is_empty() {
            let dir = Some(dir).filter(|dir| !dir.is_empty()).map(PathBuf::from);
            self.core.changed_runs(dir).await.map_err(|error| status(&error))?
        } else {
            let run =
                run_id.parse().map_err(|_| Status::invalid_argument("run_id is not the id of a run"))?;
            self.core.changed_by(run).await.map_err(|error| status(&error))?.into_iter().collect()
        };
        Ok(Response::new(ListChangedRunsResponse { runs: runs.into_iter().map(changed_run).collect() }))
    }

    async fn plan_undo(&self, request: Request<UndoTarget>) -> Result<Response<UndoPlan>, Status> {
        let target = target(Some(request.into_inner()))?;
        let planned = self.core.plan_undo(target, |_, _| {}).await.map_err(|error| status(&error))?;
        Ok(Response::new(undo_plan(planned)))
    }

    async fn plan_undo_in_parts(
        &self,
        request: Request<UndoTarget>,
    ) -> Result<Response<Self::PlanUndoInPartsStream>, Status> {
        let target = target(Some(request.into_inner()))?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let core = self.core.clone();
        tokio::spawn(async move {
            let progress = {
                let sender = sender.clone();
                let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
                // Fails only if the client has left.
                move |looked_at, total| drop(sender.send(Ok(progress(count(looked_at), count(total)))))
            };
            match core.plan_undo(target, progress).await {
                Ok(planned) => parts(undo_plan(planned)).for_each(|part| drop(sender.send(Ok(part)))),
                Err(error) => drop(sender.send(Err(status(&error)))),
            }
        });
        Ok(Response::new(UnboundedReceiverStream::new(receiver)))
    }

    async fn undo(&self, request: Request<UndoRequest>) -> Result<Response<Self::UndoStream>, Status> {
        let UndoRequest { target: wanted, token } = request.into_inner();
        let target = target(wanted)?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let core = self.core.clone();
        // The work goes on if the client leaves, because half an undo helps nobody.
        tokio::spawn(async move {
            let report = {
                let sender = sender.clone();
                move |restored| drop(sender.send(Ok(undone_path(restored))))
            };
            if let Err(error) = core.undo(target, token, report).await {
                sender.send(Err(status(&error))).ok(); // fails only if the client has left
            }
        });
        Ok(Response::new(UnboundedReceiverStream::new(receiver)))
    }
}

fn progress(looked_at: i64, total: i64) -> UndoPlanPart {
    UndoPlanPart { looked_at, total, plan: None }
}

/// Cuts a plan, which may have more paths than one message.
fn parts(mut plan: UndoPlan) -> impl Iterator<Item = UndoPlanPart> {
    let mut paths = std::mem::take(&mut plan.paths).into_iter();
    let mut last = Some(plan);
    std::iter::from_fn(move || {
        let paths: Vec<PlannedPath> = paths.by_ref().take(IN_PART).collect();
        let rest = if paths.len() < IN_PART { last.take()? } else { UndoPlan::default() };
        Some(UndoPlanPart { plan: Some(UndoPlan { paths, ..rest }), ..UndoPlanPart::default() })
    })
}

fn undo_plan(planned: agent::PlannedUndo) -> UndoPlan {
    let token = planned.plan.token();
    let mut left = MAX_PREVIEWS;
    let paths = planned.plan.files.into_iter().map(|file| {
        let (preview, refused) = match file.step {
            UndoStep::Restore { preview, .. } if preview.len() <= left => {
                left -= preview.len();
                (preview, String::new())
            }
            UndoStep::Restore { preview, .. } => {
                (preview.lines().next().unwrap_or_default().to_owned() + "\n", String::new())
            }
            UndoStep::Refuse(reason) => (String::new(), reason),
        };
        PlannedPath { path: text(&file.path), preview, refused }
    });
    UndoPlan {
        paths: paths.collect(),
        run: Some(head(&planned.head)),
        call_id: planned.call.unwrap_or_default(),
        token,
        passed_over_unrecorded: planned.passed_over.as_ref().is_some_and(|passed| passed.has_unrecorded),
        passed_over: planned.passed_over.map(|passed| head(&passed.head)),
    }
}

fn target(target: Option<UndoTarget>) -> Result<agent::UndoTarget, Status> {
    match target.and_then(|target| target.target) {
        Some(Target::LastIn(dir)) if Path::new(&dir).is_absolute() => Ok(agent::UndoTarget::Last(dir.into())),
        Some(Target::LastIn(_)) => Err(Status::invalid_argument("last_in is not an absolute path")),
        Some(Target::RunId(run)) => Ok(agent::UndoTarget::Run(run)),
        Some(Target::CallId(call)) => Ok(agent::UndoTarget::Call(call)),
        None => Err(Status::invalid_argument("there is no target")),
    }
}

fn changed_run(run: agent::ChangedRun) -> ChangedRun {
    let agent::ChangedRun { head: of, calls, files, undone_by } = run;
    let calls = calls.into_iter().map(|call| ChangedCall {
        call_id: call.id,
        tool: call.tool,
        paths: call.paths.iter().map(|path| text(path)).collect(),
    });
    ChangedRun {
        files: i32::try_from(files).unwrap_or(i32::MAX),
        calls: calls.collect(),
        undone_by: undone_by.map(|run| run.to_string()).unwrap_or_default(),
        ..head(&of)
    }
}

fn head(head: &EntryHead) -> ChangedRun {
    ChangedRun {
        run_id: head.run.to_string(),
        dir: text(&head.dir),
        at_unix_ms: i64::try_from(head.at).unwrap_or(i64::MAX),
        words: head.words.clone(),
        undoes_run_id: head.undoes.as_ref().map(|undoes| undoes.run.to_string()).unwrap_or_default(),
        ..ChangedRun::default()
    }
}

fn undone_path(restored: Restored) -> UndonePath {
    let path = text(&restored.path);
    match restored.result {
        RestoreResult::Done => UndonePath { path, ..UndonePath::default() },
        RestoreResult::Kept => UndonePath { path, kept: true, ..UndonePath::default() },
        RestoreResult::Refused(refused) => UndonePath { path, refused, kept: false },
    }
}

fn text(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
}

fn status(error: &UndoError) -> Status {
    let message = error_chain(error);
    match error {
        UndoError::Nothing(_) | UndoError::NoCall(_) | UndoError::Journal(JournalError::NotFound(_)) => {
            Status::not_found(message)
        }
        UndoError::AmbiguousCall(_) | UndoError::Journal(JournalError::Ambiguous { .. }) => {
            Status::invalid_argument(message)
        }
        UndoError::OtherDirectory(_)
        | UndoError::WorkDir(_)
        | UndoError::Journal(JournalError::NotCompared(_)) => Status::failed_precondition(message),
        UndoError::Active(_) | UndoError::Undoing | UndoError::Stale => Status::aborted(message),
        UndoError::Journal(JournalError::Damaged { .. } | JournalError::WrongContent { .. }) => {
            Status::data_loss(message)
        }
        UndoError::Journal(JournalError::Home(_) | JournalError::Path(_))
        | UndoError::NotSynced(_)
        | UndoError::Panicked(_) => Status::internal(message),
    }
}
