// Package webapptest makes small unpacked releases for tests. They have the layout of an official release. Their script
// records the parameters that the page gives to it.
package webapptest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// Names of the files of the bundle. The digits are hashes in real releases.
const (
	Script = "app.0123456789abcdef0123.js"
	Vendor = "vendor.aaaaaaaaaaaaaaaaaaaa.js"
	Style  = "app.bbbbbbbbbbbbbbbbbbbb.css"
	Chunk  = "late.cccccccccccccccccccc.js"
)

// Recorder is the text of the script. Like the real one it reads the parameters of the page and the token, loads
// another script, and sends requests. The names of the parameters, the kind of page and the answer are put into the
// page, where a test with a browser finds them.
const Recorder = `"use strict";
const address = document.currentScript.src;
document.addEventListener("DOMContentLoaded", async () => {
    const page = document.querySelector("#page-params");
    const params = JSON.parse(page.dataset.params);
    page.remove();
    const token = document.querySelector("input[name=csrfmiddlewaretoken]").value;
    const record = (id, text) => {
        const shown = document.createElement("pre");
        shown.id = id;
        shown.textContent = text;
        document.body.append(shown);
    };
    record("recorded-params", Object.keys(params).sort().join(" "));
    record("recorded-user", params.state_data ? params.state_data.email : "none");
    const late = document.createElement("script");
    late.src = new URL("` + Chunk + `", address).href;
    document.head.append(late);
    const answer = await fetch("/json/users/me/presence", {
        method: "POST",
        headers: {"X-CSRFToken": token, "Content-Type": "application/x-www-form-urlencoded"},
        body: "status=active",
    });
    record("recorded-answer", String(answer.status));
});
`

// index is the template of the page, with every construct that real ones have.
const index = `{% extends "zerver/base.html" %}
{% set entrypoint = "app" %}
{# Not part of a block. #}
{% set PAGE_TITLE = _("Public view of {org_name}").format(org_name=realm_name) %}
{% block meta_viewport %}
<meta name="viewport" content="width=device-width{% if is_firefox_android %}, interactive-widget=resizes-content{% endif %}" />
{% endblock %}
{% block customhead %}
{% if enable_gravatar %}<link rel="dns-prefetch" href="https://secure.gravatar.com" />
{% endif -%}
{% if s3_avatar_public_url_prefix %}<link rel="dns-prefetch" href="{{ s3_avatar_public_url_prefix }}" />{% endif %}
<link href="{{ static('images/logo/apple-touch-icon-precomposed.png') }}" rel="apple-touch-icon-precomposed" />
{% endblock %}
{% block content %}
{% if has_web_public_streams %}<!-- visitors can read -->{% else %}<!-- visitors cannot read -->{% endif %}
{# a comment #}
<div id="app-loading"><p>{% trans %}Loading
    <a href="">again</a>.{% endtrans %}</p></div>
<div id="of-this-release-only" title="{{ _('Load more') }}"></div>
<script nonce="{{ csp_nonce }}">document.body.dataset.inline = "ran";</script>
<div id="compose" {% if embedded %}data-embedded{% endif %}></div>
<form id="logout_form" action="/accounts/logout/" method="POST">{{ csrf_input }}</form>
{% endblock %}
`

// Release is the files of a release by their paths. Change them before Write.
type Release map[string]string

// New returns the files of a release of a feature level.
func New(level int) Release {
	const static, bundles = "prod-static/serve/", "prod-static/serve/webpack-bundles/"
	const table = `{"code_to_names":{"1f44d":["from_the_release"]}}`
	return Release{
		"version.py": fmt.Sprintf("import os\n\nZULIP_VERSION = \"12.3\"\n\n# comment\nAPI_FEATURE_LEVEL = %d\n",
			level),
		"webpack-stats-production.json": `{"status":"done","publicPath":"auto","assets":{},"chunks":{"app":["` + Style +
			`","` + Vendor + `","` + Script + `","app.js.map"],"portico":["portico.js"]}}`,
		"staticfiles.json": `{"version":"1.1","paths":{` +
			`"generated/emoji/emoji_api.json":"generated/emoji/emoji_api.0123456789ab.json"}}`,
		"templates/zerver/app/index.html": index,
		"templates/zerver/base.html":      "{% block content %}{% endblock %}",
		"locale/language_name_map.json": `{"name_map":[{"code":"en","locale":"en","name":"English"},` +
			`{"code":"de","locale":"de","name":"Deutsch","percent_translated":98},` +
			`{"code":"pt-br","locale":"pt_BR","name":"Português Brasileiro","percent_translated":50}]}`,
		"locale/de/translations.json": `{"Load more":"\"Mehr\" laden","Loading <a href=\"\">again</a>.":` +
			`"Lade <a href=\"\">neu</a>.","Drafts":"Entwürfe <b>'&'</b>"}`,
		"locale/pt_BR/translations.json":                             `{}`,
		"prod-static/secret.txt":                                     "not below serve",
		bundles + Style:                                              "#compose { color: red; }\n",
		bundles + Vendor:                                             "self.vendor = true;\n",
		bundles + Script:                                             Recorder,
		bundles + Chunk:                                              `document.body.dataset.late = "ran";` + "\n",
		bundles + "files/a.0123456789abcdef0123.png":                 "a picture",
		static + "generated/emoji/emoji_api.json":                    table,
		static + "generated/emoji/emoji_api.0123456789ab.json":       table,
		static + "generated/emoji/images-google-64/1f44d.png":        "a thumb",
		static + "images/favicon.svg":                                "<svg/>",
		static + "images/favicon.png":                                "an icon",
		static + "images/logo/zulip-org-logo.svg":                    "<svg><!-- of the release --></svg>",
		static + "images/logo/apple-touch-icon-precomposed.png":      "touch",
		static + "audio/notification_sounds/zulip.ogg":               "ding",
		static + "webpack-bundles/.hidden.0123456789abcdef0123.json": "hidden",
	}
}

// Write writes the files into a folder, with compressed forms of the bundle beside them, and returns the folder.
func (r Release) Write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	files := maps.Clone(r)
	for _, name := range []string{Script, Style} {
		path := "prod-static/serve/webpack-bundles/" + name
		if text, ok := r[path]; ok {
			files[path+".gz"] = zipped(t, text)
		}
	}
	for path, text := range files {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func zipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
