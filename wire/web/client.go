package web

import (
	"encoding/json"
	"path"
	"strings"
)

// ClientPath is the beginning of the paths of the client's files. The name of each file holds a hash of its content.
const ClientPath = "/static/parley/client/"

// clientFiles are the paths of the files that the client's page loads.
type clientFiles struct {
	Script, Style string
	Math          string   // the stylesheet of formulas, loaded with the first one
	Call          string   // the script of the page of a call
	Preload       []string // scripts that the first one imports
}

var client = readClientManifest()

// readClientManifest reads the list that the client's build writes.
func readClientManifest() (f clientFiles) {
	if err := json.Unmarshal(mustRead("dist/manifest.json"), &f); err != nil {
		panic("BUG: dist/manifest.json: " + err.Error())
	}
	f.Script, f.Style, f.Math = ClientPath+f.Script, ClientPath+f.Style, ClientPath+f.Math
	f.Call = ClientPath + f.Call
	for i, name := range f.Preload {
		f.Preload[i] = ClientPath + name
	}
	return f
}

// ClientVersion differs for clients whose files differ.
func ClientVersion() string {
	return "client-" + hash(append(mustRead("dist/manifest.json"), mustRead("client.html")...))
}

// ClientFile is one file of the client.
type ClientFile struct {
	Path, Type string
	Content    func() []byte // a copy, made at each call
	Compressed bool          // by its own format
}

// clientTypes are the content types of the client's files.
var clientTypes = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".woff2": "font/woff2", ".svg": "image/svg+xml", ".png": "image/png", ".mp3": "audio/mpeg"}

// ClientFiles returns the files of the client, which `make web` builds from the directory client.
func ClientFiles() (out []ClientFile) {
	entries, err := content.ReadDir("dist")
	if err != nil {
		panic("BUG: list the client's files: " + err.Error())
	}
	for _, e := range entries {
		name := e.Name()
		typ := clientTypes[path.Ext(name)]
		if path.Ext(name) == ".json" {
			continue // for this program
		}
		if typ == "" {
			panic("BUG: no content type for the client's file " + name)
		}
		packed := !strings.HasPrefix(typ, "text/") && path.Ext(name) != ".svg"
		out = append(out, ClientFile{ClientPath + name, typ, func() []byte { return mustRead("dist/" + name) }, packed})
	}
	return out
}
