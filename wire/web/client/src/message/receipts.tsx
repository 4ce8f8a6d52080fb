// The users that have read a message.
import { useEffect, useState } from "preact/hooks";
import { errorText } from "../api/client.ts";
import { getReceipts } from "../api/endpoints.ts";
import type { Message } from "../api/types.ts";
import { plural, t } from "../i18n/text.ts";
import { userName } from "../store/queries.ts";
import { Avatar } from "../ui/avatar.tsx";
import { PersonName } from "../people/card.tsx";
import { closeOn, Dialog, openDialog } from "../ui/dialogs.tsx";

export function openReceipts(m: Message): void {
  openDialog(<Receipts id={m.id} />);
}

function Receipts({ id }: { id: number }) {
  const [users, setUsers] = useState<number[] | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    getReceipts(id).then(
      (a) => setUsers(a.user_ids.toSorted((x, y) => userName(x).localeCompare(userName(y)))),
      (err: unknown) => setError(errorText(err)),
    );
  }, [id]);
  return (
    <Dialog keys={closeOn("V")} title={t("Read by")}>
      <div class="dialog-text">
        {error && <p role="alert">{error}</p>}
        {users && <p class="quiet">{plural(users.length, "{count} person has read this message.", "{count} people have read this message.")}</p>}
        <ul class="people-list">
          {users?.map((u) => (
            <li key={u}>
              <Avatar id={u} size={26} />
              <PersonName id={u} />
            </li>
          ))}
        </ul>
      </div>
    </Dialog>
  );
}
