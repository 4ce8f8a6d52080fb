// The field for several users, and groups if there are any: the chosen ones as pills, and a search that finds others.
import { useState } from "preact/hooks";
import type { UserGroup } from "../api/types.ts";
import { matches } from "../ui/matches.ts";
import { t } from "../i18n/text.ts";
import { groupName } from "./group_names.ts";
import { avatarOf, userName } from "../store/queries.ts";
import { read } from "../store/store.ts";
import { Icon } from "../ui/icons.tsx";

const maxOffers = 6; // of each kind

interface Props {
  users: number[];
  setUsers: (ids: number[]) => void;
  groups?: number[];
  setGroups?: (ids: number[]) => void;
  possible?: UserGroup[]; // the groups that can be chosen
}

export function PeopleField({ users, setUsers, groups = [], setGroups, possible = [] }: Props) {
  const [query, setQuery] = useState("");
  const all = read("users");
  const q = query.trim().toLowerCase();
  const label = setGroups ? t("Find users and groups") : t("Find users");
  const foundUsers = [...all.values()].filter((u) => q && u.is_active && !u.is_system_bot && !users.includes(u.user_id) && matches(u.full_name, q));
  const foundGroups = possible.filter((g) => !groups.includes(g.id) && matches(groupName(g), q));
  const add = (set: () => void) => () => {
    set();
    setQuery("");
  };
  return (
    <div class="people-field">
      <div class="pills" role="list" aria-label={t("Chosen")}>
        {groups.map((id) => (
          <Pill key={`g${id}`} name={groupName(read("groups").get(id))} remove={() => setGroups?.(groups.filter((x) => x !== id))} />
        ))}
        {users.map((id) => (
          <Pill key={`u${id}`} name={userName(id)} picture={avatarOf(all.get(id))} remove={() => setUsers(users.filter((x) => x !== id))} />
        ))}
        {users.length + groups.length === 0 && (
          <span class="quiet" role="listitem">
            {t("Nobody")}
          </span>
        )}
      </div>
      <input class="input" type="search" aria-label={label} placeholder={label} value={query} onInput={(e) => setQuery(e.currentTarget.value)} onKeyDown={(e) => e.key === "Enter" && e.preventDefault()} />
      <ul class="people-list" aria-label={t("Found")}>
        {foundUsers.slice(0, maxOffers).map((u) => (
          <Found key={`u${u.user_id}`} name={u.full_name} picture={avatarOf(u)} add={add(() => setUsers([...users, u.user_id]))} />
        ))}
        {foundGroups.slice(0, maxOffers).map((g) => (
          <Found key={`g${g.id}`} name={groupName(g)} add={add(() => setGroups?.([...groups, g.id]))} />
        ))}
      </ul>
    </div>
  );
}

function Pill({ name, picture, remove }: { name: string; picture?: string; remove: () => void }) {
  return (
    <span class="pill" role="listitem">
      {picture ? <img class="avatar tiny" src={picture} alt="" /> : <Icon name="people" size={14} />}
      {name}
      <button type="button" aria-label={t("Remove {name}", { name })} onClick={remove}>
        <Icon name="close" size={12} />
      </button>
    </span>
  );
}

function Found({ name, picture, add }: { name: string; picture?: string; add: () => void }) {
  return (
    <li>
      {picture ? <img class="avatar tiny" src={picture} alt="" /> : <Icon name="people" size={20} />}
      <span class="grow">{name}</span>
      <button type="button" class="button small quiet" aria-label={t("Add {name}", { name })} onClick={add}>
        {t("Add")}
      </button>
    </li>
  );
}
