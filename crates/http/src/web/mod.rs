//! The web page, and the API that it uses.

mod runs;
mod sessions;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use hyper::body::Incoming;
use serde_json::json;

use kontekst_core::blocking;
use kontekst_store::config::page_code;

use super::{
    HttpDoor, body,
    response::{self, HttpError, HttpResponse},
};

/// The files of the page: path, type, content.
const PAGE_FILES: [(&str, &str, &str); 8] = [
    ("/", "text/html; charset=utf-8", include_str!("../page/index.html")),
    ("/page/style.css", "text/css; charset=utf-8", include_str!("../page/style.css")),
    ("/page/icon.svg", "image/svg+xml", include_str!("../page/icon.svg")),
    ("/page/main.js", "text/javascript; charset=utf-8", include_str!("../page/main.js")),
    ("/page/api.js", "text/javascript; charset=utf-8", include_str!("../page/api.js")),
    ("/page/approval.js", "text/javascript; charset=utf-8", include_str!("../page/approval.js")),
    ("/page/conversation.js", "text/javascript; charset=utf-8", include_str!("../page/conversation.js")),
    ("/page/text.js", "text/javascript; charset=utf-8", include_str!("../page/text.js")),
];

/// The page loads only these files, calls only this server, and cannot be put into a frame.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns a file of the page. No token is needed, because the files have no secrets.
pub(super) fn page_file(path: &str) -> Option<HttpResponse> {
    let (_, kind, text) = PAGE_FILES.iter().find(|(name, ..)| *name == path)?;
    let mut response = response::full(StatusCode::OK, kind, *text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    Some(response)
}

/// Answers a request under `/api/`. The caller has checked the token.
pub(super) async fn api(
    door: &HttpDoor,
    method: &str,
    path: &str,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<HttpResponse, HttpError> {
    let mut parts = path.trim_start_matches("/api/").split('/');
    match (method, parts.next(), parts.next(), parts.next(), parts.next()) {
        ("GET", Some("status"), None, ..) => status(door).await,
        ("GET", Some("sessions"), None, ..) => sessions::list(&door.core).await,
        ("GET", Some("sessions"), Some(id), None, _) => sessions::show(&door.core, id).await,
        ("DELETE", Some("sessions"), Some(id), None, _) => sessions::delete(&door.core, id).await,
        ("POST", Some("runs"), None, ..) => runs::start(door, &body::read_json(headers, body).await?),
        ("POST", Some("runs"), Some(run), Some("decisions"), None) => {
            runs::decide(&door.core, run, &body::read_json(headers, body).await?)
        }
        ("POST", Some("runs"), Some(run), Some("cancel"), None) => runs::cancel(&door.core, run),
        _ => Err(HttpError::not_found()),
    }
}

/// Answers the page that sends the code from its address, in a header that pages of other origins cannot send.
pub(super) async fn token(door: &HttpDoor, headers: &HeaderMap) -> Result<HttpResponse, HttpError> {
    let code =
        headers.get("kontekst-code").and_then(|code| code.to_str().ok()).unwrap_or_default().to_owned();
    let home = door.core.home().clone();
    match blocking(move || page_code::use_up(&home, &code)).join().await {
        Ok(true) => {
            let mut response = response::ok(&json!({"token": door.policy.token}));
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            Ok(response)
        }
        _ => Err(HttpError::new(StatusCode::UNAUTHORIZED, "Unauthorized")),
    }
}

async fn status(door: &HttpDoor) -> Result<HttpResponse, HttpError> {
    let server = door.core.server_status().await;
    let config = door.core.config();
    let agents = super::openai::agent_names(&door.core).await?;
    Ok(response::ok(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "model": {
            "endpoint": server.endpoint, "healthy": server.healthy, "running": server.running, "pid": server.pid,
            "name": server.model,
        },
        "working_dir": config.tools.working_dir,
        "agents": agents,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_complete_and_runs_nothing_inline() {
        let html = PAGE_FILES[0].2;
        for (path, ..) in &PAGE_FILES[1..] {
            let imported = path.rsplit('/').next().unwrap();
            let used = html.contains(path)
                || PAGE_FILES.iter().any(|(_, _, text)| text.contains(&format!("\"./{imported}\"")));
            assert!(used, "{path} is not used");
        }
        for forbidden in [" onclick", " style=", "<style", "javascript:", "http://", "https://"] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
        for (path, _, text) in PAGE_FILES {
            for forbidden in ["innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "document.write"] {
                assert!(!text.contains(forbidden), "{path}: {forbidden}");
            }
        }
        assert!(
            page_file("/page/../mod.rs").is_none()
                && page_file("/page/").is_none()
                && page_file("/index.html").is_none()
        );
    }
}
