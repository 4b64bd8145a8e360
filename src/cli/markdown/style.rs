//! The look of a piece of text on the terminal.

use std::ops::BitOr;

use crate::cli::output::Palette;

/// A set of attributes of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style(u8);

impl Style {
    pub(super) const PLAIN: Self = Self(0);
    pub(super) const BOLD: Self = Self(1);
    pub(super) const ITALIC: Self = Self(1 << 1);
    pub(super) const STRUCK: Self = Self(1 << 2);
    pub(super) const CODE: Self = Self(1 << 3);
    pub(super) const LINK: Self = Self(1 << 4);
    pub(super) const DIM: Self = Self(1 << 5);

    /// The numbers of the attributes, in the order of the bits.
    const CODES: [&str; 6] = ["1", "3", "9", "36", "4", "2"];

    /// Writes `text` with these attributes. It ends with a reset, so that what another process writes next is not affected.
    pub(super) fn paint(self, palette: Palette, text: &str, out: &mut String) {
        if self == Self::PLAIN {
            return out.push_str(text);
        }
        let codes = Self::CODES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        let codes: Vec<&str> = codes.map(|(_, code)| *code).collect();
        out.push_str(&palette.paint(&codes.join(";"), text));
    }
}

impl BitOr for Style {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
