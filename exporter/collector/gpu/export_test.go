package gpu

// What the parsers of foreign output do is tested by itself.
var (
	ParseSMI  = parseSMI
	ParseApps = parseApps
)
