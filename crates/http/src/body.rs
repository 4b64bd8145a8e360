//! Reads the JSON body of a request, with limits on its size and its duration.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};

use super::response::HttpError;

/// The maximum size of a body, in bytes. It is also the limit of `kontekst run` for stdin; more would fit in no context
/// window.
pub(super) const BODY_LIMIT: usize = 32 * 1024 * 1024;

/// The maximum time until the whole body has arrived.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a JSON body. A body that announces too large a size in its `Content-Length` is refused before anything is read.
///
/// The size that a chunk announces is known to hyper alone, which takes any number below 2^64 and reserves nothing for it. So a
/// chunk of `FFFFFFFFFFFFFFFF` bytes is refused once [`BODY_LIMIT`] bytes of it have arrived, or after [`BODY_TIMEOUT`]. To
/// refuse it at once, the connection would have to take apart the chunks a second time.
pub(super) async fn read_json<B>(headers: &HeaderMap, body: B) -> Result<Bytes, HttpError>
where
    B: Body<Data = Bytes> + Send,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    check_content_type(headers)?;
    let too_large = || HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, "Request body too large");
    if body.size_hint().lower() > BODY_LIMIT as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, BODY_LIMIT).collect()).await {
        Err(_) => Err(HttpError::new(StatusCode::REQUEST_TIMEOUT, "Request body took too long")),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(HttpError::bad_request(format!("Request body broke off: {error}"))),
        Ok(Ok(body)) => Ok(body.to_bytes()),
    }
}

/// Refuses every content type but JSON, in particular those that a web page can send without a preflight request.
fn check_content_type(headers: &HeaderMap) -> Result<(), HttpError> {
    let refuse = |message: &str| Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    if headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        return refuse("Content-Encoding is not supported");
    }
    let mut kinds = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(kind), None) = (kinds.next(), kinds.next()) else {
        return refuse("Content-Type must be application/json");
    };
    let mut parts = kind.to_str().unwrap_or_default().split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    let utf8 = parts.all(|part| match part.split_once('=') {
        Some((name, set)) if name.trim().eq_ignore_ascii_case("charset") => {
            matches!(set.trim_matches('"').to_ascii_lowercase().as_str(), "utf-8" | "utf8")
        }
        _ => true,
    });
    if json && utf8 { Ok(()) } else { refuse("Content-Type must be application/json") }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http_body_util::Full;

    use super::*;

    fn kind(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(value))])
    }

    #[test]
    fn only_json_is_accepted() {
        for good in
            ["application/json", "application/json; charset=utf-8", "Application/JSON;charset=\"UTF-8\""]
        {
            assert_eq!(check_content_type(&kind(good)), Ok(()), "{good}");
        }
        let bad = [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/json",
            "application/json; charset=latin1",
            "application/jsonp",
            "",
            "text/plain; application/json",
        ];
        for bad in bad {
            assert_eq!(
                check_content_type(&kind(bad)).unwrap_err().status,
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "{bad}"
            );
        }
        assert!(check_content_type(&HeaderMap::new()).is_err());
        let mut compressed = kind("application/json");
        compressed.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(check_content_type(&compressed).is_err());
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_not_read() {
        let body = |length| Full::new(Bytes::from(vec![b' '; length]));
        let read = |length| read_json(&HEADERS, body(length));
        static HEADERS: std::sync::LazyLock<HeaderMap> =
            std::sync::LazyLock::new(|| kind("application/json"));
        assert_eq!(read(BODY_LIMIT).await.unwrap().len(), BODY_LIMIT);
        assert_eq!(read(BODY_LIMIT + 1).await.unwrap_err().status, StatusCode::PAYLOAD_TOO_LARGE);
    }

    /// A body that never arrives.
    struct Stalled;

    impl Body for Stalled {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, std::io::Error>>> {
            std::task::Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_arrive_times_out() {
        let headers = kind("application/json");
        assert_eq!(read_json(&headers, Stalled).await.unwrap_err().status, StatusCode::REQUEST_TIMEOUT);
    }
}
