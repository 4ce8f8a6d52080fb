// Calls about the places outside the server to which data of the organization can go.
import { request } from "./client.ts";
import type * as answers from "./schema.ts";

export type Places = answers.GetPlacesAnswer;
export type Place = Places["places"][number];

export function getPlaces(): Promise<Places> {
  return request("/places");
}
