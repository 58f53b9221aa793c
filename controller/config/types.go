package config

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// Type is what the value of a key may be, in words and by how its text is read.
type Type struct {
	want  string
	words []string // the values of a closed list
	list  bool     // a list in YAML is its items with commas between them
	path  bool     // a relative one on the command line counts from the working directory
	gone  bool     // a key of older versions, which takes no value
	read  func(text string) (value any, ok bool)
}

func (t Type) takes(text string) bool {
	_, ok := t.read(text)
	return ok
}

// maxSocketPath is the longest path in the kernel's sockaddr_un, without the final zero.
const maxSocketPath = 107

func parses[T any](want string, parse func(string) (T, error), ok func(T) bool) Type {
	return Type{want: want, read: func(s string) (any, bool) {
		v, err := parse(s)
		return v, err == nil && ok(v)
	}}
}

// texts returns the texts for which something is true.
func texts(want string, is func(string) bool) Type {
	return Type{want: want, read: func(s string) (any, bool) { return s, is(s) }}
}

// within takes what is in a closed range: no NaN is.
func within[T cmp.Ordered](least, most T) func(T) bool {
	return func(v T) bool { return v >= least && v <= most }
}

func anything[T any](T) bool { return true }

func paths() Type { return pathOf("an absolute path", math.MaxInt) }

func sockets() Type { return pathOf("an absolute path of at most 107 bytes", maxSocketPath) }

func pathOf(want string, most int) Type {
	t := texts(want, func(s string) bool { return filepath.IsAbs(s) && !strings.ContainsRune(s, 0) && len(s) <= most })
	t.path = true
	return t
}

func words(list ...string) Type {
	t := texts("one of "+strings.Join(list, ", "), func(s string) bool { return slices.Contains(list, s) })
	t.words = list
	return t
}

// never takes no value: the key is gone, or another is meant.
func never(want string) Type {
	return Type{want: want, gone: true, read: func(string) (any, bool) { return nil, false }}
}

func booleans() Type { return parses("true or false", strconv.ParseBool, anything) }

func whole(least, most int) Type {
	return parses(fmt.Sprintf("a whole number from %d to %d", least, most), strconv.Atoi, within(least, most))
}

func float(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

func memory(s string) (float64, error) {
	b, err := tuning.ParseBytes(s)
	return float64(b), err
}

func share() Type { return parses("a number from 0 to 1", float, within(0., 1)) }

func atLeast(least float64) Type {
	return parses(fmt.Sprintf("a number of at least %g", least), float, within(least, math.MaxFloat64))
}

func times() Type { return parses("a time such as 60s, 90m or 4h", tuning.ParseDuration, anything) }

func period(least, most time.Duration) Type {
	return parses(fmt.Sprintf("a time from %v to %v", least, most), tuning.ParseDuration, within(least, most))
}

func match(pattern, s string) bool { return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(s) }

func matching(want, pattern string) Type {
	return texts(want, func(s string) bool { return match(pattern, s) })
}

const namePattern = `[A-Za-z0-9_-]{1,64}`

func names() Type {
	return matching("a name of at most 64 letters, digits, dashes and underscores", namePattern)
}

func list(of, item string) Type {
	t := texts("names of "+of+" with commas between them", func(s string) bool {
		all := strings.Split(s, ",")
		slices.Sort(all)
		return match(item+`(,`+item+`)*`, s) && len(slices.Compact(all)) == strings.Count(s, ",")+1
	})
	t.list = true
	return t
}

const slurmName = `[^,\s|]+`

// loopback refuses every address that other machines reach: /metrics beyond this machine needs
// TLS and authentication.
func loopback() Type {
	const want = "a loopback address and a port such as 127.0.0.1:9821 (for other machines put a proxy with TLS and authentication in front)"
	return texts(want, func(s string) bool {
		host, port, err := net.SplitHostPort(s)
		return err == nil && whole(0, 65535).takes(port) && (host == "localhost" || net.ParseIP(host).IsLoopback())
	})
}

func exporterNodes() Type {
	const node = "{node}"
	return texts("unix:/PATH/{node}.sock or https://{node}:PORT", func(s string) bool {
		return strings.Contains(s, node) && api.CheckAddress(strings.ReplaceAll(s, node, "n")) == nil
	})
}

func storePrefix() Type {
	return texts("at most 48 letters, digits, dashes and underscores with slashes between them, and not nomad", func(s string) bool {
		return len(s) <= 48 && match(`[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*`, s) && s != "nomad" && !strings.HasPrefix(s, "nomad/")
	})
}

func optional(t Type) Type {
	out := or(t, "")
	out.want = t.want + ", or nothing"
	return out
}

func or(t Type, word string) Type {
	read := t.read
	t.want += ", or " + word
	t.read = func(s string) (any, bool) {
		if s == word {
			return s, true
		}
		return read(s)
	}
	return t
}
