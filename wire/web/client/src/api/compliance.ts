// Calls about requests for compliance exports.
import { request } from "./client.ts";
import type * as answers from "./schema.ts";

export type Compliance = answers.GetComplianceExportsAnswer;
export type ComplianceRequest = Compliance["requests"][number];

export function getCompliance(): Promise<Compliance> {
  return request("/compliance_exports");
}

export function demandTwoOwners(two_owners: boolean): Promise<unknown> {
  return request("/compliance_exports", { method: "PATCH", params: { two_owners } });
}

// Criteria choose messages; undefined chooses all. Times are seconds since 1970.
export interface Criteria {
  user_ids?: number[];
  channel_ids?: number[];
  start?: number;
  end?: number;
  search?: string;
  format: string;
}

export function askForExport(criteria: Criteria): Promise<unknown> {
  return request("/compliance_exports", { method: "POST", params: { ...criteria } });
}

export function answerRequest(id: number, approve: boolean): Promise<unknown> {
  return request(`/compliance_exports/${id}`, { method: "POST", params: { approve } });
}
