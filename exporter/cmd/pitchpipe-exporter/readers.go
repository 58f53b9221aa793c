package main

import (
	"fmt"
	"os/user"
	"strconv"
)

// parseReaders turns the names or numbers of accounts into numbers. The program is
// static: of names it knows those in /etc/passwd alone, so that an account of a
// directory service is given by its number.
func parseReaders(accounts []string) ([]uint32, error) {
	var out []uint32
	for _, account := range accounts {
		number := account
		if _, err := strconv.ParseUint(account, 10, 32); err != nil {
			known, err := user.Lookup(account)
			if err != nil {
				return nil, fmt.Errorf("%q: %w; an account that is not in /etc/passwd is given by its number", account, err)
			}
			number = known.Uid
		}
		uid, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%q has no number: %w", account, err)
		}
		out = append(out, uint32(uid))
	}
	return out, nil
}
