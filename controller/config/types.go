package config

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// Type is what the value of a key may be, in words and as a check of its text.
type Type struct {
	want  string
	words []string // the values of a closed list
	list  bool     // a list in YAML is its items with commas between them
	path  bool     // a relative one on the command line counts from the working directory
	valid func(string) bool
}

// maxSocketPath is the longest path in the kernel's sockaddr_un, without the final zero.
const maxSocketPath = 107

func parses[T any](want string, parse func(string) (T, error), ok func(T) bool) Type {
	return Type{want: want, valid: func(s string) bool {
		v, err := parse(s)
		return err == nil && ok(v)
	}}
}

// within takes what is in a closed range: no NaN is.
func within[T cmp.Ordered](least, most T) func(T) bool {
	return func(v T) bool { return v >= least && v <= most }
}

func anything[T any](T) bool { return true }

func paths() Type { return pathOf("an absolute path", math.MaxInt) }

func sockets() Type { return pathOf("an absolute path of at most 107 bytes", maxSocketPath) }

func pathOf(want string, most int) Type {
	return Type{want: want, path: true, valid: func(s string) bool {
		return filepath.IsAbs(s) && !strings.ContainsRune(s, 0) && len(s) <= most
	}}
}

func words(list ...string) Type {
	return Type{want: "one of " + strings.Join(list, ", "), words: list, valid: func(s string) bool { return slices.Contains(list, s) }}
}

// never takes no value: the key is gone, or another is meant.
func never(want string) Type {
	return Type{want: want, valid: func(string) bool { return false }}
}

func booleans() Type { return parses("true or false", strconv.ParseBool, anything) }

func whole(least, most int) Type {
	return parses(fmt.Sprintf("a whole number from %d to %d", least, most), strconv.Atoi, within(least, most))
}

func float(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

func share() Type { return parses("a number from 0 to 1", float, within(0., 1)) }

func atLeast(least float64) Type {
	return parses(fmt.Sprintf("a number of at least %g", least), float, within(least, math.MaxFloat64))
}

func times() Type { return parses("a time such as 60s, 90m or 4h", tuning.ParseDuration, anything) }

func period(least, most time.Duration) Type {
	return parses(fmt.Sprintf("a time from %v to %v", least, most), tuning.ParseDuration, within(least, most))
}

func matching(want, pattern string) Type {
	return Type{want: want, valid: func(s string) bool { return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(s) }} // the table of keys is built often
}

const namePattern = `[A-Za-z0-9_-]{1,64}`

func names() Type {
	return matching("a name of at most 64 letters, digits, dashes and underscores", namePattern)
}

func list(of, item string) Type {
	t := matching("names of "+of+" with commas between them", item+`(,`+item+`)*`)
	shape := t.valid
	t.list, t.valid = true, func(s string) bool {
		all := strings.Split(s, ",")
		slices.Sort(all)
		return shape(s) && len(slices.Compact(all)) == strings.Count(s, ",")+1
	}
	return t
}

const slurmName = `[^,\s|]+`

// loopback refuses every address that other machines reach: /metrics beyond this machine needs
// TLS and authentication.
func loopback() Type {
	return Type{
		want: "a loopback address and a port such as 127.0.0.1:9821 (for other machines put a proxy with TLS and authentication in front)",
		valid: func(s string) bool {
			host, port, err := net.SplitHostPort(s)
			return err == nil && whole(0, 65535).valid(port) && (host == "localhost" || net.ParseIP(host).IsLoopback())
		},
	}
}

func exporterNodes() Type {
	const node = "{node}"
	return Type{want: "unix:/PATH/{node}.sock or https://{node}:PORT", valid: func(s string) bool {
		return strings.Contains(s, node) && api.CheckAddress(strings.ReplaceAll(s, node, "n")) == nil
	}}
}

func storePrefix() Type {
	t := matching("at most 48 letters, digits, dashes and underscores with slashes between them, and not nomad", `[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*`)
	return Type{want: t.want, valid: func(s string) bool {
		return len(s) <= 48 && t.valid(s) && s != "nomad" && !strings.HasPrefix(s, "nomad/")
	}}
}

func optional(t Type) Type {
	out := or(t, "")
	out.want = t.want + ", or nothing"
	return out
}

func or(t Type, word string) Type {
	valid := t.valid
	t.want += ", or " + word
	t.valid = func(s string) bool { return s == word || valid(s) }
	return t
}

// units decodes a text into what the units of a key mean.
func units(_, to reflect.Type, v any) (any, error) {
	switch text, _ := v.(string); to {
	case reflect.TypeFor[time.Duration]():
		return tuning.ParseDuration(text)
	case reflect.TypeFor[tuning.Bytes]():
		return tuning.ParseBytes(text)
	case reflect.TypeFor[int](): // the decoder would take 010 for an octal number
		return strconv.Atoi(text)
	}
	return v, nil
}
