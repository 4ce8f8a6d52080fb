package web

import (
	"encoding/json"
	"fmt"
)

// Addresses of the installed client. They stay the same in every version, because browsers ask them for updates.
const (
	ManifestPath = "/manifest.webmanifest"
	WorkerPath   = "/service-worker.js"
	OfflinePath  = "/offline"
)

// webManifest is the description of an app that browsers can install (W3C Web Application Manifest).
type webManifest struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	ShortName  string         `json:"short_name"`
	StartURL   string         `json:"start_url"`
	Scope      string         `json:"scope"`
	Display    string         `json:"display"`
	Background string         `json:"background_color"`
	Theme      string         `json:"theme_color"`
	Icons      []manifestIcon `json:"icons"`
}

type manifestIcon struct {
	Source  string `json:"src"`
	Sizes   string `json:"sizes"`
	Type    string `json:"type"`
	Purpose string `json:"purpose"`
}

// InstallManifest returns the manifest of the client for an organization.
func InstallManifest(organization string) []byte {
	b, err := json.Marshal(webManifest{
		ID: "/", Name: organization, ShortName: organization, StartURL: "/", Scope: "/", Display: "standalone",
		Background: "#ffffff", Theme: "#3b5bdb",
		Icons: []manifestIcon{{Source: IconPath, Sizes: "any", Type: "image/svg+xml", Purpose: "any"}},
	})
	if err != nil {
		panic("BUG: encode the manifest: " + err.Error())
	}
	return b
}

// ServiceWorker returns the script of the client's service worker. It differs for versions of the client, so that
// browsers replace the worker and its files with those of the new version.
func ServiceWorker() []byte {
	files := append([]string{client.Script, client.Style, StylePath, IconPath}, client.Preload...)
	list, err := json.Marshal(files)
	if err != nil {
		panic("BUG: encode the files of the service worker: " + err.Error())
	}
	cache := "parley-" + hash(append([]byte(ClientVersion()), mustRead("service_worker.js")...))
	return fmt.Appendf(nil, "const CACHE = %q;\nconst OFFLINE = %q;\nconst FILES = %s;\n%s",
		cache, OfflinePath, list, mustRead("service_worker.js"))
}

// RetiredWorker returns the script that replaces the service worker where the server has another web app: it removes
// the stored files and itself.
func RetiredWorker() []byte {
	return []byte(`'use strict';
self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) if (name.startsWith('parley-')) await caches.delete(name);
    await self.registration.unregister();
  })());
});
`)
}

// Offline is the page that the service worker shows while the server cannot be reached.
func Offline() View {
	return View{Template: "offline", Title: "No connection"}
}
