// Settings that the server only stores are hidden: its page names them, and a registration says whether it sends digests.
import { read } from "../store/store.ts";

let unused: Set<string> | undefined; // cache

const digests = ["digest_emails_enabled", "digest_weekday", "enable_digest_emails"];

export function hasEffect(setting: string): boolean {
  if (digests.includes(setting)) return read("realm").settings_send_digest_emails === true;
  unused ??= new Set((document.querySelector<HTMLMetaElement>('meta[name="settings-without-effect"]')?.content ?? "").split(" "));
  return !unused.has(setting);
}
