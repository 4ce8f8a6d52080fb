package shape_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/wire/shape"
)

// parse parses a notation that can contain the name User.
func parse(text string) *shape.Shape {
	s, err := shape.Parse(text, func(name string) (*shape.Shape, error) {
		if name != "User" {
			return nil, fmt.Errorf("no object %q", name)
		}
		user := parse("{id: int, name: str, bot?: bool}")
		user.Name = name
		return user, nil
	})
	if err != nil {
		panic(err)
	}
	return s
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
	answer := parse("{result: 'success', members: [User], next?: int?}")
	fmt.Println(answer.Check("GET /users", "", decode(`{"result":"success","members":[{"id":7,"name":"Ann"}]}`)).Err())
	fmt.Println(answer.Check("GET /users", "", decode(`{"result":"success","members":[{"id":"7","age":30}]}`)).Err())
	// Output:
	// <nil>
	// GET /users: members[0].age: unknown field (30)
	// GET /users: members[0].id: "7", want integer
	// GET /users: members[0].name: missing
}

func ExampleShape_Schema() {
	var named []string
	schema := parse("{members: [User]}").Schema("#/components/schemas/", func(s *shape.Shape) {
		named = append(named, s.Name)
	})
	text, _ := json.Marshal(schema["properties"])
	fmt.Println(string(text))
	fmt.Println(named)
	// Output:
	// {"members":{"items":{"$ref":"#/components/schemas/User"},"type":"array"}}
	// [User]
}
