//! Tasks in a project of thirty files, of which few matter.

use super::{Kind, Task};

pub(super) fn tasks() -> Vec<Task> {
    vec![
        project("project_find", "In which file is it decided how long a login stays valid?")
            .says(&["auth/tokens.py", "tokens.py", "shop/auth/tokens.py"])
            .answers("In shop/auth/tokens.py.", "In shop/auth/login.py."),
        project("project_rate", "Invoices show a VAT of 16 %, but it is 19 % again.").replaces(
            "shop/billing/tax.py",
            "0.16",
            "0.19",
        ),
        ["shop/billing/money.py", "shop/billing/invoice.py", "shop/mail/receipt.py"].iter().fold(
            project(
                "project_rename",
                "fmt_amount is a bad name for a function, format_amount would be right.",
            ),
            |task, path| task.replaces(path, "fmt_amount", "format_amount"),
        ),
    ]
}

/// Files that matter to one of the tasks, or look as if they did.
const FILES: &[(&str, &str)] = &[
    ("README.md", "# Shop\n\nRun it with `python3 -m shop`.\n"),
    ("shop/__main__.py", "from shop.web.server import serve\n\nserve()\n"),
    (
        "shop/auth/login.py",
        "from shop.auth.tokens import new_token\n\n\ndef login(user, password):\n    return new_token(user) if user.check(password) else None\n",
    ),
    (
        "shop/auth/tokens.py",
        "import time\n\nLIFETIME = 14 * 24 * 3600\n\n\ndef new_token(user):\n    return user.name, time.time() + LIFETIME\n",
    ),
    (
        "shop/billing/money.py",
        "def fmt_amount(cents):\n    return f\"{cents // 100}.{cents % 100:02} EUR\"\n",
    ),
    ("shop/billing/tax.py", "VAT = 0.16\n\n\ndef with_tax(cents):\n    return round(cents * (1 + VAT))\n"),
    ("shop/billing/discount.py", "RATES = {\"silver\": 0.05, \"gold\": 0.16}\n"),
    (
        "shop/billing/invoice.py",
        "from shop.billing.money import fmt_amount\nfrom shop.billing.tax import with_tax\n\n\ndef invoice(lines):\n    return [fmt_amount(with_tax(cents)) for cents in lines]\n",
    ),
    (
        "shop/mail/receipt.py",
        "from shop.billing import money\n\n\ndef receipt(cents):\n    return f\"Paid: {money.fmt_amount(cents)}\"\n",
    ),
    ("shop/web/server.py", "def serve(port=8000):\n    print(\"listening on\", port)\n"),
];

/// Returns a task with these files and twenty more.
fn project(name: &'static str, prompt: &'static str) -> Task {
    let task = FILES
        .iter()
        .fold(Task::new(name, Kind::Project, prompt), |task, (path, text)| task.file(path, *text));
    let names =
        ["about", "account", "basket", "brands", "checkout", "contact", "faq", "help", "jobs", "press"];
    names.iter().fold(task, |task, name| {
        let page = format!(
            "TITLE = \"{name}\"\n\n\ndef {name}(request):\n    return request.page(TITLE, lines=12)\n"
        );
        let test = format!(
            "from shop.pages.{name} import TITLE\n\n\ndef test_title():\n    assert TITLE == \"{name}\"\n"
        );
        task.file(&format!("shop/pages/{name}.py"), page).file(&format!("tests/test_{name}.py"), test)
    })
}
