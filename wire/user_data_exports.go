package wire

import (
	"strconv"

	"parley/actors/realm"
)

// Files with the data of one user are an extension of the protocol: each user can ask for their own.
var ownExportEndpoints = []Endpoint{
	Get("/users/me/data_exports", func(c *Call, v realm.View, _ noParameters) (*ownExportsAnswer, error) {
		list, err := v.OwnExports()
		return &ownExportsAnswer{each(list, newOwnExport)}, err
	}).extension(ownExportReason),
	Custom("POST", "/users/me/data_exports", startOwnExport).extension(ownExportReason),
	Custom("DELETE", "/users/me/data_exports/{export_id}", deleteOwnExport).extension(ownExportReason),
}

// ownExportReason is why these endpoints exist.
const ownExportReason = "files with the data of a user, which only operators of Zulip can make"

type ownExportsAnswer struct {
	Exports []ownExportJSON `json:"exports"`
}

// ownExportJSON has the time at which the export was deleted or failed, or else the path of the complete file.
type ownExportJSON struct {
	ID      int64  `json:"id"`
	Started int64  `json:"export_time"`
	Pending bool   `json:"pending"`
	Failed  int64  `json:"failed_timestamp" zero:"null"`
	Deleted int64  `json:"deleted_timestamp" zero:"null"`
	Expires int64  `json:"expires_timestamp" zero:"null"`
	Bytes   int64  `json:"size" zero:"null"`
	Path    string `json:"path" zero:"null"`
}

func newOwnExport(e realm.OwnExport) ownExportJSON {
	out := ownExportJSON{ID: e.ID, Started: e.Started, Pending: e.Pending(), Failed: e.Failed, Deleted: e.Deleted}
	if e.HasFile() {
		out.Expires, out.Bytes, out.Path = e.Expires(), e.Bytes, OwnExportPath+strconv.FormatInt(e.ID, 10)
	}
	return out
}

type startOwnExportForm struct {
	Password string `form:"password"`
}

// startOwnExport asks for a file with the data of the caller. A browser that was left open must not be enough.
func startOwnExport(c *Call, f startOwnExportForm) (*idAnswer, error) {
	if err := c.checkKeyMaker(f.Password); err != nil {
		return nil, err
	}
	command := realm.StartOwnExport{}
	if c.Tools.CheckSpace != nil {
		command.FileRefusal = c.Tools.CheckSpace(0)
	}
	e, err := Execute(c, command)
	if err != nil {
		return nil, err
	}
	c.Tools.StartOwnExport(c.Realm, c.Caller.User, e)
	return newIDAnswer(e.ID), nil
}

func deleteOwnExport(c *Call, f exportForm) (a noFields, _ error) {
	e, err := Execute(c, realm.DeleteOwnExport{ID: f.ID})
	if err != nil {
		return a, err
	}
	return a, c.Tools.Files.RemoveExport(realm.ExportFile(e.Name))
}

// OwnExportPath begins the paths of files with the data of one user; the id of the export follows.
const OwnExportPath = "/user_data/"

// FetchOwnExport returns the name of the file with an id, and records the download. Only its user may get it, and no
// login of the operator and no limited key.
func FetchOwnExport(c *Call, id string) (file string, err error) {
	n, err := strconv.ParseInt(id, 10, 64)
	switch {
	case err != nil:
		return "", realm.BadRequest("Invalid data export ID")
	case c.Session != nil && c.Session.IsHelp():
		return "", errHelpSession()
	case c.KeyScope() != nil:
		return "", realm.ErrKeyScope("A limited API key cannot read the data of its user.")
	}
	e, err := Execute(c, realm.FetchOwnExport{ID: n})
	return realm.ExportFile(e.Name), err
}
