// The types of the Kaiak API: the requests of an editor and the notifications it receives.

import { NotificationType, RequestType } from "vscode-jsonrpc/node";

export interface Incident {
  id: string;
  rule_id: string;
  /** The path relative to the workspace. */
  file_path: string;
  /** The line number, counted from 1. */
  line_number: number;
  severity: "error" | "warning" | "info";
  description: string;
  message: string;
  category?: string;
  metadata?: Record<string, unknown>;
}

/** The envelope of every notification. */
export interface Notification<Content> {
  session_id: string;
  request_id: string;
  /** `msg-1`, `msg-2`, … The number rises within a session. */
  message_id: string;
  timestamp: string;
  content: Content;
}

export interface Progress {
  /** From 0 to 100. It never decreases. */
  percentage: number;
  phase: string;
  description: string;
}

export interface FileModification {
  file_path: string;
  change_type: "edit" | "create";
  description: string;
  original_content: string;
  /** The text that is written if it is approved and the file still has `original_content`. */
  proposed_content: string;
}

export interface UserInteraction {
  interaction_type: "approval" | "choice" | "input";
  prompt: string;
  /** The time limit in seconds. No answer in time counts as a rejection. */
  timeout: number;
  proposal_id?: string;
  options?: string[];
  multiple?: boolean;
}

export interface StreamError {
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

export const OnProgress = new NotificationType<Notification<Progress>>("kaiak/stream/progress");
export const OnText = new NotificationType<Notification<{ text: string; partial: boolean }>>("kaiak/stream/ai_response");
export const OnProposal = new NotificationType<Notification<FileModification> & { proposal_id: string }>(
  "kaiak/stream/file_modification",
);
export const OnQuestion = new NotificationType<Notification<UserInteraction> & { interaction_id: string }>(
  "kaiak/stream/user_interaction",
);
export const OnError = new NotificationType<Notification<StreamError>>("kaiak/stream/error");
export const OnSystem = new NotificationType<Notification<System>>("kaiak/stream/system");
