// The field for several users, and groups if there are any: the chosen ones as pills, and a picker that finds others.
import type { UserGroup } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { groupName } from "./group_names.ts";
import { userName } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { Avatar } from "../ui/avatar.tsx";
import { Icon } from "../ui/icons.tsx";
import { Picker, type PickerOption } from "../ui/picker.tsx";

interface Props {
  users: number[];
  setUsers: (ids: number[]) => void;
  groups?: number[];
  setGroups?: (ids: number[]) => void;
  possible?: UserGroup[]; // the groups that can be chosen
}

export function PeopleField({ users, setUsers, groups = [], setGroups, possible = [] }: Props) {
  const all = [...read("users").values()].filter((u) => u.is_active && !u.is_system_bot && !users.includes(u.user_id));
  all.sort((a, b) => a.full_name.localeCompare(b.full_name));
  const options: PickerOption<string>[] = [
    ...possible.filter((g) => !groups.includes(g.id)).map((g): PickerOption<string> => ({ value: `g${g.id}`, label: groupName(g), icon: "people" })),
    ...all.map((u): PickerOption<string> => ({ value: `u${u.user_id}`, label: u.full_name, detail: u.email, user: u.user_id })),
  ];
  const add = (key: string): void => {
    const id = Number(key.slice(1));
    if (key.startsWith("u")) setUsers([...users, id]);
    else setGroups?.([...groups, id]);
  };
  const label = setGroups ? t("Find users and groups") : t("Find users");
  return (
    <div class="people-field">
      <div class="pills" role="list" aria-label={t("Chosen")}>
        {groups.map((id) => (
          <Pill key={`g${id}`} name={groupName(read("groups").get(id))} remove={() => setGroups?.(groups.filter((x) => x !== id))} />
        ))}
        {users.map((id) => (
          <Pill key={`u${id}`} name={userName(id)} user={id} remove={() => setUsers(users.filter((x) => x !== id))} />
        ))}
        {users.length + groups.length === 0 && (
          <span class="quiet" role="listitem">
            {t("Nobody")}
          </span>
        )}
      </div>
      <Picker label={label} placeholder={label} value={undefined} options={options} choose={add} />
    </div>
  );
}

function Pill({ name, user, remove }: { name: string; user?: number; remove: () => void }) {
  return (
    <span class="pill" role="listitem">
      {user === undefined ? <Icon name="people" size={14} /> : <Avatar id={user} size={20} />}
      {name}
      <button type="button" aria-label={t("Remove {name}", { name })} onClick={remove}>
        <Icon name="close" size={12} />
      </button>
    </span>
  );
}
