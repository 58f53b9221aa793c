package local

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"pitchpipe/driver"
	"pitchpipe/driver/local/supervise"
)

// findOwner finds the user that a job runs as. Only root runs jobs for others.
func findOwner(name string) (owner, error) {
	self, err := user.Current()
	if err != nil {
		return owner{}, fmt.Errorf("who runs this driver: %w: %w", driver.ErrTransient, err)
	}
	if name == "" || name == self.Username {
		return owner{name: self.Username, home: self.HomeDir}, nil
	}
	u, err := user.Lookup(name)
	if _, ok := errors.AsType[user.UnknownUserError](err); ok {
		return owner{}, fmt.Errorf("user %q is unknown: %w", name, driver.ErrInvalid)
	}
	if err != nil {
		return owner{}, fmt.Errorf("user %q: %w: %w", name, driver.ErrTransient, err)
	}
	if os.Geteuid() != 0 {
		return owner{}, fmt.Errorf("user %s may not run jobs of user %s: %w", self.Username, name, driver.ErrDenied)
	}
	ids, err := u.GroupIds()
	if err != nil {
		return owner{}, fmt.Errorf("groups of user %q: %w: %w", name, driver.ErrTransient, err)
	}
	var numbers []uint32
	for _, text := range append([]string{u.Uid, u.Gid}, ids...) {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return owner{}, fmt.Errorf("user %q: %w: %w", name, driver.ErrInvalid, err)
		}
		numbers = append(numbers, uint32(n))
	}
	return owner{
		name: u.Username, home: u.HomeDir,
		user: &supervise.User{UID: numbers[0], GID: numbers[1], Groups: numbers[2:]},
	}, nil
}
