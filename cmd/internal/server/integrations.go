package server

import (
	"fmt"
	"os"

	"parley/wire/integrations"
)

// ReadIntegrations returns the services that are part of the program and those of an operator's folder; "" means no
// folder. An error names the file, and the line or the template.
func ReadIntegrations(dir string) (*integrations.Set, error) {
	set, err := integrations.Included()
	if err != nil || dir == "" {
		return set, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("integrations: %s is not a readable directory", dir)
	}
	if set, err = set.With(os.DirFS(dir)); err != nil {
		return nil, fmt.Errorf("integrations: %s/%w", dir, err)
	}
	return set, nil
}
