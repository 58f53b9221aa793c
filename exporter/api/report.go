package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseReport reads the body of a progress report: JSON, or words of the form
// key=value, or the one word saved. A report is about an epoch or of a checkpoint,
// never of both. Every error is ErrInvalid.
func ParseReport(body []byte) (Report, error) {
	body = bytes.TrimSpace(body)
	var r Report
	var err error
	if bytes.HasPrefix(body, []byte{'{'}) {
		err = json.Unmarshal(body, &r)
	} else {
		r, err = parseWords(string(body))
	}
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

func parseWords(text string) (Report, error) {
	var r Report
	for word := range strings.FieldsSeq(text) {
		key, value, ok := strings.Cut(word, "=")
		if word == "saved" {
			r.Saved = true
			continue
		}
		if !ok {
			return r, fmt.Errorf("%.40q is not of the form key=value", word)
		}
		var err error
		switch key {
		case "epoch":
			epoch, total, both := strings.Cut(value, "/")
			if r.Epoch, err = natural(epoch); err == nil && both {
				r.Total, err = natural(total)
			}
		case "total":
			r.Total, err = natural(value)
		case "loss":
			r.Loss, err = finite(value)
		case "quality":
			r.Quality, err = finite(value)
		default:
			err = fmt.Errorf("%.40q is none of epoch, total, loss and quality", key)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
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
