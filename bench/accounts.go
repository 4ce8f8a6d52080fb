package bench

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"parley/bench/crowd"
	"parley/bench/swarm"
)

// maxAccounts bounds the rows of an accounts file. A generator uses far fewer users.
const maxAccounts = 1_000_000

// keyForm is the form of an API key: servers of the protocol create keys of 32 letters and digits.
var keyForm = regexp.MustCompile(`^[A-Za-z0-9]{32}$`)

// readAccounts reads existing accounts from a CSV file with the columns email, and key or password, and optionally
// host,
// the Host header of the user's organization. The first row may name the columns; without names, the second column is a
// key if all its values have the form of one, else a password.
func readAccounts(file string) ([]person, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := csv.NewReader(f)
	c.TrimLeadingSpace, c.FieldsPerRecord = true, 0
	c.Comment = '#'
	columns := map[string]int{"email": 0}
	var rows [][]string
	for {
		row, err := c.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(rows) == 0 && len(columns) == 1 && !strings.Contains(row[0], "@") {
			for i, name := range row {
				columns[strings.ToLower(strings.TrimSpace(name))] = i
			}
			continue
		}
		if len(rows) >= maxAccounts {
			return nil, fmt.Errorf("%s has more than %d accounts", file, maxAccounts)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no account", file)
	}
	if len(columns) == 1 && len(rows[0]) >= 2 {
		columns["password"] = 1
		if !slices.ContainsFunc(rows, func(row []string) bool { return !keyForm.MatchString(row[1]) }) {
			columns = map[string]int{"email": 0, "key": 1}
		}
	}
	_, hasKey := columns["key"]
	_, hasPassword := columns["password"]
	if !hasKey && !hasPassword {
		return nil, fmt.Errorf("%s needs the columns email,key or email,password", file)
	}
	value := func(row []string, name string) string {
		if i, ok := columns[name]; ok && i < len(row) {
			return strings.TrimSpace(row[i])
		}
		return ""
	}
	var out []person
	for i, row := range rows {
		p := person{Email: value(row, "email"), Key: value(row, "key"), Host: value(row, "host"),
			password: value(row, "password")}
		if !strings.Contains(p.Email, "@") || p.Key == "" && p.password == "" || strings.ContainsAny(p.Host, "\r\n /") {
			return nil, fmt.Errorf("%s: account %d needs an email address and a key or password", file, i+1)
		}
		out = append(out, p)
	}
	return out, nil
}

// accountBuilder uses the accounts of a file and the channels they are subscribed to. It creates nothing.
type accountBuilder struct {
	people   []person
	channels []string // names of the channels to use; empty: all
}

func (a accountBuilder) Build(r *run, _ crowd.Plan) (*population, error) {
	pop := &population{how: "from a file of accounts", people: a.people}
	r.placePeople(pop.people)
	if err := r.fetchKeys(pop.people); err != nil {
		return nil, err
	}
	if err := r.fetchOwnIDs(pop.people); err != nil {
		return nil, err
	}
	if err := r.fetchSubscriptions(pop); err != nil {
		return nil, err
	}
	if len(a.channels) > 0 {
		pop.channels = slices.DeleteFunc(pop.channels, func(c channel) bool {
			return !slices.Contains(a.channels,
				c.Name)
		})
	}
	if len(pop.channels) == 0 {
		return nil, errors.New("the accounts are not subscribed to any channel that may be used")
	}
	return pop, nil
}

// fetchKeys fetches the API keys of the accounts that have only a password.
func (r *run) fetchKeys(people []person) error {
	var without []*person
	for i := range people {
		if people[i].Key == "" {
			without = append(without, &people[i])
		}
	}
	return r.callEach(len(without), func(i int) *swarm.Call {
		c := r.newCall("POST", "fetch_api_key", nil, params{"username": without[i].Email,
			"password": without[i].password})
		c.Host = without[i].Host
		return c
	}, func(i int, body []byte) error {
		var v struct {
			Key string `json:"api_key"`
		}
		if err := json.Unmarshal(body, &v); err != nil {
			return err
		}
		if v.Key == "" {
			return fmt.Errorf("fetch_api_key answered without a key for %s", without[i].Email)
		}
		without[i].Key = v.Key
		without[i].setAuth(r.server.host)
		return nil
	})
}

// fetchOwnIDs fetches the user ids of the accounts, which also shows that each key is valid.
func (r *run) fetchOwnIDs(people []person) error {
	return r.callEach(len(people), func(i int) *swarm.Call {
		return r.newCall("GET", "users/me", &people[i], nil)
	}, func(i int, body []byte) error {
		var v struct {
			ID int64 `json:"user_id"`
		}
		if err := json.Unmarshal(body, &v); err != nil {
			return err
		}
		people[i].ID = v.ID
		return nil
	})
}
