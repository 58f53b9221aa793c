package store

import (
	"fmt"
	"strings"
)

const (
	// MaxKey is the length of the longest key, in bytes.
	MaxKey = 512
	// MaxValue is the length of the longest value, in bytes.
	MaxValue = 8 << 20
)

// CheckKey returns ErrInvalid where key is no key: words of [A-Za-z0-9_.~-] with one
// slash between each two, none of them "." or "..", in at most MaxKey bytes.
func CheckKey(key string) error {
	if len(key) > MaxKey {
		return fmt.Errorf("key of %d bytes: %w: want at most %d", len(key), ErrInvalid, MaxKey)
	}
	for word := range strings.SplitSeq(key, "/") {
		if word == "" || word == "." || word == ".." || strings.ContainsFunc(word, odd) {
			return fmt.Errorf("key %q: %w: want words of letters, digits and _.~- with slashes between them", key, ErrInvalid)
		}
	}
	return nil
}

func odd(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.~-", r)
}

// CheckEntry returns ErrInvalid where the value cannot be stored under the key.
func CheckEntry(key string, value []byte) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if len(value) > MaxValue {
		return fmt.Errorf("value of %s: %w: %d bytes, want at most %d", key, ErrInvalid, len(value), MaxValue)
	}
	return nil
}
