package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var folderEndpoints = []Endpoint{
	Get("/channel_folders", getFolders).AllowVisitors(),
	CommandFromForm("POST", "/channel_folders/create", func(f createFolderForm) realm.CreateFolder {
		return realm.CreateFolder{Name: f.Name, Description: f.Description}
	}, func(id int64) *addedFolderAnswer { return &addedFolderAnswer{id} }),
	CommandFromForm("PATCH", "/channel_folders", func(f orderFoldersForm) realm.OrderFolders {
		return realm.OrderFolders{Order: f.Order}
	}, emptyAnswer),
	CommandFromForm("PATCH", "/channel_folders/{channel_folder_id}", editFolder, emptyAnswer),
}

var folderEvents = []EventKind{
	Event(func(e *realm.FolderCreated, _ *Recipient) *folderAddedEvent {
		return &folderAddedEvent{Folder: newFolder(e.Folder)}
	}),
	Event(folderChanged),
	Event(func(e *realm.FoldersOrdered, _ *Recipient) *foldersOrderedEvent {
		return &foldersOrderedEvent{Order: e.Order}
	}),
}

type foldersAnswer struct {
	Folders []folderJSON `json:"channel_folders"`
}

type addedFolderAnswer struct {
	ID int64 `json:"channel_folder_id"`
}

type folderAddedEvent struct {
	_      struct{}   `const:"type=channel_folder op=add"`
	Folder folderJSON `json:"channel_folder"`
}

type folderChangedEvent struct {
	_    struct{} `const:"type=channel_folder op=update"`
	ID   int64    `json:"channel_folder_id"`
	Data struct {
		Name        *string `json:"name,omitzero"`
		Description *string `json:"description,omitzero"`
		HTML        *string `json:"rendered_description,omitzero"`
		Archived    *bool   `json:"is_archived,omitzero"`
	} `json:"data"`
}

type foldersOrderedEvent struct {
	_     struct{} `const:"type=channel_folder op=reorder"`
	Order []int64  `json:"order"`
}

type folderJSON struct {
	ID          int64        `json:"id"`
	Name        string       `json:"name"`
	Description string       `json:"description"`
	HTML        string       `json:"rendered_description"`
	Created     int64        `json:"date_created"`
	Creator     realm.UserID `json:"creator_id" zero:"null"`
	Archived    bool         `json:"is_archived"`
	Order       int          `json:"order"`
}

func newFolder(f realm.Folder) folderJSON {
	return folderJSON{f.ID, f.Name, f.Description, f.DescriptionHTML, f.Created, f.Creator, f.Archived, f.Order}
}

func folderList(v realm.View, archived bool) []folderJSON {
	return each(v.VisibleFolders(archived), newFolder)
}

type getFoldersForm struct {
	Archived bool `form:"include_archived"`
}

func getFolders(c *Call, v realm.View, f getFoldersForm) (*foldersAnswer, error) {
	return &foldersAnswer{folderList(v, f.Archived)}, nil
}

type createFolderForm struct {
	Name        string `form:"name,required"`
	Description string `form:"description"`
}

type orderFoldersForm struct {
	Order []int64 `form:"order,required"`
}

type editFolderForm struct {
	Folder      int64            `path:"channel_folder_id"`
	Name        form.Opt[string] `form:"name"`
	Description form.Opt[string] `form:"description"`
	Archived    form.Opt[bool]   `form:"is_archived"`
}

func editFolder(f editFolderForm) realm.EditFolder {
	return realm.EditFolder{Folder: f.Folder, Name: pointerIfSet(f.Name), Description: pointerIfSet(f.Description),
		Archived: pointerIfSet(f.Archived)}
}

func folderChanged(e *realm.FolderChanged, _ *Recipient) *folderChangedEvent {
	out := &folderChangedEvent{ID: e.Folder}
	out.Data.Name, out.Data.Archived = e.Name, e.Archived
	if e.Description != nil {
		out.Data.Description, out.Data.HTML = e.Description, e.DescriptionHTML
	}
	return out
}
