//! The end of a daemon that a command has started and that nobody uses any more.

use std::time::Duration;

use kontekst_agent::AgentCore;
use kontekst_core::Cancel;
use kontekst_grpc::IdleExit;
use kontekst_jobs::JobTimer;
use kontekst_store::config::{Bind, Config};

use super::{Mode, open_connections::OpenConnections};

/// Returns when a daemon exits that is idle.
///
/// It does not where nothing would start it again when it is needed, and not before its model is unloaded.
pub(super) fn rule(mode: Mode, config: &Config) -> IdleExit {
    let minutes = config.daemon.idle_exit_minutes;
    if mode == Mode::Foreground {
        IdleExit::Never("it was not started by a command")
    } else if minutes <= 0.0 {
        IdleExit::Never("`idle_exit_minutes` in config.toml is 0")
    } else if config.http.listen != Bind::Off {
        IdleExit::Never("it serves HTTP, and HTTP clients cannot start it")
    } else if config.bind.is_remote() {
        IdleExit::Never("clients on other machines cannot start it")
    } else if config.keep_warm_minutes <= 0.0 {
        IdleExit::Never("`keep_warm_minutes` in config.toml is 0, so models stay loaded")
    } else {
        IdleExit::After(Duration::from_secs_f64(minutes.max(config.keep_warm_minutes) * 60.0))
    }
}

/// Cancels `stop` when the daemon has had neither a connection nor a run for as long as `rule` says, and no job waits for the
/// clock of the daemon.
///
/// A client that connects at this moment is either let in before, and the daemon stays, or it is dropped before the daemon
/// has read a byte from it, and it tries again.
pub(super) async fn exit_when_idle(
    rule: IdleExit,
    connections: OpenConnections,
    core: AgentCore,
    timer: JobTimer,
    stop: Cancel,
) {
    let IdleExit::After(limit) = rule else { return };
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = connections.idle_for(limit) => {}
        }
        let timer = timer.clone();
        let jobs = core.with_storage(move |_, _| timer.jobs_of_daemon().len()).await.unwrap_or_default();
        if jobs == 0 && core.active_runs() == 0 && connections.close_if_none() {
            tracing::info!("stopping because there was no client for {} s", limit.as_secs());
            stop.cancel();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mode: Mode, toml: &str, expect: Option<u64>) {
        let seconds = match rule(mode, &toml::from_str(toml).unwrap()) {
            IdleExit::After(limit) => Some(limit.as_secs()),
            IdleExit::Never(_) => None,
        };
        assert_eq!(seconds, expect, "{toml}");
    }

    #[test]
    fn only_a_daemon_that_its_clients_can_start_again_exits() {
        check(Mode::Spawned, "", Some(3600));
        check(Mode::Foreground, "", None);
        check(Mode::Spawned, "[daemon]\nidle_exit_minutes = 0", None);
        check(Mode::Spawned, "[daemon]\nidle_exit_minutes = 90.5", Some(5430));
        check(Mode::Spawned, "[http]\nlisten = '127.0.0.1:8787'", None);
        check(Mode::Spawned, "bind = '0.0.0.0:1'\nallow_remote = true", None);
        check(Mode::Spawned, "keep_warm_minutes = 0", None);
        check(Mode::Spawned, "keep_warm_minutes = 120", Some(7200));
    }
}
