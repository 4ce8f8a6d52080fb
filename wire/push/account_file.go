package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// AccountFile is the name of the file in the data directory with the server's account at the push bouncer. A backup
// does not contain it, as it does not contain the secret: parley push register --transfer gets the account back.
const AccountFile = "push-account.json"

// LoadAccount reads the account in a data directory; it is empty if there is none.
func LoadAccount(data string) (a BouncerAccount, err error) {
	path := filepath.Join(data, AccountFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return a, fmt.Errorf("read the account at the push bouncer from %s: %w", path, err)
	}
	return a, nil
}

// SaveAccount writes the account. The file is complete or absent, whenever the machine fails.
func SaveAccount(data string, a BouncerAccount) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	path := filepath.Join(data, AccountFile)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the account at the push bouncer: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("write the account at the push bouncer to %s: %w", path, err)
	}
	return nil
}
