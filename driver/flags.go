package driver

import (
	"maps"
	"slices"
	"strings"
)

// WithFlags sets flags of a command line: "--k v" and "--k=v" are all replaced in
// place, and the missing ones are appended in the order of the names. Arguments after
// "--" are not flags.
func WithFlags(argv []string, args map[string]string) []string {
	var out, rest []string
	flags := argv
	if i := slices.Index(argv, "--"); i >= 0 {
		flags, rest = argv[:i], argv[i:]
	}
	found := map[string]bool{}
	for i := 0; i < len(flags); i++ {
		name, _, joined := strings.Cut(flags[i], "=")
		value, ok := args[name]
		switch {
		case !ok:
			out = append(out, flags[i])
		case joined:
			out = append(out, name+"="+value)
			found[name] = true
		default:
			out = append(out, name, value)
			found[name] = true
			i++ // its value, which a flag at the end may not have
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !found[name] {
			out = append(out, name, args[name])
		}
	}
	return append(out, rest...)
}
