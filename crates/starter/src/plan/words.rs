//! The words that a request for a change is made of, each with the part that it plays.
//!
//! A request is understood if all of its words, apart from quoted texts and paths, are in [`WORDS`] and their parts make up
//! a known form. A word that is not here may change the meaning of all others, so it makes the request unclear.

use super::tokens::{Kind, Token};

/// The parts of a request, as a letter for each, so that a form is a short text.
///
/// | letter | part |
/// |---|---|
/// | `w` | writes a file, also in place of one that exists |
/// | `k` | writes a file that does not exist |
/// | `o` | names the whole content of a file as what is replaced |
/// | `e` | empties a file |
/// | `n` | an empty file is to be made |
/// | `r`, `x` | replaces a text, deletes a text |
/// | `0`, `j` | means every occurrence; `j` also stands before the file |
/// | `>`, `i`, `a`, `f` | stand before a file or between two texts: to, in, as, from |
/// | `=`, `-` | stand between two texts, and before a text: with, becomes |
/// | `d` | piped data, or what follows a colon |
/// | `&`, `h` | and, in it |
/// | `?` | makes a question of a request |
/// | `L` | one line of several: whoever says this may not mean the whole file |
/// | `_` | means nothing here |
const WORDS: [(char, &str); 21] = [
    ('w', "write|save|overwrite"),
    (
        'k',
        "create|generate|store|put|echo|note|note down|jot down|write down|record|log|enter|keep|place|type|print|output",
    ),
    (
        'o',
        "replace everything in|replace the content of|replace the contents of|replace the whole content of",
    ),
    ('e', "empty|clear|truncate"),
    ('n', "touch|empty file|blank file|an empty|a blank|empty text file|new empty file"),
    ('r', "replace|change|swap|rename"),
    ('x', "delete|remove|erase"),
    ('0', "all|every|each|all occurrences of|every occurrence of|each occurrence of|all instances of"),
    ('j', "everywhere in|throughout"),
    ('>', "to|into|>"),
    ('i', "in|inside"),
    ('a', "as|under"),
    ('f', "from|out of"),
    (
        '=',
        "with|by|for|containing|that contains|which contains|saying|that says|which says|that reads|with the text|\
         with text|with the content|with content|with the contents|with the word|with the words|with the following|\
         with the following content|with the following text|with this|with this content|with this text|\
         containing the text|containing the word|containing the words",
    ),
    ('-', "->|=>|→|becomes|become|should be|should become|must be|must become"),
    (
        'd',
        "this|it|that|these|them|these lines|the lines|this data|the data|the input|this input|the output|\
         this output|the above|everything above|all of this|all this|this text|the text above|this list|the list|\
         the following|the following text|the following lines|this content|the text below|what i piped in|\
         everything|it all|the whole thing",
    ),
    ('&', "and"),
    ('h', "in it|into it|to it|inside it|there"),
    (
        '?',
        "can you|could you|would you|will you|can u|could u|is it possible to|would it be possible to|may i ask you to|could i ask you to",
    ),
    ('L', "line|lines|sentence|a note|the note|notes|paragraph|entry"),
    (
        '_',
        "please|pls|plz|kindly|thanks|thank you|thx|many thanks|cheers|now|right now|right away|immediately|at once|\
         quickly|real quick|asap|as soon as possible|today|if possible|if you can|if you could|if you would|\
         if you don't mind|when you can|and that's it|that's it|ok|okay|alright|well|so|actually|sorry|excuse me|hey|hi|\
         hello|kontekst|just|simply|also|again|go ahead and|try to|help me|help me to|let's|let us|be so kind as to|\
         make sure to|remember to|don't forget to|feel free to|i want you to|i need you to|i'd like you to|\
         i would like you to|i want to|i need to|i'd like to|i would like to|we need to|we have to|we want to|we should|\
         you should|you must|you need to|you have to|i was wondering if you could|do me a favor and|for me|\
         fix the typo|fix a typo|the|a|an|new|file|text file|text|string|word|words|phrase|message|content|contents|\
         the content of|the contents of|called|named|occurrence of",
    ),
];
/// The most words of a phrase in [`WORDS`].
const MAX_PHRASE: usize = 6;

/// Verbs of changes that are never made, because a request with them does not give the new text.
const NEVER: &str = " set add update enable disable prepend append insert convert translate rewrite indent \
                     unindent refactor bump increase decrease toggle fill edit modify comment uncomment sort copy ";

/// Words that describe a text instead of being one, that join several texts, or that belong to the request around a text.
/// A text without quotes that has one of them is not taken.
const DESCRIBING: &str = " a about above actual additional after again all also an and another any anything appropriate at \
based be because before below better between blank boilerplate both bottom brackets but by called capital change \
changes char character characters code column columns comma commas comment comments config content contents correct \
create current data date dates day default defaults delete description digit digits docs documentation docstring \
document double each either else empty end error errors every everything example examples few file files first \
following font for format from function functions given greeting half has have header headers heading her here hints \
his hour html if import imports in indentation info information input instead into introduction is it item items its \
json just label language last latest letter letters level like line lines list lorem lowercase make many markdown me \
message method more my named names new newline newlines next no nonsense nothing now null number numbers of off \
old on once one ones only or other our out output over own paragraph paragraphs path pls please poem position prefix \
previous program punctuation python question quote quotes random read real remaining replace rest result results \
rhyme right running same sample save script second section semicolon semicolons sentence sentences settings several \
shorter single size so some something space spaces status story string strings style suffix suitable summary tab \
table tabs template test tests text thank thanks that the their them then there these they third this those three \
through time timestamp title to today today's todos together tomorrow top translated translation two type types \
unix until update uppercase url us usage value values variable version was we what whatever when where which while \
who whole will with without word words write year yesterday you your thx ty cheers mate buddy friend sir dear asap boss immediately quickly ";

/// Returns the letter of the phrase in [`WORDS`] that the tokens begin with, and how many of them it takes. The longest phrase
/// counts.
pub(super) fn part(tokens: &[Token<'_>]) -> Option<(char, usize)> {
    let words = tokens.iter().take_while(|token| token.kind == Kind::Word).take(MAX_PHRASE);
    let words: Vec<String> = words.map(|word| word.text.to_lowercase().replace('’', "'")).collect();
    (1..=words.len()).rev().find_map(|length| {
        let phrase = words[..length].join(" ");
        let known = WORDS.iter().find(|(_, phrases)| phrases.split('|').any(|known| known == phrase));
        known.map(|(letter, _)| (*letter, length))
    })
}

/// Returns true if a request for a change begins with the word, and the change is one that no rule makes.
pub(super) fn is_never_done(word: &str) -> bool {
    has(NEVER, word)
}

/// Returns true if the word is one that requests for something begin with or put before a path.
pub(super) fn is_common(word: &str) -> bool {
    let word = word.to_lowercase();
    let parts = WORDS.iter().filter(|(letter, _)| !"Ld_".contains(*letter));
    has(NEVER, &word)
        || has(super::several::VERBS, &word)
        || parts.flat_map(|(_, phrases)| phrases.split('|')).any(|known| known == word)
}

/// Returns true if a text without quotes can only mean itself.
pub(super) fn is_literal(text: &str) -> bool {
    let mut words = text.split_whitespace().peekable();
    words.peek().is_some()
        && !text.contains('\n')
        && words.all(|word| {
            let word = word.to_lowercase().replace('’', "'");
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            word.is_empty() || (!has(DESCRIBING, word) && !word.ends_with("'s"))
        })
}

fn has(list: &str, word: &str) -> bool {
    !word.is_empty() && list.contains(&format!(" {} ", word.to_lowercase()))
}
