//! An image that comes with a prompt.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::hex;

/// The largest image in bytes: 20 MiB, the limit of OpenAI's API.
pub const MAX_IMAGE_BYTES: usize = 20 << 20;

/// The most images of one prompt.
pub const MAX_IMAGES: usize = 16;

/// The tokens that an image counts until the model server has counted it. Models take between 256 and a few thousand.
pub const IMAGE_TOKENS: u32 = 1000;

/// An image of a message. A session file has its name, its format and its digest. The bytes are in a file beside it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The path that the user gave.
    pub name: String,
    #[serde(rename = "media_type")]
    pub format: ImageFormat,
    /// The SHA-256 of the bytes in lower case. In a message that was read from a file it can be any text.
    pub sha256: String,
    /// Empty if they could not be read.
    #[serde(skip)]
    pub bytes: Arc<[u8]>,
}

/// The formats that model servers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageFormat {
    #[serde(rename = "image/png")]
    Png,
    #[serde(rename = "image/jpeg")]
    Jpeg,
    #[serde(rename = "image/gif")]
    Gif,
    #[serde(rename = "image/webp")]
    Webp,
}

impl ImageFormat {
    /// Returns the format that a file with these first bytes has.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

impl Image {
    /// Makes an image of a file. Returns `None` if its first bytes are those of no known format.
    pub fn new(name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Option<Self> {
        let bytes = bytes.into();
        let format = ImageFormat::of(&bytes)?;
        let sha256 = hex(&Sha256::digest(&bytes));
        Some(Self { name: name.into(), format, sha256, bytes })
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({:?}, {}, {} bytes)", self.name, self.format.media_type(), self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_known_by_its_first_bytes() {
        for (bytes, format) in [
            (&b"\x89PNG\r\n\x1a\n.."[..], Some(ImageFormat::Png)),
            (b"\xff\xd8\xff\xe0", Some(ImageFormat::Jpeg)),
            (b"GIF89a", Some(ImageFormat::Gif)),
            (b"RIFF....WEBPVP8 ", Some(ImageFormat::Webp)),
            (b"RIFF....WAVE", None),
            (b"GIF88a", None),
            (b"%PDF-1.7", None),
            (b"", None),
        ] {
            assert_eq!(ImageFormat::of(bytes), format, "{bytes:?}");
        }
    }

    #[test]
    fn a_file_has_the_digest_and_not_the_bytes() {
        let image = Image::new("a.gif", &b"GIF89a"[..]).unwrap();
        let json = serde_json::to_string(&image).unwrap();
        assert_eq!(
            json,
            format!(r#"{{"name":"a.gif","media_type":"image/gif","sha256":"{}"}}"#, image.sha256)
        );
        let read: Image = serde_json::from_str(&json).unwrap();
        assert_eq!((read.sha256.len(), read.bytes.len()), (64, 0));
    }
}
