//! The token in the data directory, which authenticates clients that are not processes of this user.

use std::{fs, io};

use kontekst_store::config::{Home, write_atomic};

/// The shortest token that is read from the file. One that [`load_or_create`] makes has 64 characters.
const MIN_LENGTH: usize = 32;

/// Reads the token, and creates the file if there is none.
pub(super) fn load_or_create(home: &Home) -> io::Result<String> {
    let path = home.token();
    match fs::read_to_string(&path) {
        Ok(text) if text.trim().len() >= MIN_LENGTH => return Ok(text.trim().to_owned()),
        Ok(_) => {
            let message =
                format!("the token has fewer than {MIN_LENGTH} characters; remove the file to get a new one");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    write_atomic(&path, format!("{token}\n").as_bytes()).map_err(|error| error.source)?;
    Ok(token)
}

/// Reads the token if there is one that is long enough.
pub(super) fn load(home: &Home) -> Option<String> {
    let text = fs::read_to_string(home.token()).ok()?;
    let token = text.trim();
    (token.len() >= MIN_LENGTH).then(|| token.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_created_once_and_a_short_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::find(Some(dir.path().join("home"))).unwrap();
        home.create().unwrap();
        let first = load_or_create(&home).unwrap();
        assert_eq!(first.len(), 64);
        assert_eq!(load_or_create(&home).unwrap(), first);
        let mode = fs::metadata(home.token()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(home.token(), "short").unwrap();
        assert_eq!(load_or_create(&home).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(load(&home), None);
    }
}
