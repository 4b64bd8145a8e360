//! Chooses a model for an agent that names none.

use kontekst_store::config::FALLBACK_CONTEXT_SIZE;

use super::{
    Model, ModelInfo, ModelOrigin,
    memory::{Fitness, MemoryNeed},
};

/// A model that can answer, and its properties.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub model: Model,
    pub(crate) info: ModelInfo,
}

/// Returns the models that can answer and fit into `available` bytes of memory with a window of
/// [`FALLBACK_CONTEXT_SIZE`] tokens, the best first: the one with the most parameters, then the largest file, then the
/// one in our own directory, then by name. The order depends on nothing else.
///
/// Left out are models without a chat template, base models, those that make vectors, and those that `can_run` refuses.
pub fn candidates(
    models: Vec<Model>,
    available: Option<u64>,
    can_run: impl Fn(&ModelInfo) -> bool,
) -> Vec<Candidate> {
    let least = u64::from(FALLBACK_CONTEXT_SIZE);
    let fits = |model: &Model, info: &ModelInfo| {
        let need = MemoryNeed::new(info, model.bytes, least);
        available.is_none_or(|available| need.fitness(available) == Fitness::Fits)
    };
    let answers = |model: &Model, info: &ModelInfo| {
        model.missing == 0
            && info.missing_bytes == 0
            && !info.is_embedding
            && info.template.is_some()
            && info.context_window.is_none_or(|window| window >= least)
            && !is_base(model, info)
    };
    let mut found: Vec<Candidate> = models
        .into_iter()
        .filter(|model| !model.files.is_empty())
        .filter_map(|model| Some(Candidate { info: model.info().ok()?, model }))
        .filter(|Candidate { model, info }| answers(model, info) && can_run(info) && fits(model, info))
        .collect();
    found.sort_by(|one, other| {
        let size = |candidate: &Candidate| (candidate.info.parameters, candidate.model.bytes);
        let elsewhere = |candidate: &Candidate| candidate.model.origin != ModelOrigin::ModelDir;
        size(other)
            .cmp(&size(one))
            .then(elsewhere(one).cmp(&elsewhere(other)))
            .then_with(|| one.model.cmp(&other.model))
    });
    found
}

/// Returns true for a model that only continues texts: `base` or `pt` (pretrained) is a word of its name.
fn is_base(model: &Model, info: &ModelInfo) -> bool {
    let names =
        [Some(&*model.name), info.title.as_deref(), model.repository.as_deref(), info.finetune.as_deref()];
    let mut words =
        names.into_iter().flatten().flat_map(|name| name.split(|c: char| !c.is_ascii_alphanumeric()));
    words.any(|word| ["base", "pt"].iter().any(|mark| word.eq_ignore_ascii_case(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kontekst_engine::gguf::header_builder::HeaderBuilder;

    const TEMPLATE: &str = "{% for message in messages %}{{ message.content }}{% endfor %}";

    fn header(rows: u64) -> HeaderBuilder {
        HeaderBuilder::default()
            .text("general.architecture", "llama")
            .u32("llama.context_length", 8192)
            .text("tokenizer.chat_template", TEMPLATE)
            .tensor(&[32, rows], 0)
    }

    /// Writes a model file and returns it as the catalog lists it, with `bytes` as its size.
    fn model(dir: &std::path::Path, name: &str, header: &HeaderBuilder, bytes: u64) -> Model {
        let file = dir.join(name);
        // The builder writes no data of tensors, which would be missing at the end.
        let mut content = header.bytes();
        content.resize(content.len() + (1 << 20), 0);
        std::fs::write(&file, content).unwrap();
        Model {
            origin: ModelOrigin::ModelDir,
            name: name.to_owned(),
            repository: None,
            files: vec![file],
            missing: 0,
            bytes,
        }
    }

    fn names(models: Vec<Model>, available: Option<u64>) -> Vec<String> {
        let found = candidates(models, available, |_| true);
        found.into_iter().map(|candidate| candidate.model.name).collect()
    }

    #[test]
    fn the_largest_model_that_fits_is_the_best() {
        let dir = tempfile::tempdir().unwrap();
        let gib = 1 << 30;
        let models = || {
            vec![
                model(dir.path(), "small.gguf", &header(10), gib),
                model(dir.path(), "large.gguf", &header(1000), 20 * gib),
                model(dir.path(), "fine-Q8.gguf", &header(100), 4 * gib),
                model(dir.path(), "fine-Q4.gguf", &header(100), 2 * gib),
            ]
        };
        assert_eq!(names(models(), Some(8 * gib)), ["fine-Q8.gguf", "fine-Q4.gguf", "small.gguf"]);
        assert_eq!(names(models(), Some(3 * gib)), ["fine-Q4.gguf", "small.gguf"]);
        assert_eq!(names(models(), Some(0)), [""; 0]);
        assert_eq!(names(models(), None)[0], "large.gguf");
        let mut other_order = models();
        other_order.reverse();
        assert_eq!(names(other_order, None), names(models(), None));
    }

    #[test]
    fn what_cannot_hold_a_conversation_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let one = |name: &str, header: &HeaderBuilder| model(dir.path(), name, header, 1);
        let plain = || HeaderBuilder::default().text("general.architecture", "llama").tensor(&[32, 1], 0);
        let mut incomplete = one("incomplete.gguf", &header(1));
        incomplete.missing = 1;
        let models = vec![
            one("no-template.gguf", &plain()),
            one("Qwen3-8B-Base.gguf", &header(1)),
            one("gemma-3-4b-pt.gguf", &header(1)),
            one("titled.gguf", &header(1).text("general.finetune", "base")),
            one("embedding.gguf", &header(1).u32("llama.pooling_type", 3)),
            one(
                "short.gguf",
                &plain().text("tokenizer.chat_template", TEMPLATE).u32("llama.context_length", 2048),
            ),
            incomplete,
            one("database-expert.gguf", &header(1)),
        ];
        assert_eq!(names(models, None), ["database-expert.gguf"]);
    }
}
