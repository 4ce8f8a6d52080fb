// The field of a permission: one of the groups, or particular users and groups, which a dialog chooses.
import { useState } from "preact/hooks";
import type { GroupSetting, Limits, UserGroup } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { userName } from "../store/queries.ts";
import { read } from "../store/store.ts";
import type { IconName } from "../ui/icons.tsx";
import { closeDialog, Dialog, openDialog, useSubmit } from "../ui/dialogs.tsx";
import { PeopleField } from "./people_field.tsx";
import { Choice } from "../forms/fields.tsx";
import { groupName } from "./group_names.ts";

const several = -1; // the choice for a value with several users and groups
const choose = -2; // the choice that opens the dialog
const nobody = "role:nobody";

// fits reports whether a group can have a permission alone.
export function fits(g: UserGroup, l: Limits): boolean {
  if (g.deactivated) return false;
  if (!g.is_system_group) return !l.require_system_group;
  if (l.allowed_system_groups.length) return l.allowed_system_groups.includes(g.name);
  if (g.name === "role:internet") return l.allow_internet_group;
  if (g.name === nobody) return l.allow_nobody_group;
  return g.name !== "role:everyone" || l.allow_everyone_group;
}

// settingText names the users and groups of a permission.
function settingText(value: GroupSetting): string {
  if (typeof value === "number") return groupName(read("groups").get(value));
  const parts = value.direct_subgroups.map((id) => groupName(read("groups").get(id)));
  return [...parts, ...value.direct_members.map(userName)].join(", ") || t("Nobody");
}

interface GroupChoiceProps {
  label: string;
  value: GroupSetting;
  limits: Limits;
  disabled?: boolean;
  plain?: boolean; // the value is part of a form that is sent later
  save: (value: GroupSetting) => Promise<unknown>;
}

export function GroupChoice(p: GroupChoiceProps) {
  const { value, limits } = p;
  const [opened, setOpened] = useState(0);
  const groups = [...read("groups").values()];
  const options = groups.filter((g) => fits(g, limits) || g.id === value).map((g) => ({ value: g.id, label: groupName(g), icon: "people" as IconName }));
  if (typeof value === "object") options.push({ value: several, label: settingText(value), icon: "people" });
  if (!limits.require_system_group) options.push({ value: choose, label: t("Particular users and groups…"), icon: "edit" });
  const save = (v: number): Promise<unknown> => {
    if (v === several) return Promise.resolve();
    if (v !== choose) return p.save(v);
    setOpened((n) => n + 1); // the field shows the stored value again
    openDialog(<PeopleDialog {...p} />);
    return Promise.resolve();
  };
  return <Choice key={opened} label={p.label} value={typeof value === "number" ? value : several} options={options} disabled={p.disabled} plain={p.plain} save={save} />;
}

function PeopleDialog({ label, value, limits, save }: GroupChoiceProps) {
  const groups = read("groups");
  const single = typeof value === "number" ? groups.get(value) : undefined;
  const [members, setMembers] = useState(typeof value === "object" ? value.direct_members : []);
  const [subgroups, setSubgroups] = useState(typeof value === "object" ? value.direct_subgroups : single && single.name !== nobody ? [single.id] : []);
  const possible = [...groups.values()].filter((g) => fits(g, limits) && g.name !== nobody);
  const empty = members.length + subgroups.length === 0;
  const [busy, send] = useSubmit();
  const done = (): void => {
    let to: GroupSetting = { direct_members: members, direct_subgroups: subgroups };
    if (members.length === 0 && subgroups.length === 1) to = subgroups[0]!;
    if (empty) to = [...groups.values()].find((g) => g.name === nobody)!.id;
    send(() => attempt(save(to).then(() => true)).then(Boolean));
  };
  return (
    <Dialog title={label}>
      <div class="dialog-text">
        <PeopleField users={members} setUsers={setMembers} groups={subgroups} setGroups={setSubgroups} possible={possible} />
      </div>
      <footer class="dialog-foot">
        <button type="button" class="button quiet" onClick={closeDialog}>
          {t("Cancel")}
        </button>
        <button type="button" class="button" disabled={empty && !limits.allow_nobody_group} aria-busy={busy} onClick={done}>
          {t("Save")}
        </button>
      </footer>
    </Dialog>
  );
}
