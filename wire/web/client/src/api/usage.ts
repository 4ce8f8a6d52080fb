// Calls of the pages about usage and of the audit log.
import { request } from "./client.ts";
import type * as answers from "./schema.ts";

type ChartName = "number_of_humans" | "messages_sent_over_time" | "messages_sent_by_message_type" | "messages_sent_by_client" | "messages_read_over_time";
export type Chart = answers.GetAnalyticsChartDataAnswer;
export type Totals = answers.GetUsageAnswer;
export type AuditEntry = answers.GetAuditLogAnswer["entries"][number];

// getChart returns a chart that begins at a time, in seconds since 1970.
export function getChart(chart_name: ChartName, start: number): Promise<Chart> {
  return request("/analytics/chart_data", { params: { chart_name, start } });
}

export function getUsage(days: number): Promise<Totals> {
  return request("/usage", { params: { days } });
}

// AuditFilter selects entries; undefined selects all. With before, an id, only older ones are selected.
export interface AuditFilter {
  kind?: string;
  acting_user_id?: number;
  user_id?: number;
  channel_id?: number;
  before?: number;
  limit?: number;
}

export function getAuditLog(filter: AuditFilter): Promise<answers.GetAuditLogAnswer> {
  return request("/audit_log", { params: { ...filter } });
}

export function keepAuditLog(retention_days: number): Promise<unknown> {
  return request("/audit_log", { method: "PATCH", params: { retention_days } });
}
