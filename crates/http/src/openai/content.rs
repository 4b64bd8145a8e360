//! The content of a message in both of OpenAI's APIs: text, or parts of text and images. Pure.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

use kontekst_core::{Image, MAX_IMAGE_BYTES, MAX_IMAGES};

use super::super::response::HttpError;

/// The content of a message: text, or a list of parts.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum MessageContent {
    Plain(String),
    Parts(Vec<ContentPart>),
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ContentPart {
    #[serde(rename = "type")]
    kind: String,
    #[serde(alias = "refusal")]
    text: Option<String>,
    image_url: Option<ImageUrl>,
}

/// The address of an image, as each of the two APIs writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum ImageUrl {
    Responses(String),
    Chat { url: String },
}

/// The text and the images of a message of the user.
#[derive(Debug, Default)]
pub(super) struct UserContent {
    pub(super) text: String,
    pub(super) images: Vec<Image>,
}

impl From<String> for UserContent {
    fn from(text: String) -> Self {
        Self { text, images: Vec::new() }
    }
}

impl MessageContent {
    /// Joins the parts of a message that only the user may send images with.
    ///
    /// # Errors
    ///
    /// There are images, audio or files.
    pub(super) fn into_plain(self) -> Result<String, HttpError> {
        match self {
            Self::Plain(text) => Ok(text),
            Self::Parts(parts) => parts
                .into_iter()
                .map(|part| {
                    part.text().ok_or_else(|| part.unsupported("only text is, and images of the user"))
                })
                .collect(),
        }
    }

    /// Joins the parts of a message of the user. The images keep their order; the model reads them before the text.
    ///
    /// # Errors
    ///
    /// There is audio or a file, an image is not in the request itself, or images are over a limit.
    pub(super) fn into_user_content(self) -> Result<UserContent, HttpError> {
        let parts = match self {
            Self::Plain(text) => return Ok(text.into()),
            Self::Parts(parts) => parts,
        };
        let mut content = UserContent::default();
        for part in parts {
            if let Some(text) = part.text() {
                content.text.push_str(&text);
                continue;
            }
            let Some(url) = part.image() else {
                return Err(part.unsupported("only text and images are"));
            };
            if content.images.len() == MAX_IMAGES {
                let message = format!("image_url: a message may have {MAX_IMAGES} images");
                return Err(HttpError::bad_request(message));
            }
            let name = format!("image {}", content.images.len() + 1);
            content.images.push(image_of(url, name)?);
        }
        Ok(content)
    }
}

impl ContentPart {
    fn text(&self) -> Option<String> {
        self.text
            .clone()
            .filter(|_| matches!(self.kind.as_str(), "text" | "input_text" | "output_text" | "refusal"))
    }

    fn image(&self) -> Option<&str> {
        match self.image_url.as_ref().filter(|_| matches!(self.kind.as_str(), "image_url" | "input_image"))? {
            ImageUrl::Responses(url) | ImageUrl::Chat { url } => Some(url),
        }
    }

    fn unsupported(&self, but: &str) -> HttpError {
        let kind: String = self.kind.chars().take(64).collect();
        HttpError::bad_request(format!("content of type {kind:?} is not supported; {but}"))
    }
}

/// Reads the image that a `data:` URI has within it. Its first bytes say what format it has, and not the URI.
///
/// # Errors
///
/// It is another URI, it has no image, or the image is larger than [`MAX_IMAGE_BYTES`].
fn image_of(url: &str, name: String) -> Result<Image, HttpError> {
    let Some(encoded) = url.strip_prefix("data:").and_then(|data| Some(data.split_once(";base64,")?.1))
    else {
        let shown: String = url.chars().take(64).collect();
        return Err(HttpError::bad_request(format!(
            "image_url: {shown:?} is not supported, because nothing is fetched from there; send the image itself, as \
             `data:image/png;base64,…`"
        )));
    };
    // Four characters stand for three bytes.
    if encoded.len() / 4 * 3 > MAX_IMAGE_BYTES + 2 {
        let message = format!("image_url: an image may have {} MiB", MAX_IMAGE_BYTES >> 20);
        return Err(HttpError::bad_request(message));
    }
    let bytes = STANDARD
        .decode(encoded)
        .map_err(|error| HttpError::bad_request(format!("image_url: this is not base64: {error}")))?;
    Image::new(name, bytes)
        .ok_or_else(|| HttpError::bad_request("image_url: this is no PNG, JPEG, GIF or WebP image"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn content(parts: Value) -> Result<UserContent, String> {
        let content: MessageContent = serde_json::from_value(parts).unwrap();
        content.into_user_content().map_err(|error| error.message)
    }

    fn image(url: &str) -> Value {
        json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}})
    }

    #[test]
    fn texts_are_joined_and_images_keep_their_order() {
        let gif = "data:image/png;base64,R0lGODlh";
        let parts = json!([
            {"type": "text", "text": "what "},
            image(gif),
            {"type": "input_image", "image_url": "data:;base64,iVBORw0KGgo="},
            {"type": "input_text", "text": "is this?"}
        ]);
        let got = content(parts).unwrap();
        let images: Vec<_> =
            got.images.iter().map(|image| (image.name.as_str(), image.format.media_type())).collect();
        assert_eq!(got.text, "what is this?");
        assert_eq!(images, [("image 1", "image/gif"), ("image 2", "image/png")]);
    }

    #[test]
    fn images_that_cannot_be_taken_are_refused() {
        let large = format!("data:image/gif;base64,R0lGODlh{}", "A".repeat((MAX_IMAGE_BYTES / 3 + 2) * 4));
        for (url, expected) in [
            ("https://example.org/cat.png", "nothing is fetched from there"),
            ("file:///etc/passwd", "nothing is fetched from there"),
            ("data:image/png,GIF89a", "nothing is fetched from there"),
            ("data:image/gif;base64,!", "not base64"),
            ("data:text/plain;base64,aGVsbG8=", "no PNG, JPEG, GIF or WebP"),
            (large.as_str(), "20 MiB"),
        ] {
            let error = content(json!([image(url)])).unwrap_err();
            assert!(error.contains(expected) && error.len() < 300, "{error}");
        }
        let many: Vec<Value> = (0..=MAX_IMAGES).map(|_| image("data:;base64,R0lGODlh")).collect();
        assert!(content(many.into()).unwrap_err().contains("16 images"));
        let audio = content(json!([{"type": "input_audio", "input_audio": {}}])).unwrap_err();
        assert!(audio.contains("input_audio"), "{audio}");
        let of_assistant: MessageContent =
            serde_json::from_value(json!([image("data:;base64,R0lGODlh")])).unwrap();
        assert!(of_assistant.into_plain().unwrap_err().message.contains("image_url"));
    }
}
