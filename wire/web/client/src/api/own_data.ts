// Calls about the file with the data of the user.
import { request } from "./client.ts";
import type * as answers from "./schema.ts";

export type OwnExport = answers.GetUsersMeDataExportsAnswer["exports"][number];

export function getOwnExports(): Promise<answers.GetUsersMeDataExportsAnswer> {
  return request("/users/me/data_exports");
}

// startOwnExport starts to write the file. password is required unless the user has just entered it.
export function startOwnExport(password: string): Promise<unknown> {
  return request("/users/me/data_exports", { method: "POST", params: { password } });
}

export function deleteOwnExport(id: number): Promise<unknown> {
  return request(`/users/me/data_exports/${id}`, { method: "DELETE" });
}
