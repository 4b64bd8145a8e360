//! Tests of the text that comes out of a page.

use expect_test::{Expect, expect};

use super::*;

fn text(html: &str) -> String {
    to_text(html, 1 << 20, &Cancel::new()).unwrap()
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

            One [link][1], **bold** and `let x`.

            Two
            lines <tag> é😀
            ---
            [[Logo]][2] herejs

            [1]: https://x.example/a?b=1&c
            [2]: /b"#]],
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
            [one][1][two][2]
            * three four

            fivesix<

            [1]: x
            [2]: y"#]],
    );
}

#[test]
fn the_limits_hold() {
    assert_eq!(to_text(&"word ".repeat(1000), 100, &Cancel::new()).unwrap().len(), 99);
    assert_eq!(to_text(&"é".repeat(1000), 101, &Cancel::new()).unwrap(), "é".repeat(50));
    let attributes: String = (0..200).map(|n| format!("a{n}=b ")).collect();
    assert_eq!(text(&format!("<a {attributes} href=x>y</a>")), "y");
    assert_eq!(text(&format!("<a href='{}'>y</a>", "x".repeat(3000))), "y");
    assert_eq!(text("<a href=x href=z>y</a>"), "[y][1]\n\n[1]: x");
    let deep = text(&"<ul><li>x".repeat(100));
    assert!(deep.lines().all(|line| line.len() < 30), "{deep}");
}
