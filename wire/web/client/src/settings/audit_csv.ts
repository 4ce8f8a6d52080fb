// The audit log as a table of comma-separated values.
import type { AuditEntry } from "../api/usage.ts";

const columns = ["id", "timestamp", "kind", "acting_user_id", "via", "client", "address", "user_id", "channel_id", "group_id", "name", "old", "new", "count"] as const satisfies readonly (keyof AuditEntry)[];

// cell returns a value that no spreadsheet takes for a formula or for more than one cell.
export function cell(value: string | number | null): string {
  let text = String(value ?? "");
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCsv(entries: readonly AuditEntry[]): string {
  const lines = entries.map((e) => columns.map((c) => (c === "timestamp" ? new Date(e.timestamp * 1000).toISOString() : cell(e[c]))).join(","));
  return [columns.join(","), ...lines].join("\r\n") + "\r\n";
}
