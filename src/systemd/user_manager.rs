//! The systemd of this user.

use std::path::PathBuf;

use crate::{config::Home, core::Environment};

/// Returns the directory in which this user's unit files are. `None` if the user has no home directory.
pub(crate) fn user_units(home: &Home, environment: &Environment) -> Option<PathBuf> {
    let chosen = environment.non_empty("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let config = chosen.or_else(|| home.user_home().map(|home| home.join(".config")));
    Some(config?.join("systemd/user"))
}
