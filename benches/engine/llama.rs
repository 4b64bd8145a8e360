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

use crate::Speed;

/// A server for one model; ends when it is dropped.
pub(crate) struct Server {
    child: Child,
    base: String,
}

impl Server {
    pub(crate) fn start(program: &Path, model: &Path) -> Result<Self, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new(program)
            .args(["--port", &port.to_string(), "-np", "1", "-c", "2048", "-t", "2", "-m"])
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
        let mut response = ureq::post(format!("{}/completion", self.base)).send_json(request)?;
        let response: Value = response.body_mut().read_json()?;
        let figure = |name: &str| response["timings"][name].as_f64().ok_or("no timings");
        Ok(Speed { reading: figure("prompt_per_second")?, writing: figure("predicted_per_second")? })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
