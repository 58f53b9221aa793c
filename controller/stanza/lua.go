package stanza

import (
	"fmt"
	"strings"

	"pitchpipe/driver/jobfile"
)

// LuaTable is what Slurm's submission plugin knows of a stanza: blocks, keys and words, the
// bytes of a value, and the knobs whose values have units.
func LuaTable() string {
	var b strings.Builder
	b.WriteString("-- This file is generated from the keys of `pitchpipe validate`. Do not edit it.\n\nreturn {\n  blocks = {\n")
	for _, block := range Blocks() {
		fmt.Fprintf(&b, "    [%q] = {\n      want = %q,\n      keys = {\n", block, oneOf(namesOf(keysOf(block))))
		for _, k := range keysOf(block) {
			fmt.Fprintf(&b, "        %s = %s,\n", k.Name, luaKey(k))
		}
		b.WriteString("      },\n    },\n")
	}
	fmt.Fprintf(&b, "  },\n  want = %q,\n", oneOf(Blocks()[1:]))
	b.WriteString("  amounts = { memory = true, power_limit = true },\n")
	// In a Lua pattern % escapes the byte behind it.
	fmt.Fprintf(&b, "  other_bytes = %q,\n}\n", "[^"+strings.NewReplacer("%", "%%", "=-", "=%-").Replace(jobfile.ValueBytes)+"]")
	return b.String()
}

// luaKey lists the words of a key, where it takes nothing else.
func luaKey(k Key) string {
	words := k.Words
	switch k.Type {
	case TypeBool:
		words = []string{"true", "false"}
	case TypeWord:
	default:
		return "{}"
	}
	return fmt.Sprintf("{ want = %q, words = { [%s] = true } }", k.allowed(), `"`+strings.Join(words, `"] = true, ["`)+`"`)
}
