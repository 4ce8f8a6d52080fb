// The users of the organization: people, deactivated ones and bots, and the window that changes one of them.
import { useEffect, useState } from "preact/hooks";
import * as api from "../api/administration.ts";
import { addSubscribers, getChannelsOf, removeSubscribers } from "../api/channels.ts";
import { changeMembers } from "../api/groups.ts";
import { Role, type User } from "../api/types.ts";
import { plural, t } from "../i18n/text.ts";
import { PersonName, presenceText, roleName } from "../people/card.tsx";
import { attempt } from "../store/actions.ts";
import { isShort } from "../store/people.ts";
import { isInSetting, userName } from "../store/queries.ts";
import type { PeopleQuery } from "../api/people.ts";
import { ShowMore } from "../people/pick.tsx";
import { useFound } from "../people/found.ts";
import { peek, read } from "../store/store.ts";
import { Avatar } from "../ui/avatar.tsx";
import { closeDialog, Dialog, openDialog } from "../ui/dialogs.tsx";
import { channelIcon } from "../ui/icons.tsx";
import { Picker, type PickerOption } from "../ui/picker.tsx";
import { FilterField, RowTable, SettingsForm } from "../forms/forms.tsx";
import { isInput, profileInputs, profileValues } from "./profile_inputs.ts";

// ofTab is what the server finds for a tab in a large organization.
const ofTab: Record<Tab, Omit<PeopleQuery, "query">> = {
  people: { kind: "people" },
  deactivated: { deactivated: "only" },
  bots: { kind: "bots" },
};

const maxRows = 100; // of one table; the filter finds the others

type Tab = "people" | "deactivated" | "bots";

export function Users() {
  const [filter, setFilter] = useState("");
  const [tab, setTab] = useState<Tab>("people");
  const wanted = filter.trim().toLowerCase();
  const all = [...read("users").values()].filter((u) => !u.is_system_bot && !u.is_deleted);
  const inTab: Record<Tab, User[]> = {
    people: all.filter((u) => u.is_active && !u.is_bot),
    deactivated: all.filter((u) => !u.is_active),
    bots: all.filter((u) => u.is_active && u.is_bot),
  };
  const tabs: [Tab, string][] = [
    ["people", t("Users")],
    ["deactivated", t("Deactivated")],
    ["bots", t("Bots")],
  ];
  const short = isShort();
  const pages = useFound(wanted, ofTab[tab], short);
  const users = read("users");
  const listed = short ? pages.ids.flatMap((id) => users.get(id) ?? []).filter((u) => inTab[tab].includes(u)) : inTab[tab];
  const found = listed.filter((u) => short || `${u.full_name} ${u.delivery_email ?? u.email}`.toLowerCase().includes(wanted));
  if (!short) found.sort((a, b) => a.full_name.localeCompare(b.full_name));
  return (
    <>
      <div class="tabs" role="tablist" aria-label={t("Users")} onKeyDown={moveTab}>
        {tabs.map(([name, title]) => (
          <button key={name} type="button" role="tab" id={`users-${name}`} aria-selected={tab === name} aria-controls="users-panel" tabIndex={tab === name ? 0 : -1} onClick={() => setTab(name)}>
            {title} {!short && <span class="count quiet">{inTab[name].length}</span>}
          </button>
        ))}
      </div>
      <div id="users-panel" role="tabpanel" aria-labelledby={`users-${tab}`}>
        <FilterField value={filter} set={setFilter} />
        <UserTable key={tab} tab={tab} users={found} filtered={wanted !== ""} />
        {short && <ShowMore of={pages} />}
      </div>
    </>
  );
}

// moveTab goes to the next or previous tab with the arrow keys.
function moveTab(e: KeyboardEvent): void {
  const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
  if (!by) return;
  const all = [...(e.currentTarget as Element).querySelectorAll<HTMLElement>("[role=tab]")];
  const rtl = document.documentElement.dir === "rtl" ? -1 : 1;
  const next = all[(all.indexOf(document.activeElement as HTMLElement) + by * rtl + all.length) % all.length]!;
  e.preventDefault();
  next.focus();
  next.click();
}

function UserTable({ tab, users, filtered }: { tab: Tab; users: User[]; filtered: boolean }) {
  const me = read("me");
  const presences = read("presences");
  const others = (u: User): boolean => me.is_admin && u.user_id !== me.user_id;
  const lastActive = (u: User): number => presences.get(u.user_id)?.active_timestamp ?? 0;
  const empty = filtered ? t("No user fits the filter.") : tab === "bots" ? t("There are no bots.") : tab === "deactivated" ? t("No user is deactivated.") : t("No users");
  return (
    <>
      <RowTable
        label={t("Users")}
        rows={isShort() ? users : users.slice(0, maxRows)}
        name={(u) => u.full_name}
        empty={empty}
        columns={[
          { title: t("Name"), cell: (u) => <Person user={u} />, order: (a, b) => a.full_name.localeCompare(b.full_name) },
          { title: t("Email"), cell: (u) => u.delivery_email ?? u.email },
          tab === "bots"
            ? { title: t("Owner"), cell: (u) => (u.bot_owner_id ? userName(u.bot_owner_id) : t("None")) }
            : { title: t("Last active"), cell: (u) => presenceText(u.user_id), order: (a, b) => lastActive(b) - lastActive(a) },
          { title: t("Role"), cell: (u) => <RoleChoice user={u} disabled={!others(u) || !u.is_active} />, order: (a, b) => a.role - b.role },
        ]}
        actions={[
          { label: t("Edit"), icon: "edit", shown: (u) => me.is_admin && u.is_active && !u.is_bot, run: async (u) => openUser(u.user_id) },
          {
            label: t("Deactivate"),
            icon: "trash",
            shown: (u) => others(u) && u.is_active,
            ask: t("The user is logged out everywhere and can no longer log in."),
            run: (u) => (u.is_bot ? api.deactivateBot(u.user_id) : api.deactivateUser(u.user_id)),
          },
          {
            label: t("Reactivate"),
            icon: "check",
            shown: (u) => others(u) && !u.is_active,
            run: (u) => api.reactivateUser(u.user_id),
          },
        ]}
      />
      {users.length > maxRows && !isShort() && <p class="quiet">{plural(users.length - maxRows, "{count} more user", "{count} more users")}</p>}
    </>
  );
}

function Person({ user: u }: { user: User }) {
  return (
    <span class="table-person">
      <Avatar id={u.user_id} size={24} />
      <PersonName id={u.user_id} />
    </span>
  );
}

// roles are those that the user can give: only owners can make others owners.
function roles(now: number): PickerOption<number>[] {
  const { is_owner } = read("me");
  const list = Object.values(Role).filter((r) => is_owner || r !== Role.owner || r === now);
  return list.map((r) => ({ value: r, label: roleName(r) }));
}

function RoleChoice({ user: u, disabled }: { user: User; disabled: boolean }) {
  return (
    <Picker
      label={t("Role of {name}", { name: u.full_name })}
      value={u.role}
      options={roles(u.role)}
      disabled={disabled}
      choose={(role) => void attempt(api.changeUser(u.user_id, { role }))}
    />
  );
}

// openUser opens the window that changes a user.
export function openUser(id: number): void {
  openDialog(<UserDialog id={id} />);
}

function UserDialog({ id }: { id: number }) {
  const u = read("users").get(id);
  const fields = read("profileFields").filter(isInput);
  if (!u) return null;
  return (
    <Dialog title={t("Edit {name}", { name: u.full_name })}>
      <div class="dialog-text">
        <SettingsForm
          form="change-user"
          button={t("Save")}
          keep
          stored
          fields={[{ name: "name", label: t("Full name"), value: u.full_name, required: true }, ...profileInputs(fields, u)]}
          run={async (v) => {
            const { set, emptied } = profileValues(fields, u, v);
            const profile_data = [...set, ...emptied.map((field) => ({ id: field, value: null }))];
            await api.changeUser(id, { full_name: v.text("name"), profile_data: profile_data.length ? profile_data : undefined });
          }}
        />
        <UserGroups id={id} />
        <UserChannels id={id} />
        <footer class="dialog-foot">
          <button type="button" class="button quiet" onClick={closeDialog}>
            {t("Close")}
          </button>
        </footer>
      </div>
    </Dialog>
  );
}

// Memberships is a list with a button at each entry, and a picker that adds one.
function Memberships(p: { title: string; add: string; rows: PickerOption<number>[]; options: PickerOption<number>[]; put: (id: number) => Promise<unknown>; remove: (id: number) => Promise<unknown> }) {
  return (
    <section aria-label={p.title}>
      <h3>{p.title}</h3>
      <div class="pills" role="list">
        {p.rows.map((x) => (
          <span key={x.value} class="pill" role="listitem">
            {x.label}
            <button type="button" aria-label={t("Remove {name}", { name: x.label })} onClick={() => void attempt(p.remove(x.value))}>
              ×
            </button>
          </span>
        ))}
        {p.rows.length === 0 && (
          <span class="quiet" role="listitem">
            {t("None")}
          </span>
        )}
      </div>
      {p.options.length > 0 && <Picker label={p.add} placeholder={p.add} value={undefined} options={p.options} choose={(id) => void attempt(p.put(id))} />}
    </section>
  );
}

function UserGroups({ id }: { id: number }) {
  const all = [...read("groups").values()].filter((g) => !g.is_system_group && !g.deactivated).sort((a, b) => a.name.localeCompare(b.name));
  const option = (g: (typeof all)[number]): PickerOption<number> => ({ value: g.id, label: g.name });
  const me = read("me").user_id;
  const mayAdd = (g: (typeof all)[number]): boolean =>
    isInSetting(peek(), read("realm").realm_can_manage_all_groups, me) || isInSetting(peek(), g.can_manage_group, me) || isInSetting(peek(), g.can_add_members_group, me);
  return (
    <Memberships
      title={t("User groups")}
      add={t("Add to a group")}
      rows={all.filter((g) => g.members.includes(id)).map(option)}
      options={all.filter((g) => !g.members.includes(id) && mayAdd(g)).map(option)}
      put={(group) => changeMembers(group, { add: [id] })}
      remove={(group) => changeMembers(group, { delete: [id] })}
    />
  );
}

function UserChannels({ id }: { id: number }) {
  const [ids, setIDs] = useState<number[]>([]);
  useEffect(() => {
    void attempt(getChannelsOf(id)).then((a) => a && setIDs(a.subscribed_channel_ids));
  }, [id]);
  const channels = read("channels");
  const option = (c: number): PickerOption<number> => ({ value: c, label: channels.get(c)!.name, icon: channelIcon(channels.get(c)) });
  const byName = (a: number, b: number): number => channels.get(a)!.name.localeCompare(channels.get(b)!.name);
  const known = ids.filter((c) => channels.has(c)).sort(byName);
  const others = [...channels.values()].filter((c) => !c.is_archived && !ids.includes(c.stream_id)).map((c) => c.stream_id).sort(byName);
  const put = async (c: number): Promise<void> => {
    await addSubscribers(channels.get(c)!.name, [id]);
    setIDs((now) => [...now, c]);
  };
  const remove = async (c: number): Promise<void> => {
    await removeSubscribers(channels.get(c)!.name, [id]);
    setIDs((now) => now.filter((x) => x !== c));
  };
  return <Memberships title={t("Channels")} add={t("Subscribe to a channel")} rows={known.map(option)} options={others.map(option)} put={put} remove={remove} />;
}
