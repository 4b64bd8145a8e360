//! Tests of the text that comes out of a page.

use expect_test::{Expect, expect};

use super::*;

fn text(html: &str) -> String {
    String::from_utf8(page_as_markdown(html.as_bytes()).unwrap()).unwrap()
}

#[track_caller]
fn check(html: &str, expected: &Expect) {
    expected.assert_eq(&text(html));
}

#[test]
fn headings_paragraphs_and_links_are_shown() {
    check(
        "<!doctype html><html><head><title>T</title><style>p{}</style></head><body><h1>Head</h1>\n <p>One  \n\
         <a href='https://x.example/a?b=1&amp;c'>link</a>, <b>bold</b> and <code>let x</code>.<p>Two\
         <br>lines &lt;tag&gt; &eacute;&#x1F600;<hr><a href='/b'><img alt='Logo'></a> <a href='#x'>here</a>\
         <a href='javascript:x()'>js</a></body></html>",
        &expect![[r#"
            # Head

            One [link](https://x.example/a?b=1&c), **bold** and `let x`.

            Two
            lines <tag> é😀

            * * *

            [[Logo]](/b) herejs"#]],
    );
}

#[test]
fn lists_are_indented() {
    check(
        "Before<ul><li>first<li><p>second</p><p>more</p></li><li>third<ol start=3><li>a<li>b</ol></li></ul>\
         After<ol><li></li><li>x</ol>",
        &expect![[r#"
            Before

            * first
            * second

              more

            * third
              3. a
              4. b

            After

            1.
            2. x"#]],
    );
}

#[test]
fn a_row_of_a_table_is_a_line() {
    check(
        "<table><thead><tr><th>Name<th>Size</tr></thead><tbody><tr><td><p>a</p></td><td>1<br>2</td></tr>\
         <tr><td></td><td></td><td>x</td></tr></table><p>End",
        &expect![[r#"
            Name | Size
            a | 1 2
             |  | x

            End"#]],
    );
}

#[test]
fn a_table_for_layout_keeps_its_lines() {
    check(
        "<table><tr><td><h2>Menu</h2><ul><li>a<li>b</ul></td><td><p>Main</p><p>text</p></td></tr></table>",
        &expect![[r"
            ## Menu

            * a
            * b

            Main

            text"]],
    );
}

#[test]
fn preformatted_text_and_quotes_keep_their_form() {
    check(
        "<p>x</p><pre>\nfn  a() {\n\n    <b>b</b>()\n}\n</pre><blockquote>q<p>r <i>s</i></p></blockquote>end",
        &expect![[r#"
            x

            fn  a() {

                **b**()
            }

            > q
            >
            > r *s*

            end"#]],
    );
}

#[test]
fn hidden_elements_are_left_out() {
    check(
        "a<div hidden>1<div>2</div>3</div>b<p style='Display : none'>4<p>c<ul><li hidden>5<ul><li>6</ul><li>d\
         <li style='visibility:hidden'>7</ul>e<script>8</script><noscript>9</noscript><svg><text>0</text></svg>\
         <template>t</template><input hidden value=v>f<span hidden=hidden>g</span>",
        &expect![[r#"
            ab

            c

            * d

            ef"#]],
    );
}

#[test]
fn broken_markup_is_read_to_its_end() {
    check(
        "</p></b></ul><a href=x>one<a href=y>two</a></a></li><li>three</td>four<b><p>five</b><unknown>six</x><",
        &expect![[r#"
            [one](x)[two](y)
            * threefour

              **five**six<"#]],
    );
}

#[test]
fn a_table_has_all_cells_and_no_padding() {
    check(
        "<table><tr><th>Born<td>23 June 1912<tr><th>Died<td>7 June 1954</table>\
         <table><caption>Sales</caption><thead><tr><th><th>2023<tbody><tr><th>a much longer name<td>1</table>\
         <table><tr><td><table><tr><td>1.<td><a href=/x>Title</a> (x.com)</table></table>",
        &expect![[r#"
            Born | 23 June 1912
            Died | 7 June 1954

            Sales
             | 2023
            a much longer name | 1

            1. | [Title](/x) (x.com)"#]],
    );
}

#[test]
fn names_and_text_that_looks_like_markdown_are_shown_as_they_are() {
    check(
        "<p>read_to_string *x* [y] `z` \\n Vec&lt;T&gt;<p>\
         # no heading<p>- no item<p>1. no number<p>&gt; no quote<p>a+b=c~d",
        &expect![[r#"
            read_to_string *x* [y] `z` \n Vec<T>

            # no heading

            - no item

            1. no number

            > no quote

            a+b=c~d"#]],
    );
}

#[test]
fn a_long_page_is_cut_and_a_deep_one_read() {
    assert_eq!(text(&"é".repeat(MAX_OUTPUT)).len(), MAX_OUTPUT + 4);
    assert_eq!(text(&format!("{}x", "<div>".repeat(5000))), "x");
    let deep = text(&"<ul><li>x".repeat(100));
    assert_eq!(deep.matches('x').count(), 100, "{deep}");
}

#[test]
fn a_conversion_that_fails_or_is_cancelled_is_an_error() {
    let cancel = Cancel::new();
    let message = |launcher| in_process("<p>x", launcher, &cancel).unwrap_err().message;
    assert_eq!(
        message(None),
        "the page cannot be turned into text: this program does not know where it is; `raw` returns its HTML"
    );
    let fails = message(Some(Path::new("/bin/false")));
    assert!(fails.contains("its process ended with exit status: 1; `raw`"), "{fails}");
    cancel.cancel();
    let cancelled = in_process("<p>x", Some(Path::new("/bin/false")), &cancel);
    assert_eq!(cancelled, Err(Failure::cancelled()));
}
