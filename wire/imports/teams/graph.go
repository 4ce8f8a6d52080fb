package teams

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
)

// graphAddress is the address of Microsoft Graph.
const graphAddress = "https://graph.microsoft.com/v1.0"

const (
	maxAnswer = 16 << 20 // bytes of one page of an answer
	// maxPages limits the pages of one list, so that a list that never ends is an error. A page has 100 rows or more.
	maxPages = 20_000
	// administratorRole is the role of the owners of an organization.
	administratorRole = "Global Administrator"
)

// graphRow is an object of an answer.
type graphRow struct {
	ID   string `json:"id"`
	User string `json:"userId"`
	Name string `json:"displayName"`
}

// list passes the rows of a list to fn. A list that Microsoft Graph does not give is an error that names it.
func (s *source) list(path string, fn func(graphRow)) error {
	next := graphAddress + path
	for range maxPages {
		var page struct {
			Rows []graphRow `json:"value"`
			Next string     `json:"@odata.nextLink"`
		}
		r, err := s.o.Fetch(next, s.o.Token)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the token does not get %s%s: %v", graphAddress, path, err)
		}
		if err != nil {
			return err
		}
		err = json.NewDecoder(io.LimitReader(r, maxAnswer)).Decode(&page)
		if err := errors.Join(err, r.Close()); err != nil {
			return fmt.Errorf("the answer of %s%s cannot be read: %w", graphAddress, path, err)
		}
		for _, row := range page.Rows {
			fn(row)
		}
		if page.Next == "" {
			return nil
		}
		next = page.Next
	}
	return fmt.Errorf("the list %s%s has more than %d pages", graphAddress, path, maxPages)
}

// readRoles gets the administrators and the guests of the organization.
func (s *source) readRoles() error {
	if !s.online() {
		s.faults.Add("roles", "the export has no roles: without a token no user is an owner", usersFile)
		return nil
	}
	role := ""
	if err := s.list("/directoryRoles", func(r graphRow) {
		if r.Name == administratorRole {
			role = r.ID
		}
	}); err != nil {
		return err
	}
	if role != "" {
		if err := s.list("/directoryRoles/"+url.PathEscape(role)+"/members", func(r graphRow) {
			s.administrators[r.ID] = true
		}); err != nil {
			return err
		}
	}
	query := url.Values{"$filter": {"userType eq 'Guest'"}, "$select": {"id"}}
	return s.list("/users?"+query.Encode(), func(r graphRow) { s.guests[r.ID] = true })
}

// readMembers gets the members of a private or shared channel. It returns false without a token.
func (s *source) readMembers(c *channel) (bool, error) {
	if !s.online() {
		return false, nil
	}
	seen := map[string]bool{"": true}
	err := s.list("/teams/"+url.PathEscape(c.team.id)+"/channels/"+url.PathEscape(c.id)+"/members",
		func(r graphRow) {
			if !seen[r.User] {
				seen[r.User] = true
				c.members = append(c.members, r.User)
			}
		})
	return true, err
}

// online reports whether Microsoft Graph can be asked.
func (s *source) online() bool { return s.o.Fetch != nil && s.o.Token != "" }
