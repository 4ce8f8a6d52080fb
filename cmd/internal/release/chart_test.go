package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The chart passes helm's own checks, and its objects have the values that the server needs.
func TestChart(t *testing.T) {
	helm, err := exec.LookPath("helm")
	if err != nil {
		t.Skip("helm is not installed; make release-check installs it")
	}
	r := newTestRelease(t, "v0.9.0")
	if err := r.Chart(); err != nil {
		t.Fatal(err)
	}
	chart := r.path("parley-chart-0.9.0.tgz")
	if _, err := run(".", nil, helm, "lint", "--strict", chart); err != nil {
		t.Fatal(err)
	}
	render := func(args ...string) map[string]string {
		t.Helper()
		out, err := run(".", nil, helm, append([]string{"template", "chat", chart}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		objects := map[string]string{}
		for _, text := range strings.Split(out, "\n---\n") {
			var object struct{ Kind string }
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			objects[object.Kind] = text
		}
		return objects
	}
	objects := render()
	if objects["Ingress"] != "" || strings.Contains(objects["StatefulSet"], "9993") {
		t.Error("the chart opens ports that were not asked for")
	}
	for _, want := range []string{"image: \"parley:0.9.0\"", "replicas: 1", "terminationGracePeriodSeconds: 90",
		"readOnlyRootFilesystem: true", "mountPath: /data"} {
		if !strings.Contains(objects["StatefulSet"], want) {
			t.Errorf("the server lacks %s:\n%s", want, objects["StatefulSet"])
		}
	}
	objects = render("--set", "url=https://chat.example.org,settings.smtp-host=mail.example.org,metrics=true",
		"--set", "ingress.enabled=true,ingress.host=chat.example.org,ingress.tlsSecret=chat,existingSecret=keys")
	for _, want := range []string{"--url=https://chat.example.org", "--smtp-host=mail.example.org", "9993",
		"secretRef: {name: keys}"} {
		if !strings.Contains(objects["StatefulSet"], want) {
			t.Errorf("the server lacks %s:\n%s", want, objects["StatefulSet"])
		}
	}
	if !strings.Contains(objects["Ingress"], "secretName: chat") {
		t.Errorf("no TLS:\n%s", objects["Ingress"])
	}
	if out, err := run(".", nil, helm, "template", "chat", chart, "--set", "ingress.enabled=true"); err == nil {
		t.Errorf("an ingress without a host is accepted:\n%s", out)
	}
}

// Values of the chart that no template uses are a mistake, as are values that a template reads and no file names.
func TestChartValues(t *testing.T) {
	text, err := os.ReadFile("../../../.deploy/chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	var templates strings.Builder
	files, err := filepath.Glob("../../../.deploy/chart/templates/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no templates: ", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		templates.Write(text)
	}
	for name := range values {
		if !strings.Contains(templates.String(), ".Values."+name) {
			t.Errorf("no template uses the value %s", name)
		}
	}
	for _, part := range strings.Split(templates.String(), ".Values.")[1:] {
		end := strings.IndexFunc(part, func(c rune) bool { return !strings.ContainsRune(nameCharacters, c) })
		if _, ok := values[part[:max(end, 0)]]; !ok {
			t.Errorf("a template uses the value %s, which values.yaml does not have", part[:max(end, 0)])
		}
	}
}

const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
