package mirror

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"pitchpipe/controller/store"
)

// First bytes of a stored value.
const (
	plain    = 'p'
	deflated = 'd'
)

// worth is from which size on it is tried to make a value smaller.
const worth = 256

// inflated bounds what a stored value may become.
const inflated = 64 * store.MaxValue

// pack makes a value what is stored: as it is, or compressed where that is smaller.
func pack(value []byte) []byte {
	if len(value) >= worth {
		out := bytes.NewBuffer([]byte{deflated})
		if w, err := flate.NewWriter(out, flate.DefaultCompression); err == nil {
			_, err := w.Write(value)
			if err == nil {
				err = w.Close()
			}
			if err == nil && out.Len() < len(value) {
				return out.Bytes()
			}
		}
	}
	return append([]byte{plain}, value...)
}

func unpack(stored []byte) ([]byte, error) {
	switch {
	case len(stored) > 0 && stored[0] == plain:
		return append([]byte{}, stored[1:]...), nil
	case len(stored) > 0 && stored[0] == deflated:
		out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(stored[1:])), inflated+1))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
		}
		if len(out) > inflated {
			return nil, fmt.Errorf("%w: a value of more than %d bytes", store.ErrDamaged, inflated)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%w: a value of no known form", store.ErrDamaged)
}

// step is what a batch does to one key.
type step struct {
	Value   []byte        `json:"value"`   // null: it is deleted
	Version store.Version `json:"version"` // that it had; 0: it was not there
}

// packBatch makes one value of several changes.
func packBatch(steps map[string]step) ([]byte, error) {
	raw, err := json.Marshal(steps)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	return pack(raw), nil
}

// unpackBatch returns no changes where the batch was carried out.
func unpackBatch(stored []byte) (map[string]step, error) {
	raw, err := unpack(stored)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	var steps map[string]step
	if err := json.Unmarshal(raw, &steps); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return steps, nil
}

// escape makes any text a key of a store: words as they are as far as they may be, any
// other byte as "~" and two hexadecimal digits, an empty word as "~".
func escape(key string) string {
	words := strings.Split(key, "/")
	for i, word := range words {
		words[i] = escapeWord(word)
	}
	return strings.Join(words, "/")
}

func escapeWord(word string) string {
	if word == "" {
		return "~"
	}
	var out strings.Builder
	for i := range len(word) {
		c := word[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' && i > 0 {
			out.WriteByte(c)
			continue
		}
		fmt.Fprintf(&out, "~%02x", c)
	}
	return out.String()
}

func unescape(key string) (string, error) {
	words := strings.Split(key, "/")
	for i, word := range words {
		plain, err := unescapeWord(word)
		if err != nil {
			return "", err
		}
		if escapeWord(plain) != word {
			return "", fmt.Errorf("%w: key %q", store.ErrDamaged, key)
		}
		words[i] = plain
	}
	return strings.Join(words, "/"), nil
}

func unescapeWord(word string) (string, error) {
	if word == "~" {
		return "", nil
	}
	var out []byte
	for i := 0; i < len(word); i++ {
		if word[i] != '~' {
			out = append(out, word[i])
			continue
		}
		var c byte
		if i+3 > len(word) {
			return "", fmt.Errorf("%w: word %q", store.ErrDamaged, word)
		}
		if _, err := fmt.Sscanf(word[i+1:i+3], "%02x", &c); err != nil {
			return "", fmt.Errorf("%w: word %q", store.ErrDamaged, word)
		}
		out = append(out, c)
		i += 2
	}
	return string(out), nil
}
