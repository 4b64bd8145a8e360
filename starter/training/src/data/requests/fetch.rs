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
        "[see|find out|check|tell me|show me] what {l} [returns|responds|answers|gives back|has to say|serves|sends back|looks like|is about|is]",
        "[fire|send|issue|do|perform|run|make] [a get|a GET|an http|an HTTP GET|a quick|a web] request [to|against|for] {l}",
        "[hit|query|call|try] [the endpoint|the api at|the server at|the address] {l} and show me [the answer|the response|the reply|what it returns]",
        "[pull|grab|get] [the text|the content|the data|what's there|everything] [from|off] {l}",
        "[fetch|get|load|read] whatever [is at|is on|lies behind|is behind] {l}",
        "follow [this link: |the link |]{l}",
        "go online and [open|fetch|read] {l}",
        "[fetch|read|get] {l} and [tell me what it says|show me the answer|summarize it|print the text|show me the response|report back]",
        "[read|fetch|get|open] {l}, [i'm curious|my boss sent it|it's important|a friend sent it to me|i can't open it here]",
        "[read|fetch|open|get] {l} because i can't [open|reach] it [here|myself]",
        "[see|check] [if|whether] {l} is [up|online|reachable] and what it says",
        "bring me [the text of |the page |]{l}",
        "[tell me|see|check] what's on [that|this] [page|site|link]: {l}",
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
        "what's [there|new|going on|published|written|posted|shown|hosted|served] [at|on] {l}",
        "what does [it say|the page say|one find|one see] [at|on] {l}",
        "what do they [say|write|have] [on|at] {l}",
        "what [comes back|do we get|do i get|would i get] from {l}",
        "what is returned by {l}",
        "what happens [if you open|when you open|if i request] {l}",
        "is {l} up and what does it say",
        "is {l} [up|online|reachable|available|still there|working|alive]",
        "does {l} [work|respond|load|answer|exist|still work|return anything]",
        "can you reach {l}",
        "can {l} be [reached|fetched|read|opened]",
        "could i get [the page|the text] [at|from] {l}",
        "how does {l} [look|respond|answer|read]",
        "which [page|text|document|data] is [at|behind|under] {l}",
        "where does {l} lead",
        "what's [on|at|behind] [that|this] [page|link|site|url|website|address][:|,] {l}",
        "what does [this|that] [page|link|site|website|article|url] say[:|,] {l}",
        "what is it that {l} [says|returns]",
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
        "{l} - [what's there?|what does it say?|fetch please|read it for me|summary?|what's on that page?|up?]",
        "curl [-L|-sS|-sSL|-sL|-f] {l}",
        "wget [-qO- |-q |-O - ]{l}",
        "http [GET |]{l}",
        "[lynx|lynx -dump|links|w3m|elinks] {l}",
        "[get|fetch|url|link|open|page|read|this|this page|address]: {l}",
        "[my boss|a friend|my colleague|someone|our customer|the support] [sent|gave|mailed|showed] me {l}[, what is it?|. What does it say?|, what's there?|. Open it.|, please read it]",
        "[my boss|my colleague|someone|the customer] wants to know what [{l} says|is on {l}|is at {l}]",
        "i [can't|cannot] [open|reach|load|access|view] {l}[, can you?|, what does it say?|. Can you read it for me?|, please fetch it for me|. What's there?]",
        "i need to know what [{l} says|is on {l}|{l} returns]",
        "i [forgot|lost track of|wonder|don't know] what's on {l}",
        "would you mind [fetching|opening|reading|visiting|checking] {l}?",
        "if you [could|can] [fetch|open|read|load] {l}[, that would be great|]",
        "{l} [should|needs to|must] be [fetched|read|loaded]",
        "quick look at {l}[?|, please|]",
        "the [text|content|contents|page] [at|of|on] {l}[?| please|]",
        "[summary|text|content|source] of {l}",
        "there's [something|an article|a text|a list|a document] at {l}[, read it|. What does it say?|, show me]",
        "everything [on|at] {l}",
        "the answer [is|must be] [on|at] {l}[. Read it.|, have a look|, can you open it?]",
        "on {l}, what does it say?",
        "[on|at] {l} [there is|there should be] a text[, read it|. What does it say?|. Show me.]",
        "before [i answer|we go on|i reply], [read|fetch|open] {l}",
        "have you seen {l}? What does it say?",
        "is {l} up? What does it say?",
        "{l} [up|online|still there]?",
        "what's on {l}? I [can't open it|am curious|need to know|have no browser here].",
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
        "[open|follow|try] the link {l}",
        "go online and fetch {l}",
        "send a GET request to {l}",
        "have a look at the [website|site|page] {l}",
        "[see|check] [if|whether] the [website|site] {l} is [up|online|reachable]",
        "[see|find out|tell me] what [the website|the site|the page] {l} [says|returns|looks like|is about]",
        "[fetch|visit|download] {l} and [show me the text|tell me what it says|summarize it]",
    ],
    questions: &[
        "[what's|what is|whats] on [the website|the site|the page|the homepage of|the web page] {l}",
        "what does the [page|site|website|homepage] {l} [say|contain|show]",
        "what does the website of {l} say",
        "what's [new|there|going on] on the [site|website|page] {l}",
        "is the [site|website|page|web site] {l} [up|online|reachable|still there]",
        "does the [site|website] {l} [work|respond|load|exist]",
        "what would curl {l} [say|print|return]",
        "what do they say on [the website|the site|the page] {l}",
        "where does the link {l} lead",
        "can the [site|website|page] {l} be [reached|opened]",
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
        "curl [-s|-L|-sSL] {l}",
        "[http|lynx|w3m|links] {l}",
        "[site|website|url|link|web page|web]: {l}",
        "the [web page|website|site] {l}, please",
        "[my boss|a friend|someone] sent me the [link|url] {l}[, what is it?|. What does it say?|, please open it]",
        "the website {l}: what does it say?",
        "{l} (the website)[, what does it say?| please|]",
        "i [can't|cannot] [reach|open] the [site|website] {l}[, can you?|. What does it say?|, please fetch it for me]",
        "my browser won't open {l}, [fetch it|what's on that page?|what does the page say?]",
        "would you mind visiting [the site |]{l}?",
        "my boss wants to know what's on the [website|site] {l}",
        "GET {l}",
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
