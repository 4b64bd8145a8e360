// Uses the web page in a real browser with the keyboard only: drive.mjs ADDRESS SCREENSHOTS.
// Needs playwright-core (NODE_PATH or PLAYWRIGHT says where) and Debian's chromium.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";

const [address, shots] = process.argv.slice(2);
const require = createRequire(join(process.env.PLAYWRIGHT ?? process.cwd(), "x.js"));
const { chromium } = require("playwright-core");

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"],
});
const page = await browser.newPage({ viewport: { width: 1100, height: 760 }, colorScheme: "light" });
const problems = [];
page.on("pageerror", (error) => problems.push(String(error)));
page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
const shot = (name) => page.screenshot({ path: join(shots, `${name}.png`) });
const said = (text) => page.locator("#log").getByText(text).first().waitFor();

// The page takes the token and removes it from the address.
await page.goto(address);
await page.locator("#status").getByText("kontekst").waitFor();
assert.ok(!page.url().includes("token"), page.url());
assert.equal(await page.evaluate(() => document.activeElement.id), "prompt");
// It works in the directory that came with the address, also after it was loaded again.
const dir = new URLSearchParams(new URL(address).hash.slice(1)).get("dir");
assert.equal(await page.locator("#folder").inputValue(), dir);
await page.reload();
await page.locator("#status").getByText("kontekst").waitFor();
assert.equal(await page.locator("#folder").inputValue(), dir);

// A prompt and its answer, with text that must not become markup.
await page.keyboard.type("hello there");
await page.keyboard.press("Enter");
await said("Hello <img src=x onerror=alert(1)> world");
assert.equal(await page.locator("#log img").count(), 0);
await page.locator("#log pre").getByText("let x = 1;").waitFor();
// A character that turns the text around it is spelled out.
await said("The picture is \\u{202e}gnp.exe");
await page.locator("#meter-text").getByText("tokens").waitFor();
await page.locator("#sessions").getByText("hello there").waitFor();
await shot("answer");

await page.setViewportSize({ width: 1100, height: 420 });
// Two calls: one is approved and one is denied with a reason, with the keyboard.
await page.keyboard.type("change the file");
await page.keyboard.press("Enter");
await page.locator("#ask .call").nth(1).waitFor();
// The end of the conversation stays in sight when the calls are shown.
const hidden = await page.locator("#log").evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);
assert.ok(hidden < 2, `${hidden} pixels are hidden`);
assert.ok(await page.locator("#log").evaluate((log) => log.scrollTop > 0), "the conversation is long enough to scroll");
assert.ok(await page.locator("#ask .del").getByText("-alpha").first().isVisible());
assert.ok(await page.locator("#ask .add").getByText("+beta").first().isVisible());
await shot("approval");
await page.keyboard.press("Escape");
await page.keyboard.press("a");
await page.locator("#ask .call").nth(1).waitFor({ state: "detached" });
await page.keyboard.press("d");
await page.keyboard.type("leave that one");
await page.keyboard.press("Enter");
await said("All done.");
assert.ok(await page.locator("#ask").isHidden());

// A run that is cancelled, in dark mode.
await page.setViewportSize({ width: 1100, height: 760 });
await page.emulateMedia({ colorScheme: "dark" });
await page.locator("#prompt").focus();
await page.keyboard.type("something slow");
await page.keyboard.press("Enter");
await said("Slowly");
await page.keyboard.press("Escape");
await page.keyboard.press("Escape");
await said("Stopped.");
await shot("stopped-dark");

// The list of sessions and the list of keyboard shortcuts.
await page.keyboard.press("n");
await page.locator("#title").getByText("New session").waitFor();
await page.keyboard.press("Escape");
await page.keyboard.press("j");
await said("Hello <img src=x onerror=alert(1)> world");
await page.keyboard.press("?");
await page.locator("#help[open]").waitFor();
await shot("help");
await page.keyboard.press("Enter");
await page.setViewportSize({ width: 380, height: 700 });
await page.locator("#menu").click();
await page.locator("#side.open").waitFor();
await shot("narrow");

// Without a token the page shows nothing.
const stranger = await browser.newContext();
const other = await stranger.newPage();
await other.goto(address.split("#")[0]);
await other.locator("#status").getByText("kontekst web").waitFor();
await browser.close();
assert.deepEqual(problems, []);
console.log("all good");
