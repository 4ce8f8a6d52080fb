import { errorText } from "../api/client.ts";
import { notify } from "../store/notices.ts";

// copyText puts a text into the clipboard and shows a notice.
export async function copyText(text: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify(done);
  } catch (err) {
    notify(errorText(err), "error");
  }
}
