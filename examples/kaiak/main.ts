// A whole conversation: it creates a session, requests a fix, shows the proposal, approves it, reads the changed file
// and terminates the session.
//
//   KONTEKST=target/release/kontekst node out/main.js WORKSPACE FILE LINE MESSAGE

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { StreamMessageReader, StreamMessageWriter, createMessageConnection } from "vscode-jsonrpc/node";

import * as api from "./api";

async function main([workspace, file, line, message]: string[]): Promise<void> {
  if (!workspace || !file || !line || !message) {
    throw new Error("usage: main.js WORKSPACE FILE LINE MESSAGE");
  }
  const server = spawn(process.env.KONTEKST ?? "kontekst", ["rpc"], { stdio: ["pipe", "pipe", "inherit"] });
  const connection = createMessageConnection(
    new StreamMessageReader(server.stdout),
    new StreamMessageWriter(server.stdin),
  );
  const exited = new Promise<number | null>((done) => server.on("exit", done));
  const completed = new Promise<string>((done, failed) => {
    connection.onNotification(api.OnSystem, ({ content }) => {
      if (content.event === "request_completed") done(content.status);
    });
    connection.onClose(() => failed(new Error("the server is gone")));
    server.on("error", failed);
  });

  const proposals = new Map<string, api.FileModification>();
  connection.onNotification(api.OnProgress, ({ content }) => {
    console.log(`${String(content.percentage).padStart(3)} % ${content.description}`);
  });
  connection.onNotification(api.OnError, ({ content }) => console.log(`! ${content.message}`));
  connection.onNotification(api.OnProposal, ({ proposal_id, content }) => {
    proposals.set(proposal_id, content);
    console.log(`proposed for ${content.file_path}: ${content.description}`);
    console.log(content.proposed_content);
  });
  connection.onNotification(api.OnQuestion, async ({ interaction_id, content }) => {
    const proposal = proposals.get(content.proposal_id ?? "");
    // An editor would show the difference and ask the user. This example approves it.
    const approved = proposal !== undefined;
    console.log(`${content.prompt} ${approved ? "yes" : "no"}`);
    await connection.sendRequest(api.Respond, {
      interaction_id,
      response_type: "approval",
      response_data: { approved },
    });
    if (proposal && readFileSync(join(workspace, proposal.file_path), "utf8") !== proposal.proposed_content) {
      throw new Error(`${proposal.file_path} is not what was approved`);
    }
  });
  connection.listen();

  const { session_id } = await connection.sendRequest(api.Create, { workspace_path: resolve(workspace) });
  await connection.sendRequest(api.Generate, {
    session_id,
    incidents: [
      {
        id: "example-1",
        rule_id: "example",
        file_path: file,
        line_number: Number(line),
        severity: "warning",
        description: message,
        message,
      },
    ],
  });
  const status = await completed;
  const { message_count } = await connection.sendRequest(api.Terminate, { session_id });
  console.log(`${status} after ${message_count} messages`);
  server.stdin.end();
  if ((await exited) !== 0 || status !== "success") process.exitCode = 1;
}

main(process.argv.slice(2)).catch((error) => {
  console.error(String(error));
  process.exit(1);
});
