package perf

// Decode is what reads the kernel's answer, for its fuzz test.
func Decode(buf []byte, c *Counts) error { return decode(buf, c) }

// Attrs are how the kernel is asked for the events of the catalogue, by name.
func Attrs() map[string]Attr {
	out := map[string]Attr{}
	for _, e := range Catalogue() {
		out[e.Name] = e.attr
	}
	return out
}
