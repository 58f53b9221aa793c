package proc

// Parse runs the parsers, for their fuzz test.
func Parse(data []byte) {
	_, _ = parseStat(data)
	_, _ = parseIO(data)
	_, _ = parseSwitches(data)
	_ = fatal(data)
}
