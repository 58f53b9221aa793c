// Package config reads the settings of the controller and of the broker, and the site's
// policy for jobs.
//
// Input: flags, the environment as a value, and two YAML files. Output: a Config and a
// SitePolicy whose fields are all valid, or every fault at once, each with its place, what
// is there, and what is allowed.
//
// A flag overrides the environment, the environment the file, and the file the default.
// Both files are strict: an unknown key is an error, since a misspelt limit limits
// nothing. One table of keys (keys.go) makes flags, variables, checks and REFERENCE.md.
//
// The package never watches a file, never writes one, and creates no directory but that of
// the state (MakeState).
package config
