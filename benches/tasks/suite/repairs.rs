//! Small projects with a test that fails. They come with a check, and only kontekst runs them.

use super::{Kind, Task};

pub(super) fn tasks() -> Vec<Task> {
    let python = |name, prompt, check| Task::new(name, Kind::Repair, prompt).check(check);
    let median = "def median(values):\n    ordered = sorted(values)\n    middle = len(ordered) // 2\n    return ordered[middle]\n";
    let even = "    if len(ordered) % 2 == 0:\n        return (ordered[middle - 1] + ordered[middle]) / 2\n";
    let slug = "def slug(title):\n    return title.lower().replace(\" \", \"_\")\n";
    let pages = "def pages(total, size):\n    \"\"\"Returns how many pages of this size hold all entries.\"\"\"\n    return total // size\n";
    let cart = "def total(items):\n    \"\"\"Each item is a name, a price and a count.\"\"\"\n    return sum(price for name, price, count in items)\n";
    let greet = "#!/bin/sh\nname=$1\necho \"Hello, $nme!\"\n";
    vec![
        python(
            "repair_median",
            "test_stats.py fails. Repair stats.py so that it passes.",
            "python3 -B test_stats.py",
        )
        .file("stats.py", median)
        .file(
            "test_stats.py",
            "from stats import median\n\nassert median([3, 1, 2]) == 2\nassert median([4, 1, 2, 3]) == 2.5, median([4, 1, 2, 3])\n",
        )
        .behaves(
            "stats.py",
            &[&median.replace("    return", &format!("{even}    return"))],
            &["median([3, 1, 2]) == 2", "median([4, 1, 2, 3]) == 2.5", "median([7]) == 7"],
        ),
        python(
            "repair_slug",
            "The test in test_slug.py fails. Fix the function slug in slug.py.",
            "python3 -B test_slug.py",
        )
        .file("slug.py", slug)
        .file(
            "test_slug.py",
            "from slug import slug\n\nfound = slug('Hello Big World')\nassert found == 'hello-big-world', found\n",
        )
        .behaves("slug.py", &[&slug.replace('_', "-")], &["slug('A b C') == 'a-b-c'", "slug('x') == 'x'"]),
        python(
            "repair_pages",
            "Run python3 -B test_pages.py, and repair pages.py until the test passes.",
            "python3 -B test_pages.py",
        )
        .file("pages.py", pages)
        .file(
            "test_pages.py",
            "from pages import pages\n\nfor total, expected in [(0, 0), (10, 2), (11, 3), (14, 3)]:\n    found = pages(total, 5)\n    assert found == expected, f'pages({total}, 5) is {found}, not {expected}'\n",
        )
        .behaves(
            "pages.py",
            &[&pages.replace("total // size", "(total + size - 1) // size")],
            &["pages(10, 5) == 2", "pages(11, 5) == 3", "pages(0, 5) == 0", "pages(1, 3) == 1"],
        ),
        python(
            "repair_cart",
            "The test fails. Find out why and repair the code, not the test.",
            "python3 -B test_cart.py",
        )
        .file("cart.py", cart)
        .file("README.md", "# Cart\n\nAdds up what is in a cart.\n")
        .file(
            "test_cart.py",
            "from cart import total\n\nfound = total([('tea', 3, 2), ('milk', 1, 5)])\nassert found == 11, f'the total is {found}, not 11'\n",
        )
        .behaves(
            "cart.py",
            &[&cart.replace("sum(price for", "sum(price * count for")],
            &["total([('tea', 3, 2), ('milk', 1, 5)]) == 11", "total([]) == 0"],
        ),
        python("repair_greet", "test.sh fails. Repair greet.sh so that it passes.", "sh test.sh")
            .file("greet.sh", greet)
            .file(
                "test.sh",
                "#!/bin/sh\nfound=$(sh greet.sh Ada)\nif [ \"$found\" != 'Hello, Ada!' ]; then\n  echo \"greet.sh says: $found\"\n  exit 1\nfi\n",
            )
            .becomes(
                "greet.sh",
                &[
                    &greet.replace("$nme", "$name"),
                    &greet.replace("$nme", "${name}"),
                    &greet.replace("name=", "nme="),
                ],
            ),
    ]
}
