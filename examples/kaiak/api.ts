// The Kaiak API as types: what an editor sends and what it hears.

import { NotificationType, RequestType } from "vscode-jsonrpc/node";

export interface Incident {
  id: string;
  rule_id: string;
  /** Relative to the workspace. */
  file_path: string;
  /** From 1. */
  line_number: number;
  severity: "error" | "warning" | "info";
  description: string;
  message: string;
  category?: string;
  metadata?: Record<string, unknown>;
}

/** What every notification has around its content. */
export interface Told<Content> {
  session_id: string;
  request_id: string;
  /** `msg-1`, `msg-2`, … rising within a session. */
  message_id: string;
  timestamp: string;
  content: Content;
}

export interface Progress {
  /** 0 to 100, never falling. */
  percentage: number;
  phase: string;
  description: string;
}

export interface FileModification {
  file_path: string;
  change_type: "edit" | "create";
  description: string;
  original_content: string;
  /** Exactly this is written if it is approved and the file is still `original_content`. */
  proposed_content: string;
}

export interface UserInteraction {
  interaction_type: "approval" | "choice" | "input";
  prompt: string;
  /** Seconds; no answer means no. */
  timeout: number;
  proposal_id?: string;
  options?: string[];
  multiple?: boolean;
}

export interface Trouble {
  error_code: string;
  message: string;
  recoverable: boolean;
}

export interface System {
  event: string;
  status: string;
  summary: Record<string, unknown>;
}

type Answer =
  | { response_type: "approval"; response_data: { approved: boolean; comment?: string } }
  | { response_type: "choice"; response_data: { selected_indices: number[] } }
  | { response_type: "input"; response_data: { text: string } };

export const Create = new RequestType<
  { workspace_path: string; session_name?: string },
  { session_id: string; status: "created"; created_at: string },
  object
>("kaiak/session/create");

export const Terminate = new RequestType<
  { session_id: string },
  { session_id: string; status: "terminated"; message_count: number },
  object
>("kaiak/session/terminate");

export const Generate = new RequestType<
  { session_id: string; incidents: Incident[]; migration_context?: Record<string, unknown> },
  { request_id: string; status: "processing"; incident_count: number },
  object
>("kaiak/fix/generate");

export const Respond = new RequestType<
  { interaction_id: string } & Answer,
  { interaction_id: string; status: "processed"; responded_at: string },
  object
>("kaiak/interaction/respond");

export const OnProgress = new NotificationType<Told<Progress>>("kaiak/stream/progress");
export const OnText = new NotificationType<Told<{ text: string; partial: boolean }>>("kaiak/stream/ai_response");
export const OnProposal = new NotificationType<Told<FileModification> & { proposal_id: string }>(
  "kaiak/stream/file_modification",
);
export const OnQuestion = new NotificationType<Told<UserInteraction> & { interaction_id: string }>(
  "kaiak/stream/user_interaction",
);
export const OnTrouble = new NotificationType<Told<Trouble>>("kaiak/stream/error");
export const OnSystem = new NotificationType<Told<System>>("kaiak/stream/system");
