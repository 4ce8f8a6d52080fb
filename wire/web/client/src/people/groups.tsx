// The window #groups: the list of user groups, #groups/new, and one group at #groups/ID/NAME.
import { useState } from "preact/hooks";
import * as api from "../api/groups.ts";
import type { GroupSetting, NamesOf, UserGroup } from "../api/types.ts";
import { plural, t } from "../i18n/text.ts";
import { closeOverlay, go, type Route } from "../store/router.ts";
import { attempt } from "../store/actions.ts";
import { isInSetting, may, permissionOf } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { Allowed, SettingsForm } from "../forms/forms.tsx";
import { GroupChoice } from "./group_choice.tsx";
import { groupName } from "./group_names.ts";
import { Confirm, Dialog, openDialog } from "../ui/dialogs.tsx";
import { FoundPeople, PeopleList, PersonForm } from "./pick.tsx";

export function Groups({ route }: { route: Route }) {
  const create = route.rest[0] === "new";
  const id = Number(route.rest[0]) || 0;
  const group = read("groups").get(id);
  const title = create ? t("New user group") : group ? groupName(group) : t("User groups");
  return (
    <Dialog title={title} class="channels" onClose={closeOverlay}>
      {create && <NewGroup />}
      {group && <GroupPage key={group.id} group={group} />}
      {id > 0 && !group && <p class="dialog-text">{t("There is no such group.")}</p>}
      {!create && id === 0 && <List mine={route.rest[0] === "your"} />}
    </Dialog>
  );
}

function List({ mine }: { mine: boolean }) {
  const [query, setQuery] = useState("");
  const me = read("me").user_id;
  const q = query.trim().toLowerCase();
  const list = [...read("groups").values()]
    .filter((g) => !g.is_system_group && (!mine || g.members.includes(me)))
    .filter((g) => g.name.toLowerCase().includes(q) || g.description.toLowerCase().includes(q))
    .sort((a, b) => Number(a.deactivated) - Number(b.deactivated) || a.name.localeCompare(b.name));
  return (
    <>
      <div class="channel-tools">
        <nav aria-label={t("User groups")}>
          <a class="button small quiet" href="#groups/your" aria-current={mine ? "page" : undefined}>
            {t("Yours")}
          </a>
          <a class="button small quiet" href="#groups/all" aria-current={mine ? undefined : "page"}>
            {t("All")}
          </a>
        </nav>
        <input class="input" type="search" aria-label={t("Search groups")} placeholder={t("Search groups")} value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
        {may("can_create_groups") && (
          <button type="button" class="button small" onClick={() => go("#groups/new")}>
            {t("New user group")}
          </button>
        )}
      </div>
      <ul class="channel-list" tabIndex={0} aria-label={t("User groups")}>
        {list.map((g) => (
          <li key={g.id}>
            <span class="grow">
              <a href={`#groups/${g.id}/${encodeURIComponent(g.name)}`}>{g.name}</a>
              <small>
                {g.deactivated ? t("Deactivated") : plural(g.member_count ?? g.members.length, "{count} member", "{count} members")}
                {g.description && ` · ${g.description}`}
              </small>
            </span>
          </li>
        ))}
        {list.length === 0 && <li class="quiet">{t("No group fits.")}</li>}
      </ul>
    </>
  );
}

function NewGroup() {
  return (
    <div class="dialog-text">
      <SettingsForm
        form="create-group"
        button={t("Create")}
        fields={[
          { name: "name", label: t("Name"), required: true },
          { name: "description", label: t("Description") },
        ]}
        run={async (v) => {
          const { group_id } = await api.createGroup(v.text("name"), v.text("description"), [read("me").user_id]);
          go(`#groups/${group_id}`);
        }}
      />
    </div>
  );
}

// mayInGroup reports whether the user has a permission of a group. The ones that manage it have all of them.
function mayInGroup(g: UserGroup, setting: NamesOf<UserGroup, GroupSetting>): boolean {
  const me = read("me").user_id;
  return mayManage(g) || isInSetting(peek(), g[setting], me);
}

function mayManage(g: UserGroup): boolean {
  void read("groups");
  return !g.is_system_group && (may("can_manage_all_groups") || isInSetting(peek(), g.can_manage_group, read("me").user_id));
}

function GroupPage({ group: g }: { group: UserGroup }) {
  const me = read("me").user_id;
  const open = !g.is_system_group && !g.deactivated;
  const mayAdd = open && mayInGroup(g, "can_add_members_group");
  const mayRemove = open && mayInGroup(g, "can_remove_members_group");
  const inside = g.members.includes(me);
  const list = { label: t("Members"), action: t("Remove"), may: () => mayRemove, run: (user: number) => api.changeMembers(g.id, { delete: [user] }) };
  return (
    <div class="dialog-text">
      <a class="button small quiet" href="#groups/all">
        {t("All groups")}
      </a>
      <h3 class="settings-title">{t("The group")}</h3>
      {g.deactivated && <p class="quiet">{t("The group is deactivated.")}</p>}
      {open && !inside && mayInGroup(g, "can_join_group") && (
        <button type="button" class="button small" onClick={() => void attempt(api.changeMembers(g.id, { add: [me] }))}>
          {t("Join")}
        </button>
      )}
      {open && inside && mayInGroup(g, "can_leave_group") && (
        <button type="button" class="button small quiet" onClick={() => void attempt(api.changeMembers(g.id, { delete: [me] }))}>
          {t("Leave")}
        </button>
      )}
      {!g.is_system_group && <General group={g} />}
      {mayAdd && (
        <PersonForm form="add-group-member" title={t("Add a member")} button={t("Add")} without={new Set(g.members)} run={(user) => api.changeMembers(g.id, { add: [user] })} />
      )}
      <h4>{t("Members")}</h4>
      {g.member_count === undefined ? <PeopleList {...list} ids={g.members} /> : <FoundPeople {...list} of={{ group_id: g.id }} />}
      <Subgroups group={g} may={mayAdd} />
      {!g.is_system_group && <GroupPermissions group={g} />}
    </div>
  );
}

function General({ group: g }: { group: UserGroup }) {
  const manage = mayManage(g);
  const ask = (): void => {
    const run = (): unknown => attempt(api.deactivateGroup(g.id));
    openDialog(<Confirm title={t("Deactivate {name}?", { name: g.name })} text={t("Mentions of the group notify nobody afterwards.")} button={t("Deactivate")} danger run={run} />);
  };
  return (
    <Allowed when={manage} reason={t("You cannot change this group.")}>
      <SettingsForm
        form="change-group"
        button={t("Save")}
        keep
          stored
        disabled={g.deactivated}
        fields={[
          { name: "name", label: t("Name"), value: g.name, required: true },
          { name: "description", label: t("Description"), value: g.description },
        ]}
        run={(v) => api.changeGroup(g.id, { name: v.text("name") === g.name ? undefined : v.text("name"), description: v.text("description") })}
      />
      {g.deactivated ? (
        <button type="button" class="button" onClick={() => void attempt(api.changeGroup(g.id, { deactivated: false }))}>
          {t("Reactivate group")}
        </button>
      ) : (
        <button type="button" class="button danger" onClick={ask}>
          {t("Deactivate group")}
        </button>
      )}
    </Allowed>
  );
}

function Subgroups({ group: g, may: mayChange }: { group: UserGroup; may: boolean }) {
  const groups = read("groups");
  const others = [...groups.values()].filter((x) => x.id !== g.id && !x.deactivated && !g.direct_subgroup_ids.includes(x.id) && !["role:internet", "role:nobody"].includes(x.name));
  if (!mayChange && g.direct_subgroup_ids.length === 0) return null;
  return (
    <>
      <h4>{t("Groups in this group")}</h4>
      <ul class="people-list" aria-label={t("Groups in this group")}>
        {g.direct_subgroup_ids.map((id) => (
          <li key={id}>
            <a class="grow" href={`#groups/${id}`}>
              {groupName(groups.get(id))}
            </a>
            {mayChange && (
              <button type="button" class="button small quiet" aria-label={`${t("Remove")}: ${groupName(groups.get(id))}`} onClick={() => void attempt(api.changeSubgroups(g.id, { delete: [id] }))}>
                {t("Remove")}
              </button>
            )}
          </li>
        ))}
      </ul>
      {mayChange && (
        <SettingsForm
          form="add-subgroup"
          title={t("Add a group")}
          button={t("Add group")}
          fields={[{ name: "group", label: t("Group"), kind: "choice", required: true, options: others.map((x) => ({ value: String(x.id), label: groupName(x) })) }]}
          run={(v) => api.changeSubgroups(g.id, { add: [v.number("group")] })}
        />
      )}
    </>
  );
}

function labelOf(setting: string): string {
  switch (setting) {
    case "can_add_members_group":
      return t("Add members");
    case "can_join_group":
      return t("Join the group");
    case "can_leave_group":
      return t("Leave the group");
    case "can_manage_group":
      return t("Administer the group");
    case "can_mention_group":
      return t("Mention the group");
    case "can_remove_members_group":
      return t("Remove members");
  }
  return setting;
}

function GroupPermissions({ group: g }: { group: UserGroup }) {
  const all = read("realm").server_supported_permission_settings?.group ?? {};
  return (
    <>
      <h4>{t("Permissions")}</h4>
      <Allowed when={mayManage(g) && !g.deactivated} reason={t("You cannot change the permissions of this group.")}>
        {Object.entries(all).map(([name, limits]) => {
          const value = permissionOf(g, name);
          if (value === undefined) return null;
          return <GroupChoice key={name} label={labelOf(name)} value={value} limits={limits} save={(v) => api.changeGroup(g.id, { [name]: { new: v } })} />;
        })}
      </Allowed>
    </>
  );
}
