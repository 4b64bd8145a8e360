//! Characters that a reader does not see, or that change how others look.

use icu_properties::{
    CodePointMapData, CodePointSetData,
    props::{DefaultIgnorableCodePoint, GeneralCategory, NoncharacterCodePoint, PrependedConcatenationMark},
};

/// Returns true for a character that is invisible or changes how its neighbours look, as Unicode has it.
pub fn is_misleading(c: char) -> bool {
    /// A pattern without any dots. Unicode counts it among the visible symbols.
    const BLANK_BRAILLE: char = '\u{2800}';
    if c.is_ascii() {
        return false;
    }
    let is_invisible = match CodePointMapData::<GeneralCategory>::new().get(c) {
        GeneralCategory::Format => !CodePointSetData::new::<PrependedConcatenationMark>().contains(c),
        GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator => true,
        GeneralCategory::Unassigned => CodePointSetData::new::<NoncharacterCodePoint>().contains(c),
        _ => c == BLANK_BRAILLE,
    };
    is_invisible || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
}

/// Returns true for a misleading character that is a part of the one before it in ordinary text: Persian, the Indic scripts
/// and emoji need joiners, and a variation selector chooses a form.
pub fn belongs_to(previous: char, c: char) -> bool {
    const EMOJI_FORM: char = '\u{fe0f}';
    let is_visible = !previous.is_ascii() && !is_misleading(previous);
    match c {
        '\u{200c}' | '\u{200d}' => is_visible || previous == EMOJI_FORM,
        // A key such as 1️⃣ begins with an ASCII character.
        EMOJI_FORM => is_visible || matches!(previous, '0'..='9' | '#' | '*'),
        '\u{fe00}'..='\u{fe0e}' | '\u{e0100}'..='\u{e01ef}' => is_visible,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_nothing_is_misleading() {
        #[rustfmt::skip]
        const MISLEADING: &[char] = &[
            '\u{ad}', '\u{34f}', '\u{61c}', '\u{115f}', '\u{1160}', '\u{17b4}', '\u{17b5}', '\u{180b}',
            '\u{180e}', '\u{200b}', '\u{200f}', '\u{2028}', '\u{202e}', '\u{2060}', '\u{206f}', '\u{2800}',
            '\u{3164}', '\u{fdd0}', '\u{fe00}', '\u{fe0f}', '\u{feff}', '\u{ffa0}', '\u{fff0}', '\u{fff9}',
            '\u{fffb}', '\u{ffff}', '\u{13430}', '\u{1bca0}', '\u{1bca3}', '\u{1d173}', '\u{1d17a}',
            '\u{1fffe}', '\u{e0000}', '\u{e0041}', '\u{e01ef}', '\u{e0fff}', '\u{10ffff}',
        ];
        for &c in MISLEADING {
            assert!(is_misleading(c), "{c:?}");
        }
        for c in [
            'a', '~', 'é', 'ß', '日', '한', '👩', '❤', '\u{600}', '\u{301}', '\u{a0}', '\u{3000}',
            '\u{fffd}', '⣿',
        ] {
            assert!(!is_misleading(c), "{c:?}");
        }
    }
}
