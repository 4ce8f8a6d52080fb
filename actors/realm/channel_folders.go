package realm

import (
	"slices"
	"strings"
)

// Folder is the row of a folder, which groups channels in the clients' lists.
type Folder struct {
	ID              int64
	Name            string
	Description     string
	DescriptionHTML string
	Created         int64
	Creator         UserID // 0: none
	Archived        bool
	Order           int // position in the list, from 0
}

// Limits in code points (protocol).
const (
	MaxFolderName        = 60
	MaxFolderDescription = 1024
	maxFolders           = 1000 // archived ones included: every registration contains all of them
)

func errFolderID() *Refusal { return BadRequest("Invalid channel folder ID") }

// Folders returns the folders in the order in which clients show them. Archived ones are included only if asked for.
func (r *Realm) Folders(archived bool) []Folder {
	var out []Folder
	for _, id := range r.small.folders.keys() {
		if f := r.small.folders.find(id); archived || !f.Archived {
			out = append(out, *f)
		}
	}
	slices.SortStableFunc(out, func(a, b Folder) int { return a.Order - b.Order })
	return out
}

// VisibleFolders returns the folders that the caller is allowed to see. Logged-out visitors see only folders that
// contain a web-public channel.
func (v View) VisibleFolders(archived bool) []Folder {
	all := v.Folders(archived)
	if v.Me() != nil || v.System {
		return all
	}
	open := map[int64]bool{}
	v.EachChannel(func(c *Channel) { open[c.Folder] = open[c.Folder] || c.WebPublic && !c.Archived })
	return slices.DeleteFunc(all, func(f Folder) bool { return !open[f.ID] })
}

// checkFolderUsable refuses folders that do not exist or are archived. 0 means no folder and is allowed.
func (r *Realm) checkFolderUsable(id int64) error {
	if id == 0 {
		return nil
	}
	if f := r.small.folders.find(id); f == nil || f.Archived {
		return errFolderID()
	}
	return nil
}

// folderName returns the name of a folder in Markdown, for messages about channels.
func (r *Realm) folderName(id int64) string {
	if f := r.small.folders.find(id); f != nil {
		return "**" + f.Name + "**"
	}
	return "none"
}

// checkFolderName checks the name of a folder and returns it trimmed. except is the folder that may already have it.
func (r *Realm) checkFolderName(name string, except int64) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return "", BadRequest("Channel folder name can't be empty.")
	}
	if runeCount(name) > MaxFolderName {
		return "", BadRequest("name is too long (limit: %d characters)", MaxFolderName)
	}
	if at, ok := findSpoofing(name); !ok {
		return "", BadRequest("Invalid character in channel folder name, at position %d.", at)
	}
	for _, f := range r.small.folders.all() {
		if f.ID != except && !f.Archived && fold(f.Name) == fold(name) {
			return "", BadRequest("Channel folder '%s' already exists", name)
		}
	}
	return name, nil
}

// checkFolderDescription checks a folder's description and returns it trimmed.
func checkFolderDescription(text string) (string, error) {
	text = strings.TrimSpace(text)
	if runeCount(text) > MaxFolderDescription {
		return "", BadRequest("description is too long (limit: %d characters)", MaxFolderDescription)
	}
	return text, nil
}

// CreateFolder asks for a new folder.
type CreateFolder struct{ Name, Description string }

func (c CreateFolder) Decide(t *Turn) (int64, error) {
	me, err := t.RequireAdmin()
	if err != nil {
		return 0, err
	}
	name, err := t.checkFolderName(c.Name, 0)
	if err != nil {
		return 0, err
	}
	text, err := checkFolderDescription(c.Description)
	if err != nil {
		return 0, err
	}
	if t.small.folders.size() >= maxFolders {
		return 0, BadRequest("Too many channel folders (limit: %d)", maxFolders)
	}
	if err := t.checkRegistrationSize(registeredRowBytes + len(text)); err != nil {
		return 0, err
	}
	f := Folder{ID: t.nextID("folder"), Name: name, Description: text, Created: t.Now, Creator: me.ID,
		Order: t.small.folders.size()}
	if text != "" {
		f.DescriptionHTML = t.Describe(text)
	}
	t.Record(&FolderCreated{f})
	return f.ID, nil
}

// FolderCreated adds a folder. It is the event channel_folder/add too.
type FolderCreated struct{ Folder Folder }

func (f *FolderCreated) apply(r *Realm) {
	r.reserveID("folder", f.Folder.ID)
	row := f.Folder
	r.small.folders.put(row.ID, &row)
}

func (f *FolderCreated) notices(r *Realm) []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: f}}
}
func (*FolderCreated) EventType() string { return "channel_folder" }

// EditFolder asks to change a folder. Fields that are nil do not change.
type EditFolder struct {
	Folder            int64
	Name, Description *string
	Archived          *bool
}

func (c EditFolder) Decide(t *Turn) (Done, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return Done{}, err
	}
	old := t.small.folders.find(c.Folder)
	if old == nil {
		return Done{}, errFolderID()
	}
	f := &FolderChanged{Folder: c.Folder}
	if c.Name != nil {
		name, err := t.checkFolderName(*c.Name, c.Folder)
		if err != nil {
			return Done{}, err
		}
		if name != old.Name {
			f.Name = &name
		}
	}
	if c.Description != nil {
		text, err := checkFolderDescription(*c.Description)
		if err != nil {
			return Done{}, err
		}
		if text != old.Description {
			html := ""
			if text != "" {
				html = t.Describe(text)
			}
			f.Description, f.DescriptionHTML = &text, &html
		}
	}
	if c.Archived != nil && *c.Archived != old.Archived {
		if *c.Archived && t.folderInUse(c.Folder) {
			return Done{}, BadRequest("You need to remove all the channels from this folder to archive it.")
		}
		if c.Name == nil && !*c.Archived { // another folder may have got the name while this one was archived
			if _, err := t.checkFolderName(old.Name, c.Folder); err != nil {
				return Done{}, err
			}
		}
		f.Archived = c.Archived
	}
	if f.Name != nil || f.Description != nil || f.Archived != nil {
		t.Record(f)
	}
	return Done{}, nil
}

// folderInUse reports whether a channel is in the folder, archived channels included.
func (r *Realm) folderInUse(id int64) bool {
	for _, c := range r.channels.all() {
		if c.Folder == id {
			return true
		}
	}
	return false
}

// FolderChanged changes fields of a folder. It is the event channel_folder/update too.
type FolderChanged struct {
	Folder                             int64
	Name, Description, DescriptionHTML *string
	Archived                           *bool
}

func (f *FolderChanged) apply(r *Realm) {
	row := r.small.folders.change(f.Folder)
	row.Name, row.Archived = valueOr(f.Name, row.Name), valueOr(f.Archived, row.Archived)
	row.Description = valueOr(f.Description, row.Description)
	row.DescriptionHTML = valueOr(f.DescriptionHTML, row.DescriptionHTML)
}

func (f *FolderChanged) notices(r *Realm) []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: f}}
}
func (*FolderChanged) EventType() string { return "channel_folder" }

// OrderFolders asks to show the folders in another order. Order must contain all of them.
type OrderFolders struct{ Order []int64 }

func (c OrderFolders) Decide(t *Turn) (Done, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return Done{}, err
	}
	sorted := slices.Clone(c.Order)
	slices.Sort(sorted)
	if !slices.Equal(sorted, t.small.folders.keys()) {
		return Done{}, BadRequest("Invalid order mapping.")
	}
	t.Record(&FoldersOrdered{c.Order})
	return Done{}, nil
}

// FoldersOrdered sets the order of the folders. It is the event channel_folder/reorder too.
type FoldersOrdered struct{ Order []int64 }

func (f *FoldersOrdered) apply(r *Realm) {
	for i, id := range f.Order {
		r.small.folders.change(id).Order = i
	}
}

func (f *FoldersOrdered) notices(r *Realm) []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: f}}
}
func (*FoldersOrdered) EventType() string { return "channel_folder" }
