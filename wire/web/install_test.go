package web

import (
	"encoding/json"
	"strings"
	"testing"
)

// The manifest names the organization and an icon, in a form that browsers accept for installation.
func TestInstallManifest(t *testing.T) {
	var m webManifest
	if err := json.Unmarshal(InstallManifest(`A "quoted" <org>`), &m); err != nil {
		t.Fatal(err)
	}
	if m.Name != `A "quoted" <org>` || m.StartURL != "/" || m.Scope != "/" || m.Display != "standalone" {
		t.Errorf("the manifest is %+v", m)
	}
	if len(m.Icons) != 1 || m.Icons[0].Source != IconPath {
		t.Errorf("the icons are %+v", m.Icons)
	}
}

// The service worker stores the files of the first screen and the page for times without a connection, nothing of
// users.
func TestServiceWorkerFiles(t *testing.T) {
	text := string(ServiceWorker())
	head, _, _ := strings.Cut(text, "// The service worker")
	for _, want := range append([]string{client.Script, client.Style, StylePath, OfflinePath}, client.Preload...) {
		if !strings.Contains(head, `"`+want+`"`) {
			t.Errorf("the service worker does not store %s", want)
		}
	}
	for _, name := range []string{"/json", "/user_uploads", `"/"`} {
		if strings.Contains(text, name) {
			t.Errorf("the service worker names %s", name)
		}
	}
}
