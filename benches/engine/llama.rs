//! llama.cpp's server, and what it says about its own speed.

use std::{
    error::Error,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{Speed, agree::Step, processor};

/// A server for one model; ends when it is dropped.
pub(crate) struct Server {
    child: Child,
    base: String,
}

impl Server {
    pub(crate) fn start(program: &Path, model: &Path, threads: u32) -> Result<Self, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new(program)
            .args(["--port", &port.to_string(), "-np", "1", "-c", "2048", "-t", &threads.to_string(), "-m"])
            .arg(model)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut server = Self { child, base: format!("http://127.0.0.1:{port}") };
        while ureq::get(format!("{}/health", server.base)).call().is_err() {
            if let Some(status) = server.child.try_wait()? {
                return Err(format!("the server ended with {status}").into());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    pub(crate) fn speed(&self, prompt: &[u32], answer: u32) -> Result<Speed, Box<dyn Error>> {
        let request = json!({
            "prompt": prompt, "n_predict": answer, "temperature": 0, "cache_prompt": false, "ignore_eos": true,
        });
        let response = self.post("completion", &request)?;
        let figure = |name: &str| response["timings"][name].as_f64().ok_or("no timings");
        Ok(Speed { reading: figure("prompt_per_second")?, writing: figure("predicted_per_second")? })
    }

    /// As [`processor::built_in`].
    pub(crate) fn processor_speed(&self, prompt: &[u32], answer: u32) -> Result<Speed, Box<dyn Error>> {
        let time = |answer: u32, cached: bool| -> Result<_, Box<dyn Error>> {
            let request = json!({
                "prompt": prompt, "n_predict": answer, "temperature": 0, "cache_prompt": cached, "ignore_eos": true,
            });
            let before = processor::time_of(self.child.id())?;
            let response = self.post("completion", &request)?;
            let read = response["timings"]["prompt_n"].as_u64();
            if read != Some(if cached { 1 } else { prompt.len() as u64 }) {
                return Err(format!("the server read {read:?} tokens").into());
            }
            Ok(processor::time_of(self.child.id())? - before)
        };
        Ok(Speed::of(prompt.len(), time(1, false)?, answer, time(answer, true)?))
    }

    /// Returns the tokens of a prompt.
    pub(crate) fn tokens(&self, text: &str) -> Result<Vec<u32>, Box<dyn Error>> {
        let mut response = self.post("tokenize", &json!({ "content": text, "add_special": true }))?;
        Ok(serde_json::from_value(response["tokens"].take())?)
    }

    /// Continues a prompt with the likeliest token each time.
    pub(crate) fn likeliest(&self, prompt: &[u32], answer: usize) -> Result<Vec<Step>, Box<dyn Error>> {
        let request = json!({
            "prompt": prompt, "n_predict": answer, "temperature": 0, "cache_prompt": false, "n_probs": 2,
        });
        let response = self.post("completion", &request)?;
        let steps = response["completion_probabilities"].as_array().ok_or("no probabilities")?;
        steps.iter().map(|step| Self::step(step).ok_or_else(|| "no logits".into())).collect()
    }

    /// Logarithms of probabilities are as far apart as the logits.
    fn step(step: &Value) -> Option<Step> {
        let token = u32::try_from(step["id"].as_u64()?).ok()?;
        let logit = |at: usize| step["top_logprobs"][at]["logprob"].as_f64();
        #[expect(clippy::cast_possible_truncation, reason = "a few digits are printed")]
        let gap = (logit(0)? - logit(1)?) as f32;
        Some(Step { token, gap })
    }

    fn post(&self, path: &str, request: &Value) -> Result<Value, Box<dyn Error>> {
        let mut response = ureq::post(format!("{}/{path}", self.base)).send_json(request)?;
        Ok(response.body_mut().read_json()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
