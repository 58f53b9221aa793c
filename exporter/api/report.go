package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ParseReport reads the body of a progress report: JSON, or words of the form
// key=value, or the one word saved. A report is about an epoch or of a checkpoint,
// never of both. Every error is ErrInvalid.
func ParseReport(body []byte) (Report, error) {
	var r Report
	err := parse(body, &r, map[string]func(string) error{
		"saved": func(text string) error {
			if r.Saved = text == ""; !r.Saved {
				return errors.New("saved has no value")
			}
			return nil
		},
		"epoch": func(text string) (err error) {
			epoch, total, both := strings.Cut(text, "/")
			if r.Epoch, err = natural(epoch); err == nil && both {
				r.Total, err = natural(total)
			}
			return err
		},
		"total":   func(text string) (err error) { r.Total, err = natural(text); return err },
		"loss":    func(text string) (err error) { r.Loss, err = finite(text); return err },
		"quality": func(text string) (err error) { r.Quality, err = finite(text); return err },
	})
	if err != nil {
		return Report{}, fmt.Errorf("report: %w: %w", ErrInvalid, err)
	}
	switch {
	case r.Saved && (r.Epoch != 0 || r.Total != 0 || r.Loss != nil || r.Quality != nil):
		return Report{}, fmt.Errorf("report: %w: saved beside an epoch: want one of them", ErrInvalid)
	case r.Nth < 0:
		return Report{}, fmt.Errorf("report: %w: line %d: lines count from 1", ErrInvalid, r.Nth)
	case !r.Saved && (r.Epoch < 1 || r.Total < 0):
		return Report{}, fmt.Errorf("report: %w: epoch %d of %d: epochs count from 1", ErrInvalid, r.Epoch, r.Total)
	}
	return r, nil
}

// parse reads JSON into v, or words of the form key=value, or key alone, by the function of
// the key.
func parse(body []byte, v any, keys map[string]func(text string) error) error {
	body = bytes.TrimSpace(body)
	if bytes.HasPrefix(body, []byte{'{'}) {
		return json.Unmarshal(body, v)
	}
	for word := range strings.FieldsSeq(string(body)) {
		key, text, _ := strings.Cut(word, "=")
		if keys[key] == nil {
			return fmt.Errorf("%.40q is not of the form key=value with one of the keys %s", word, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		}
		if err := keys[key](text); err != nil {
			return fmt.Errorf("%.40q: %w", word, err)
		}
	}
	return nil
}

func natural(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a whole number", text)
	}
	return int(n), nil
}

// finite reads a number; a diverged loss is a number that says nothing, and its
// epoch ended all the same.
func finite(text string) (*float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, nil //nolint:nilnil // absent, which is no error
	}
	if err != nil {
		return nil, fmt.Errorf("%.40q is not a number", text)
	}
	return &v, nil
}
