//! Knows from the name of a model which way of calling suits it, before the model has been checked.

use super::profile::Calling;

/// The beginnings of names, in lower case, and the best way of calling.
///
/// A family without published or own measurements is not here.
const FAMILIES: [(&str, Calling); 3] = [
    // Own measurement with llama-server, sixteen small tasks: 8 to 11 done in steps, 1 to 3 natively (1.5B, Q4_K_M).
    ("qwen2.5-coder", Calling::Steps),
    // antoinezambelli/forge, docs/results/raw/native-vs-prompt.md, llama-server, Q4_K_M: 79.7 % natively, 72.4 % in text.
    ("gemma-4-e4b", Calling::Native),
    // antoinezambelli/forge, docs/MODEL_GUIDE.md, llama-server, Q4_K_M: 7.2 % natively, 75.0 % in text.
    ("mistral-nemo", Calling::Text),
];

/// Returns the way of calling that is known to work best with models of this family. `name` is the name of a model or of its
/// file.
pub fn family_calling(name: &str) -> Option<Calling> {
    let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase().replace('_', "-");
    FAMILIES.iter().find(|(family, _)| name.starts_with(family)).map(|(_, calling)| *calling)
}

/// Returns the number of parameters that a name tells, as `0.5b`, `8B` and `30b-a3b` do: the first such word counts.
pub fn parameters_in(name: &str) -> Option<u64> {
    let name = name.to_ascii_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let billions = words.filter_map(|word| word.strip_suffix('b')?.parse::<f64>().ok());
    let billions = billions.filter(|billions| (0.01..10_000.0).contains(billions));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    billions.map(|billions| (billions * 1e9) as u64).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_known_by_the_beginning_of_the_name() {
        for (name, calling) in [
            ("Qwen2.5-Coder-1.5B-Instruct-Q4_K_M", Some(Calling::Steps)),
            ("Qwen/Qwen2.5-Coder-7B-Instruct", Some(Calling::Steps)),
            ("gemma_4_E4B-it", Some(Calling::Native)),
            ("Mistral-Nemo-Instruct-2407", Some(Calling::Text)),
            ("Qwen2.5-7B", None),
            ("my-qwen2.5-coder", None),
            ("", None),
        ] {
            assert_eq!(family_calling(name), calling, "{name}");
        }
    }

    #[test]
    fn parameters_are_read_from_a_name() {
        for (name, parameters) in [
            ("qwen3:8b", Some(8_000_000_000)),
            ("Qwen/Qwen2.5-Coder-0.5B-Instruct", Some(500_000_000)),
            ("qwen3-coder:30b-a3b", Some(30_000_000_000)),
            ("gemma-3-270m-it", None),
            ("infb-b-1e300b", None),
            ("", None),
        ] {
            assert_eq!(parameters_in(name), parameters, "{name}");
        }
    }
}
