package shape_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"parley/wire/shape"
)

type userJSON struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Bot  bool   `json:"bot,omitzero"`
}

type answer struct {
	_       struct{}   `const:"result=success"`
	Members []userJSON `json:"members"`
	Next    *int       `json:"next"`
}

// decode decodes JSON as Check requires it: numbers are json.Number.
func decode(text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

func ExampleShape_Check() {
	s := shape.Of(reflect.TypeFor[answer]())
	good := `{"result":"success","members":[{"id":7,"name":"Ann"}],"next":null}`
	bad := `{"result":"success","members":[{"id":"7","age":30}],"next":null}`
	fmt.Println(s.Check("GET /users", "", decode(good)).Err())
	fmt.Println(s.Check("GET /users", "", decode(bad)).Err())
	// Output:
	// <nil>
	// GET /users: members[0].age: unknown field (30)
	// GET /users: members[0].id: "7", want integer
	// GET /users: members[0].name: missing
}

func ExampleShape_Schema() {
	var named []string
	schema := shape.Of(reflect.TypeFor[answer]()).Schema("#/components/schemas/", func(s *shape.Shape) {
		named = append(named, s.Name)
	})
	text, _ := json.Marshal(schema["properties"].(map[string]any)["members"])
	fmt.Println(string(text))
	fmt.Println(named)
	// Output:
	// {"items":{"$ref":"#/components/schemas/User"},"type":"array"}
	// [User]
}
