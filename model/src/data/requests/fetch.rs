//! Requests to fetch a page.

use super::{Request, call, quoted};
use crate::data::{
    Call, Draw,
    grammar::{Phrasings, filled},
};

/// `{l}` is the address.
const WITH_SCHEME: Phrasings = Phrasings {
    commands: &[
        "[fetch|fetch|fetch|get|open|download|load|read|visit|browse|retrieve|pull|grab|show|show me|go to|check|check out|look at|have a look at|take a look at|access|request|call|query|curl|wget|summarize|summarise|explain|display|print|give me|get me|pull up|bring up|crawl|scrape|see|view|read me|open up|look up|navigate to|surf to|hit|load up|pull down|tell me about] {l}",
        "fetch {l}",
        "get {l}",
        "download {l}",
        "open {l}",
        "[fetch|get|open|download|load|read|visit|retrieve|show me|grab|check|show|display|look at|summarize|access|pull up] [the page|the website|the site|the web page|the url|this page|this url|this website|this link|the link|the page at|the document at|the text at|the content of|the contents of|what is at|what's at|the web page at|the webpage|the webpage at|the file at|the resource at|the address|this address:|this:|this url:|this page:|url|the following url:|the following page:|from|the article at|data from|the json at|my page] {l}",
        "[tell|show] me what [is at|is on|is written at|there is at|stands on] {l}",
        "[tell me|find out|check|see|show me] what [{l} says|is at {l}|is on {l}|{l} contains|is written on {l}]",
        "[go to|visit|open|look at|load|browse to] {l} and [tell me what it says|tell me what is there|show me what's there|read it|read it to me|summarize it|summarise it|show me the text|tell me what you see]",
        "[use|call|run] web_fetch [on|for|with] {l}",
        "give me [the text|the content|the contents|a summary|the page|the body|the source] [of|at|from] {l}",
        "make a [request|get request|GET request] to {l}",
        "send a GET request to {l}",
        "[have|take] a look at [the page |the site |]{l}",
        "[fetch|get|download] {l} from the [web|internet|net]",
        "[see|check] what's [new |]on {l}",
        "do a web fetch of {l}",
    ],
    questions: &[
        "[what's|what is|whats] [at|on|behind|under|written on] {l}",
        "[what's|what is] [at|on] [the page |the url |the site |the website |]{l}",
        "what does {l} [say|contain|return|show|answer|look like|give|have]",
        "what does the [page|site|website|url] {l} [say|contain|show|return]",
        "what can i [find|read|see] [at|on] {l}",
        "what do you [find|see|get] [at|on|from] {l}",
        "can i see {l}",
        "can i have the text of {l}",
        "what [is|was] posted [at|on] {l}",
        "what is the content of {l}",
        "what text is on {l}",
        "does {l} say anything",
    ],
    statements: &[
        "{l}",
        "{l} please",
        "{l}?",
        "curl {l}",
        "curl -s {l}",
        "wget {l}",
        "curl {l}",
        "web_fetch {l}",
        "the [page|site|website|url] {l}",
        "contents of {l}",
        "[i want|i need|i'd like] [to see|to read|the text of|the content of|the contents of|the page|to know what is on|to know what's at|to visit|to open|to look at] {l}",
        "{l}: [fetch it|what does it say?|read it|what is there?|get it|summarize it]",
        "there is a page at {l}. [What does it say?|Read it.|Fetch it.|Get it.]",
        "i found this [page|link|url]: {l}[, what does it say?|. What does it say?|. Fetch it.|, read it]",
        "here is a [link|url]: {l}. [Fetch it.|Read it.|What does it say?|Open it.]",
        "[what about|and|now] {l}",
        "my browser is broken, [show me|get|fetch] {l}",
        "GET {l}",
    ],
};
/// `{l}` could be a file's name, so the words say that it is not.
const BARE: Phrasings = Phrasings {
    commands: &[
        "[fetch|fetch|fetch|download|visit|browse|go to|curl|wget|retrieve|navigate to|surf to|crawl|scrape|browse to|access] {l}",
        "fetch {l}",
        "visit {l}",
        "go to {l}",
        "[fetch|get|open|download|load|read|visit|retrieve|show me|grab|check|show|display|look at|access|pull up|summarize] [the page|the website|the site|the web page|the url|the website of|the page at|the homepage of|the home page of|the site|the webpage|the web site|the front page of|the url|this page:|this website:|the address] {l}",
        "[tell me|find out|check|see|show me] what [is on the website {l}|is on the page {l}|the website {l} says|the site {l} says|is on the site {l}]",
        "[go to|visit|browse to] {l} and [tell me what it says|show me what's there|read it|summarize it|tell me what is there]",
        "[use|call|run] web_fetch [on|for|with] {l}",
        "give me [the text|the content|the contents] of the [website|page|site] {l}",
        "make a [request|get request|GET request] to {l}",
        "[fetch|download] {l} from the [web|internet]",
    ],
    questions: &[
        "[what's|what is|whats] on [the website|the site|the page|the homepage of|the web page] {l}",
        "what does the [page|site|website|homepage] {l} [say|contain|show]",
        "what does the website of {l} say",
    ],
    statements: &[
        "curl {l}",
        "wget {l}",
        "curl {l}",
        "web_fetch {l}",
        "the [website|web page|site] {l}",
        "[i want|i need|i'd like] to [visit|browse] {l}",
        "[i want|i need|i'd like] to [see|read|open] the [website|site|page] {l}",
        "website {l}",
    ],
};

pub fn request(draw: &mut Draw) -> Request {
    if draw.chance(74) {
        let url = draw.url();
        let l = shown(draw, &url);
        return call("fetch", filled(&WITH_SCHEME.draw(draw), &[("l", &l)]), Call::fetch(url));
    }
    let host = draw.host();
    let host = if host.contains(".www.") { host.replace(".www.", ".") } else { host };
    let place = if draw.chance(45) { draw.location() } else { String::new() };
    let bare = format!("{host}{place}");
    let l = shown(draw, &bare);
    // Nobody takes www.… or a .com for a file.
    let clear =
        host.starts_with("www.") || [".com", ".org", ".net", ".de"].iter().any(|end| host.ends_with(end));
    let text = if clear && draw.chance(50) { WITH_SCHEME.draw(draw) } else { BARE.draw(draw) };
    call("fetch", filled(&text, &[("l", &l)]), Call::fetch(format!("https://{bare}")))
}

fn shown(draw: &mut Draw, address: &str) -> String {
    match draw.between(0, 99) {
        0..88 => address.to_owned(),
        88..93 => format!("<{address}>"),
        _ => quoted(draw, address),
    }
}
