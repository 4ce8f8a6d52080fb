package emoji

import (
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]string{"smile": "1f642", "+1": "1f44d", "thumbs_up": "1f44d", "cat": "1f408",
		"poop":     "1f4a9",
		"airplane": "2708", "hash": "0023-20e3", "woman_shrugging": "1f937-200d-2640", "phoenix": "1f426-200d-1f525"} {
		code, ok := CodeOf(name)
		if !ok || code != want {
			t.Errorf("%s: %s %v", name, code, ok)
		}
	}
	for _, name := range []string{"fried_egg", "skin-tone-2", "", "Smile"} {
		if code, ok := CodeOf(name); ok {
			t.Errorf("%q is %s", name, code)
		}
	}
	if name, ok := NameOf("1f44d"); !ok || name != "+1" {
		t.Error(name, ok)
	}
	if _, ok := NameOf("1f3fb"); ok {
		t.Error("a skin tone has a name")
	}
	if names := NamesByCode()["1f44d"]; !slices.Contains(names, "thumbs_up") || names[0] != "+1" {
		t.Error(names)
	}
}

// TestTable checks the table: each code occurs once, a name belongs to one code, and each character is read as
// itself.
func TestTable(t *testing.T) {
	codes, names := map[string]bool{}, map[string]string{}
	for _, e := range All() {
		if codes[e.Code] {
			t.Errorf("%s occurs twice", e.Code)
		}
		codes[e.Code] = true
		for _, name := range e.Names {
			if names[name] != "" {
				t.Errorf("%s names %s and %s", name, names[name], e.Code)
			}
			names[name] = e.Code
			if strings.ContainsAny(name, ": \t") {
				t.Errorf("%q is no valid name", name)
			}
		}
		s := Character(e.Code)
		if got := CodeOfCharacter(s); got != e.Code {
			t.Errorf("%s is read as %s", e.Code, got)
		}
		if e.IsText {
			if n, found := Next(s); n == 0 || found != nil {
				t.Errorf("%s is not text by default", e.Code)
			}
			s += "\ufe0f"
		}
		if strings.HasSuffix(e.Code, "20e3") {
			s = strings.Replace(s, "\u20e3", "\ufe0f\u20e3", 1)
		}
		if n, found := Next(s + "x"); n != len(s) || found == nil || found.Code != e.Code {
			t.Errorf("%s is not found: %d %v", e.Code, n, found)
		}
	}
	if len(codes) < 1800 {
		t.Errorf("only %d emoji", len(codes))
	}
}

func TestNext(t *testing.T) {
	for s, want := range map[string]int{"a": 0, "1": 0, "#": 0, "": 0, "\xff": 0, "\U0001f1e9": 0,
		"🍋\u200d🟪":  len("🍋\u200d🟪"),
		"👨🏿\u200d🦽": len("👨🏿\u200d🦽"), "©": 2, "🍋\u200d": 4} {
		if n, _ := Next(s); n != want {
			t.Errorf("%q: %d, want %d", s, n, want)
		}
	}
}
