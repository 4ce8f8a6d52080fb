package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var folderEndpoints = []Endpoint{
	Get("/channel_folders", getFolders).Returns("{channel_folders: [Folder]}").AllowVisitors(),
	CommandFromForm("POST", "/channel_folders/create", func(f createFolderForm) realm.CreateFolder {
		return realm.CreateFolder{Name: f.Name, Description: f.Description}
	}, func(id int64) Answer { return Answer{"channel_folder_id": id} }).Returns("{channel_folder_id: int}"),
	CommandFromForm("PATCH", "/channel_folders", func(f orderFoldersForm) realm.OrderFolders {
		return realm.OrderFolders{Order: f.Order}
	}, emptyAnswer),
	CommandFromForm("PATCH", "/channel_folders/{channel_folder_id}", editFolder, emptyAnswer),
}

var folderEvents = []EventKind{
	EventOneOf(func(e *realm.FolderCreated, _ *Recipient) any {
		return obj{"type": "channel_folder", "op": "add", "channel_folder": folderObject(e.Folder)}
	}),
	EventOneOf(folderChanged),
	EventOneOf(func(e *realm.FoldersOrdered, _ *Recipient) any {
		return obj{"type": "channel_folder", "op": "reorder", "order": e.Order}
	}),
}

// folderObject returns a channel folder as JSON.
func folderObject(f realm.Folder) obj {
	o := obj{
		"id":                   f.ID,
		"name":                 f.Name,
		"description":          f.Description,
		"rendered_description": f.DescriptionHTML,
		"date_created":         f.Created,
		"creator_id":           nil,
		"is_archived":          f.Archived,
		"order":                f.Order,
	}
	if f.Creator != 0 {
		o["creator_id"] = f.Creator
	}
	return o
}

func folderList(v realm.View, archived bool) []any {
	list := []any{}
	for _, f := range v.VisibleFolders(archived) {
		list = append(list, folderObject(f))
	}
	return list
}

type getFoldersForm struct {
	Archived bool `form:"include_archived"`
}

func getFolders(c *Call, v realm.View, f getFoldersForm) (Answer, error) {
	return Answer{"channel_folders": folderList(v, f.Archived)}, nil
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

func folderChanged(e *realm.FolderChanged, _ *Recipient) any {
	data := obj{}
	if e.Name != nil {
		data["name"] = *e.Name
	}
	if e.Description != nil {
		data["description"], data["rendered_description"] = *e.Description, *e.DescriptionHTML
	}
	if e.Archived != nil {
		data["is_archived"] = *e.Archived
	}
	return obj{"type": "channel_folder", "op": "update", "channel_folder_id": e.Folder, "data": data}
}
