package form

import (
	"encoding/json"
	"strings"
	"testing"
)

// panicsWith checks that each declaration panics with a BUG that contains its key.
func panicsWith(t *testing.T, declarations map[string]func()) {
	t.Helper()
	for why, declare := range declarations {
		func() {
			defer func() {
				r := recover()
				if s, ok := r.(string); !ok || !strings.HasPrefix(s, "BUG: ") || !strings.Contains(s, why) {
					t.Errorf("want a BUG with %q, got %v", why, r)
				}
			}()
			declare()
		}()
	}
}

func TestFieldDeclarationPanics(t *testing.T) {
	type private struct {
		a int `form:"a"`
	}
	_ = private{}.a // silences "unused field"
	panicsWith(t, map[string]func(){
		"not a struct":  func() { Of[int]() },
		"has no tag":    func() { Of[struct{ A int }]() },
		"has a tag but": func() { Of[private]() },
		"has no name": func() {
			Of[struct {
				A int `form:",required"`
			}]()
		},
		"declared twice": func() {
			Of[struct {
				A int `form:"a"`
				B int `form:"b,alias=a"`
			}]()
		},
	})
}

func TestOptionDeclarationPanics(t *testing.T) {
	panicsWith(t, map[string]func(){
		"option maxlen": func() {
			Of[struct {
				A int `form:"a,maxlen=3"`
			}]()
		},
		"option requred": func() {
			Of[struct {
				A int `form:"a,requred"`
			}]()
		},
		"min is not": func() {
			Of[struct {
				A int `form:"a,min=x"`
			}]()
		},
		"maxlen is not": func() {
			Of[struct {
				A string `form:"a,maxlen=-1"`
			}]()
		},
		"the default is refused": func() {
			Of[struct {
				A bool `form:"a,default=yes"`
			}]()
		},
		"a default is impossible": func() {
			Of[struct {
				A *bool `form:"a,default=true"`
			}]()
		},
		"option extension": func() {
			type nested struct {
				B int `form:"b,extension=only whole parameters have a mark"`
			}
			Of[struct {
				A nested `form:"a"`
			}]()
		},
		"an extension has a reason": func() {
			Of[struct {
				A int `form:"a,extension"`
			}]()
		},
		"given twice": func() {
			Of[struct {
				A int `form:"a,min=1,min=2"`
			}]()
		},
		"json and raw contradict": func() {
			Of[struct {
				A int `form:"a,raw"`
			}]()
		},
	})
}

func TestTypeDeclarationPanics(t *testing.T) {
	type self struct {
		Again []*self `form:"again"`
	}
	panicsWith(t, map[string]func(){
		"nothing decodes": func() {
			Of[struct {
				A chan int `form:"a"`
			}]()
		},
		"contains itself": func() {
			Of[struct {
				A self `form:"a"`
			}]()
		},
		"map keys must": func() {
			Of[struct {
				A map[int]int `form:"a"`
			}]()
		},
		"a whole parameter": func() {
			Of[struct {
				A []Anchor `form:"a"`
			}]()
		},
		"cannot be nested": func() {
			Of[struct {
				A Opt[Null[int]] `form:"a"`
			}]()
		},
		"no JSON form": func() {
			Of[struct {
				A Null[Anchor] `form:"a"`
			}]()
		},
	})
}

func TestPathDeclarationPanics(t *testing.T) {
	panicsWith(t, map[string]func(){
		"plain, always": func() {
			Of[struct {
				A int `path:"a,required"`
			}]()
		},
		"always present, and": func() {
			Of[struct {
				A string `path:"a,json"`
			}]()
		},
		"a path parameter must be": func() {
			Of[struct {
				A bool `path:"a"`
			}]()
		},
		"takes no options": func() {
			Of[struct {
				A int `path:"a,max=4"`
			}]()
		},
	})
}

func TestDescribe(t *testing.T) {
	byName := map[string]Param{}
	for _, p := range allFieldsForm.Describe() {
		byName[p.Name] = p
	}
	for name, want := range map[string]string{
		"message_id": `{"Name":"message_id","Aliases":null,"Where":"path","JSON":false,` +
			`"Schema":{"type":"integer"},"Required":true,"Hidden":false,"Extension":""}`,
		"topic": `{"Name":"topic","Aliases":["subject"],"Where":"form","JSON":false,"Schema":{"maxLength":10,` +
			`"type":"string"},"Required":false,"Hidden":false,"Extension":""}`,
		"flag": `{"Name":"flag","Aliases":null,"Where":"form","JSON":true,"Schema":{"default":true,` +
			`"type":"boolean"},"Required":false,"Hidden":false,"Extension":""}`,
		"null_s": `{"Name":"null_s","Aliases":null,"Where":"form","JSON":true,"Schema":{"nullable":true,` +
			`"type":"string"},"Required":false,"Hidden":false,"Extension":""}`,
		"policy": `{"Name":"policy","Aliases":null,"Where":"form","JSON":true,"Schema":{"enum":[1,2,3],` +
			`"type":"integer"},"Required":false,"Hidden":false,"Extension":""}`,
		"num_before": `{"Name":"num_before","Aliases":null,"Where":"form","JSON":true,"Schema":{"maximum":5000,` +
			`"minimum":0,"type":"integer"},"Required":false,"Hidden":false,"Extension":""}`,
		"lax": `{"Name":"lax","Aliases":null,"Where":"form","JSON":true,` +
			`"Schema":{"additionalProperties":true,"nullable":true,"properties":{"a":{"type":"integer"}},` +
			`"required":["a"],"type":"object"},"Required":false,"Hidden":false,"Extension":""}`,
		"members": `{"Name":"members","Aliases":null,"Where":"form","JSON":false,"Schema":{"enum":["true",` +
			`"false","partial"],"type":"string"},"Required":false,"Hidden":false,"Extension":""}`,
	} {
		got, err := json.Marshal(byName[name])
		if err != nil || string(got) != want {
			t.Errorf("%s:\n got %s\nwant %s %v", name, got, want, err)
		}
	}
}
