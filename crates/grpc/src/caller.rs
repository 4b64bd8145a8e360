//! Converts what commands of a run get of its caller.

use kontekst_pb as pb;
use kontekst_tools::CallerEnvironment;

/// The most variables of a caller, and the most bytes of their names and values.
const MAX_VARIABLES: usize = 256;
const MAX_VARIABLE_BYTES: usize = 256 << 10;

/// # Errors
///
/// A sentence that says which limit was passed, or which value is none.
pub(super) fn caller_environment(caller: pb::CallerEnvironment) -> Result<CallerEnvironment, String> {
    let pb::CallerEnvironment { variables, umask } = caller;
    if variables.len() > MAX_VARIABLES {
        return Err(format!("caller: {} variables, the limit is {MAX_VARIABLES}", variables.len()));
    }
    let bytes: usize = variables.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > MAX_VARIABLE_BYTES {
        return Err(format!("caller: variables of more than {} KiB", MAX_VARIABLE_BYTES >> 10));
    }
    if let Some((name, _)) = variables
        .iter()
        .find(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0'))
    {
        return Err(format!("caller: `{}` is no variable", name.escape_debug()));
    }
    match umask {
        Some(bits) if bits > 0o777 => Err(format!("caller: the umask {bits:o} is larger than 777")),
        umask => Ok(CallerEnvironment { variables: variables.into_iter().collect(), umask }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(variables: impl IntoIterator<Item = (String, String)>, umask: Option<u32>) -> String {
        let caller = pb::CallerEnvironment { variables: variables.into_iter().collect(), umask };
        caller_environment(caller).map_or_else(|error| error, |caller| format!("{caller:?}"))
    }

    #[test]
    fn the_environment_of_a_caller_is_limited() {
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let taken = caller([variable("TZ", "UTC")], Some(0o27));
        assert_eq!(taken, r#"CallerEnvironment { variables: {"TZ"}, umask: Some(23) }"#);
        let many = (0..=MAX_VARIABLES).map(|number| variable(&number.to_string(), ""));
        assert_eq!(caller(many, None), "caller: 257 variables, the limit is 256");
        let long = "x".repeat(MAX_VARIABLE_BYTES);
        assert_eq!(caller([variable("A", &long)], None), "caller: variables of more than 256 KiB");
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "\0")] {
            assert!(caller([variable(name, value)], None).ends_with("is no variable"), "{name:?}");
        }
        assert_eq!(caller([], Some(0o1000)), "caller: the umask 1000 is larger than 777");
    }
}
