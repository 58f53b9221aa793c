package filter

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Match decides about a row, anything that JSON can say.
func (e Expression) Match(row any) (bool, error) {
	if e.match == nil {
		return true, nil
	}
	text, err := json.Marshal(row)
	if err != nil {
		return false, err
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return false, err
	}
	return e.match(tree)
}

// find follows a selector; ok tells whether there is a value at its end. A missing key
// of a map is no value, a missing field is an error.
func find(row any, selector []string) (value any, ok bool, err error) {
	for i, key := range selector {
		m, isMap := row.(map[string]any)
		if row == nil {
			return nil, false, nil
		}
		if !isMap {
			return nil, false, fmt.Errorf("error finding value in datum: /%s at part %d: invalid value kind", strings.Join(selector, "/"), i)
		}
		v, has := m[key]
		if !has && i == 0 {
			return nil, false, fmt.Errorf("error finding value in datum: /%s at part 0: couldn't find key: struct field with name %q",
				strings.Join(selector, "/"), key)
		}
		if !has {
			return nil, false, nil
		}
		row = v
	}
	return row, true, nil
}

func said(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

func equal(selector []string, want string, negate bool) matcher {
	return func(row any) (bool, error) {
		v, ok, err := find(row, selector)
		if err != nil || !ok {
			return negate && err == nil, err
		}
		return (said(v) == want) != negate, nil
	}
}

func contains(selector []string, want string) matcher {
	return func(row any) (bool, error) {
		v, ok, err := find(row, selector)
		if err != nil || !ok {
			return false, err
		}
		switch v := v.(type) {
		case map[string]any:
			_, has := v[want]
			return has, nil
		case []any:
			for _, e := range v {
				if said(e) == want {
					return true, nil
				}
			}
		case string:
			return strings.Contains(v, want), nil
		}
		return false, nil
	}
}

func empty(selector []string) matcher {
	return func(row any) (bool, error) {
		v, ok, err := find(row, selector)
		if err != nil || !ok {
			return err == nil, err
		}
		switch v := v.(type) {
		case map[string]any:
			return len(v) == 0, nil
		case []any:
			return len(v) == 0, nil
		case string:
			return v == "", nil
		}
		return v == nil, nil
	}
}

func matches(selector []string, pattern string) (matcher, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return func(row any) (bool, error) {
		v, ok, err := find(row, selector)
		if err != nil || !ok {
			return false, err
		}
		return re.MatchString(said(v)), nil
	}, nil
}
